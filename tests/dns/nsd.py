"""A private NSD with zones of ours: the peer that answers are compared with."""

import contextlib
import shutil
import socket
import subprocess
import time

import dns.exception
import dns.message
import dns.query

BINARY = shutil.which("nsd", path="/usr/sbin:/usr/bin:/usr/local/sbin")

_CONFIG = """
server:
  ip-address: 127.0.0.1@{port}
  server-count: 1
  ip4-only: yes
  username: ""
  chroot: ""
  zonesdir: "{folder}"
  database: ""
  zonelistfile: "{folder}/zone.list"
  xfrdfile: "{folder}/xfrd.state"
  xfrdir: "{folder}"
  pidfile: "{folder}/nsd.pid"
  logfile: "{folder}/nsd.log"
  minimal-responses: yes
  rrl-ratelimit: 0
  rrl-whitelist-ratelimit: 0
  tcp-count: 200
remote-control:
  control-enable: no
"""
_ZONE = """
zone:
  name: {apex}
  zonefile: {file}
"""


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        return udp.getsockname()[1]


@contextlib.contextmanager
def nsd(folder, zones, *, prefix=()):
    """NSD on a free port, serving {apex: text}; yields (port, pid). `prefix` may pin it to a core."""
    port = free_port()
    config = [_CONFIG.format(port=port, folder=folder)]
    for number, (apex, text) in enumerate(zones.items()):
        (folder / f"{number}.zone").write_text(text)
        config.append(_ZONE.format(apex=apex, file=f"{number}.zone"))
    (folder / "nsd.conf").write_text("".join(config))
    process = subprocess.Popen([*prefix, BINARY, "-d", "-c", str(folder / "nsd.conf")])
    try:
        _wait_until_it_answers(port, next(iter(zones)), folder / "nsd.log")
        yield port, process.pid
    finally:
        process.terminate()
        process.wait(10)


def _wait_until_it_answers(port, apex, log):
    query = dns.message.make_query(apex, "SOA")
    for _ in range(100):
        with contextlib.suppress(dns.exception.Timeout, OSError):
            if dns.query.udp(query, "127.0.0.1", port=port, timeout=0.2).rcode() == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"NSD does not answer: {log.read_text() if log.exists() else 'no log'}")
