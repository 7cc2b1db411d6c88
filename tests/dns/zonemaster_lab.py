"""A small Internet in a network namespace of its own: a root, a top-level domain, our server and a secondary.

Run by tests/dns/test_zonemaster.py below `unshare --net`, where every port 53 is free. Prints what zonemaster
and dnsviz say of the zone lab.test, which is signed, as JSON: an object with a member for each that is there.
"""

import contextlib
import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
from pathlib import Path

import dns.exception
import dns.message
import dns.query

from edgestead.testing.server import EdgeServer, wait_until

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
ROOTS = ("127.0.1.1", "127.0.1.2")
OURS, SECONDARY = "127.0.2.1", "127.0.3.1"
ROOT_ZONE = """
. 86400 IN SOA a.root-lab. hostmaster.root-lab. 1 10000 2400 604800 1800
. 86400 IN NS a.root-lab.
. 86400 IN NS b.root-lab.
a.root-lab. 86400 IN A 127.0.1.1
b.root-lab. 86400 IN A 127.0.1.2
test. 86400 IN NS a.root-lab.
test. 86400 IN NS b.root-lab.
"""
TEST_ZONE = """
test. 86400 IN SOA a.root-lab. hostmaster.root-lab. 1 10000 2400 604800 1800
test. 86400 IN NS a.root-lab.
test. 86400 IN NS b.root-lab.
lab.test. 86400 IN NS ns1.lab.test.
lab.test. 86400 IN NS ns2.lab.test.
ns1.lab.test. 86400 IN A 127.0.2.1
ns2.lab.test. 86400 IN A 127.0.3.1
{ds}
"""
# It asks pygraphviz for its version in a module that Debian 12's pygraphviz does not have.
DEBIANS_DNSVIZ = """
import sys, types
release = types.ModuleType("pygraphviz.release")
release.version = "1.7"
sys.modules["pygraphviz.release"] = release
import pygraphviz
pygraphviz.release = release
"""
RECORDS = (
    ("A", "ns1", {"content": OURS}),
    ("A", "ns2", {"content": SECONDARY}),
    ("A", "@", {"content": "127.0.4.1"}),
    ("CNAME", "www", {"content": "lab.test"}),
    ("MX", "@", {"content": "mail.lab.test", "priority": 10}),
    ("A", "mail", {"content": "127.0.4.2"}),
    ("TXT", "@", {"content": '"v=spf1 mx -all"'}),
    ("AAAA", "six.deep", {"content": "2001:db8::1"}),
)
NSD = """
server:
  ip-address: {address}
  port: 53
  server-count: 1
  ip4-only: yes
  username: ""
  zonesdir: "{folder}"
  database: ""
  zonelistfile: "{folder}/zone.list"
  xfrdfile: "{folder}/xfrd.state"
  xfrdir: "{folder}"
  pidfile: "{folder}/nsd.pid"
  logfile: "{folder}/nsd.log"
  hide-version: yes
  xfrd-reload-timeout: 0
remote-control:
  control-enable: no
{zones}
"""
PRIMARY_ZONES = """
zone:
  name: .
  zonefile: root
zone:
  name: test
  zonefile: test
"""
SECONDARY_ZONES = f"""
zone:
  name: lab.test
  zonefile: lab
  request-xfr: {OURS}@53 NOKEY
  allow-notify: 127.0.0.0/8 NOKEY
"""


def main(folder: Path, nsd: str) -> None:
    bring_loopback_up()
    with contextlib.ExitStack() as running:
        server = EdgeServer(folder / "ours", *flags())
        running.callback(server.close)
        server.start()
        zone_id = server.make_zone("lab.test")
        for kind, name, more in RECORDS:
            assert server.make_record(zone_id, kind, name, **more).status == 200
        signed = server.call("PATCH", f"/zones/{zone_id}/dnssec", {"status": "active"}).result
        test_zone = TEST_ZONE.format(ds=signed["ds"])
        for address in ROOTS:
            start_nsd(running, nsd, folder / address, address, PRIMARY_ZONES, test_zone)
        start_nsd(running, nsd, folder / "secondary", SECONDARY, SECONDARY_ZONES, test_zone)
        wait_until(lambda: serial(SECONDARY) == serial(OURS) is not None, 60)
        hints = folder / "hints"
        hints.write_text("".join(f". 3600000 NS {n}.root-lab.\n" for n in "ab"))
        with hints.open("a") as file:
            for letter, address in zip("ab", ROOTS, strict=True):
                file.write(f"{letter}.root-lab. 3600000 A {address}\n")
        key = folder / "key"
        key.write_text(f"lab.test. 3600 IN DNSKEY 257 3 13 {signed['public_key']}\n")
        said = {}
        if shutil.which("zonemaster-cli"):
            said["zonemaster"] = zonemaster(hints)
        if shutil.which("dnsviz") and shutil.which("ip"):
            said["dnsviz"] = dnsviz(folder, key)
        print(json.dumps(said))  # noqa: T201 - to the test
        server.stop()


def zonemaster(hints: Path) -> object:
    command = ["zonemaster-cli", "--hints", str(hints), "--no-ipv6", "--json", "--level", "INFO", "lab.test"]
    return json.loads(run(command))


def dnsviz(folder: Path, key: Path) -> object:
    """How it judges names that are there and one that is not."""
    run(["ip", "route", "add", "default", "dev", "lo"])  # without one it asks nobody
    names = ["lab.test", "www.lab.test", "deep.lab.test", "nowhere.lab.test"]
    roots = ",".join(f"{letter}.root-lab={address}" for letter, address in zip("ab", ROOTS, strict=True))
    servers = (f".:{roots}", f"test+:{roots}", f"lab.test+:ns1.lab.test={OURS},ns2.lab.test={SECONDARY}")
    probed = run(["dnsviz", "probe", "-4", "-A", *(part for one in servers for part in ("-x", one)), *names])
    (folder / "sitecustomize.py").write_text(DEBIANS_DNSVIZ)
    environment = os.environ | {"PYTHONPATH": str(folder)}
    return json.loads(run(["dnsviz", "grok", "-l", "info", "-t", str(key)], probed, environment))


def run(command: list[str], given: str = "", environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=40, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def flags() -> list[str]:
    return [
        *("--dns", f"{OURS}:53", "--nameserver", "ns1.lab.test", "--nameserver", "ns2.lab.test"),
        *("--transfer-to", "127.0.0.0/8", "--notify", f"{SECONDARY}:53"),
    ]


def bring_loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        asked = struct.pack("16sh14x", b"lo", 0)
        (held,) = struct.unpack_from("h", fcntl.ioctl(any_socket, SIOCGIFFLAGS, asked), 16)
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", held | IFF_UP))


def start_nsd(
    running: contextlib.ExitStack, binary: str, folder: Path, address: str, zones: str, test_zone: str
) -> None:
    folder.mkdir()
    (folder / "root").write_text(ROOT_ZONE)
    (folder / "test").write_text(test_zone)
    (folder / "config").write_text(NSD.format(address=address, folder=folder, zones=zones))
    process = subprocess.Popen([binary, "-d", "-c", str(folder / "config")], stderr=subprocess.DEVNULL)
    running.callback(process.wait, 20)
    running.callback(process.terminate)


def serial(address: str) -> int | None:
    with contextlib.suppress(dns.exception.Timeout, OSError):
        reply = dns.query.udp(dns.message.make_query("lab.test", "SOA"), address, timeout=1)
        for rrset in reply.answer:
            return rrset[0].serial
    return None


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
