"""Challenges in a real browser, which may ask nobody but the edge."""

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.edge import chromium
from tests.edge.chromium import WAIT_SECONDS
from tests.edge.conftest import Site

ORIGIN = "the origin's page"
PAGE = f"<title>Origin</title><p id=origin>{ORIGIN}</p>".encode()
HTML = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: %d\r\n\r\n%b" % (len(PAGE), PAGE)
CHALLENGED = 'starts_with(http.request.uri.path, "/wanted")'

pytestmark = chromium.needed


@pytest.fixture(scope="module")
def edge_site(tmp_path_factory):
    made = Site(tmp_path_factory.mktemp("site"), "--edge-workers", "2")
    yield made
    made.close()


class Visited:
    """A proxied name of the test's own: `url` leads to it, `challenge` sets its rule."""

    def __init__(self, site):
        self._site = site
        self.host, self.origin = site.origin(HTML)
        self.url = f"http://{self.host}:{site.http.rpartition(':')[2]}"

    def challenge(self, kind):
        path = f"/zones/{self._site.zone_id}/rulesets/phases/http_request_firewall_custom/entrypoint"
        sent = {"rules": [{"action": kind, "expression": CHALLENGED}]}
        assert self._site.server.call("PUT", path, sent).status == 200

    def actions(self, count):
        """What the edge decided about this name, as soon as there is as much."""
        path = f"/zones/{self._site.zone_id}/security/events?host={self.host}&direction=asc"
        found = []

        def enough():
            found[:] = [event["action"] for event in self._site.server.call("GET", path).result]
            return len(found) >= count

        self._site.server.wait_until(enough, WAIT_SECONDS)
        return found

    @property
    def cookies_at_origin(self):
        return [head for head in self.origin.heads if b"edge_clearance" in head]


@pytest.fixture
def site(edge_site):
    return Visited(edge_site)


@pytest.fixture(scope="module")
def browser(tmp_path_factory, edge_site):
    address = edge_site.http.rpartition(":")[0]
    with chromium.browsing(tmp_path_factory.mktemp("chromium"), {f"*.{edge_site.zone}": address}) as driver:
        yield driver


def reaches_origin(browser):
    chromium.wait_for(
        browser, lambda driver: driver.find_elements(By.ID, "origin"), "the origin's page did not come"
    )
    return browser.find_element(By.ID, "origin").text == ORIGIN


def complaints(browser):
    """What the page did wrong: errors of scripts, violations of its policy."""
    lines = [line["message"] for line in browser.get_log("browser")]
    return [line for line in lines if "status of 403" not in line and "favicon" not in line]


@pytest.mark.parametrize("kind", ["js_challenge", "managed_challenge"])
def test_a_browser_works_for_its_clearance_and_gets_the_page(browser, site, kind):
    """A browser that a program drives says so, and is asked for more: here by its keyboard alone."""
    site.challenge(kind)
    browser.delete_all_cookies()
    browser.get(f"{site.url}/wanted?a=1")

    if kind == "managed_challenge":
        state = browser.find_element(By.ID, "state")
        assert (state.get_attribute("role"), state.text) == (
            "status",
            "Please confirm that a person asks for this page.",
        )
        button = browser.switch_to.active_element
        assert (button.get_attribute("id"), button.accessible_name) == ("go", "I am a person")
        assert browser.find_element(By.ID, "bar").accessible_name in ("Checking", "")
        browser.execute_script("document.getElementById('go').click()")  # no person did this
        assert browser.find_elements(By.ID, "go")
        button.send_keys(Keys.ENTER)
    assert reaches_origin(browser)
    assert browser.current_url == f"{site.url}/wanted?a=1"
    browser.get(f"{site.url}/wanted/more")
    assert reaches_origin(browser)
    assert site.actions(2) == [kind, "challenge_solved"]
    assert site.cookies_at_origin == []
    assert complaints(browser) == []


def test_a_person_clicks_and_gets_the_page(browser, site):
    site.challenge("challenge")
    browser.delete_all_cookies()
    browser.get(f"{site.url}/wanted?a=1&b=2")
    assert not browser.find_elements(By.ID, "origin")
    browser.find_element(By.ID, "go").click()

    assert reaches_origin(browser)
    assert browser.current_url == f"{site.url}/wanted?a=1&b=2"
    assert site.actions(2) == ["challenge", "challenge_solved"]
    assert complaints(browser) == []


def test_a_clearance_of_another_browser_is_not_enough(browser, site):
    site.challenge("challenge")
    browser.get(f"{site.url}/free")
    browser.add_cookie({"name": "edge_clearance_challenge", "value": f"00000001.9999999999.{'0' * 32}"})
    browser.get(f"{site.url}/wanted")
    assert browser.find_elements(By.ID, "go")


def test_a_script_of_a_page_gets_the_reason(browser, site):
    site.challenge("managed_challenge")
    browser.delete_all_cookies()
    browser.get(f"{site.url}/free")
    answered = browser.execute_async_script(
        "const done = arguments[0];"
        "fetch('/wanted/data').then(async (answer) =>"
        " done([answer.status, answer.headers.get('edge-mitigated'), await answer.text()]))"
    )
    assert answered[:2] == [403, "challenge"]
    assert "only a browser can answer" in answered[2]
