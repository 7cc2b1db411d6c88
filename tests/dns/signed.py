"""Signed zones made by the real use cases, in the table of a DNS process, and stock verifiers of them."""

import itertools
import shutil
import subprocess
import time

import dns.dnssec
import dns.flags
import dns.message
import dns.name
import dns.rdata
import dns.rdataset
import dns.rdatatype
import dns.rrset
import dns.zone

from edgestead.dns import wire
from edgestead.dns.journal import Journal
from edgestead.dns.signed import parts
from edgestead.dns.table import Table
from edgestead.model import dnssec
from edgestead.model.call import Actor, Call, Profile
from edgestead.model.refusals.setting import KeysSealed
from edgestead.tables import signing as rows
from edgestead.usecases.zone import signing
from tests.dns.serving import Asker
from tests.support.api import LocalApi

SECOND_US = 1_000_000
DAY_US = 86_400 * SECOND_US
VERIFIERS = ("dnssec-verify", "ldns-verify-zone", "kzonecheck", "kzonesign")
KNOT_SIGNS = """
database:
    storage: "{folder}/knot"
policy:
  - id: plain
    algorithm: ecdsap256sha256
    single-type-signing: on
zone:
  - domain: {apex}
    file: "{folder}/plain"
    dnssec-signing: on
    dnssec-policy: plain
"""


class Signed:
    """One account's zones over a real store. Each change is in `table` when it has returned.

    The clock is the machine's, because the verifiers know no other; `later` puts it forward for our side.
    """

    def __init__(self, folder, **options):
        self.folder = folder
        self.api = LocalApi(folder, **options)
        self.now_us = int(time.time()) * SECOND_US
        object.__setattr__(self.api.app.context, "now_us", self.__next__)
        self.table = Table()
        self.journal = Journal()
        self._taken = 0
        self.hold = False
        self.ids = {}

    def __next__(self):
        return next(self._ticks) + self.now_us

    _ticks = itertools.count()

    def later(self, us):
        self.now_us += us

    def close(self):
        self.api.close()

    def take(self):
        """Apply what the feed was told, unless another thread does that (`hold`)."""
        if self.hold:
            return
        changes = self.api.changes[self._taken :]
        self._taken = len(self.api.changes)
        self.table.apply(changes)
        self.journal.take(changes)

    def zone(self, name):
        made = self.api.post("/zones", {"name": name})
        assert made.status == 200, made.json
        self.ids[name] = made.result["id"]
        self.take()
        return made.result["id"]

    def add(self, zone, name, kind, content, **more):
        body = {"name": name, "type": kind, "content": content, "ttl": 300} | more
        found = self.api.post(f"/zones/{self.ids[zone]}/dns_records", body)
        self.take()
        return found

    def remove(self, zone, record_id):
        found = self.api.delete(f"/zones/{self.ids[zone]}/dns_records/{record_id}")
        self.take()
        return found

    def set(self, zone, status):
        found = self.api.patch(f"/zones/{self.ids[zone]}/dnssec", {"status": status})
        self.take()
        return found

    def shown(self, zone):
        return self.api.get(f"/zones/{self.ids[zone]}/dnssec").result

    @property
    def call(self):
        when = self.now_us
        return Call(
            actor=Actor(kind="account", id=""), as_of=None, profile=Profile.SPEC, now_us=when, request_id=""
        )

    def work(self, rounds_max=10_000):
        """Let the background work be done until there is none; returns how many transactions it took."""
        for done in range(rounds_max):
            if not self.has_work():
                return done
            self.work_once()
        raise AssertionError("the work never ends")

    def next_work(self):
        return self.api.store.read(lambda reader: signing.next_work(reader, self.now_us))

    def has_work(self):
        return bool(self.next_work())

    def work_once(self):
        """The first piece of work, which is put off where keys cannot be opened."""
        work = self.next_work()[0]
        write, platform = self.api.store.write, self.api.platform
        try:
            write(lambda tx: signing.go_on(self.call, tx, platform, work)).result()
        except KeysSealed:
            write(lambda tx: signing.put_off(self.call, tx, work)).result()
        self.take()

    def verify(self, zone, folder):
        verify(zone_text(self.table, zone + "."), zone + ".", folder)

    def keys(self, zone):
        return self.api.store.read(lambda reader: rows.keys(reader, self.ids[zone]))

    def counts(self, zone_id):
        """How many keys and names of a zone there are."""
        return self.api.store.read(
            lambda reader: (len(rows.keys(reader, zone_id)), rows.count(reader, zone_id))
        )

    def signatures(self, zone):
        """Each signature by relative name as text and covered type, as RDATA."""
        served = self.table.view.zones[dns.name.from_text(zone).to_wire()]
        found = {("", 6): next(wire.records(served.signatures.soa[1]))[2]}
        for name, entry in served.signatures.entries.items():
            for _, _, records in parts(entry):
                for kind, _, rdata in wire.records(records):
                    if kind == dnssec.RRSIG:
                        text = dns.name.from_wire(name + b"\0", 0)[0].to_text(omit_final_dot=True)
                        found[text.replace("@", "").rstrip("."), dnssec.covered(rdata)] = rdata
        return found

    def signature_ends(self, zone):
        """When each signature ends, in Unix seconds."""
        return list(map(dnssec.expiration, self.signatures(zone).values()))

    def parent_says(self, zone, *ds):
        self.api.store.write(
            lambda tx: signing.parent_said(self.call, tx, self.api.platform, self.ids[zone], ds)
        ).result()
        self.take()

    def state(self, zone):
        found = self.api.store.read(lambda reader: signing.stored_of(reader, self.ids[zone]))
        return found and found.state

    def asker(self):
        return Asker(self.table)


def zone_text(table, apex):
    """The zone as a transfer sends it."""
    from edgestead.dns.transfer import _whole

    zone = table.view.zones[dns.name.from_text(apex).to_wire()]
    origin = dns.name.from_text(apex)
    lines = []
    for octets in list(_whole(zone))[:-1]:
        lines += _lines(octets, origin)
    return "".join(lines)


def _lines(octets, origin):
    """One record whose names end in a pointer to the apex."""
    question = b"\0" * 12 + origin.to_wire()
    message = question + octets
    owner, used = dns.name.from_wire(message, len(question))
    at = len(question) + used
    kind, _, ttl, length = (
        int.from_bytes(message[at + start : at + end], "big")
        for start, end in ((0, 2), (2, 4), (4, 8), (8, 10))
    )
    rdata = dns.rdata.from_wire("IN", kind, message, at + 10, length)
    return [f"{owner} {ttl} IN {dns.rdatatype.to_text(kind)} {rdata}\n"]


def missing_verifiers():
    return [program for program in VERIFIERS if not shutil.which(program)]


def signed_by_bind(lines, apex, folder):
    """A plain zone as BIND's signer signs it; None where that is not installed."""
    if not shutil.which("dnssec-signzone"):
        return None
    options = {"check": True, "capture_output": True, "text": True, "timeout": 300}
    if not any(folder.glob(f"K{apex}*.key")):
        kind = ["-a", "ECDSAP256SHA256", "-f", "KSK"]
        subprocess.run(["dnssec-keygen", "-q", "-K", str(folder), *kind, apex], **options)
    (key,) = folder.glob(f"K{apex}*.key")
    path = folder / "plain"
    path.write_text("".join(lines) + key.read_text())
    command = ["dnssec-signzone", "-q", "-P", "-z", "-O", "full", "-K", str(folder), "-o", apex, str(path)]
    subprocess.run(command, cwd=folder, **options)
    return (folder / "plain.signed").read_text()


def signed_by_knot(lines, apex, folder):
    """A plain zone as Knot signs it; None where that is not installed."""
    if not shutil.which("kzonesign"):
        return None
    options = {"check": True, "capture_output": True, "text": True, "timeout": 300}
    settings, out = folder / "knot.conf", folder / "knot-signed"
    if not settings.exists() or f"domain: {apex}\n" not in settings.read_text():
        shutil.rmtree(folder / "knot", ignore_errors=True)
        (folder / "knot").mkdir()
        out.mkdir(exist_ok=True)
        settings.write_text(KNOT_SIGNS.format(folder=folder, apex=apex))
        kind = ["algorithm=ecdsap256sha256", "ksk=yes", "zsk=yes"]
        subprocess.run(["keymgr", "-c", str(settings), apex, "generate", *kind], **options)
    (folder / "plain").write_text("".join(lines))
    subprocess.run(["kzonesign", "-c", str(settings), "-o", str(out), apex], **options)
    lines = (out / "plain").read_text().splitlines()
    # Knot writes no class.
    return "".join(f"{' '.join([*line.split()[:2], 'IN', *line.split()[2:]])}\n" for line in lines)


def plain(text):
    """The lines of a zone without what signing adds."""
    added = {"RRSIG", "NSEC", "DNSKEY", "CDS", "CDNSKEY"}
    return [line for line in text.splitlines(keepends=True) if line.split()[3] not in added]


def denials(text):
    """What a zone's NSEC records say there is: types by name. Names without a type, which are ours alone, are
    left out: others have no NSEC for them.
    """
    found = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) > 4 and fields[3] == "NSEC":
            types = frozenset(fields[5:]) - {"RRSIG", "NSEC", "CDS", "CDNSKEY"}
            if types:
                found[fields[0].lower()] = types
    return found


def compare_denials(text, apex, folder):
    """BIND and Knot sign the same zone: their denials mean what ours do."""
    for sign in (signed_by_bind, signed_by_knot):
        theirs = sign(plain(text), apex, folder)
        if theirs is not None:
            assert denials(text) == denials(theirs), sign.__name__


COMMANDS = {
    "dnssec-verify": ("-q", "-z", "-o"),
    "kzonecheck": ("-d", "on", "-o"),
    "ldns-verify-zone": (),
}


def verify(text, apex, folder, programs=tuple(COMMANDS)):
    """Let the stock programs that are installed verify a whole signed zone."""
    path = folder / "zone"
    path.write_text(text)
    for program in programs:
        if program in missing_verifiers() or (program == "kzonecheck" and _keys(text) > 1):
            continue
        origin = [apex] if COMMANDS[program] else []
        command = [program, *COMMANDS[program], *origin, str(path)]
        found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert not _faults(found), f"{program}: {found.stdout}{found.stderr}\n{text}"


def _keys(text):
    """Of a zone's apex. With two, kzonecheck 3.2.6 denies one valid signature in some zones, the same one
    each time: BIND, ldns and dnspython verify it.
    """
    return sum(line.split()[3:4] == ["DNSKEY"] for line in text.splitlines())


def _faults(found):
    """What a verifier says against signatures: glue that is missing is the zone's author's affair."""
    said = [line for line in (found.stdout + found.stderr).splitlines() if line.startswith("[")]
    if found.returncode and said:
        return [line for line in said if "missing glue record" not in line]
    return [found.returncode] if found.returncode else []
