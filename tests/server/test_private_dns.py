"""DNS over TLS and HTTPS of a whole server, asked by programs that others have written."""

import shutil
import subprocess

import pytest

from edgestead.testing.server import wait_until
from tests.dns.private_lab import DEFAULT, Folder, in_target
from tests.dns.stock import free_place
from tests.dns.test_private import query

ZONE = "example.com"
WAIT_SECONDS = 300
_SBIN = "/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin"
CURL, DIG = shutil.which("curl"), shutil.which("dig")
BIND, UNBOUND = shutil.which("named", path=_SBIN), shutil.which("unbound", path=_SBIN)
SECONDARY = """
tls primary {{ ca-file "{ca}"; remote-hostname "{name}"; }};
options {{
  directory "{folder}"; pid-file none; session-keyfile none; lock-file none;
  listen-on port {port} {{ {host}; }}; listen-on-v6 {{ none; }};
  recursion no; dnssec-validation no; empty-zones-enable no; notify no;
}};
controls {{ }};
zone "{zone}" {{
  type secondary; file "zone"; primaries {{ 127.0.0.1 port {primary} tls primary; }};
  min-refresh-time 1; max-refresh-time 1;
}};
"""
RESOLVER = """
server:
  interface: {host}
  port: {port}
  chroot: ""
  username: ""
  directory: "{folder}"
  pidfile: ""
  use-syslog: no
  do-not-query-localhost: no
  module-config: "iterator"
  tls-cert-bundle: "{ca}"
  local-zone: "{zone}." nodefault
remote-control:
  control-enable: no
forward-zone:
  name: "{zone}."
  forward-tls-upstream: yes
  forward-addr: 127.0.0.1@{primary}#{name}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return Folder(tmp_path_factory.mktemp("private") / "tls")


@pytest.fixture
def site(new_server, folder):
    private = ("--dot", "127.0.0.1:0", "--doh", "127.0.0.1:0", "--tls-dir", str(folder.path))
    server = new_server(*private, "--transfer-to", "127.0.0.1/32", "--transfer-tls").start()
    zone_id = server.make_zone(ZONE)
    server.make_record(zone_id, "A", "www", "192.0.2.1")
    return server


@pytest.fixture
def program(tmp_path, folder):
    """Run another server beside ours until the test ends; returns where it answers."""
    running = []

    def run(arguments, settings, primary):
        host, port = free_place()
        words = {"host": host, "port": port, "folder": tmp_path, "ca": folder.ca}
        file = tmp_path / "settings"
        file.write_text(settings.format(primary=primary, name=DEFAULT, zone=ZONE, **words))
        with (tmp_path / "said").open("wb") as said:
            running.append(subprocess.Popen([*arguments, str(file)], stdout=said, stderr=said))
        return host, port

    yield run
    for process in running:
        process.terminate()
        process.wait(WAIT_SECONDS)


def port_of(server, transport):
    return server.ready[transport].rpartition(":")[2]


def dig(host, port, *arguments):
    line = [DIG, f"@{host}", "-p", str(port), "+time=5", "+tries=3", "+short", *arguments]
    return subprocess.run(line, capture_output=True, text=True, timeout=WAIT_SECONDS, check=False).stdout


def counted(server, series):
    """The value of one series of `/metrics`, over all processes."""
    answer = server.call("GET", "/metrics").body.decode()
    return sum(int(line.rpartition(" ")[2]) for line in answer.splitlines() if line.startswith(series))


@pytest.mark.skipif(not (DIG and CURL), reason="BIND's dig or curl is not installed")
def test_answers_come_over_tls_and_https_with_certificates_that_may_change(site, folder):
    trust = ["+tls", f"+tls-ca={folder.ca}", f"+tls-hostname={DEFAULT}"]
    port = port_of(site, "dot")
    assert dig("127.0.0.1", port, *trust, f"www.{ZONE}") == "192.0.2.1\n"

    at = f"https://{DEFAULT}:{port_of(site, 'doh')}"
    name = f"{DEFAULT}:{port_of(site, 'doh')}:127.0.0.1"
    curl = [CURL, "-sS", "--cacert", folder.ca, "--resolve", name, at + in_target(query(f"www.{ZONE}."))]
    assert subprocess.run(curl, capture_output=True, timeout=WAIT_SECONDS).stdout.endswith(b"\xc0\0\2\1")

    folder.put("default", "new.example.test")
    renewed = [*trust[:2], "+tls-hostname=new.example.test", f"www.{ZONE}"]
    try:
        wait_until(lambda: dig("127.0.0.1", port, *renewed) == "192.0.2.1\n", WAIT_SECONDS)
    finally:
        folder.put("default", DEFAULT)


@pytest.mark.skipif(not (BIND and DIG), reason="BIND is not installed")
def test_a_secondary_follows_over_tls_where_tcp_is_closed_to_transfers(site, program):
    host, port = program([BIND, "-g", "-n", "1", "-c"], SECONDARY, port_of(site, "dot"))
    wait_until(lambda: dig(host, port, f"www.{ZONE}") == "192.0.2.1\n", WAIT_SECONDS)

    zone_id = site.call("GET", "/zones").result[0]["id"]
    site.make_record(zone_id, "A", "later", "192.0.2.2")
    wait_until(lambda: dig(host, port, f"later.{ZONE}") == "192.0.2.2\n", WAIT_SECONDS)

    open_host, _, open_port = site.ready["dns"].rpartition(":")
    assert "192.0.2" not in dig(open_host, open_port, "+tcp", ZONE, "AXFR")


@pytest.mark.skipif(not (UNBOUND and DIG), reason="unbound is not installed")
def test_a_resolver_forwards_over_tls(site, program):
    host, port = program([UNBOUND, "-d", "-c"], RESOLVER, port_of(site, "dot"))
    wait_until(lambda: dig(host, port, f"www.{ZONE}") == "192.0.2.1\n", WAIT_SECONDS)
