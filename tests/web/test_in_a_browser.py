"""The dashboard in a real browser, which follows what it sees: links and buttons alone, from `/` on."""

import pytest
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.support import expected_conditions
from selenium.webdriver.support.ui import WebDriverWait

from tests.edge import chromium
from tests.edge.conftest import Site
from tests.edge.test_managed_server import ATTACK, RULES, deployed
from tests.web.conftest import link_of

pytestmark = chromium.needed


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """With a rule set of the test's own, which is compiled at once."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "crs" / "rules").mkdir(parents=True)
    (folder / "crs" / "crs-setup.conf").write_text('SecComponentSignature "OWASP_CRS/4.0.0"\n')
    (folder / "crs" / "rules" / "one.conf").write_text(RULES)
    made = Site(folder, "--crs", str(folder / "crs"), zone="shop.example")
    yield made
    made.close()


class Person:
    """Somebody at a browser: `sees` waits for words of the page, `press` and `follow` for the next page."""

    def __init__(self, driver, server):
        self.driver = driver
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
        if asked is not None:
            self.answer(asked, agrees=True)
        self.wait(expected_conditions.staleness_of(old), f"{path} led nowhere")

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


def test_why_was_this_blocked_and_allow_it(person, site):
    host, _ = deployed(site)
    assert site.get(host, "/search" + ATTACK[1:]).status == 403
    path = f"/zones/{site.zone_id}/security/events?host={host}&action=block"
    site.server.wait_until(lambda: site.server.call("GET", path).result, chromium.WAIT_SECONDS)

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


def test_a_records_deletion_is_asked_for_and_taken_back(person, site):
    host = site.name("192.0.2.7", proxied=False)
    person.follow("Zones")
    person.follow("shop.example")
    person.follow(host)

    person.find('//button[normalize-space()="Delete this record"]').click()
    person.answer("Delete this record?", agrees=False)
    assert site.server.dig(host) == ["192.0.2.7"]
    person.press("Delete this record", asked="Delete this record?")
    person.sees("The record is deleted")
    assert site.server.dig(host) == ["NXDOMAIN"]

    person.follow("History")
    person.press("Undo")
    person.sees("Done: change")
    assert site.server.dig(host) == ["192.0.2.7"]


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
        *(zone + part for part in ("", "/rules", "/events", "/history", "/settings")),
    ):
        person.driver.get(person.base + path)
        if person.driver.execute_script("return document.documentElement.scrollWidth") > width:
            wide.append(path)
    person.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    assert wide == []
