"""Signed zones: stock verifiers accept them whole, and every answer proves what it says."""

import random

import dns.message
import dns.name
import dns.rcode
import dns.rdatatype
import pytest

from edgestead.dns import node
from edgestead.model.call import Profile
from tests.dns.signed import (
    COMMANDS,
    VERIFIERS,
    Signed,
    compare_denials,
    missing_verifiers,
    verify,
    zone_text,
)
from tests.dns.signed_judge import Judge

APEX, BELOW = "example.com", "kid.b.example.com"
LABELS = ["a", "b", "c", "www", "*", "_x", "zz", "kid"]
KINDS = ("A", "AAAA", "TXT", "MX", "CNAME", "NS", "SRV", "CAA")
QUESTION_KINDS = ("A", "AAAA", "TXT", "MX", "CNAME", "NS", "DS", "SOA", "DNSKEY", "NSEC", "ANY", "HTTPS")
CHANGES = 30
CHECKED_EVERY = 15
MANY_CHANGES = 500
MANY_CHECKED_EVERY = 50
QUESTIONS = 60


class Changing:
    """Random changes of a signed zone through the API; what the API refuses changes nothing."""

    def __init__(self, folder, seed):
        self.random = random.Random(seed)
        self.signed = Signed(folder)
        self.signed.zone(APEX)
        self.ids = []

    def name(self):
        labels = [self.random.choice(LABELS) for _ in range(self.random.choice((1, 1, 2, 2, 3, 4)))]
        labels[1:] = [label.replace("*", "w") for label in labels[1:]]
        return ".".join([*labels, APEX])

    def change(self):
        chance = self.random.random()
        if chance < 0.35 and self.ids:
            self.signed.remove(APEX, self.ids.pop(self.random.randrange(len(self.ids))))
        elif chance < 0.4:
            self._change_child()
        else:
            kind, name = self.random.choice(KINDS), self.name()
            found = self.signed.add(
                APEX, name if self.random.random() < 0.95 else APEX, kind, **self._content(kind)
            )
            if found.status == 200:
                self.ids.append(found.result["id"])
                if kind == "NS" and self.random.random() < 0.5:
                    self._add_ds(name)

    def _content(self, kind):
        number = self.random.randint(1, 250)
        simple = {
            "A": f"192.0.2.{number}",
            "AAAA": f"2001:db8::{number:x}",
            "TXT": f'"text {number}"',
            "CNAME": self._end(),
            "NS": f"ns{number % 3}.{self.name().replace('*', 'w')}",
        }
        if kind in simple:
            more = {}
            if kind in ("A", "AAAA", "CNAME"):
                more["proxied"] = self.random.random() < 0.25
            if kind == "CNAME":
                more["settings"] = {"flatten_cname": self.random.random() < 0.4}
            return {"content": simple[kind], **more}
        if kind == "MX":
            return {"content": "Mail." + self.name().replace("*", "w"), "priority": number}
        if kind == "SRV":
            data = {"priority": 1, "weight": 2, "port": number, "target": self.name().replace("*", "w")}
            return {"content": None, "data": data}
        return {"content": None, "data": {"flags": 0, "tag": "issue", "value": f"ca{number}.net"}}

    def _end(self):
        """Of an alias: a name, or an asterisk below one, which is seldom there."""
        name = self.name().replace("*", "w")
        return f"*.{name}" if self.random.random() < 0.2 else name

    def _add_ds(self, name):
        data = {"key_tag": 4711, "algorithm": 13, "digest_type": 2, "digest": "ab" * 32}
        found = self.signed.add(APEX, name, "DS", None, data=data)
        if found.status == 200:
            self.ids.append(found.result["id"])

    def _change_child(self):
        if BELOW in self.signed.ids:
            self.signed.api.delete(f"/zones/{self.signed.ids.pop(BELOW)}")
            self.signed.take()
        else:
            self.signed.zone(BELOW)
            if self.random.random() < 0.5:
                self.signed.set(BELOW, "active")


def text(wire):
    return dns.name.from_wire(wire, 0)[0]


def is_pending(zone):
    """Whether it has addresses that nobody knows yet, which are not denied and not there."""
    return any(node.rrset(held, node.PENDING_KEY) for held in zone.names.values())


def signed_apexes(signed):
    return [zone.apex for zone in signed.table.view.zones.values() if zone.signed]


def judge_of(signed, ask):
    answers = {text(apex): ask(text(apex), "DNSKEY").answer for apex in signed.table.view.zones}
    keys = {apex: answer[0] if answer else None for apex, answer in answers.items()}
    return Judge(keys, signed.now_us // 1_000_000)


def names_to_ask(changing):
    """Names of the zone, names between them, and names that are not there."""
    names = list(changing.signed.table.view.zones[wire_of(APEX)].names)
    chosen = [
        dns.name.from_wire(name + wire_of(APEX), 0)[0]
        for name in changing.random.sample(names, min(20, len(names)))
    ]
    # dnspython validates no asterisk that another asterisk answers for.
    return chosen + [dns.name.from_text(changing.name().replace("*", "w")) for _ in range(20)]


def wire_of(apex):
    return dns.name.from_text(apex).to_wire()


def test_a_dname_is_signed_and_the_alias_that_follows_from_it_is_not(tmp_path):
    signed = Signed(tmp_path, profile=Profile.CLIENTS)
    try:
        signed.zone(APEX)
        for name, kind, content in (("old", "DNAME", f"new.{APEX}"), ("www.new", "A", "192.0.2.1")):
            assert signed.add(APEX, name, kind, content).status == 200
        signed.set(APEX, "active")
        signed.work()
        signed.verify(APEX, tmp_path)
        ask = signed.asker()
        judge = judge_of(signed, ask)
        for name, missing in (("www.old", False), ("no.old", True)):
            reply = ask(dns.name.from_text(f"{name}.{APEX}"), "A", want_dnssec=True, payload=4096)
            found = {(rrset.rdtype, rrset.covers): rrset for rrset in reply.answer}
            covered = {covers for kind, covers in found if kind == dns.rdatatype.RRSIG}
            assert covered == {dns.rdatatype.DNAME} | ({dns.rdatatype.A} - {missing and dns.rdatatype.A})
            assert (dns.rdatatype.CNAME, 0) in found
            judge.verify(reply.answer, found[dns.rdatatype.DNAME, 0])
            assert any(one.rdtype == dns.rdatatype.NSEC for one in reply.authority) == missing
    finally:
        signed.close()


def test_an_alias_of_a_wildcard_that_leads_out_of_the_zone_is_proven(tmp_path):
    signed = Signed(tmp_path, profile=Profile.CLIENTS)
    try:
        signed.zone(APEX)
        long = ".".join(["x" * 60] * 3)
        assert signed.add(APEX, "*.out", "CNAME", "www.example.net").status == 200
        assert signed.add(APEX, "*.long", "CNAME", f"{'y' * 60}.old.{APEX}").status == 200
        assert signed.add(APEX, "old", "DNAME", f"{long}.example.net").status == 200
        signed.set(APEX, "active")
        ask = signed.asker()
        judge = judge_of(signed, ask)
        for name, rcode in (("a.out", "NOERROR"), ("a.long", "YXDOMAIN")):
            reply = ask(dns.name.from_text(f"{name}.{APEX}"), "A", want_dnssec=True, payload=4096)
            assert dns.rcode.to_text(reply.rcode()) == rcode
            (nsec,) = (one for one in reply.authority if one.rdtype == dns.rdatatype.NSEC)
            judge.verify(reply.authority, nsec)
    finally:
        signed.close()


def test_an_alias_to_an_asterisk_that_is_not_there_is_denied(tmp_path):
    signed = Signed(tmp_path)
    try:
        signed.zone(APEX)
        assert signed.add(APEX, "www", "A", "192.0.2.1").status == 200
        assert signed.add(APEX, "a", "CNAME", f"*.www.{APEX}").status == 200
        signed.set(APEX, "active")
        ask, name = signed.asker(), dns.name.from_text(f"a.{APEX}")
        secure = ask(name, "A", want_dnssec=True, payload=4096)
        assert dns.rcode.to_text(secure.rcode()) == "NXDOMAIN"
        judge_of(signed, ask).check(name, dns.rdatatype.A, secure, ask(name, "A"))
    finally:
        signed.close()


def test_one_denial_that_proves_a_wildcard_and_a_delegation_stands_in_the_reply_once(tmp_path):
    signed = Signed(tmp_path)
    try:
        signed.zone(APEX)
        assert signed.add(APEX, "*", "CNAME", f"c.www.{APEX}").status == 200
        assert signed.add(APEX, "www", "NS", f"ns1.w.{APEX}").status == 200
        signed.set(APEX, "active")
        ask = signed.asker()  # which counts the records of each reply
        reply = ask(dns.name.from_text(f"b.zz.{APEX}"), "A", want_dnssec=True)
        (nsec,) = (one for one in reply.authority if one.rdtype == dns.rdatatype.NSEC)
        assert nsec.name == dns.name.from_text(f"www.{APEX}")
        judge_of(signed, ask).verify(reply.authority, nsec)
    finally:
        signed.close()


@pytest.mark.parametrize("kind", ["CNAME", "DNAME"])
def test_an_alias_gives_way_to_the_delegation_of_a_zone_of_ours(tmp_path, kind):
    signed = Signed(tmp_path, profile=Profile.CLIENTS)
    try:
        signed.zone(APEX)
        signed.set(APEX, "active")
        assert signed.add(APEX, "kid", kind, f"elsewhere.{APEX}").status == 200
        signed.zone(f"kid.{APEX}")
        signed.verify(APEX, tmp_path)
        assert f"kid.{APEX}. 300 IN {kind}" not in zone_text(signed.table, f"{APEX}.")

        signed.api.delete(f"/zones/{signed.ids[f'kid.{APEX}']}")
        signed.take()
        signed.verify(APEX, tmp_path)
        assert f"kid.{APEX}. 300 IN {kind}" in zone_text(signed.table, f"{APEX}.")
    finally:
        signed.close()


@pytest.mark.parametrize("seed", range(30))
def test_random_zones_stay_whole_through_changes(new_world, tmp_path, seed):
    change(new_world(seed), CHANGES, tmp_path)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(1_000, 2_000))
def test_many_random_zones_stay_whole_through_many_changes(new_world, tmp_path, seed):
    change(new_world(seed), MANY_CHANGES, tmp_path, every=MANY_CHECKED_EVERY)


@pytest.mark.parametrize("damage", ["a signature", "a denial", "a record"])
def test_each_verifier_finds_damage(new_world, tmp_path, damage):
    world = new_world(3)
    world.signed.add(APEX, "damaged", "A", "192.0.2.77")
    world.signed.set(APEX, "active")
    good = zone_text(world.signed.table, APEX + ".")
    verify(good, APEX + ".", tmp_path)
    bad = damaged(good, damage)
    for program in VERIFIERS:
        if program in COMMANDS and program not in missing_verifiers():
            with pytest.raises(AssertionError, match=program):
                verify(bad, APEX + ".", tmp_path, (program,))


def damaged(zone, damage):
    lines = zone.splitlines(keepends=True)
    if damage == "a record":
        return zone.replace("192.0.2.77", "192.0.2.78")
    if damage == "a denial":
        return "".join(line for line in lines if not line.startswith(f"damaged.{APEX}. 1800 IN NSEC"))
    at = next(
        at for at, line in enumerate(lines) if line.startswith(f"damaged.{APEX}.") and " RRSIG A " in line
    )
    return "".join(lines[:at] + lines[at + 1 :])


def change(world, changes, folder, every=CHECKED_EVERY):
    for _ in range(12):
        world.change()
    assert world.signed.set(APEX, "active").status == 200
    for number in range(changes):
        world.change()
        if number % every == 0 or number == changes - 1:
            check(world, folder, signed_elsewhere=number == changes - 1)
    if missing_verifiers():
        pytest.skip(f"NOT VERIFIED BY {missing_verifiers()}: apt-get install bind9-utils ldnsutils")


def check(world, folder, *, signed_elsewhere):
    signed = world.signed
    ask = signed.asker()
    judge = judge_of(signed, ask)
    for apex in signed_apexes(signed):
        if not is_pending(signed.table.view.zones[apex]):
            zone = zone_text(signed.table, str(text(apex)))
            verify(zone, str(text(apex)), folder)
            if signed_elsewhere:
                compare_denials(zone, str(text(apex)), folder)
    for name in names_to_ask(world):
        kind = world.random.choice(QUESTION_KINDS)
        try:
            secure, plain = ask(name, kind, want_dnssec=True, payload=4096), ask(name, kind, payload=4096)
            judge.check(name, dns.rdatatype.from_text(kind), secure, plain)
        except (AssertionError, StopIteration) as error:
            raise AssertionError(f"{name} {kind}: {error}\n{secure}\n--\n{plain}") from error
