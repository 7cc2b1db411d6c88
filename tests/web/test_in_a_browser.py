"""The dashboard in a real browser, which follows what it sees: links and buttons alone, from `/` on."""

from contextlib import contextmanager

import pytest
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support import expected_conditions
from selenium.webdriver.support.ui import WebDriverWait

from tests.edge import chromium
from tests.edge.conftest import Site
from tests.edge.test_managed_server import ATTACK, RULES, deployed
from tests.web.conftest import BOOKING, hold, link_of

pytestmark = chromium.needed


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """With a rule set of the test's own, which is compiled at once."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "crs" / "rules").mkdir(parents=True)
    (folder / "crs" / "crs-setup.conf").write_text('SecComponentSignature "OWASP_CRS/4.0.0"\n')
    (folder / "crs" / "rules" / "one.conf").write_text(RULES)
    (folder / "booking.py").write_text(BOOKING)
    objects = ("--objects", str(folder / "booking.py"), "--objects-workers", "1")
    made = Site(folder, "--crs", str(folder / "crs"), *objects, zone="shop.example")
    yield made
    made.close()


class Person:
    """Somebody at a browser: `sees` waits for words of the page, `press` and `follow` for the next page."""

    def __init__(self, driver, server):
        self.driver = driver
        self.has_script = True
        self.base = server.ready["api_base"].removesuffix("/client/v4")

    def wait(self, condition, words):
        # a page that is being left has nodes of no document for a moment: look again
        patient = WebDriverWait(self.driver, chromium.WAIT_SECONDS, ignored_exceptions=(WebDriverException,))
        return patient.until(condition, words)

    def sees(self, words):
        self.wait(lambda driver: words in driver.find_element(By.TAG_NAME, "main").text, f"no {words!r}")

    def find(self, path):
        return self.wait(expected_conditions.element_to_be_clickable((By.XPATH, path)), f"no {path}")

    def follow(self, words):
        self.leave(f'//a[normalize-space()="{words}"]')

    def press(self, name, *, asked=None):
        """A button by what it says, or what a reader of the screen is told; `asked` has to be agreed to."""
        self.leave(f'//button[normalize-space()="{name}" or @aria-label="{name}"]', asked)

    def leave(self, path, asked=None):
        """Click what an XPath finds, and wait for the page that follows."""
        old, found = self.driver.find_element(By.TAG_NAME, "html"), self.find(path)
        found.click()
        if asked is not None and self.has_script:
            self.answer(asked, agrees=True)
        self.wait(expected_conditions.staleness_of(old), f"{path} led nowhere")

    def sign_in(self, secret):
        """With a token, at the root."""
        self.driver.get(self.base + "/")
        self.find('//input[@name="token"]').send_keys(secret)
        self.press("Sign in with the token")
        self.sees("Health")

    def answer(self, question, *, agrees):
        dialog = self.wait(expected_conditions.alert_is_present(), "no dialog")
        assert dialog.text == question
        dialog.accept() if agrees else dialog.dismiss()


@pytest.fixture(scope="module")
def driver(tmp_path_factory, site):
    place = site.server.ready["api_base"].split("/")[2]
    with chromium.browsing(tmp_path_factory.mktemp("chromium"), {"localhost": place}) as opened:
        yield opened


@pytest.fixture
def person(driver, site):
    """Signed in by the link of `edgecli dashboard`, at the root."""
    made = Person(driver, site.server)
    driver.delete_all_cookies()
    driver.get(made.base + link_of(site.server))
    made.press("Sign in")
    driver.get(made.base + "/")
    made.sees("Health")
    yield made
    assert driver.get_log("browser") == [], "no refusal of the page's own policy, and no missing file"


@pytest.fixture(params=[True, False], ids=["with script", "without script"])
def anybody(person, request):
    """A person whose browser runs the pages' script, and one whose does not."""
    with _script(person, request.param):
        person.driver.refresh()
        yield person


@pytest.fixture(params=[True, False], ids=["with script", "without script"])
def narrow(driver, site, request):
    """The same before a session, for somebody whose token may less: the browser notes refusals alone."""
    made = Person(driver, site.server)
    driver.delete_all_cookies()
    with _script(made, request.param):
        yield made
    told = [one["message"] for one in driver.get_log("browser")]
    assert [text for text in told if "the server responded with a status of 40" not in text] == []


@contextmanager
def _script(person, runs):
    person.has_script = runs
    person.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not runs})
    try:
        yield
    finally:
        person.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def token(server, resources, *words):
    """Identifier and secret of one with the permission groups whose names have one of these words."""
    known = server.call("GET", "/user/tokens/permission_groups").result
    groups = [{"id": one["id"]} for one in known if any(word in one["name"] for word in words)]
    policy = {"effect": "allow", "permission_groups": groups, "resources": resources}
    made = server.call("POST", "/user/tokens", {"name": "narrow", "policies": [policy]}).result
    return made["id"], made["value"]


def blocked(site):
    """The host of a request that was blocked, which has an event."""
    host, _ = deployed(site)
    assert site.get(host, "/search" + ATTACK[1:]).status == 403
    path = f"/zones/{site.zone_id}/security/events?host={host}&action=block"
    site.server.wait_until(lambda: site.server.call("GET", path).result, chromium.WAIT_SECONDS)
    return host


def test_why_was_this_blocked_and_allow_it(anybody, site):
    person = anybody
    host = blocked(site)

    person.follow("Zones")
    person.follow("shop.example")
    person.follow("Events")
    person.leave(f'//tr[contains(., "{host}/search")]//a')
    person.sees("Its score is 5, the threshold 5")
    person.sees("SQL words")
    person.sees("ARGS:id")
    person.press("Make an exception for this")

    person.sees("Requests like that one pass now")
    assert site.get(host, "/search" + ATTACK[1:]).status == 200
    assert site.get(host, ATTACK).status == 403
    person.press("Undo: delete the exception", asked="Undo: delete the exception?")
    person.sees("The exception is deleted")
    assert site.get(host, "/search" + ATTACK[1:]).status == 403

    person.follow("Managed rules")
    person.sees("would have been blocked")
    person.find('//input[@name="threshold"]').send_keys(Keys.END)
    if not person.has_script:
        person.press("Replay the last day")
        person.sees("0 would have been blocked.")
        return
    person.sees("0 would have been blocked.")
    assert person.driver.find_element(By.CSS_SELECTOR, "output[for=threshold]").text == "100"
    told = person.driver.find_element(By.ID, "told")
    assert told.get_attribute("textContent") == "0 would have been blocked."
    person.sees("Would have passed")


def test_what_comes_anew_takes_no_focus(person):
    """The stream sends the whole of it; what is as it was stays, and so does who uses it."""
    person.find('//summary[@id="fine"]').click()

    focused, words, is_open, stayed = person.driver.execute_script("""
        const place = document.querySelector("[data-stream]"), rates = document.getElementById("rates");
        document.getElementById("fine").focus();
        renew(place, place.innerHTML.replace("</summary>", "; another</summary>"));
        const summary = document.getElementById("fine");
        const is_open = summary.parentElement.open;
        return [document.activeElement.id, summary.textContent, is_open, rates.isConnected];
    """)

    assert (focused, words.endswith("; another"), is_open, stayed) == ("fine", True, True, True)


def test_a_records_deletion_is_asked_for_and_taken_back(anybody, site):
    person = anybody
    host = site.name("192.0.2.7", proxied=False)
    person.follow("Zones")
    person.follow("shop.example")
    person.follow(host)

    if person.has_script:
        person.find('//button[normalize-space()="Delete this record"]').click()
        person.answer("Delete this record?", agrees=False)
        assert site.server.dig(host) == ["192.0.2.7"]
    person.press("Delete this record", asked="Delete this record?")
    person.sees("The record is deleted")
    assert site.server.dig(host) == ["NXDOMAIN"]

    person.follow("History")
    person.follow("Undo")
    person.sees("What this would change")
    person.press("Undo this change")
    person.sees("Done.")
    assert site.server.dig(host) == ["192.0.2.7"]


def test_what_an_object_stored_then_and_taking_it_back(anybody, site):
    person = anybody
    show = "friday" if person.has_script else "saturday"
    for name in ("ann", "eve", "bob"):
        hold(site.server, show, "1A", name)
    person.follow("Objects")
    person.follow("Booking")
    person.follow(show)
    person.follow("What did it store an hour ago?")
    person.sees("Nothing is stored at that moment.")

    person.follow("The first moment")
    person.follow("Later")
    person.sees("{'seat': '1A', 'name': 'ann'}")
    slider = person.find('//input[@type="range"]')
    before = slider.get_attribute("aria-valuetext")
    slider.send_keys(Keys.ARROW_RIGHT)
    if person.has_script:  # its answer takes the place of the old one
        person.sees("{'seat': '1A', 'name': 'eve'}")
        assert slider.get_attribute("aria-valuetext") not in ("", before)
    else:
        person.press("Look")
        person.sees("{'seat': '1A', 'name': 'eve'}")
    person.press("Restore the object to this moment", asked="Restore the object to this moment?")
    person.sees("The object is what it was then.")
    assert site.server.call_object(f"Booking/{show}/who", "1A").result == "eve"


READ_ALL = dict.fromkeys(("com.cloudflare.api.account.*", "com.cloudflare.api.account.zone.*"), "*")
REFUSED = "That did not work"


def test_who_may_only_read_sees_why_and_changes_nothing(narrow, site):
    """The three flows, up to the button that would do it."""
    person, show = narrow, f"read-{narrow.has_script}"
    host, named = blocked(site), site.name("192.0.2.7", proxied=False)
    hold(site.server, show, "1A", "ann")
    hold(site.server, show, "1A", "eve")
    person.sign_in(token(site.server, READ_ALL, "Read")[1])

    person.follow("Zones")
    person.follow("shop.example")
    person.follow("Events")
    person.leave(f'//tr[contains(., "{host}/search")]//a')
    person.sees("Its score is 5, the threshold 5")
    person.press("Make an exception for this")
    person.sees(REFUSED)
    assert site.get(host, "/search" + ATTACK[1:]).status == 403

    person.follow("Zones")
    person.follow("shop.example")
    person.follow(named)
    person.press("Delete this record", asked="Delete this record?")
    person.sees(REFUSED)
    assert site.server.dig(named) == ["192.0.2.7"]

    person.follow("Objects")
    person.follow("Booking")
    person.follow(show)
    person.follow("Past")
    person.follow("The first moment")
    person.follow("Later")
    person.sees("{'seat': '1A', 'name': 'ann'}")
    person.press("Restore the object to this moment", asked="Restore the object to this moment?")
    person.sees(REFUSED)
    assert site.server.call_object(f"Booking/{show}/who", "1A").result == "eve"


def test_a_token_of_one_zone_takes_its_record_back_and_sees_no_other_zone(narrow, site):
    person, named = narrow, site.name("192.0.2.7", proxied=False)
    other = f"other-{person.has_script}.example".lower()
    site.server.make_zone(other)
    mine = {f"com.cloudflare.api.account.zone.{site.zone_id}": "*"}
    person.sign_in(token(site.server, mine, "Zone Read", "DNS Read", "DNS Write")[1])

    person.follow("Zones")
    person.sees("shop.example")
    assert other not in person.driver.page_source
    person.follow("shop.example")
    person.follow(named)
    person.press("Delete this record", asked="Delete this record?")
    person.sees("The record is deleted")
    person.follow("History")
    person.follow("Undo")
    person.press("Undo this change")
    person.sees("Done.")
    assert site.server.dig(named) == ["192.0.2.7"]

    for page in ("Events", "Managed rules"):
        person.follow(page)
        person.sees(REFUSED)
        person.follow("Zones")
        person.follow("shop.example")
    for page in ("Keys and values", "Members"):
        person.follow(page)
        person.sees(REFUSED)


def test_a_session_that_ended_does_nothing_and_leads_to_the_way_in(narrow, site):
    """In the middle of a flow: of a form, and of what the script asks for."""
    person, named = narrow, site.name("192.0.2.7", proxied=False)
    for press in ("Delete this record", "Edit"):
        id_, secret = token(site.server, READ_ALL, "Zone Read", "DNS Read", "DNS Write")
        person.sign_in(secret)
        person.follow("Zones")
        person.follow("shop.example")
        if press == "Edit":
            site.server.call("DELETE", f"/user/tokens/{id_}")
            person.find(f'//a[@aria-label="Edit A {named}"]').click()
        else:
            person.follow(named)
            site.server.call("DELETE", f"/user/tokens/{id_}")
            person.press(press, asked="Delete this record?")
        person.sees("Sign in with the token")
        assert site.server.dig(named) == ["192.0.2.7"]


def test_a_mistake_is_told_at_its_field(person):
    person.follow("Zones")
    person.follow("shop.example")
    person.find('//input[@id="name"]').send_keys("www")
    person.find('//input[@id="content"]').send_keys("not-an-address")
    person.press("Add")

    field = person.find('//input[@id="content"]')
    assert field.get_attribute("value") == "not-an-address"
    assert field.get_attribute("aria-describedby") == "content-error"
    assert person.find('//*[@id="content-error"]').text
    told = [one["message"] for one in person.driver.get_log("browser")]
    assert len(told) == 1, told
    assert "400" in told[0]  # the browser's own note of the status, nothing else


def test_a_setting_that_is_stored_only_is_set_in_its_row(person):
    for words in ("Zones", "shop.example", "Settings"):
        person.follow(words)
    person.driver.execute_script("window.stayed = true")
    person.find("//summary[contains(., 'stored only')]").click()
    person.find('//a[@aria-label="Change 0rtt"]').click()
    person.find('//select[@aria-label="0rtt"]')
    assert person.driver.switch_to.active_element.get_attribute("aria-label") == "0rtt"
    person.driver.switch_to.active_element.send_keys("on" + Keys.TAB + Keys.ENTER)
    person.sees("0rtt is on")
    person.find('//a[@aria-label="Change 0rtt"]')  # still unfolded
    assert person.driver.execute_script("return window.stayed") is True


def test_a_record_is_edited_in_its_row_and_the_page_is_not_left(person, site):
    host = site.name("192.0.2.7", proxied=False)
    size = {"width": 360, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    person.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    person.follow("Zones")
    person.follow("shop.example")
    person.driver.execute_script("window.stayed = true")

    person.find(f'//a[@aria-label="Edit A {host}"]').click()
    field = person.find('//tr//input[@id="edit-content"]')
    assert person.driver.execute_script("return document.documentElement.scrollWidth") <= 360
    field.clear()
    field.send_keys("not-an-address" + Keys.ENTER)
    assert "address" in person.find('//tr//*[@id="edit-content-error"]').text
    assert person.driver.switch_to.active_element.get_attribute("id") == "edit-content"
    field = person.find('//tr//input[@id="edit-content"]')
    field.clear()
    field.send_keys("192.0.2.8")
    person.find('//tr//button[normalize-space()="Save"]').click()
    person.sees("The record is changed")
    assert "192.0.2.8" in person.find(f'//tr[contains(., "{host}")]').text
    assert site.server.dig(host) == ["192.0.2.8"]

    person.find(f'//a[@aria-label="Edit A {host}"]').click()
    person.find('//tr//a[normalize-space()="Leave it as it is"]').click()
    person.find(f'//a[@aria-label="Edit A {host}"]')
    assert person.driver.execute_script("return window.stayed") is True
    person.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    told = [one["message"] for one in person.driver.get_log("browser")]
    assert len(told) == 1, told
    assert "400" in told[0]


def test_an_expression_is_checked_while_one_types_it(person):
    person.follow("Zones")
    person.follow("shop.example")
    person.follow("Rules")
    person.leave('//section[@aria-labelledby="http_request_firewall_custom"]//a')
    field = person.find('//textarea[@name="expression"]')
    check = person.driver.find_element(By.ID, "check")
    field.send_keys("http.hots eq 1")
    person.sees("Line 1, character 1: unknown identifier")
    assert "unknown identifier" in check.text, "the element that speaks stays"
    field.clear()
    field.send_keys("ssl")
    person.sees("The expression is understood.")


@pytest.mark.parametrize("width", [360, 1200])
def test_no_page_is_wider_than_its_window(person, width):
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    person.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    zone = "/ui/zones/shop.example"
    wide = []
    for path in (
        "/ui",
        "/ui/zones",
        "/ui/values",
        "/ui/tokens",
        "/ui/zones/shop.example/import",
        "/ui/tokens/new",
        "/ui/dates",
        "/ui/objects",
        "/ui/objects/Booking",
        "/ui/rules",
        "/ui/rules/http_ratelimit/new",
        "/ui/examination",
        "/ui/members",
        "/ui/audit",
        "/ui/profile",
        *(
            zone + part
            for part in ("", "/rules", "/rules/try", "/waf", "/events", "/history", "/settings?set=ciphers")
        ),
    ):
        person.driver.get(person.base + path)
        if person.driver.execute_script("return document.documentElement.scrollWidth") > width:
            wide.append(path)
    person.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    assert wide == []
