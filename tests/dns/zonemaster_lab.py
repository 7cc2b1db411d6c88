"""A small Internet in a network namespace of its own: a root, a top-level domain, our server and a secondary.

Run by tests/dns/test_zonemaster.py below `unshare --net`, where every port 53 is free. Prints what zonemaster
and dnsviz say of signed zones, as JSON: for each zone an object with a member for each judge that is there.
The first zone is lab.test; those that follow have random names of every kind.
"""

import contextlib
import fcntl
import json
import os
import random
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
from tests.support.patience import patient

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
ns1.lab.test. 86400 IN A 127.0.2.1
ns2.lab.test. 86400 IN A 127.0.3.1
"""
DELEGATION = """
{apex}. 86400 IN NS ns1.lab.test.
{apex}. 86400 IN NS ns2.lab.test.
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
Record = tuple[str, str, dict[str, object]]
RECORDS: tuple[Record, ...] = (
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
SECONDARY_ZONE = """
zone:
  name: {apex}
  zonefile: {apex}
  request-xfr: 127.0.2.1@53 NOKEY
  allow-notify: 127.0.0.0/8 NOKEY
"""
LABELS = ("a", "b", "www", "_x", "*", "xn--mnchen-3ya")
NAMES_MAX = 12  # of a random zone


class Zone:
    """`seed` None is lab.test. `asked` are names of which dnsviz judges what there is and what not."""

    def __init__(self, seed: int | None) -> None:
        self.apex = "lab.test" if seed is None else f"zone-{seed}.test"
        self.signed: dict[str, str] = {}
        self.records: tuple[Record, ...] = RECORDS
        self.asked = ["@", "www", "deep", "nowhere"]
        if seed is not None:
            self._make(random.Random(seed))

    def _make(self, chance: random.Random) -> None:
        made: list[Record] = [
            ("A", "@", {"content": "127.0.4.1"}),
            ("MX", "@", {"content": f"a.{self.apex}", "priority": 10}),
        ]
        made += [("A", "a.b", {"content": "127.0.4.3"}), ("AAAA", "a.b", {"content": "2001:db8::3"})]
        names = {"*.w", *(self._name(chance) for _ in range(NAMES_MAX))} - {"a.b"}
        made.extend(self._record(chance, name) for name in sorted(names))
        if chance.random() < 0.5:  # the apex flattened
            made[0] = ("CNAME", "@", {"content": f"a.b.{self.apex}"})
        self.records = tuple(made)
        some = chance.sample(sorted(names), 2)
        self.asked = ["@", "b", "a.b", "any.w", "nowhere", *(name.replace("*", "any") for name in some)]

    def _name(self, chance: random.Random) -> str:
        labels = chance.choices(LABELS, k=chance.choice((1, 1, 2, 3)))
        return ".".join([labels[0], *(label.replace("*", "w") for label in labels[1:])])

    def _record(self, chance: random.Random, name: str) -> Record:
        match chance.choice(("A", "proxied", "AAAA", "TXT", "CNAME", "CAA")):
            case "proxied" if "_" not in name:
                return "A", name, {"content": "192.0.2.1", "proxied": True}
            case "AAAA":
                return "AAAA", name, {"content": "2001:db8::1"}
            case "TXT":
                return "TXT", name, {"content": f'"{name}"'}
            case "CNAME" if "*" not in name:  # dnsviz 0.9 ends with a fault where a wildcard's alias leads on
                return "CNAME", name, {"content": f"a.b.{self.apex}"}
            case "CAA":
                return "CAA", name, {"content": '0 issue "ca.test"'}
        return "A", name, {"content": "127.0.4.2"}

    def put(self, server: EdgeServer) -> None:
        zone_id = server.make_zone(self.apex)
        for kind, name, more in self.records:
            answer = server.make_record(zone_id, kind, self.full(name), **more)
            assert answer.status == 200, (self.apex, kind, name, answer)
        self.signed = server.call("PATCH", f"/zones/{zone_id}/dnssec", {"status": "active"}).result

    def full(self, name: str) -> str:
        return self.apex if name == "@" else f"{name}.{self.apex}"


def main(folder: Path, nsd: str, count: int) -> None:
    bring_loopback_up()
    with contextlib.ExitStack() as running:
        server = EdgeServer(folder / "ours", *patient(folder), *flags())
        running.callback(server.close)
        server.start()
        zones = [Zone(None), *map(Zone, range(count))]
        for zone in zones:
            zone.put(server)
        test_zone = TEST_ZONE + "".join(
            DELEGATION.format(apex=zone.apex, ds=zone.signed["ds"]) for zone in zones
        )
        for address in ROOTS:
            start_nsd(running, nsd, folder / address, address, PRIMARY_ZONES, test_zone)
        secondary_zones = "".join(SECONDARY_ZONE.format(apex=zone.apex) for zone in zones)
        start_nsd(running, nsd, folder / "secondary", SECONDARY, secondary_zones, test_zone)
        for zone in zones:
            wait_until(lambda apex=zone.apex: serial(SECONDARY, apex) == serial(OURS, apex) is not None, 180)
        hints = folder / "hints"
        hints.write_text("".join(f". 3600000 NS {n}.root-lab.\n" for n in "ab"))
        with hints.open("a") as file:
            for letter, address in zip("ab", ROOTS, strict=True):
                file.write(f"{letter}.root-lab. 3600000 A {address}\n")
        if shutil.which("ip"):
            run(["ip", "route", "add", "default", "dev", "lo"])  # without one dnsviz asks nobody
        print(json.dumps({zone.apex: said_of(zone, folder, hints) for zone in zones}))  # noqa: T201 - to the test
        server.stop()


def said_of(zone: Zone, folder: Path, hints: Path) -> dict[str, object]:
    said = {}
    if shutil.which("zonemaster-cli"):
        said["zonemaster"] = zonemaster(zone, hints)
    if shutil.which("dnsviz") and shutil.which("ip"):
        said["dnsviz"] = dnsviz(zone, folder)
    return said


def zonemaster(zone: Zone, hints: Path) -> object:
    command = ["zonemaster-cli", "--hints", str(hints), "--no-ipv6", "--json", "--level", "INFO", zone.apex]
    return json.loads(run(command))


def dnsviz(zone: Zone, folder: Path) -> object:
    """How it judges names that are there and some that are not."""
    key = folder / "key"
    key.write_text(f"{zone.apex}. 3600 IN DNSKEY 257 3 13 {zone.signed['public_key']}\n")
    names = list(dict.fromkeys(map(zone.full, zone.asked)))
    roots = ",".join(f"{letter}.root-lab={address}" for letter, address in zip("ab", ROOTS, strict=True))
    own = ",".join(f"ns{n}.lab.test={address}" for n, address in enumerate((OURS, SECONDARY), 1))
    servers = (f".:{roots}", f"test+:{roots}", f"{zone.apex}+:{own}")
    probed = run(["dnsviz", "probe", "-4", "-A", *(part for one in servers for part in ("-x", one)), *names])
    (folder / "sitecustomize.py").write_text(DEBIANS_DNSVIZ)
    environment = os.environ | {"PYTHONPATH": str(folder)}
    return json.loads(run(["dnsviz", "grok", "-l", "info", "-t", str(key)], probed, environment))


def run(command: list[str], given: str = "", environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=600, env=environment)
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
    running.callback(process.wait, 120)
    running.callback(process.terminate)


def serial(address: str, apex: str) -> int | None:
    with contextlib.suppress(dns.exception.Timeout, OSError):
        reply = dns.query.udp(dns.message.make_query(apex, "SOA"), address, timeout=1)
        for rrset in reply.answer:
            return rrset[0].serial
    return None


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
