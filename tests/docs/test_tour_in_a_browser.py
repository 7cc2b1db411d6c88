"""The tour in a real browser: a page by https, redirected, limited and challenged, and the events of it."""

import json
import shutil

import pytest
from selenium.webdriver.common.by import By

from tests.edge import chromium

VISITS_MAX = 5  # of a page that may be visited three times
HOST = "www.example.com"

pytestmark = [
    chromium.needed,
    pytest.mark.skipif(not (shutil.which("curl") and shutil.which("dig")), reason="curl or dig is missing"),
]


@pytest.fixture
def browser(toured, tmp_path):
    """In front of it the tour as far as its rules; ports as on a server of its own: 80 and 443."""
    toured.run("docs/tutorial.md", before="## 6. ")
    ready = toured.server.ready
    places = {f"{HOST}:80": ready["http"], f"{HOST}:443": ready["https"]}
    certificate = (toured.folder / "tls" / f"{HOST}.pem").read_bytes()
    with chromium.browsing(tmp_path / "chromium", places, trusted=[certificate]) as opened:
        yield opened


def headline(browser):
    return browser.find_element(By.TAG_NAME, "h1").text


def events(toured):
    """What was decided about requests of the browser, oldest first."""
    agent, found = "HeadlessChrome", []
    printed = toured.run(
        "docs/tutorial.md", before="## 2. ", then="\nedgecli waf events --zone example.com --json"
    )
    for line in printed.splitlines():
        event = json.loads(line) if line.startswith("{") else {}
        if agent in event.get("user_agent", ""):
            found.append((event["action"], event["path"], event["phase"]))
    return found


def test_a_browser_takes_the_tour(browser, toured):
    browser.get(f"http://{HOST}/")
    assert browser.current_url == f"https://{HOST}/", "always_use_https"
    assert headline(browser) == "Hello from the origin"

    browser.get(f"https://{HOST}/old")
    assert browser.current_url == f"https://{HOST}/", "the redirect"
    assert headline(browser) == "Hello from the origin"

    seen = []
    while "429 Too Many Requests" not in seen and len(seen) < VISITS_MAX:
        browser.get(f"https://{HOST}/login")
        seen.append(headline(browser))
    assert seen[-1] == "429 Too Many Requests", seen

    browser.get(f"https://{HOST}/signup")  # the page that the origin has not got, behind a proof of work
    # A browser that a program drives says so, and is asked for a click.
    button = browser.find_element(By.ID, "go")
    chromium.wait_for(browser, lambda _: button.is_displayed(), "no click was asked for")
    button.click()
    chromium.wait_for(
        browser, lambda opened: "File not found" in opened.page_source, "the challenge did not end"
    )
    assert browser.get_cookie("edge_clearance_managed")["secure"]

    wanted = {
        ("block", "/login", "http_ratelimit"),
        ("managed_challenge", "/signup", "http_request_firewall_custom"),
        ("challenge_solved", "/edge-cgi/challenge", "challenge"),
    }
    toured.server.wait_until(lambda: wanted <= set(events(toured)), chromium.WAIT_SECONDS)
