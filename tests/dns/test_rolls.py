"""Ten years of rolls on an invented clock, among random changes: nothing that a cache may hold is bogus."""

import dns.rdatatype
import pytest

from edgestead.dns import node, wire
from edgestead.model import dnssec
from edgestead.usecases.serving import keyset
from edgestead.usecases.serving.facts import DNSSEC
from edgestead.usecases.zone import signing, waits
from edgestead.usecases.zone.rolls import KeyRing
from tests.dns.caches import Bogus, Caches
from tests.dns.signed import DAY_US
from tests.dns.test_signed import APEX, QUESTION_KINDS, judge_of, names_to_ask, wire_of

HOUR_US = DAY_US // 24
YEAR_US = 365 * DAY_US
PARENT_DAYS_MAX = 40  # until somebody gives a DS to the registrar
QUIET_US = 9 * DAY_US  # a signature is made again at most so late, which is a week before it ends
CHANGES_MAX = 2
MEDDLES_MAX = 4
QUESTIONS = 3
ROUNDS_MAX = 300  # of the background in one step
CDS_KEY = dnssec.CDS.to_bytes(2, "big") + b"\0\x01"
LAYOUTS = tuple(keyset.LAYOUTS)


class Parent:
    """The zone above: it has the DS that somebody gave it, late; or reads CDS by itself."""

    def __init__(self, world, caches):
        self.world = world
        self.caches = caches
        self._due_us = None

    def act(self):
        """Take what the zone says it should have, when it is time."""
        now_us, wanted = self.world.signed.now_us, self._wanted()
        if wanted is None or wanted == self.caches.ds.newest:
            self._due_us = None
        elif self._due_us is None:
            late = self.world.random.choice((0, HOUR_US, PARENT_DAYS_MAX * DAY_US))
            self._due_us = now_us + self.world.random.randint(0, late)
        elif now_us >= self._due_us:
            self.caches.parent_has(wanted)
            self._due_us = None

    def _wanted(self):
        """As CDS says, None when it says nothing."""
        zone = self.world.signed.table.view.zones[wire_of(APEX)]
        held = node.rrset(zone.names[b""], CDS_KEY)
        if held is None:
            return None
        found = frozenset(rdata for _, _, rdata in wire.records(held[1]))
        return frozenset() if found == {dnssec.CDS_DELETE} else found

    def tell(self):
        """What the server's resolver finds: anything that it may have cached. Sometimes nobody can say."""
        if self.world.random.random() < 0.8:
            alive = self.caches.ds.alive(self.world.signed.now_us)
            self.world.signed.parent_says(APEX, *self.world.random.choice(alive))


class Life:
    """A zone through years: time passes, records and keys change, the parent follows."""

    caches_of = Caches

    def __init__(self, world, days=(0, 90, 365), rounds=ROUNDS_MAX, ends=0.005, layouts=LAYOUTS):
        self.rounds = rounds
        self.ends = ends
        self.layouts = layouts
        self.world = world
        self.random = world.random
        self.days = days
        for _ in range(12):
            world.change()
        self.caches = self.caches_of(world.signed, APEX)
        self.parent = Parent(world, self.caches)
        self.tags = set()
        self.caches.look()
        self.configure("active")

    @property
    def signed(self):
        return self.world.signed

    def configure(self, status=None):
        body = {
            "key_layout": self.random.choice(self.layouts),
            "ksk_lifetime_days": self.random.choice(self.days),
            "zsk_lifetime_days": self.random.choice(self.days),
        }
        if status:
            body["status"] = status
        answer = self.signed.api.patch(f"/zones/{self.signed.ids[APEX]}/dnssec", body)
        assert answer.status == 200, answer.json
        self.signed.take()
        self.caches.look()

    def meddle(self):
        """Another layout, taken back, and rolls of one role, in any order before the background looks."""
        for _ in range(self.random.randint(1, MEDDLES_MAX)):
            self.random.choice((self.configure, self.roll, self.undo))()

    def roll(self):
        role = self.random.choice((None, *keyset.FLAGS))
        body = {} if role is None else {"role": role}
        self._may_be_refused(f"/zones/{self.signed.ids[APEX]}/dnssec/roll", body)

    def undo(self):
        """Take back the newest change of what keys the zone has, which tells nobody."""
        path = f"/zones/{self.signed.ids[APEX]}/history"
        found = self.signed.api.get(f"{path}?per_page=50").result
        changes = [one for one in found if any(item["id"] == DNSSEC for item in one["changes"])]
        if changes:
            self._may_be_refused(f"{path}/{max(one['sequence'] for one in changes)}/undo", {})

    def _may_be_refused(self, path, body):
        answer = self.signed.api.post(path, body)
        assert answer.status < 500, answer.json
        self.signed.take()
        self.caches.look()

    def live(self, us):
        end_us = self.signed.now_us + us
        while self.signed.now_us < end_us:
            self.signed.later(self._pause())
            self.step()

    def step(self):
        chance = self.random.random()
        if chance < 0.02:
            self.meddle()
        elif chance < 0.04:
            self.roll()
        elif chance < 0.04 + self.ends:
            self.signed.set(APEX, "disabled")
        elif self.signed.state(APEX) in (None, "leaving") and chance < 0.2:
            self.configure("active")
        elif chance < 0.25:
            for _ in range(self.random.randint(0, CHANGES_MAX)):
                self.world.change()
        self.signed.take()
        self.caches.look()
        rounds = self.rounds if self._is_rolling() else ROUNDS_MAX
        for _ in range(rounds):
            if not self.work():
                break
        else:
            assert rounds < ROUNDS_MAX, "the work never ends"
        if self.signed.state(APEX) is not None:
            self.parent.act()
            self.parent.tell()
            self.caches.look()
            self.tags.update(map(keyset.tag, self.signed.keys(APEX)))

    def work(self):
        """One transaction of the background; whether there was anything to do."""
        if not self.signed.has_work():
            return False
        self.signed.work_once()
        self.caches.look()
        return True

    def _is_rolling(self):
        return any(row.phase != keyset.ACTIVE for row in self.signed.keys(APEX))

    def _pause(self):
        """Short while things move, so that each of their moments is seen by all that is cached then."""
        if self._is_rolling() or self.signed.state(APEX) != "active":
            return self.random.choice((HOUR_US, 6 * HOUR_US, DAY_US, DAY_US))
        return self.random.choice((DAY_US, QUIET_US))

    def check_answers(self):
        """A validating resolver with an empty cache believes random answers."""
        ask = self.signed.asker()
        judge = judge_of(self.signed, ask)
        for name in self.random.sample(names_to_ask(self.world), QUESTIONS):
            kind = self.random.choice(QUESTION_KINDS)
            secure, plain = ask(name, kind, want_dnssec=True, payload=4096), ask(name, kind, payload=4096)
            judge.check(name, dns.rdatatype.from_text(kind), secure, plain)


def live(world, years, **options):
    life = Life(world, **options)
    for _ in range(years):
        life.live(YEAR_US)
        life.check_answers()
    return life


@pytest.mark.parametrize("seed", [1])
def test_ten_years_of_rolls_are_never_bogus(new_world, seed):
    life = live(new_world(seed), 10)

    assert len(life.tags) > 10, "no key was ever replaced"


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(1_000, 2_000))
def test_a_thousand_zones_live_ten_years(new_world, seed):
    live(new_world(seed), 10)


BROKEN = {
    "a DS is wanted while caches have answers without signatures": (waits, "records_us", lambda _: 0),
    "signatures go while caches have a DS": (waits, "ds_us", lambda: 0),
    "a new key is used before caches have it": (waits, "keys_us", lambda _: 0),
    "an old key goes while caches need it": (waits, "old_key_us", lambda _: 0),
    "a new key signs no keys until the parent wants it": (keyset, "signs_keys", keyset.is_wanted_at_parent),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_table_is_bogus(new_world, monkeypatch, how):
    monkeypatch.setattr(*BROKEN[how])
    with pytest.raises(Bogus):
        live(new_world(4), 3, days=(30,), ends=0.05)


def test_an_old_key_that_goes_before_its_signatures_is_bogus(new_world, monkeypatch):
    monkeypatch.setattr(signing, "SIGNED_AT_ONCE", 1)
    monkeypatch.setattr(KeyRing, "_has_left_zone", lambda _, row: True)
    with pytest.raises(Bogus, match="come from no DNSKEY"):
        live(new_world(4), 1, days=(30,), rounds=1, layouts=("ksk-zsk",))
