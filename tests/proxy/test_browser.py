"""Challenges in a real browser, which may ask nobody but the edge."""

import asyncio
import socket
import threading
from concurrent.futures import Future

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from edgestead.http1.server import Server
from edgestead.proxy.exchange import Response
from tests.proxy.made import ask, rule

WAIT_SECONDS = 60
ORIGIN = "the origin's page"
CHALLENGED = 'starts_with(http.request.uri.path, "/wanted")'


class Site:
    """The edge's pipeline behind a real socket; what passes is answered by a page of the origin."""

    def __init__(self, edge) -> None:
        self.edge = edge
        self.asked: list[str] = []
        self.cookies: list[bytes] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._server = Server(self._answer, lambda status, words: Response(status))
        self._run(self._server.open([self._socket]))

    def _run(self, coroutine) -> None:
        future: Future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        future.result(WAIT_SECONDS)

    async def _answer(self, request):
        exchange = ask(
            request.target.decode("latin-1"),
            method=request.method.encode(),
            headers=request.headers,
            client=request.client,
        )
        self.asked.append(f"{request.method} {request.target.decode().partition('?')[0]}")
        if (found := self.edge.pipeline.request(exchange)) is not None:
            return found
        self.cookies += [value for name, value in exchange.to_send if name == b"cookie"]
        page = f"<title>Origin</title><p id=origin>{ORIGIN}</p>"
        return Response(200, [(b"content-type", b"text/html")], page.encode())

    def close(self) -> None:
        self._run(self._server.close(1))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = Options()
    options.binary_location = "/usr/bin/chromium"
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        f"--user-data-dir={tmp_path_factory.mktemp('chromium')}",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, Service("/usr/bin/chromedriver"))
    yield driver
    driver.quit()


@pytest.fixture
def site(edge):
    running = Site(edge)
    yield running
    running.close()


def reaches_origin(browser):
    WebDriverWait(browser, WAIT_SECONDS).until(
        lambda driver: driver.find_elements(By.ID, "origin"), "the origin's page did not come"
    )
    return browser.find_element(By.ID, "origin").text == ORIGIN


def complaints(browser):
    """What the page did wrong: errors of scripts, violations of its policy."""
    lines = [line["message"] for line in browser.get_log("browser")]
    return [line for line in lines if "status of 403" not in line and "favicon" not in line]


@pytest.mark.parametrize("kind", ["js_challenge", "managed_challenge"])
def test_a_browser_works_for_its_clearance_and_gets_the_page(browser, site, kind):
    site.edge.serve(zone=[rule(kind, CHALLENGED)])
    browser.delete_all_cookies()
    browser.get(f"{site.url}/wanted?a=1")

    assert reaches_origin(browser)
    assert browser.current_url == f"{site.url}/wanted?a=1"
    browser.get(f"{site.url}/wanted/more")
    assert reaches_origin(browser)
    assert site.edge.seen.actions == [kind, "challenge_solved"]
    assert site.asked.count("POST /edge-cgi/challenge") == 1
    assert site.cookies == []
    assert complaints(browser) == []


def test_a_person_clicks_and_gets_the_page(browser, site):
    site.edge.serve(zone=[rule("challenge", CHALLENGED)])
    browser.delete_all_cookies()
    browser.get(f"{site.url}/wanted?a=1&b=2")
    assert not browser.find_elements(By.ID, "origin")
    browser.find_element(By.ID, "go").click()

    assert reaches_origin(browser)
    assert browser.current_url == f"{site.url}/wanted?a=1&b=2"
    assert site.edge.seen.actions == ["challenge", "challenge_solved"]
    assert complaints(browser) == []


def test_a_clearance_of_another_browser_is_not_enough(browser, site):
    site.edge.serve(zone=[rule("challenge", CHALLENGED)])
    browser.get(f"{site.url}/free")
    browser.add_cookie({"name": "edge_clearance_challenge", "value": f"00000001.9999999999.{'0' * 32}"})
    browser.get(f"{site.url}/wanted")
    assert browser.find_elements(By.ID, "go")


def test_a_script_of_a_page_gets_the_reason(browser, site):
    site.edge.serve(zone=[rule("managed_challenge", CHALLENGED)])
    browser.delete_all_cookies()
    browser.get(f"{site.url}/free")
    answered = browser.execute_async_script(
        "const done = arguments[0];"
        "fetch('/wanted/data').then(async (answer) =>"
        " done([answer.status, answer.headers.get('edge-mitigated'), await answer.text()]))"
    )
    assert answered[:2] == [403, "challenge"]
    assert "only a browser can answer" in answered[2]
