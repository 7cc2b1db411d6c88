"""A real browser that can reach nobody but the edge."""

import base64
import hashlib
import shutil
from contextlib import contextmanager

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
WAIT_SECONDS = 180
needed = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="NOT TESTED: chromium or chromedriver is not installed"
)


@contextmanager
def browsing(folder, places, *, trusted=()):
    """A browser with a profile of its own in `folder`.

    `places` are addresses by name, or by name and port (`*.example.com`, `www.example.com:443`); there are no
    others. `trusted` are certificates in PEM that it takes.
    """
    hosts = {place.rpartition(":")[0] if place.count(":") == 1 else place for place in places.values()}
    rules = [f"MAP {name} {place}" for name, place in places.items()]
    rules += ["MAP * ~NOTFOUND", *(f"EXCLUDE {host}" for host in sorted(hosts))]
    options = Options()
    options.binary_location = CHROMIUM
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--disable-features=HttpsUpgrades",  # what leads to https is the edge
        f"--host-resolver-rules={', '.join(rules)}",
        f"--ignore-certificate-errors-spki-list={','.join(map(_fingerprint, trusted))}",
        f"--user-data-dir={folder}",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, Service(DRIVER))
    driver.set_script_timeout(WAIT_SECONDS)
    try:
        yield driver
    finally:
        driver.quit()


def _fingerprint(pem):
    key = x509.load_pem_x509_certificate(pem).public_key()
    spki = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(hashlib.sha256(spki).digest()).decode()


def wait_for(browser, is_true, words):
    WebDriverWait(browser, WAIT_SECONDS).until(is_true, words)
