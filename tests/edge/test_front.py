"""Nothing in front: `serve --acme …` gives a site its certificate, HTTP/2 and rules, and a browser looks."""

import ssl

import pytest
from selenium.webdriver.common.by import By

from edgestead.server.places import private_place
from tests.edge import chromium
from tests.edge.conftest import Site
from tests.edge.test_browser import HTML, ORIGIN
from tests.edge.tls import client_context, secured
from tests.support.pebble import Pebble

PATIENCE_SECONDS = 180
HOST = "www.edge.example"

pytestmark = chromium.needed


class _Root:
    """What `client_context` asks of an authority."""

    def __init__(self, pem):
        self.certificate_pem = pem.encode()


@pytest.fixture
def dns():
    return "{}:{}".format(*private_place())


@pytest.fixture
def pebble(tmp_path, dns):
    made = Pebble(tmp_path, dns, nonces_refused=20)
    yield made
    made.close()


def test_a_browser_gets_a_site_with_its_certificate_over_http2_and_within_its_rules(tmp_path, pebble, dns):
    acme = ("--acme", f"admin@example.com,{pebble.directory}", "--acme-ca", str(pebble.roots))
    https = "{}:{}".format(*private_place())
    site = Site(tmp_path, "--https", https, "--dns", dns, *acme)
    try:
        origin = site._listen(HTML)
        site.server.make_record(site.zone_id, "A", HOST, origin.host, proxied=True)
        site.set("http2", "on")
        path = f"/zones/{site.zone_id}/rulesets/phases/http_request_firewall_custom/entrypoint"
        rules = [{"action": "block", "expression": 'http.request.uri.path eq "/admin"'}]
        assert site.server.call("PUT", path, {"rules": rules}).status == 200

        context = client_context(_Root(pebble.root()))
        context.set_alpn_protocols(["h2"])
        leaf = issued(site, context)

        url = f"https://{HOST}:{https.rpartition(':')[2]}"
        address = https.rpartition(":")[0]
        with chromium.browsing(tmp_path / "chromium", {HOST: address}, trusted=[leaf]) as browser:
            browser.get(f"{url}/")
            assert browser.find_element(By.ID, "origin").text == ORIGIN
            assert protocol(browser) == "h2"
            browser.get(f"{url}/admin")
            assert not browser.find_elements(By.ID, "origin")
            assert "A rule of this site" in browser.find_element(By.TAG_NAME, "body").text
        assert not [head for head in origin.heads if head.startswith(b"GET /admin")]
    finally:
        site.close()


def issued(site, context):
    """The certificate (PEM), as soon as there is one that pebble's root vouches for."""
    found = []

    def is_there():
        try:
            with secured(site, context, HOST) as connection:
                assert connection.selected_alpn_protocol() == "h2"
                found[:] = [ssl.DER_cert_to_PEM_cert(connection.getpeercert(binary_form=True)).encode()]
        except ssl.SSLError:
            return False
        return True

    site.server.wait_until(is_there, PATIENCE_SECONDS)
    return found[0]


def protocol(browser):
    return browser.execute_script("return performance.getEntriesByType('navigation')[0].nextHopProtocol")
