"""Stock NSD and Knot as secondaries of ours, on addresses that nobody else uses (`peers`)."""

import contextlib
import subprocess
import time

import dns.exception
import dns.message
import dns.query

from edgestead.testing.places import private_place
from tests.dns.peers import PEERS

BINARIES = {name: PEERS[name].binary for name in ("NSD", "Knot")}
ANSWER_SECONDS_MAX = 60

_NSD = """
server:
  ip-address: {host}
  port: {port}
  server-count: 1
  username: ""
  chroot: ""
  zonesdir: "{folder}"
  database: ""
  zonelistfile: "{folder}/zone.list"
  xfrdfile: "{folder}/xfrd.state"
  xfrdir: "{folder}"
  pidfile: "{folder}/nsd.pid"
  logfile: "{folder}/log"
  xfrd-reload-timeout: 0
  rrl-ratelimit: 0
remote-control:
  control-enable: no
"""
_NSD_ZONE = """
zone:
  name: {apex}
  zonefile: {apex}zone
  request-xfr: 127.0.0.1@{primary} NOKEY
  allow-notify: 127.0.0.1 NOKEY
  provide-xfr: 127.0.0.1 NOKEY
"""
_KNOT = """
server:
    rundir: "{folder}"
    listen: {host}@{port}
    udp-workers: 1
    tcp-workers: 1
    background-workers: 1
log:
  - target: "{folder}/log"
    any: info
database:
    storage: "{folder}"
remote:
  - id: primary
    address: 127.0.0.1@{primary}
acl:
  - id: local
    address: 127.0.0.1
    action: [notify, transfer]
template:
  - id: default
    storage: "{folder}"
    master: primary
    acl: local
    zonefile-sync: -1
zone:
"""
_KNOT_ZONE = "  - domain: {apex}\n"


class Secondary:
    """One running server; `log` is what it wrote."""

    def __init__(self, kind, folder, primary, apexes):
        self.kind, self._folder, self._primary, self._apexes = kind, folder, primary, apexes
        self.host, self.port = private_place()
        folder.mkdir()
        self.process = self._start()
        if not self._answers():
            self.stop()
            raise AssertionError(f"{kind} does not answer:\n{self.log}")

    def _start(self):
        config = self._folder / "config"
        head, zone = (_NSD, _NSD_ZONE) if self.kind == "NSD" else (_KNOT, _KNOT_ZONE)
        fields = {"folder": self._folder, "host": self.host, "port": self.port, "primary": self._primary}
        zones = [zone.format(apex=apex, **fields) for apex in self._apexes]
        config.write_text(head.format(**fields) + "".join(zones))
        more = ["-d"] if self.kind == "NSD" else []
        output = (self._folder / "output").open("ab")
        with output:
            return subprocess.Popen(
                [BINARIES[self.kind], "-c", str(config), *more], stdout=output, stderr=output
            )

    def _answers(self):
        """False when it has ended, or takes too long."""
        end = time.monotonic() + ANSWER_SECONDS_MAX
        while time.monotonic() < end and self.process.poll() is None:
            if self.serial(self._apexes[0]) is not None:
                return self.process.poll() is None
            time.sleep(0.02)
        return False

    @property
    def log(self):
        return "".join(
            path.read_text(errors="replace")
            for name in ("output", "log")
            if (path := self._folder / name).exists()
        )

    def serial(self, apex):
        """The serial of its copy, None when it has none yet."""
        query = dns.message.make_query(apex, "SOA")
        with contextlib.suppress(dns.exception.Timeout, OSError):
            reply = dns.query.udp(query, self.host, port=self.port, timeout=0.5)
            for rrset in reply.answer:
                return rrset[0].serial
        return None

    def stop(self):
        self.process.terminate()
        self.process.wait(60)


@contextlib.contextmanager
def secondaries(folder, primary, apexes):
    """Every secondary that is installed, following the zones of the server on port `primary`."""
    with contextlib.ExitStack() as stack:
        running = []
        for kind, binary in BINARIES.items():
            if binary is not None:
                running.append(Secondary(kind, folder / kind, primary, apexes))
                stack.callback(running[-1].stop)
        yield running
