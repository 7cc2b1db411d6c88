"""Every page that links lead to: everybody can read it (axe-core), and nobody's text becomes a part of it.

The server is full of hostile texts (`hostile`), and the pages are walked (`walking`): a new page is tested as
soon as another one links to it.
"""

import json
import re
from importlib.resources import files

import pytest

from edgestead.web.pages import PAGES
from tests.clients.test_clients import installer
from tests.edge import chromium
from tests.edge.conftest import Site
from tests.web import test_cluster as cluster
from tests.web.hostile import PASSWORD, PLACES, RAN, ZONE, fill, flags, hostile, marked, operator
from tests.web.local import LocalSite, LocalVisitor
from tests.web.test_in_a_browser import Person
from tests.web.test_members_in_a_browser import typed
from tests.web.test_passkeys_in_a_browser import authenticator
from tests.web.walking import Read, one_of_each, walk

TYPED = hostile("typed")
NO_PAGE = {"/ui/live", "/ui/cluster"}  # a stream, and what a node of a cluster alone has: below
TEMPLATES = "".join(
    one.read_text() for one in (files("edgestead.web") / "templates").iterdir() if one.name.endswith(".html")
)
TAGS = set(re.findall(r"<([a-z][a-z0-9]*)", TEMPLATES))  # that are ours
ATTRIBUTES = set(re.findall(r'([a-z][a-z-]*)="', TEMPLATES.lower())) | {
    *("checked", "defer", "disabled", "open", "readonly", "required", "selected"),
}
LEADING = {"href", "src", "action", "formaction", "data-path", "data-stream", "srcset", "xlink:href"}
OURS = re.compile(r"/ui([/?#]|$)|[?#]|data:,$")
FILES = ("text/plain", "application/octet-stream")
UNLINKED = ("/ui/sign-in", "/ui/enter?code=x", "/ui/none")  # pages of no session, and of an error
LEVELS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa")  # WCAG 2.2 AA, as axe-core names its parts
VIEWS = [(width, scheme) for width in (1200, 360) for scheme in ("light", "dark")]
ASK_AXE = """
const [levels, done] = arguments;
axe.run(document, {
  runOnly: {type: "tag", values: levels}, rules: {"target-size": {enabled: true}},
  resultTypes: ["violations"],
}).then((found) => done({
  ran: found.passes.length,
  wrong: found.violations.flatMap((rule) => rule.nodes.map(
    (node) => [rule.id, node.target.join(" "), node.failureSummary])),
}), (error) => done({ran: 0, wrong: [["axe", "", String(error)]]}));
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    made = Site(folder, *flags(folder), zone=ZONE)
    try:
        fill(made)
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def answers(site):
    """Of all that links lead to, with files to download."""
    return walk(operator(site.server), TYPED)


@pytest.fixture(scope="module")
def walked(answers):
    return [one for one in answers if _is_page(one.page)]


def _is_page(page):
    return page.headers["content-type"].startswith("text/html")


@pytest.fixture(scope="module")
def person(site, walked, tmp_path_factory):
    """Signed in, in a real browser."""
    place = site.server.ready["api_base"].split("/")[2]
    with chromium.browsing(tmp_path_factory.mktemp("chromium"), {"localhost": place}) as driver:
        made = Person(driver, site.server)
        name, _, value = operator(site.server).cookie.partition("=")
        driver.get(made.base + "/ui/sign-in")
        driver.add_cookie({"name": name, "value": value, "path": "/ui"})
        yield made


def test_links_lead_to_every_page(answers):
    assert {row.path for row in PAGES} - {one.row for one in answers} == NO_PAGE


def theirs(read):
    """Elements, attributes and addresses of a page that no template of ours writes."""
    found = [tag for tag, _ in read.elements if tag not in TAGS]
    for tag, attributes in read.elements:
        for name, value in attributes.items():
            if name not in ATTRIBUTES or name.startswith("on") or name in ("style", "srcdoc"):
                found.append(f"{tag} {name}={value}")
            if name in LEADING and value and not OURS.match(value):
                found.append(f"{tag} {name}={value}")
    scripts = [attributes for tag, attributes in read.elements if tag == "script"]
    if len(scripts) != 1 or not scripts[0].get("src", "").startswith("/ui/static/page.js?"):
        found.append(f"scripts {scripts}")
    return found


def test_what_others_wrote_is_text_on_every_page(walked):
    """Shown as it was written, each of it somewhere; and a page of an error is a page."""
    assert {one.target: theirs(one.read) for one in walked if theirs(one.read)} == {}
    shown = "\n".join(one.read.everything for one in walked)
    assert [place for place in (*PLACES, "typed") if marked(place) not in shown] == []
    assert [(one.target, one.page.status) for one in walked if one.page.status >= 500] == []


def test_files_are_downloaded_and_never_shown(answers):
    for one in answers:
        if not _is_page(one.page):
            assert one.page.headers["content-type"].partition(";")[0] in FILES
            assert one.page.headers["content-disposition"].startswith("attachment")
            assert one.page.headers["x-content-type-options"] == "nosniff"


def test_what_others_wrote_is_text_in_every_answer_for_programs(site, walked):
    """Also for a browser that would guess: no answer as JSON holds what begins an element."""
    visitor = operator(site.server)
    for one in walked:
        path, mark, query = one.target.partition("?")
        page = visitor.get(f"{path}.json{mark}{query}")
        assert page.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in page.headers["content-security-policy"]
        if page.headers["content-type"] == "application/json":
            json.loads(page.text)
            assert "<" not in page.text, one.target
        else:  # a refusal is a page
            assert page.status >= 400, one.target
            assert theirs(Read(page.text)) == []


@chromium.needed
def test_nobodys_script_runs_in_a_browser(person, walked):
    """Neither does the browser have to refuse one: the policy of content is a second line."""
    person.driver.get_log("browser")
    for one in walked:
        person.driver.get(person.base + one.target)
        assert person.driver.execute_script(f"return window.{RAN}") is None, one.target
    told = [one["message"] for one in person.driver.get_log("browser")]
    assert [text for text in told if "the server responded with a status of 4" not in text] == []


@pytest.fixture(scope="module")
def axe():
    """The script of axe-core, from npm."""
    try:
        installer.install("axe")
    except (OSError, RuntimeError) as error:
        pytest.skip(f"NOT TESTED: npm could not install axe-core: {error}")
    return (installer.HOME / "npm" / "axe" / "node_modules" / "axe-core" / "axe.min.js").read_text()


def faults(driver, axe):
    """What is wrong with the page that is open, in every view."""
    found = []
    driver.execute_script(axe)
    for width, scheme in VIEWS:
        size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        answer = driver.execute_async_script(ASK_AXE, LEVELS)
        assert answer["ran"] or answer["wrong"]
        found += [f"{width} {scheme} {' | '.join(one)}" for one in answer["wrong"]]
    return found


@chromium.needed
def test_everybody_can_read_and_use_every_page(person, walked, axe):
    """WCAG 2.2 AA as far as axe-core sees it: light and dark, on a telephone and on a desk."""
    wrong = []
    for target in (*(one.target for one in one_of_each(walked)), *UNLINKED):
        person.driver.get(person.base + target)
        wrong += [f"{target} {one}" for one in faults(person.driver, axe)]
    person.driver.get(f"{person.base}/ui/zones/{ZONE}")
    person.find('//input[@id="name"]').send_keys("www")
    person.find('//input[@id="content"]').send_keys("not-an-address")
    person.press("Add")
    person.find('//*[@id="content-error"]')
    wrong += [f"a refused form {one}" for one in faults(person.driver, axe)]
    assert wrong == []


@chromium.needed
def test_everybody_can_read_and_use_the_page_of_a_member(person, axe):
    """With a password and a passkey, which the operator of the machine has not."""
    driver = person.driver
    driver.delete_all_cookies()
    driver.add_virtual_authenticator(authenticator())
    driver.get(f"http://localhost:{person.base.rpartition(':')[2]}/ui/sign-in")
    typed(person, email="h@example.com", password=PASSWORD)
    person.press("Sign in")
    person.follow("You")
    typed(person, name=hostile("passkey"))
    person.press("Register a passkey")
    person.sees("is registered")

    assert "Sign out everywhere" in driver.page_source
    assert driver.execute_script(f"return window.{RAN}") is None
    assert faults(driver, axe) == []


@pytest.fixture
def cluster_pages(tmp_path):
    """Of a node of a cluster: of one with hostile names, and of one whose database is away."""
    local = LocalSite(tmp_path)
    visitor = LocalVisitor(local)
    assert visitor.sign_in(local.ready["api_token"]).status == 303
    told = {name: hostile(name) for name in ("region", "address", "release")}
    nodes = [cluster.node(hostile("node"), "leads", **told), *cluster.FOUND["nodes"][1:]]
    found = []
    for more in ({"nodes": nodes, "troubles": [hostile("trouble")]}, {"error": hostile("error")}):
        cluster.joined(local, cluster.FOUND | more)
        found.append(visitor.get("/ui/cluster"))
    yield found
    local.close()


def test_what_nodes_say_of_themselves_is_text(cluster_pages):
    assert [theirs(Read(page.text)) for page in cluster_pages] == [[], []]
    assert all(marked(place) in cluster_pages[0].words for place in ("node", "region", "trouble"))
    assert marked("error") in cluster_pages[1].words


@chromium.needed
def test_everybody_can_read_the_page_of_a_cluster(person, axe, cluster_pages):
    """A page of another server, with the styles of this one, which is no node."""
    for page in cluster_pages:
        person.driver.get(person.base + "/ui/sign-in")
        person.driver.execute_script(
            "document.open(); document.write(arguments[0]); document.close()", page.text
        )
        person.wait(
            lambda driver: driver.execute_script("return document.readyState") == "complete", "styles"
        )
        person.find('//nav//a[@aria-current="page" and normalize-space()="Cluster"]')
        assert person.driver.execute_script("return getComputedStyle(document.body).margin") == "0px"
        assert faults(person.driver, axe) == []
