"""Stock NSD, Knot and BIND as secondaries of ours, on addresses that nobody else uses (`peers`)."""

import contextlib
import subprocess
import time
from typing import NamedTuple

import dns.exception
import dns.message
import dns.query

from tests.dns import stock
from tests.dns.stock import new_place

BINARIES = {name: stock.binary(name) for name in ("NSD", "Knot")}
WITH_KEYS = {name: stock.binary(name) for name in ("NSD", "Knot", "BIND")}
ANSWER_SECONDS_MAX = 180

_NSD = stock.HEADS["NSD"].replace(
    "{options}",
    """  logfile: "{folder}/log"
  xfrd-reload-timeout: 0
  rrl-ratelimit: 0
""",
)
_NSD_ZONE = """
zone:
  name: {apex}
  zonefile: {apex}zone
  request-xfr: {primary_host}@{primary} {key}
  allow-notify: {primary_host} {key}
  provide-xfr: 127.0.0.1 NOKEY
"""
_NSD_KEY = """
key:
  name: {name}
  algorithm: {algorithm}
  secret: {secret}
"""
_KNOT = (
    stock.HEADS["Knot"].replace("{options}", "")
    + """
{keys}remote:
  - id: primary
    address: {primary_host}@{primary}
    {with_key}
acl:
  - id: primary
    address: {primary_host}
    action: notify
    {with_key}
  - id: local
    address: 127.0.0.1
    action: transfer
template:
  - id: default
    storage: "{folder}"
    master: primary
    acl: [primary, local]
    zonefile-sync: -1
zone:
"""
)
_KNOT_ZONE = "  - domain: {apex}\n"
_KNOT_KEY = """key:
  - id: {name}
    algorithm: {algorithm}
    secret: {secret}
"""
_BIND = (
    stock.HEADS["BIND"].replace(
        "{options}",
        """  notify no;
  min-refresh-time 1;
  min-retry-time 1;
  max-retry-time 2;
  allow-transfer {{ any; }};
""",
    )
    + "{keys}"
)
_BIND_KEY = """
key "{name}" {{ algorithm {algorithm}; secret "{secret}"; }};
"""
_BIND_ZONE = """
zone "{apex}" {{
  type secondary; file "{apex}zone"; masterfile-format text;
  primaries {{ {primary_host} port {primary} {with_key}; }};
  allow-notify {{ {notify}; }};
}};
"""


class Form(NamedTuple):
    """How a program is configured: head, zone, key, what a zone says of a key, and of none."""

    head: str
    zone: str
    key: str
    with_key: str
    without: str
    options: tuple[str, ...]


FORMS = {
    "NSD": Form(_NSD, _NSD_ZONE, _NSD_KEY, "{name}", "NOKEY", ("-d",)),
    "Knot": Form(_KNOT, _KNOT_ZONE, _KNOT_KEY, "key: {name}", "", ()),
    "BIND": Form(_BIND, _BIND_ZONE, _BIND_KEY, 'key "{name}"', "", ("-f", "-n", "1")),
}


class SharedKey(NamedTuple):
    """`secret` is Base64."""

    name: str
    algorithm: str
    secret: str


class Secondary:
    """One running server; `log` is what it wrote."""

    def __init__(self, kind, folder, primary, apexes, key=None, *, place=None, answers=True):
        """`primary` is a port of 127.0.0.1, or host and port. With `answers` it has to get the first zone."""
        self.kind, self._folder, self._apexes, self._key = kind, folder, apexes, key
        self._primary = primary if isinstance(primary, tuple) else ("127.0.0.1", primary)
        self.host, self.port = place or new_place(kind)
        folder.mkdir()
        self.process = self._start()
        if answers and not self._answers():
            self.stop()
            raise AssertionError(f"{kind} does not answer:\n{self.log}")

    def _start(self):
        config, form, key = self._folder / "config", FORMS[self.kind], self._key
        with_key = form.with_key.format(**key._asdict()) if key else form.without
        fields = {
            "folder": self._folder,
            "host": self.host,
            "port": self.port,
            "primary_host": self._primary[0],
            "primary": self._primary[1],
            "keys": form.key.format(**key._asdict()) if key else "",
            "key": with_key,
            "with_key": with_key,
            "notify": with_key or self._primary[0],
        }
        head = form.head if "{keys}" in form.head else form.head + "{keys}"
        zones = [form.zone.format(apex=apex, **fields) for apex in self._apexes]
        config.write_text(head.format(**fields) + "".join(zones))
        output = (self._folder / "output").open("ab")
        with output:
            return subprocess.Popen(
                [WITH_KEYS[self.kind], "-c", str(config), *form.options], stdout=output, stderr=output
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
def secondaries(folder, primary, apexes, binaries=BINARIES):
    """Every secondary that is installed, following the zones of the server on port `primary`."""
    with contextlib.ExitStack() as stack:
        running = []
        for kind, binary in binaries.items():
            if binary is not None:
                running.append(Secondary(kind, folder / kind, primary, apexes))
                stack.callback(running[-1].stop)
        yield running
