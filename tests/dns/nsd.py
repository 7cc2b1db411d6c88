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
  ip-address: 127.0.0.1
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
    """A port that is free for UDP and TCP, for now."""
    for _ in range(100):
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
            socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tcp,
            contextlib.suppress(OSError),
        ):
            udp.bind(("127.0.0.1", 0))
            tcp.bind(udp.getsockname())
            return udp.getsockname()[1]
    raise AssertionError("no port is free for both UDP and TCP")


@contextlib.contextmanager
def nsd(folder, zones, *, prefix=()):
    """NSD on a free port, serving {apex: text}; yields (port, pid). `prefix` may pin it to a core."""
    config = [_CONFIG.format(folder=folder)]
    for number, (apex, text) in enumerate(zones.items()):
        (folder / f"{number}.zone").write_text(text)
        config.append(_ZONE.format(apex=apex, file=f"{number}.zone"))
    (folder / "nsd.conf").write_text("".join(config))
    process, port = _start(folder, prefix, next(iter(zones)))
    try:
        yield port, process.pid
    finally:
        process.terminate()
        process.wait(10)


def _start(folder, prefix, apex):
    """The process and its port; tried again when someone else took the port meanwhile."""
    for _ in range(5):
        port = free_port()
        command = [*prefix, BINARY, "-d", "-c", str(folder / "nsd.conf"), "-p", str(port)]
        process = subprocess.Popen(command)
        if _answers(process, port, apex):
            return process, port
        process.terminate()
        process.wait(10)
    raise AssertionError(f"NSD does not answer: {(folder / 'nsd.log').read_text()}")


def _answers(process, port, apex):
    query = dns.message.make_query(apex, "SOA")
    for _ in range(100):
        if process.poll() is not None:
            return False
        with contextlib.suppress(dns.exception.Timeout, OSError):
            if dns.query.udp(query, "127.0.0.1", port=port, timeout=0.2).rcode() == 0:
                return True
        time.sleep(0.02)
    return False
