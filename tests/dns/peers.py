"""Private copies of other name servers with zones of ours: the peers that answers are compared with.

Each listens on a loopback address that belongs to this process alone: nobody else binds there. BIND is the
exception, which only listens on addresses that an interface has.
"""

import contextlib
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from edgestead.server.places import private_place
from tests.dns import stock
from tests.dns.stock import free_place

START_SECONDS = 180

NSD_CONFIG = stock.HEADS["NSD"].replace(
    "{options}",
    """  ip4-only: yes
  logfile: "{folder}/nsd.log"
  minimal-responses: yes
  rrl-ratelimit: {rate}
  rrl-whitelist-ratelimit: {rate}
  tcp-count: 200
  tcp-query-count: 0
  answer-cookie: yes
""",
)
NSD_ZONE = """
zone:
  name: {apex}
  zonefile: {file}
"""

KNOT_CONFIG = (
    stock.HEADS["Knot"].replace("{options}", "    udp-max-payload: 1232").replace("any: info", "any: warning")
    + """
{limits}template:
  - id: default
    storage: "{folder}"
    semantic-checks: off
    zonefile-sync: -1
    zonefile-load: whole
    journal-content: none
    {modules}
zone:
"""
)
KNOT_ZONE = """
  - domain: "{apex}"
    file: "{file}"
"""

BIND_CONFIG = stock.HEADS["BIND"].replace(
    "{options}",
    """  empty-zones-enable no;
  minimal-responses yes;
  minimal-any yes;
  zero-no-soa-ttl no;
  notify no;
  check-names primary ignore;
  max-udp-size 1232;
""",
)
BIND_ZONE = """
zone "{apex}" {{
  type primary; file "{file}"; check-integrity no; check-mx ignore; check-spf ignore; check-srv-cname ignore;
  check-mx-cname ignore;
}};
"""

POWERDNS_CONFIG = """
launch=bind
bind-config={folder}/zones.conf
local-address={host}
local-port={port}
socket-dir={folder}
daemon=no
guardian=no
receiver-threads=1
distributor-threads=1
retrieval-threads=1
signing-threads=1
loglevel=3
"""
POWERDNS_ZONE = """zone "{apex}" {{ type master; file "{folder}/{file}"; }};
"""


@dataclass(frozen=True)
class Peer:
    """How to run a server: its program, its arguments, the file of its settings, and that of its zones."""

    program: str
    arguments: tuple[str, ...]
    config: str
    zone: str
    zones_apart: bool = False
    any_address: bool = True

    @property
    def binary(self):
        return shutil.which(self.program, path=stock.SBIN)


PEERS = {
    "NSD": Peer("nsd", ("-d", "-c", "{file}"), NSD_CONFIG, NSD_ZONE),
    "Knot": Peer("knotd", ("-c", "{file}"), KNOT_CONFIG, KNOT_ZONE),
    "BIND": Peer("named", ("-g", "-n", "1", "-c", "{file}"), BIND_CONFIG, BIND_ZONE, any_address=False),
    "PowerDNS": Peer(
        "pdns_server", ("--config-dir={folder}",), POWERDNS_CONFIG, POWERDNS_ZONE, zones_apart=True
    ),
}


@dataclass(frozen=True)
class Started:
    """A peer that answers."""

    host: str
    port: int
    pid: int


def is_installed(name):
    return PEERS[name].binary is not None


@contextlib.contextmanager
def started(name, folder, zones, *, prefix=(), rate=0):
    """A peer serving {apex: text} from `folder`, which is its own. `prefix` may pin it to a core.

    `rate` is its limit of answers to one network in a second, 0 for none.
    """
    peer = PEERS[name]
    texts = _write_zones(peer, folder, zones)
    for _ in range(5):
        host, port = private_place() if peer.any_address else free_place()
        process = _launch(peer, folder, texts, host, port, prefix, rate)
        if _answers(process, host, port, next(iter(zones))):
            break
        _end(process)
    else:
        raise AssertionError(f"{name} does not answer: {(folder / 'said').read_text()}")
    try:
        yield Started(host, port, process.pid)
    finally:
        _end(process)


def _write_zones(peer, folder, zones):
    texts = []
    for number, (apex, text) in enumerate(zones.items()):
        (folder / f"{number}.zone").write_text(text)
        texts.append(peer.zone.format(apex=apex, file=f"{number}.zone", folder=folder))
    return "".join(texts)


def _launch(peer, folder, zones, host, port, prefix, rate):
    words = {"folder": folder, "host": host, "port": port, "rate": rate, **_limits(rate)}
    if peer.zones_apart:
        (folder / "zones.conf").write_text(zones)
        zones = ""
    file = folder / ("pdns.conf" if peer.zones_apart else "server.conf")
    file.write_text(peer.config.format(**words) + zones)
    arguments = [argument.format(file=file, folder=folder) for argument in peer.arguments]
    with Path(folder, "said").open("ab") as said:
        return subprocess.Popen([*prefix, peer.binary, *arguments], stdout=said, stderr=said)


def _limits(rate):
    """How Knot spells that there is a limit or none, and with it cookies. BIND's cannot be more than 1000."""
    if not rate:
        return {"limits": "", "modules": ""}
    limits = f"mod-rrl:\n  - id: all\n    rate-limit: {rate}\n"
    return {"limits": limits, "modules": "global-module: [ mod-rrl/all, mod-cookies ]"}


def _answers(process, host, port, apex):
    """Whether the server says, before it ends, that it has the zone."""
    labels = apex.rstrip(".").split(".")
    name = b"".join(bytes((len(label),)) + label.encode() for label in labels) + b"\0"
    query = b"\0\1\0\0\0\1\0\0\0\0\0\0" + name + b"\0\6\0\1"
    deadline = time.monotonic() + START_SECONDS
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect((host, port))
        client.settimeout(0.05)
        while process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                client.send(query)
                reply = client.recv(4096)
                if reply[3] & 15 == 0 and reply[7]:
                    return True
            if process.poll() is None:
                time.sleep(0.01)
    return False


def _end(process):
    process.terminate()
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
