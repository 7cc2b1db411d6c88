"""Who types only what the page says has zones of BIND, a site behind rules, an object, a restored backup.

The commands are those of an installed wheel, in an empty home; the test starts the server.
`test_bare_system` types all of the page, where debootstrap and root are.
"""

import os
import re
import shutil
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.docs.conftest import shell_of
from tests.packaging import first_page
from tests.packaging.conftest import SECONDS_MAX, outside

PAGE = "docs/how-to/production.md"
STARTED = "## 3. Bring the zones"  # what is above it needs no server
NAMED_CONF = """
options { directory "."; };
zone "example.com" { type primary; file "db.example.com"; };
zone "example.org" { type primary; file "db.example.org"; };
"""
ZONE_FILE = first_page.ZONE_FILE + '@     IN TXT "v=spf1 mx -all"\n'

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is missing")


class _Site(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def site():
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


def test_the_page_leads_to_production(installed, start, site, tmp_path):
    (tmp_path / "bind").mkdir()
    (tmp_path / "bind" / "named.conf").write_text(NAMED_CONF)
    for name in ("example.com", "example.org"):
        (tmp_path / "bind" / f"db.{name}").write_text(ZONE_FILE)
    environ = outside(
        HOME=str(tmp_path),
        PATH=f"{installed}{os.pathsep}{os.environ['PATH']}",
        EDGE_DATA_DIR=str(tmp_path / "data"),
    )

    def type_(script):
        done = subprocess.run(
            ["sh", "-euc", script],
            cwd=tmp_path,
            env=environ,
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    before = shell_of(PAGE, STARTED)
    type_(before)
    config = str(tmp_path / "edge" / "edgestead.toml")
    server = start(tmp_path / "data", "--config", config, "--origin-port", str(site))
    printed = type_(shell_of(PAGE).removeprefix(before))

    assert "Nothing differs." in printed
    assert re.findall(r"^\d+$", printed, re.MULTILINE) == ["200", "403", "1"]
    assert server.dig("mail.example.org") == ["192.0.2.25"]
    assert server.dig("www.example.com") == ["192.0.2.10"]
    assert server.stop() == 0
    again = start(tmp_path / "again", "--config", config)
    assert again.dig("mail.example.com") == ["192.0.2.25"]
    assert again.call_object("Visits/home/add").result == 2
