"""Zones that a primary signed are served as they are: by what its own answers say, and by validators.

BIND's tool signs the zone and BIND serves it; ours has to prove what BIND proves, record by record.
"""

import shutil
import subprocess

import dns.dnssec
import dns.flags
import dns.message
import dns.name
import dns.query
import dns.rcode
import dns.rdatatype
import dns.zone
import pytest

from tests.dns import stock
from tests.dns.stock import SBIN, Stock

WAIT_SECONDS = 300
TRIES_MAX = 12  # of 5 s each
ZONE = "signed.test"
RECORDS = """$ORIGIN signed.test.
$TTL 300
@ SOA ns1.example.net. host.example.net. {serial} 7200 900 86400 600
@ NS ns1.example.net.
@ MX 10 mail
@ TXT "one"
www A 192.0.2.1
www A 192.0.2.2
alias CNAME www
broken CNAME nowhere
*.wild TXT "any"
*.wild MX 10 www
deep.empty A 192.0.2.3
secure NS ns.secure
secure DS 12345 13 2 {digest}
ns.secure A 192.0.2.53
plain NS ns.plain
ns.plain A 192.0.2.54
_sip._tcp SRV 1 2 5060 www
{more}
"""
QUESTIONS = [
    (name, kind)
    for name in (
        *(
            "",
            "www.",
            "alias.",
            "broken.",
            "nowhere.",
            "a.b.nowhere.",
            "x.wild.",
            "a.x.wild.",
            "wild.",
            "empty.",
        ),
        *(
            "x.empty.",
            "deep.empty.",
            "secure.",
            "www.secure.",
            "plain.",
            "www.plain.",
            "_tcp.",
            "zzz.",
            "x.alias.",
        ),
    )
    for kind in ("A", "TXT", "MX", "DS", "SOA", "DNSKEY", "NSEC3PARAM")
]
SIGNERS = {
    "NSEC": ("dnssec-signzone", ()),
    "NSEC3": ("dnssec-signzone", ("-3", "-", "-H", "0")),
    "NSEC3 with salt, iterations and opt-out": ("dnssec-signzone", ("-3", "abcd", "-H", "5", "-A")),
    "NSEC3 with too many iterations": ("dnssec-signzone", ("-3", "-", "-H", "60")),
}
BIND = """
zone "signed.test" { type primary; file "zone.signed"; };
"""
UNBOUND = """
server:
  directory: "{folder}"
  chroot: ""
  username: ""
  pidfile: ""
  use-syslog: no
  logfile: ""
  do-daemonize: no
  interface: 127.0.0.1
  port: {port}
  do-ip6: no
  num-threads: 1
  so-rcvbuf: 0
  do-not-query-localhost: no
  module-config: "validator iterator"
  trust-anchor: "{anchor}"
  val-log-level: 2
  local-zone: "test." nodefault
stub-zone:
  name: "signed.test"
  stub-addr: {primary}
  stub-prime: no
remote-control:
  control-enable: no
"""


def program(name):
    return shutil.which(name, path=SBIN)


pytestmark = pytest.mark.skipif(
    stock.binary("BIND") is None or program("dnssec-signzone") is None,
    reason="BIND IS NOT INSTALLED: no signed zone is transferred from it",
)


class SigningPrimary(Stock):
    """BIND with a zone that was signed before it is read."""

    def __init__(self, folder, how):
        self._folder, self._how = folder, how
        folder.mkdir()
        for flags in ("-f KSK", ""):
            command = f"{program('dnssec-keygen')} -q -K {folder} -a ECDSAP256SHA256 {flags} {ZONE}"
            subprocess.run(command.split(), check=True, capture_output=True, timeout=WAIT_SECONDS)
        self.sign(1)
        place = stock.new_place("BIND")
        options = (
            "  allow-transfer { any; };\n  notify no;\n  minimal-responses yes;\n  zero-no-soa-ttl no;\n"
        )
        super().__init__("BIND", folder, stock.head("BIND", folder, place, options) + BIND, place)

    def sign(self, serial, more=""):
        text = RECORDS.format(serial=serial, digest="ab" * 32, more=more)
        (self._folder / "zone").write_text(text)
        name, flags = SIGNERS[self._how]
        options = ("-q", "-S", "-K", str(self._folder), "-o", ZONE, "-f", "zone.signed", *flags)
        command = (program(name), *options, "zone")
        subprocess.run(command, cwd=self._folder, check=True, capture_output=True, timeout=WAIT_SECONDS)

    def anchor(self):
        (file,) = (one for one in self._folder.glob("K*.key") if " 257 " in one.read_text())
        return " ".join(file.read_text().splitlines()[-1].split())


@pytest.fixture
def new_primary(tmp_path):
    made = []

    def make(how):
        made.append(SigningPrimary(tmp_path / "primary", how))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def make_secondary(server, primary, *, presigned=True):
    account = server.ready["account_id"]
    peer = {"name": "primary", "ip": primary.host, "port": primary.port}
    made = server.call("POST", f"/accounts/{account}/secondary_dns/peers", peer).result["id"]
    body = {"name": ZONE, "type": "secondary", "account": {"id": account}}
    zone_id = server.call("POST", "/zones", body).result["id"]
    if presigned:
        server.call("PATCH", f"/zones/{zone_id}/dnssec", {"dnssec_presigned": True})
    server.call("POST", f"/zones/{zone_id}/secondary_dns/incoming", {"name": "in", "peers": [made]})
    return zone_id


def answer(place, name, kind):
    """The rcode, and the records of answer and authority; of a CNAME's target only what both have to say."""
    query = dns.message.make_query(f"{name}{ZONE}.", kind, want_dnssec=True)
    reply = dns.query.tcp(query, *place[:1], port=place[1], timeout=WAIT_SECONDS)

    def records(section):
        return {
            f"{rrset.name} {rrset.ttl} {rdata.rdtype} {rdata}".lower() for rrset in section for rdata in rrset
        }

    return dns.rcode.to_text(reply.rcode()), records(reply.answer), records(reply.authority)


def contents(place):
    transfer = dns.query.xfr(place[0], ZONE, port=place[1], timeout=WAIT_SECONDS, relativize=False)
    zone = dns.zone.from_xfr(transfer, relativize=False)
    return {f"{name} {ttl} {rdata.rdtype} {rdata}".lower() for name, ttl, rdata in zone.iterate_rdatas()}


def place_of(server):
    host, _, port = server.ready["dns"].rpartition(":")
    return host, int(port)


@pytest.mark.parametrize("how", list(SIGNERS)[:3])
def test_answers_and_proofs_are_the_primarys_through_changes(new_server, new_primary, tmp_path, how):
    primary = new_primary(how)
    server = new_server("--transfer-to", "127.0.0.0/8").start()
    zone_id = make_secondary(server, primary)
    server.wait_until(lambda: server.dig(f"www.{ZONE}")[0] == "192.0.2.1", WAIT_SECONDS)
    ours, theirs = place_of(server), (primary.host, primary.port)
    assert contents(ours) == contents(theirs)
    for name, kind in QUESTIONS:
        assert answer(ours, name, kind) == answer(theirs, name, kind), (name, kind)

    primary.sign(2, "new A 192.0.2.9\n*.more A 192.0.2.8\n")
    primary.read_again()

    def is_there():
        server.call("POST", f"/zones/{zone_id}/secondary_dns/force_axfr")
        return server.dig(f"new.{ZONE}") == ["192.0.2.9"]

    server.wait_until(is_there, WAIT_SECONDS)
    assert contents(ours) == contents(theirs)
    for name, kind in (*QUESTIONS[::5], ("new.", "MX"), ("x.more.", "A"), ("x.more.", "MX")):
        assert answer(ours, name, kind) == answer(theirs, name, kind), (name, kind)
    shown = server.call("GET", f"/zones/{zone_id}/dnssec").result
    assert (shown["status"], shown["dnssec_presigned"]) == ("active", True)
    overrides = server.call("PATCH", f"/zones/{zone_id}/dns_settings", {"secondary_overrides": True})
    assert "as its primary signed it" in overrides.body["errors"][0]["message"]

    assert server.stop() == 0
    server.start()
    for name, kind in QUESTIONS[::7]:
        assert answer(ours, name, kind) == answer(theirs, name, kind), (name, kind)
    if program("unbound") is not None:
        assert_believed(server, primary, tmp_path, is_secure="opt-out" not in how)


def assert_believed(server, primary, tmp_path, *, is_secure):
    """Unbound, which is told the key, takes each answer, and finds it secure: where a record that opts out
    denies a name, nobody may say so (RFC 5155 §9.2).
    """
    host, port = place_of(server)
    at = stock.free_place()[1]
    words = {"folder": tmp_path, "port": at, "anchor": primary.anchor(), "primary": f"{host}@{port}"}
    (tmp_path / "unbound.conf").write_text(UNBOUND.format(**words))
    with (tmp_path / "unbound.log").open("wb") as log:
        process = subprocess.Popen(
            [program("unbound"), "-d", "-c", str(tmp_path / "unbound.conf")], stdout=log, stderr=log
        )
    try:
        server.wait_until(lambda: asked(at, f"www.{ZONE}", "A") is not None, WAIT_SECONDS)
        for name, kind in QUESTIONS:
            if (name, kind) != ("", "DS") and not name.endswith(("secure.", "plain.")):  # what is ours alone
                reply = answered(at, f"{name}{ZONE}", kind)
                assert reply.rcode() in (dns.rcode.NOERROR, dns.rcode.NXDOMAIN), (name, kind)
                assert reply.flags & dns.flags.AD or not is_secure, (name, kind)
    finally:
        process.terminate()
        process.wait(300)


def answered(port, name, kind):
    """Its answer: a validator that has to ask others on a busy machine is asked again, as clients do."""
    for _ in range(TRIES_MAX):
        if (reply := asked(port, name, kind)) is not None:
            return reply
    raise TimeoutError(f"no answer to {name} {kind}")


def asked(port, name, kind):
    query = dns.message.make_query(name, kind, want_dnssec=True)
    try:
        return dns.query.udp(query, "127.0.0.1", port=port, timeout=5)
    except (OSError, dns.exception.Timeout):
        return None


@pytest.mark.parametrize(
    ("how", "presigned", "words"),
    [("NSEC", False, "dnssec_presigned"), ("NSEC3 with too many iterations", True, "60 iterations")],
)
def test_what_is_not_wanted_or_costs_too_much_is_refused_in_words(
    new_server, new_primary, how, presigned, words
):
    primary = new_primary(how)
    server = new_server().start()
    zone_id = make_secondary(server, primary, presigned=presigned)
    incoming = f"/zones/{zone_id}/secondary_dns/incoming"
    server.wait_until(lambda: words in server.call("GET", incoming).result["problem"], WAIT_SECONDS)
    assert server.dig(f"www.{ZONE}") == ["SERVFAIL"]

    if not presigned:
        server.call("PATCH", f"/zones/{zone_id}/dnssec", {"dnssec_presigned": True})
        server.wait_until(lambda: server.dig(f"www.{ZONE}")[0] == "192.0.2.1", WAIT_SECONDS)
