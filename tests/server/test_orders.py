"""Orders of certificates through their states, on an invented clock, with an authority of the test's own."""

import asyncio
import threading
from datetime import UTC, date, datetime, timedelta
from itertools import count

import pytest

from edgestead.health import checks
from edgestead.health.facts import Facts
from edgestead.model import names, served
from edgestead.model.call import Actor, Call, Profile
from edgestead.model.counters import private_page
from edgestead.server.control import orders as orders_part
from edgestead.server.control.authority import Renewal, Trouble
from edgestead.server.control.certificates import CertificatesPart
from edgestead.server.control.orders import OrdersPart
from edgestead.tables import certificates as rows
from edgestead.usecases.certificate import orders, states
from edgestead.usecases.certificate.states import read_progress
from edgestead.usecases.serving import certificates
from edgestead.usecases.serving.proofs import Proof
from tests.support.api import FIRST_US, LocalApi
from tests.support.pairs import CA

ZONE = "example.com"
PROOF = f"_acme-challenge.{ZONE}"
DAY_US = 86_400_000_000
FIRST, SECOND = "https://first.test/dir", "https://second.test/dir"
ORDER = [states.WANTED, states.ORDERED, states.PROVING, states.READY, states.ISSUED]


class Killed(BaseException):
    """Control is gone in the middle of a step."""


class FakeAuthority:
    """Knows orders as an authority does; its next calls raise what `troubles` has."""

    def __init__(self, world):
        self.world = world
        self.orders = {}
        self.troubles = []
        self.asked = []
        self.renew_us = None
        self.keys = {}

    def _begin(self, what):
        self.asked.append(what)
        if self.troubles:
            raise self.troubles.pop(0)

    def order(self, hosts):
        self._begin("order")
        known = [url for url, order in self.orders.items() if order["hosts"] == hosts and not order["chain"]]
        url = known[0] if known else f"https://first.test/order/{len(self.orders)}"
        self.orders.setdefault(url, {"hosts": hosts, "proved": False, "chain": None})
        return url

    def proofs(self, order_url, method):
        self._begin("proofs")
        hosts = self.orders[order_url]["hosts"]
        return [
            Proof(method, host.removeprefix("*."), f"token-{number}" * (method == "http"), f"proof-{number}")
            for number, host in enumerate(hosts)
        ]

    def prove(self, order_url, method):
        self._begin("prove")
        hosts = self.orders[order_url]["hosts"]
        if method != "txt":
            shown = {one.host for one in self.world.read(certificates.proofs_at_edge)}
            assert shown == set(hosts), "asked before the edge is told"
            self.orders[order_url]["proved"] = True
            return True
        wanted = {f"proof-{number}" for number, _ in enumerate(hosts)}
        assert wanted <= self.world.texts(PROOF), "asked before DNS shows it"
        self.orders[order_url]["proved"] = True
        return True

    def finish(self, order_url, key_pem, hosts):
        self._begin("finish")
        order = self.orders[order_url]
        assert order["proved"]
        assert self.keys.setdefault(order_url, key_pem) == key_pem, "one key for one order"
        if order["chain"] is None:
            now = datetime.fromtimestamp(self.world.now_us / 1e6, UTC)
            order["chain"] = signed_for(key_pem, hosts, now)
        return order["chain"]

    def renewal(self, _chain):
        self._begin("renewal")
        return Renewal(self.renew_us, self.world.now_us + DAY_US // 4)


def signed_for(key_pem, hosts, now, days=90):
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization

    key = serialization.load_pem_private_key(key_pem, None)
    ca = x509.load_pem_x509_certificate(CA.certificate_pem)
    ca_key = serialization.load_pem_private_key(CA.key_pem, None)
    names = x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts])
    builder = x509.CertificateBuilder().subject_name(x509.Name([])).issuer_name(ca.subject)
    builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now).not_valid_after(now + timedelta(days=days))
    made = builder.add_extension(names, critical=False).sign(ca_key, hashes.SHA256())
    return made.public_bytes(serialization.Encoding.PEM).decode()


class World:
    """An API with one zone, and its authorities; it is the data of orders, too."""

    def __init__(self, folder, directories=(FIRST,)):
        self.api = LocalApi(folder)
        object.__setattr__(self.api.platform, "orders_certificates", True)
        self.zone_id = self.api.post("/zones", {"name": ZONE}).result["id"]
        self.read = self.api.store.read
        self.now_us = FIRST_US + 1_000_000
        self.ticks = count()
        self.authorities = {directory: FakeAuthority(self) for directory in directories}
        self.directories = directories
        self.registered = []
        self.shown = True
        self.killed_before_write = self.killed_after_write = False
        self.refuses = lambda: False
        self.page = private_page()
        self.begin()

    @property
    def authority(self):
        return self.authorities[FIRST]

    def begin(self):
        """A new life of control."""
        self.killed_before_write = self.killed_after_write = False
        self.part = OrdersPart(
            self,
            self.api.platform,
            self.page,
            self.call,
            email="admin@example.com",
            directories=self.directories,
            open_authority=self.open_authority,
            shows=self.shows,
        )

    def open_authority(self, directory, account, registered):
        self.registered.append((directory, account.key_pem))
        return self.authorities[directory]

    async def shows(self, _proofs):
        return self.shown

    def call(self):
        actor = Actor(kind="account", id="")
        now_us = self.now_us + next(self.ticks)
        return Call(actor=actor, as_of=date(2026, 1, 1), profile=Profile.SPEC, now_us=now_us, request_id="")

    async def write(self, fn):
        if self.killed_before_write:
            raise Killed
        if self.refuses():
            raise Full
        value = self.api.store.write(fn).result().value
        if self.killed_after_write:
            raise Killed
        return value

    def proxy(self):
        body = {"type": "A", "name": "www", "content": "192.0.2.1", "proxied": True}
        assert self.api.post(f"/zones/{self.zone_id}/dns_records", body).status == 200

    def round(self):
        return asyncio.run(self.part.round())

    def work(self, rounds=20):
        while rounds and self.round():
            rounds -= 1

    def pass_(self, seconds):
        self.now_us += int(seconds * 1_000_000)

    def row(self):
        (row,) = self.read(lambda reader: rows.of_zone(reader, self.zone_id))
        return row

    def texts(self, name):
        """The TXT records that DNS has of a name."""
        owner = names.wire_from_text(name).hex()
        found = (
            self.api.store.write(lambda tx: tx.newest(self.zone_id, served.KIND_NAME, owner)).result().value
        )
        rrsets = served.decode_name(found).rrsets if found else ()
        return {rdata[1:].decode() for rrset in rrsets if rrset.type == 16 for rdata in rrset.rdatas}

    def pairs(self):
        return self.read(lambda reader: certificates.pairs(reader, self.api.platform.seal))[0]


@pytest.fixture(autouse=True)
def always_looking(monkeypatch):
    """For zones that should have a certificate."""
    monkeypatch.setattr(orders_part, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(orders_part, "LOOK_SHARE", 0)


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    yield made
    made.api.close()


@pytest.fixture
def wanting(world):
    world.proxy()
    return world


def test_a_zone_without_a_proxied_name_orders_nothing(world):
    world.round()
    assert world.read(lambda reader: rows.of_zone(reader, world.zone_id)) == []
    assert world.authority.asked == []


def test_each_step_leads_to_the_next_and_proofs_are_there_for_as_long_as_they_are_needed(wanting):
    seen = []
    for _ in range(4):
        wanting.round()
        seen.append((wanting.row().state, len(wanting.texts(PROOF))))

    assert seen == [("ordered", 0), ("proving", 2), ("ready", 2), ("issued", 0)]
    (pair,) = wanting.pairs()
    assert pair.names == (ZONE, f"*.{ZONE}")
    assert wanting.round() == 0


def test_a_step_that_fails_as_nobody_thought_keeps_no_other_zone_from_its_certificate(wanting, caplog):
    """A round takes the oldest steps first, and would fail in the same one again and again."""
    wanting.round()
    zone_id = another_zone(wanting, "example.net")
    wanting.authority.troubles = [TypeError("an answer of a kind of its own")]

    wanting.round()

    (other,) = wanting.read(lambda reader: rows.of_zone(reader, zone_id))
    assert (wanting.row().state, other.state) == ("ordered", "ordered")
    assert "TypeError" in read_progress(wanting.row().body).error
    assert "a step of the certificate for" in caplog.text
    wanting.pass_(3_600)
    wanting.round()
    assert wanting.row().state == "proving"


class Full(Exception):
    """The disk takes nothing."""


def test_a_step_that_cannot_be_written_is_asked_of_the_authority_once_a_pause(wanting):
    """Nor can it be written that it was in vain: the row stays due."""
    wanting.work()  # the authority has an account of ours
    zone_id = another_zone(wanting, "example.net")
    asyncio.run(wanting.write(lambda tx: wanting_begins(wanting, tx)))
    wanting.authority.asked.clear()
    wanting.refuses = lambda: True
    for _ in range(10):
        wanting.round()
        wanting.pass_(1)

    assert wanting.authority.asked == ["order"]
    for _ in range(24):
        wanting.pass_(300)
        wanting.round()
    assert len(wanting.authority.asked) == 7, "the pauses double up to an hour"
    wanting.refuses = lambda: False
    wanting.pass_(3_600)
    wanting.round()
    assert states_of(wanting, [zone_id]) == [["ordered"]]


def test_a_certificate_that_is_ordered_again_does_not_wait_for_the_end_of_a_pause(wanting):
    wanting.round()
    wanting.refuses = lambda: True
    for _ in range(10):
        wanting.pass_(3_600)
        wanting.round()
    wanting.refuses = lambda: False
    assert wanting.round() == 0

    row, hosts = wanting.row(), orders.wanted_hosts(wanting.row())
    asyncio.run(wanting.write(lambda tx: orders.order_for(wanting.call(), tx, row, hosts)))

    wanting.pass_(1)
    assert (wanting.round(), wanting.row().state) == (1, "ordered")


def test_rows_of_which_nothing_can_be_written_leave_the_others_their_turn(wanting, monkeypatch):
    monkeypatch.setattr(orders_part, "STEPS_MAX", 1)
    wanting.round()
    zone_id = another_zone(wanting, "example.net")
    first = wanting.row()
    broken = first._replace(body="{", modified_us=first.modified_us + 1)
    asyncio.run(wanting.write(lambda tx: rows.update(tx, broken)))
    asyncio.run(wanting.write(lambda tx: wanting_begins(wanting, tx)))
    for _ in range(3):
        wanting.round()

    (other,) = wanting.read(lambda reader: rows.of_zone(reader, zone_id))
    assert (wanting.row().body, other.state) == ("{", "proving")


def test_a_look_that_fails_keeps_no_order_from_its_next_step(wanting, monkeypatch):
    monkeypatch.setattr(orders_part, "LOOK_SECONDS", 300.0)
    asyncio.run(wanting.write(lambda tx: wanting_begins(wanting, tx)))
    monkeypatch.setattr(orders, "changed_hosts", lambda _reader: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        wanting.round()

    wanting.work()
    assert wanting.row().state == "issued"


def another_zone(world, name, host="www"):
    zone_id = world.api.post("/zones", {"name": name}).result["id"]
    body = {"type": "A", "name": host, "content": "192.0.2.1", "proxied": True}
    assert world.api.post(f"/zones/{zone_id}/dns_records", body).status == 200
    return zone_id


@pytest.fixture
def three(world, monkeypatch):
    """Their zones' ids, in order, with room for one at a look; each is proved at the edge."""
    monkeypatch.setattr(orders, "BEGUN_AT_ONCE_MAX", 1)
    monkeypatch.setattr(orders_part, "EDGE_SECONDS", 0.0)
    made = sorted(another_zone(world, f"zone-{number}.test", "*.wild") for number in range(3))
    for zone_id in made:
        path = f"/zones/{zone_id}/settings/acme_validation"
        assert world.api.patch(path, {"value": "http"}).status == 200
    return made


def states_of(world, zone_ids):
    found = [world.read(lambda reader, id_=id_: rows.of_zone(reader, id_)) for id_ in zone_ids]
    return [[row.state for row in one] for one in found]


def proxy_in(world, zone_id, name):
    body = {"type": "A", "name": name, "content": "192.0.2.1", "proxied": True}
    assert world.api.post(f"/zones/{zone_id}/dns_records", body).status == 200


def test_zones_that_can_have_no_certificate_hide_none_that_can(world, three):
    """Wildcards are proved by records alone."""
    proxy_in(world, three[-1], "www")
    world.work()
    assert states_of(world, three) == [[], [], ["issued"]]


def test_zones_whose_names_are_the_same_hide_none_whose_names_are_others(world, three):
    for zone_id in three:
        proxy_in(world, zone_id, "www")
    for _ in three:
        world.work()
    assert states_of(world, three) == [["issued"]] * 3
    proxy_in(world, three[-1], "shop")
    world.round()
    assert states_of(world, three) == [["issued"], ["issued"], ["ordered"]]


def choose(world, method):
    path = f"/zones/{world.zone_id}/settings/acme_validation"
    assert world.api.patch(path, {"value": method}).status == 200


@pytest.mark.parametrize("method", ["http", "tls-alpn"])
def test_a_zone_whose_dns_is_elsewhere_is_proved_at_the_edge_name_by_name(wanting, method):
    choose(wanting, method)
    wanting.round(), wanting.round()
    found = wanting.read(certificates.proofs_at_edge)
    assert [(one.method, one.host, one.value) for one in found] == [(method, f"www.{ZONE}", "proof-0")]
    assert wanting.texts(PROOF) == set()

    wanting.round()
    assert wanting.row().state == "proving", "the edge gets its time"
    wanting.pass_(orders_part.EDGE_SECONDS)
    wanting.work()
    assert (wanting.row().state, wanting.read(certificates.proofs_at_edge)) == ("issued", [])
    assert wanting.pairs()[0].names == (f"www.{ZONE}",)


def test_names_that_come_later_and_a_change_of_mind_are_ordered_again(wanting):
    choose(wanting, "http")
    wanting.work()
    wanting.pass_(orders_part.EDGE_SECONDS)
    wanting.work()
    body = {"type": "A", "name": "shop", "content": "192.0.2.1", "proxied": True}
    for name in ("shop", "*.wild"):
        wanting.api.post(f"/zones/{wanting.zone_id}/dns_records", body | {"name": name})
    wanting.round()
    assert set(orders.wanted_hosts(wanting.row())) == {f"www.{ZONE}", f"shop.{ZONE}"}
    assert wanting.pairs()[0].names == (f"www.{ZONE}",), "what is served goes on"
    wanting.pass_(orders_part.EDGE_SECONDS)
    wanting.work()
    wanting.pass_(orders_part.EDGE_SECONDS)
    wanting.work()
    assert len(wanting.pairs()[0].names) == 2

    choose(wanting, "txt")
    wanting.work()
    assert wanting.pairs()[0].names == (ZONE, f"*.{ZONE}")
    assert wanting.round() == 0


def test_no_list_export_or_history_shows_a_proof(wanting):
    wanting.round(), wanting.round()
    assert wanting.texts(PROOF) == {"proof-0", "proof-1"}
    zone = f"/zones/{wanting.zone_id}"

    assert "_acme" not in str(wanting.api.get(f"{zone}/dns_records").json)
    assert b"_acme" not in wanting.api.get(f"{zone}/dns_records/export").body
    assert "_acme" not in str(wanting.api.get(f"{zone}/history").json)


def test_a_proof_stands_beside_a_users_text_and_leaves_it_there(wanting):
    body = {"type": "TXT", "name": "_acme-challenge", "content": '"mine"'}
    wanting.api.post(f"/zones/{wanting.zone_id}/dns_records", body)
    wanting.round(), wanting.round()
    assert wanting.texts(PROOF) == {"mine", "proof-0", "proof-1"}
    wanting.work()
    assert wanting.texts(PROOF) == {"mine"}


@pytest.mark.parametrize("instant", ["before the write", "after the write"])
@pytest.mark.parametrize("state", ORDER[:-1])
def test_a_kill_at_any_instant_only_repeats_a_step(wanting, state, instant):
    """Of each state: when the authority did its part and nothing was written, and when it was."""
    while (
        not wanting.read(lambda reader: rows.of_zone(reader, wanting.zone_id)) or wanting.row().state != state
    ):
        asyncio.run(wanting.write(lambda tx: wanting_begins(wanting, tx))) if state == states.WANTED else None
        if state != states.WANTED:
            wanting.round()
    wanting.killed_before_write = instant == "before the write"
    wanting.killed_after_write = not wanting.killed_before_write
    with pytest.raises(Killed):
        wanting.round()

    wanting.begin()
    wanting.work()
    assert wanting.row().state == states.ISSUED
    assert wanting.texts(PROOF) == set()
    assert len({order["chain"] for order in wanting.authority.orders.values() if order["chain"]}) == 1
    assert len({key for _, key in wanting.registered}) == 1, "one account"


def wanting_begins(world, tx):
    return orders.begin(world.call(), tx, world.api.platform, orders.zones_without(tx))


def test_a_trouble_that_passes_is_tried_again_in_its_state_and_later_each_time(wanting):
    wanting.round()
    wanting.authority.troubles = [Trouble("no answer", passes=True)] * 3
    pauses = []
    for _ in range(3):
        before_us = wanting.now_us
        assert wanting.round() == 1
        pauses.append((wanting.row().due_us - before_us) // 1_000_000)
        assert wanting.round() == 0
        wanting.pass_(pauses[-1] + 1)
    assert (wanting.row().state, pauses) == ("ordered", [1, 2, 4])
    wanting.work()
    assert wanting.row().state == "issued"


def test_a_refusal_ends_the_order_takes_the_proofs_away_and_pauses_longer_each_time(wanting):
    pauses = []
    for _ in range(3):
        wanting.round(), wanting.round()
        assert wanting.texts(PROOF)
        wanting.authority.troubles = [Trouble("example.com: no TXT record", passes=False)]
        wanting.round()
        row = wanting.row()
        assert (row.state, wanting.texts(PROOF)) == ("failed", set())
        assert "no TXT record" in read_progress(row.body).error
        pauses.append((row.due_us - wanting.now_us) // 1_000_000)
        wanting.pass_(pauses[-1] + 1)
        wanting.round()  # the pause is over
    assert pauses == [300, 600, 1200]


def test_what_the_authority_asks_for_is_waited_for(wanting):
    wanting.authority.troubles = [Trouble("too many", passes=False, retry_after_seconds=7_200)]
    wanting.round()
    assert (wanting.row().due_us - wanting.now_us) // 1_000_000 == 7_200


def test_the_next_authority_is_asked_where_one_refuses(tmp_path):
    world = World(tmp_path, (FIRST, SECOND))
    world.proxy()
    world.authority.troubles = [Trouble("closed", passes=False)] * 9
    world.round()
    world.pass_(2)
    world.work()
    row = world.row()

    assert (row.state, read_progress(row.body).directory) == ("issued", SECOND)
    assert world.authority.asked == ["order"]
    world.api.close()


def test_a_renewal_comes_at_two_thirds_and_the_old_one_is_served_until_the_new_one_is_there(wanting):
    wanting.work()
    first, row = wanting.pairs(), wanting.row()
    assert 59 > (row.due_us - row.starts_us) / DAY_US > 55
    wanting.now_us = row.due_us + 1
    wanting.round(), wanting.round(), wanting.round()
    assert wanting.row().state == "proving"
    assert wanting.pairs() == first
    wanting.authority.troubles = [Trouble("away", passes=False)]
    wanting.round()
    assert (wanting.row().state, wanting.pairs()) == ("failed", first)

    wanting.pass_(301)
    wanting.work()
    assert wanting.row().state == "issued"
    assert wanting.pairs() != first
    assert wanting.row().starts_us > row.starts_us


def test_a_name_that_was_not_proxied_when_its_renewal_was_looked_at_is_renewed_in_time(wanting):
    wanting.authority.renew_us = wanting.now_us + 2 * DAY_US
    wanting.work()
    path = f"/zones/{wanting.zone_id}/dns_records"
    (record,) = wanting.api.get(path).json["result"]
    wanting.api.patch(f"{path}/{record['id']}", {"proxied": False})
    wanting.now_us = wanting.row().due_us + 1
    wanting.round()
    wanting.api.patch(f"{path}/{record['id']}", {"proxied": True})
    row = wanting.row()
    assert row.due_us < states.renewal_us(row.id, row.starts_us, row.ends_us)

    wanting.now_us = row.starts_us + (row.ends_us - row.starts_us) * 2 // 3
    wanting.round()
    assert wanting.row().state == "wanted"


def test_an_authority_that_wants_it_renewed_early_gets_that(wanting):
    wanting.work()
    first = wanting.pairs()
    asked = wanting.authority.asked.count("renewal")
    wanting.authority.renew_us = wanting.now_us + 2 * DAY_US
    wanting.begin()
    wanting.api.patch(f"/zones/{wanting.zone_id}/ssl/certificate_packs/{wanting.row().id}", None)
    wanting.work()
    assert wanting.authority.asked.count("renewal") == asked + 1
    assert wanting.row().due_us <= wanting.now_us + DAY_US // 4 + 1, "asked again before"
    second = wanting.pairs()
    assert second != first

    wanting.authority.renew_us = wanting.now_us - 1
    wanting.pass_(86_400 / 4 + 1)
    wanting.work(1)
    assert wanting.row().state == "wanted"


def test_secondaries_are_waited_for_but_not_for_ever(wanting):
    wanting.shown = False
    wanting.round(), wanting.round(), wanting.round()
    assert "prove" not in wanting.authority.asked
    for _ in range(70):
        wanting.pass_(2)
        wanting.round()
    assert "prove" in wanting.authority.asked


def test_a_zone_that_goes_or_switches_it_off_takes_its_order_along(wanting):
    wanting.round(), wanting.round()
    off = wanting.api.patch(f"/zones/{wanting.zone_id}/ssl/universal/settings", {"enabled": False})
    assert off.result == {"enabled": False}
    assert wanting.texts(PROOF) == set()
    assert wanting.round() == 0
    wanting.api.patch(f"/zones/{wanting.zone_id}/ssl/universal/settings", {"enabled": True})
    wanting.work()
    assert wanting.pairs()
    wanting.api.delete(f"/zones/{wanting.zone_id}")
    assert (wanting.round(), wanting.pairs()) == (0, [])


def test_a_pack_is_ordered_shown_renewed_and_deleted(wanting):
    packs = f"/zones/{wanting.zone_id}/ssl/certificate_packs"
    made = wanting.api.post(f"{packs}/order", {"type": "advanced", "hosts": ["a.b.example.com"]}).result
    assert (made["status"], made["certificates"]) == ("initializing", [])
    row = wanting.read(lambda reader: rows.of_kind(reader, wanting.zone_id, "advanced"))[0]
    assert row.hosts == '["a.b.example.com"]'
    assert wanting.api.delete(f"{packs}/{made['id']}").result == {"id": made["id"]}
    assert wanting.api.get(f"{packs}/{made['id']}").codes == [1454]

    for hosts in (["example.net"], [], ["*.*.example.com"], ["a..example.com"], ["x.example.com"] * 101):
        assert wanting.api.post(f"{packs}/order", {"hosts": hosts}).codes == [1450], hosts
    object.__setattr__(wanting.api.platform, "orders_certificates", False)
    assert wanting.api.post(f"{packs}/order", {"hosts": ["a.example.com"]}).codes == [1451]


def health_of(world):
    kept = CertificatesPart(world, world.api.platform.seal, -1, lambda: world.now_us).kept()
    found = checks.examine(Facts(now_us=world.now_us, certificates=kept.ending, orders_failed=kept.failed))
    return [(one.state, one.message) for name, one in found if name == "certificates"]


def test_a_failed_order_is_a_row_of_the_health_a_failure_while_nothing_is_served(wanting):
    wanting.authority.troubles = [Trouble("CAA forbids it", passes=False)]
    wanting.round()
    assert health_of(wanting) == [("fail", f"no certificate for {ZONE}: CAA forbids it")]

    wanting.pass_(301)
    wanting.work()
    assert [state for state, _ in health_of(wanting)] == ["ok"]
    wanting.now_us = wanting.row().ends_us - 20 * DAY_US
    wanting.authority.troubles = [Trouble("away", passes=False)]
    wanting.round(), wanting.round()
    assert [state for state, _ in health_of(wanting)] == ["warn", "warn"], "it ends, and no new one comes"


def test_a_step_that_ends_after_its_row_is_gone_or_another_one_writes_nothing(wanting):
    wanting.round()
    row, call = wanting.row(), wanting.call()
    platform, proofs = wanting.api.platform, [(PROOF, "late")]

    def late(tx):
        return orders.proving(call, tx, platform, row, proofs)

    wanting.api.store.write(lambda tx: orders.failed(call, tx, platform, row, "closed", 0)).result()
    assert wanting.api.store.write(late).result().value is False
    wanting.api.store.write(lambda tx: orders.remove(call, tx, platform, wanting.row())).result()
    assert wanting.api.store.write(late).result().value is False
    assert wanting.texts(PROOF) == set()


def test_control_ends_while_an_authority_does_not_answer(wanting):
    begun, goes_on = threading.Event(), threading.Event()

    def hang(_hosts):
        begun.set()
        goes_on.wait(300)

    wanting.authority.order = hang

    async def end_meanwhile():
        task = asyncio.create_task(wanting.part.round())
        assert await asyncio.to_thread(begun.wait, 300)
        task.cancel()

    asyncio.run(end_meanwhile())
    assert not goes_on.is_set(), "nobody waited"
    assert [thread.name for thread in threading.enumerate()].count("authority") == 1
    goes_on.set()
    assert wanting.row().state == "wanted"
