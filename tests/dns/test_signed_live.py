"""Signed zones over sockets: a validating resolver believes us, stock secondaries hold equal copies."""

import contextlib
import shutil
import subprocess
import threading
import time

import dns.flags
import dns.message
import dns.name
import dns.query
import dns.rcode
import dns.rdatatype
import pytest

from edgestead.dns.counters import Slot
from edgestead.testing.places import private_place
from tests.dns.secondaries import BINARIES, secondaries
from tests.dns.test_secondaries import Primary, contents
from tests.dns.test_signed import APEX, Changing, names_to_ask

UNBOUND = shutil.which("unbound", path="/usr/sbin:/usr/bin:/usr/local/sbin")
ANSWER_SECONDS_MAX = 60
QUESTION_KINDS = ("A", "AAAA", "TXT", "MX", "CNAME", "DS", "SOA", "DNSKEY", "CAA", "HTTPS")
CONFIG = """
server:
  directory: "{folder}"
  chroot: ""
  username: ""
  pidfile: ""
  use-syslog: no
  logfile: ""
  do-daemonize: no
  interface: {host}
  port: {port}
  do-ip6: no
  num-threads: 1
  so-rcvbuf: 0
  access-control: 127.0.0.0/8 allow
  do-not-query-localhost: no
  module-config: "validator iterator"
  trust-anchor: "{anchor}"
  aggressive-nsec: {aggressive}
  val-log-level: 2
stub-zone:
  name: "{apex}"
  stub-addr: 127.0.0.1@{primary}
  stub-prime: no
remote-control:
  control-enable: no
"""


class SignedPrimary(Primary):
    """Serves the zones of a Changing world; changes are applied on the loop."""

    def __init__(self, world):
        super().__init__(("unused.test.",))
        self.world = world
        self.table, self.journal = world.signed.table, world.signed.journal

    def change(self, act):
        signed, done = self.world.signed, threading.Event()
        signed.hold = True
        act()

        def apply():
            signed.hold = False
            signed.take()
            if self._notifier is not None:
                self._notifier.changed(list(self.table.view.zones))
            done.set()

        self.loop.call_soon_threadsafe(apply)
        assert done.wait(60)


@pytest.fixture
def world(tmp_path):
    made = Changing(tmp_path, 77)
    for _ in range(40):
        made.change()
    made.signed.set(APEX, "active")
    yield made
    made.signed.close()


@contextlib.contextmanager
def resolver(folder, anchor, primary, *, aggressive):
    """A validating resolver that knows one key; yields how it is asked."""
    host, port = private_place()
    folder.mkdir()
    words = {"folder": folder, "host": host, "port": port, "anchor": anchor, "apex": APEX, "primary": primary}
    (folder / "conf").write_text(CONFIG.format(aggressive="yes" if aggressive else "no", **words))
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen([UNBOUND, "-d", "-c", str(folder / "conf")], stdout=said, stderr=said)

    def ask(name, kind):
        query = dns.message.make_query(name, kind, want_dnssec=True)
        return dns.query.udp(query, host, port=port, timeout=ANSWER_SECONDS_MAX)

    try:
        end = time.monotonic() + ANSWER_SECONDS_MAX
        while True:
            with contextlib.suppress(dns.exception.Timeout, OSError):
                dns.query.udp(dns.message.make_query(APEX, "SOA"), host, port=port, timeout=0.2)
                break
            assert process.poll() is None, (folder / "said").read_text()
            assert time.monotonic() < end
            time.sleep(0.02)
        yield ask
    finally:
        process.terminate()
        process.wait(60)


def check_answers(world, ask, said):
    """Ask the resolver what we answer; returns how many answers were secure."""
    ours, secure = world.signed.asker(), 0
    unsigned = [dns.name.from_text(apex) for apex in world.signed.ids if apex != APEX]
    for name in [name for _ in range(3) for name in names_to_ask(world)]:
        kind = world.random.choice(QUESTION_KINDS)
        plain = ours(name, kind, payload=4096)
        leads = [
            plain.question[0].name,
            *(one[0].target for one in plain.answer if one.rdtype == dns.rdatatype.CNAME),
        ]
        is_ours = all(not target.is_subdomain(apex) for target in leads for apex in unsigned)
        is_referral = any(one.rdtype == dns.rdatatype.NS for one in plain.authority)
        is_parents = kind == "DS" and len(leads[-1]) == len(dns.name.from_text(APEX))
        if is_referral or is_parents or not is_ours or plain.rcode() == dns.rcode.SERVFAIL:
            continue
        reply = ask(name, kind)
        assert reply.rcode() == plain.rcode(), f"{name} {kind}: {reply}\n{plain}\n{said.read_text()[-3000:]}"
        found = [one for one in reply.answer if one.rdtype != dns.rdatatype.RRSIG]
        assert texts(found) == texts(plain.answer), f"{name} {kind}"
        assert reply.flags & dns.flags.AD, f"{name} {kind} is not secure: {reply}\n{said.read_text()[-3000:]}"
        secure += 1
    return secure


def texts(section):
    return sorted(f"{one.name} {one.rdtype} {sorted(map(str, one))}".lower() for one in section)


@pytest.mark.skipif(
    UNBOUND is None, reason="UNBOUND IS NOT INSTALLED: nobody validates (apt-get install unbound)"
)
@pytest.mark.parametrize("aggressive", [False, True], ids=["as asked", "from denials"])
def test_a_validating_resolver_finds_every_answer_secure(world, tmp_path, aggressive):
    anchor = world.signed.shown(APEX)["ds"]
    with SignedPrimary(world).running() as primary:
        for number in range(2):
            folder = tmp_path / f"unbound{number}"
            with resolver(folder, anchor, primary.port, aggressive=aggressive) as ask:
                assert check_answers(world, ask, folder / "said") > 30
            for _ in range(15):
                primary.change(world.change)


def test_stock_secondaries_hold_equal_signed_copies(world, tmp_path):
    if not any(BINARIES.values()):
        pytest.skip("NEITHER NSD NOR KNOT IS INSTALLED: nobody follows our zones (apt-get install nsd knot)")
    apex = APEX + "."
    with (
        SignedPrimary(world).running() as primary,
        secondaries(tmp_path, primary.port, (apex,)) as followers,
    ):
        primary.notify([(follower.host, follower.port) for follower in followers])
        for _ in range(60):
            primary.change(world.change)
        ours = wait_until_equal(primary, followers, apex)
    assert any("rdatatype.rrsig" in line or " rrsig " in line for line in ours), ours[:5]
    assert primary.counts[Slot.TRANSFERS_CHANGES] > 0


def wait_until_equal(primary, followers, apex):
    end = time.monotonic() + ANSWER_SECONDS_MAX
    ours = contents("127.0.0.1", primary.port, apex)
    for follower in followers:
        while contents(follower.host, follower.port, apex) != ours:
            assert time.monotonic() < end, f"{follower.kind}:\n{follower.log[-5000:]}"
            time.sleep(0.1)
    return ours
