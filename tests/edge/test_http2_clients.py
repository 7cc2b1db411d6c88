"""HTTP/2 with programs that people use: curl, nghttp, Go's own client, Chromium."""

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from edgestead.cli.server.authority import Authority
from tests.edge.chromium import browsing
from tests.edge.chromium import needed as chromium_needed
from tests.edge.tls import tls_site

SECONDS_MAX = 180
CONTENT = os.urandom(2_000_000)
curl_needed = pytest.mark.skipif(not shutil.which("curl"), reason="NOT TESTED: curl is not installed")
nghttp_needed = pytest.mark.skipif(
    not shutil.which("nghttp"), reason="NOT TESTED: nghttp (nghttp2-client) is not installed"
)
go_needed = pytest.mark.skipif(not shutil.which("go"), reason="NOT TESTED: go (golang-go) is not installed")


@pytest.fixture(scope="module")
def authority():
    return Authority.new(datetime.now(UTC))


@pytest.fixture(scope="module")
def tls_dir(tmp_path_factory):
    return tmp_path_factory.mktemp("tls")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("site")


@pytest.fixture(scope="module")
def site(folder, authority, tls_dir):
    with tls_site(folder, authority, tls_dir) as made:
        made.set("http2", "on")
        yield made


def answer(head, body, connection):
    if head.startswith((b"PUT", b"POST")):
        content = b"%d" % len(body)
    elif head.startswith(b"GET /large"):
        content = CONTENT
    else:
        content = b"<title>page</title><script>fetch('/large').then(a => a.arrayBuffer())</script>"
    return b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: %d\r\n\r\n%b" % (
        len(content),
        content,
    )


class Curl:
    def __init__(self, site, host, authority):
        self.host = host
        ip, _, self.port = site.server.ready["https"].rpartition(":")
        self.usual = ["--cacert", str(authority)]
        self.usual += ["--resolve", f"{host}:{self.port}:{ip}", "--max-time", str(SECONDS_MAX)]

    def __call__(self, path, *more):
        command = ["curl", "-sS", "-w", "%{stderr}%{http_version} %{response_code}", *self.usual, *more]
        done = subprocess.run(
            [*command, f"https://{self.host}:{self.port}{path}"], capture_output=True, check=True
        )
        return done.stderr.decode(), done.stdout


@pytest.fixture
def curl(site, folder):
    host, _ = site.origin(answer)
    return Curl(site, host, folder / "ca.pem")


@curl_needed
def test_curl_gets_pages_and_large_ones(curl):
    assert curl("/")[0] == "2 200"
    assert curl("/large") == ("2 200", CONTENT)


@curl_needed
def test_curl_sends_bodies(curl, tmp_path):
    file = tmp_path / "content"
    file.write_bytes(CONTENT)
    assert curl("/", "-T", str(file)) == ("2 200", b"%d" % len(CONTENT))


@curl_needed
def test_many_programs_at_a_time_get_what_they_asked_for(curl):
    with ThreadPoolExecutor(8) as programs:
        for said, content in programs.map(lambda _: curl("/large"), range(24)):
            assert (said, content) == ("2 200", CONTENT)


@curl_needed
def test_who_does_not_speak_it_gets_http_1(curl):
    assert curl("/", "--http1.1")[0] == "1.1 200"


@nghttp_needed
def test_nghttp_gets_many_pages_on_one_connection(site):
    host, _ = site.origin(answer)
    address = site.server.ready["https"]
    done = subprocess.run(
        ["nghttp", "-ns", "-m", "20", "-H", f":authority: {host}", f"https://{address}/large"],
        capture_output=True,
        timeout=SECONDS_MAX,
        check=True,
    )
    lines = [line for line in done.stdout.decode().splitlines() if line.endswith("/large")]
    assert len(lines) == 20
    assert all(" 200 " in line for line in lines)


@go_needed
def test_go_gets_many_pages_at_once_and_sends_a_body_of_any_length(site, folder, tmp_path):
    host, _ = site.origin(answer)
    program = Path(__file__).with_name("go_client.go")
    done = subprocess.run(
        ["go", "run", str(program), site.server.ready["https"], str(folder / "ca.pem"), host],
        env=os.environ | {"GOCACHE": str(tmp_path), "GO111MODULE": "off", "CGO_ENABLED": "0"},
        capture_output=True,
        timeout=3 * SECONDS_MAX,
        check=True,
        text=True,
    )
    *pages, sent = done.stdout.splitlines()
    assert pages == [f"HTTP/2.0 200 {len(CONTENT)} <nil>"] * 50
    assert sent == f"HTTP/2.0 200 {len('1000000')} <nil>"


@chromium_needed
def test_a_browser_uses_it(site, tls_dir, tmp_path):
    host, _ = site.origin(answer)
    address = site.server.ready["https"]
    certificate = (tls_dir / "_.edge.example.pem").read_bytes()
    with browsing(tmp_path, {host: address}, trusted=[certificate]) as browser:
        browser.get(f"https://{host}/")
        assert browser.title == "page"
        spoken = browser.execute_script(
            "return performance.getEntriesByType('navigation')[0].nextHopProtocol"
        )
    assert spoken == "h2"
