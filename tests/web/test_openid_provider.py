"""Signing in with `oidc-provider`, which is certified, at a real server, by the forms of both."""

import re
import subprocess
import urllib.request
from html import unescape
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit

import pytest

from edgestead.testing.server import EdgeServer
from tests.clients import install as installer
from tests.edge import chromium
from tests.support.patience import patient

SECRET = "a secret: of+the client"
ROLE = "DNS"


@pytest.fixture(scope="module")
def provider():
    try:
        installer.install("openid")
    except (OSError, RuntimeError) as error:
        pytest.skip(f"NOT TESTED: npm could not install oidc-provider: {error}")
    script = Path(__file__).with_name("openid_provider.mjs")
    command = ["node", str(script), str(installer.HOME / "npm" / "openid"), SECRET]
    with subprocess.Popen(
        command,
        env=installer.environment("openid"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as node:
        node.port = int(node.stdout.readline())
        yield node
        node.kill()


@pytest.fixture(scope="module")
def server(provider, tmp_path_factory):
    folder = tmp_path_factory.mktemp("openid")
    (folder / "secret").write_text(SECRET)
    made = EdgeServer(
        folder / "data",
        *patient(folder),
        *("--openid-issuer", f"http://127.0.0.1:{provider.port}", "--openid-client-id", "the-edge"),
        *("--openid-secret-file", str(folder / "secret"), "--openid-name", "Example SSO"),
    )
    try:
        made.start()
        host = urlsplit(made.ready["api_base"]).netloc
        named = f"localhost:{host.rpartition(':')[2]}"
        provider.stdin.write(f"http://{host}/ui/openid http://{named}/ui/openid\n")
        provider.stdin.flush()
        while "ready" not in provider.stdout.readline():
            pass
        yield made
    finally:
        made.close()


class Browser:
    """Follows redirects, keeps cookies as their paths and hosts say."""

    def __init__(self, server):
        self.base = "http://" + urlsplit(server.ready["api_base"]).netloc
        self.jar = CookieJar()
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.jar))

    def open(self, url, form=None):
        parts = urlsplit(url)
        headers = {"Accept": "text/html", "Origin": f"{parts.scheme}://{parts.netloc}"}
        data = None if form is None else urlencode(form).encode()
        try:
            answer = self.opener.open(urllib.request.Request(url, data, headers), timeout=180)
        except HTTPError as error:
            answer = error
        self.status, self.url, self.text = answer.status, answer.url, answer.read().decode()
        return self

    def led(self):
        """Where the page leads by itself."""
        return unescape(re.search(r'http-equiv="refresh" content="0;url=([^"]+)"', self.text)[1])

    def sign_in(self, account):
        key = re.search(r'name="form_key" value="([^"]+)"', self.open(f"{self.base}/ui/sign-in").text)[1]
        assert "Sign in with Example SSO" in self.text
        self.open(self.open(f"{self.base}/ui/openid", {"form_key": key}).led())
        self.submit({"login": account, "password": "x"})
        if "/interaction/" in self.url:
            self.submit({})
        return self

    def submit(self, fields):
        """The form of the provider's page."""
        action = unescape(re.search(r'<form[^>]*action="([^"]+)"', self.text)[1])
        prompt = re.search(r'name="prompt" value="([^"]+)"', self.text)[1]
        return self.open(action, {"prompt": prompt, **fields})


def invite(server, email):
    account = server.call("GET", "/accounts").result[0]["id"]
    roles = server.call("GET", f"/accounts/{account}/roles").result
    role = next(one["id"] for one in roles if one["name"] == ROLE)
    server.call("POST", f"/accounts/{account}/members", {"email": email, "roles": [role]})


def test_who_was_invited_signs_in_and_others_do_not(server):
    invite(server, "ann@example.com")
    invite(server, "mallory@example.com")

    ann = Browser(server).sign_in("ann")
    assert (ann.status, ann.led()) == (200, "/ui"), ann.text
    assert "ann@example.com" in ann.open(f"{ann.base}/ui/profile").text
    for account in ("mallory", "nobody"):
        refused = Browser(server).sign_in(account)
        assert (refused.status, "This sign-in is nobody" in refused.text) == (403, True)
    log = server.log
    assert "email_verified is not true" in log
    for secret in (SECRET, "code=", "state="):
        assert secret not in log


@chromium.needed
def test_a_browser_keeps_the_cookies_of_both_ways_apart(server, provider, tmp_path):
    """`localhost` and 127.0.0.1 are two sites to it, so that the way back comes from another one."""
    invite(server, "eve@example.com")
    place = urlsplit(server.ready["api_base"]).netloc
    places = {"localhost": place, "127.0.0.1": f"127.0.0.1:{provider.port}"}
    with chromium.browsing(tmp_path, places) as driver:
        driver.get(f"http://localhost:{place.rpartition(':')[2]}/ui/sign-in")
        driver.find_element("xpath", '//button[.="Sign in with Example SSO"]').click()
        chromium.wait_for(driver, lambda one: one.find_elements("name", "login"), "no form of the provider")
        driver.find_element("name", "login").send_keys("eve")
        driver.find_element("name", "password").send_keys("x")
        driver.find_element("css selector", "button[type=submit]").click()
        chromium.wait_for(driver, lambda one: "consent" in one.page_source, "nothing is asked")
        driver.find_element("css selector", "button[type=submit]").click()
        chromium.wait_for(driver, lambda one: one.title.startswith("Overview"), "no overview")
        assert urlsplit(driver.current_url).path == "/ui"
        assert "localhost" in driver.current_url
