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
from edgestead.server.places import private_place
from tests.dns.secondaries import WITH_KEYS, secondaries
from tests.dns.test_secondaries import Primary, contents, held
from tests.dns.test_signed import APEX, Changing, names_to_ask

UNBOUND = shutil.which("unbound", path="/usr/sbin:/usr/bin:/usr/local/sbin")
ANSWER_SECONDS_MAX = 180
FAILS_SECONDS_MAX = 60  # of a resolver that keeps in mind that something went wrong
BELIEVED = ("; fully validated", "; negative response, fully validated")  # of delv
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
  harden-below-nxdomain: {below}
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
def resolver(folder, anchor, primary, *, aggressive, below=True):
    """A validating resolver that knows one key; yields how it is asked.

    `below`: from NXDOMAIN it concludes that there is nothing below (RFC 8020). unbound 1.17 concludes this
    of an alias, too, whose target is not there.
    """
    host, port = private_place()
    folder.mkdir()
    words = {"folder": folder, "host": host, "port": port, "anchor": anchor, "apex": APEX, "primary": primary}
    (folder / "conf").write_text(CONFIG.format(aggressive=yes(aggressive), below=yes(below), **words))
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen([UNBOUND, "-d", "-c", str(folder / "conf")], stdout=said, stderr=said)

    def ask(name, kind):
        """What it says in the end: for some seconds it fails where we were too slow for it."""
        query = dns.message.make_query(name, kind, want_dnssec=True)
        end = time.monotonic() + FAILS_SECONDS_MAX
        while True:
            reply = dns.query.udp(query, host, port=port, timeout=ANSWER_SECONDS_MAX)
            if reply.rcode() != dns.rcode.SERVFAIL or time.monotonic() > end:
                return reply
            time.sleep(0.5)

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


def delv(folder, anchor, port, name, kind):
    """What BIND's validator says of one answer; None where that is not installed."""
    if shutil.which("delv") is None:
        return None
    tag, algorithm, digest_type, digest = anchor.partition(" DS ")[2].split()
    anchors = folder / "anchors"
    anchors.write_text(
        f'trust-anchors {{ {APEX}. static-ds {tag} {algorithm} {digest_type} "{digest}"; }};\n'
    )
    place = ["delv", "@127.0.0.1", "-p", str(port), "-a", str(anchors), f"+root={APEX}"]
    return subprocess.run(
        [*place, name, kind], capture_output=True, text=True, check=False, timeout=ANSWER_SECONDS_MAX
    ).stdout


def yes(whether):
    return "yes" if whether else "no"


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
        is_loop = leads[-1] in {one.name for one in plain.answer} and len(leads) > 1
        if is_referral or is_parents or is_loop or not is_ours or plain.rcode() == dns.rcode.SERVFAIL:
            continue
        reply = ask(name, kind)
        # unbound 1.17 answers for a CNAME itself with the rcode of what it once led to.
        is_alias = kind == "CNAME" and bool(plain.answer)
        words = f"{name} {kind}: {reply}\n{plain}\n{said.read_text()[-3000:]}"
        assert is_alias or reply.rcode() == plain.rcode(), words
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
    if not any(WITH_KEYS.values()):
        pytest.skip("NO NSD, KNOT OR BIND IS INSTALLED: nobody follows our zones (apt-get install nsd knot)")
    apex = APEX + "."
    with (
        SignedPrimary(world).running() as primary,
        secondaries(tmp_path, primary.port, (apex,), WITH_KEYS) as followers,
    ):
        primary.notify([(follower.host, follower.port) for follower in followers])
        for _ in range(60):
            primary.change(world.change)
        wait_until_equal(primary, followers, apex)  # they may have fetched all of it: there were many changes
        primary.change(lambda: world.signed.add(APEX, "one-more", "A", "192.0.2.9"))
        ours = wait_until_equal(primary, followers, apex)
    assert any("rdatatype.rrsig" in line or " rrsig " in line for line in ours), ours[:5]
    assert primary.counts[Slot.TRANSFERS_CHANGES] > 0


def wait_until_equal(primary, followers, apex):
    end = time.monotonic() + ANSWER_SECONDS_MAX
    ours = contents("127.0.0.1", primary.port, apex)
    for follower in followers:
        while held(follower, apex) != ours:
            assert time.monotonic() < end, f"{follower.kind}:\n{follower.log[-5000:]}"
            time.sleep(0.1)
    return ours


@pytest.mark.skipif(
    UNBOUND is None, reason="UNBOUND IS NOT INSTALLED: nobody validates (apt-get install unbound)"
)
@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(1_000, 2_000))
def test_unbound_and_delv_find_many_random_zones_secure(tmp_path, seed):
    world = Changing(tmp_path, seed)
    try:
        for _ in range(40):
            world.change()
        world.signed.set(APEX, "active")
        anchor = world.signed.shown(APEX)["ds"]
        with SignedPrimary(world).running() as primary:
            aggressive = seed % 2 == 0
            unbound = resolver(tmp_path / "unbound", anchor, primary.port, aggressive=aggressive, below=False)
            with unbound as ask:
                check_answers(world, ask, tmp_path / "unbound" / "said")
            for name in (APEX, f"not-there.{APEX}"):  # which an asterisk may answer for, even with a loop
                said = delv(tmp_path, anchor, primary.port, name, "CNAME")
                assert said is None or said.startswith(BELIEVED), said
    finally:
        world.signed.close()
