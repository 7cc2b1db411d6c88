"""Records in as few transactions as the API takes: what is between two of them, and a run that broke off."""

import json
import random

import pytest

from edgestead.cli.failure import Failed
from edgestead.cli.http import Api
from edgestead.cli.state.plan import changes
from edgestead.cli.state.records import BODY_BYTES_MAX, portions
from edgestead.testing.server import EdgeServer
from tests.model.samples import GOOD
from tests.support.patience import patient

BATCH = "/dns_records/batch"


@pytest.fixture
def kv_server(lent):
    """One whose account has nothing of other tests: these commands look at all of it."""
    return lent


@pytest.fixture
def file(tmp_path):
    def one(records, zone="many.example"):
        path = tmp_path / f"{zone}.json"
        path.write_text(json.dumps({"zones": {zone: {"records": records}}}))
        return str(path)

    return one


def addresses(count, last):
    return [{"name": f"n{number}", "type": "A", "content": f"192.0.2.{last}"} for number in range(count)]


def planned(now, wanted):
    return [
        one
        for one in changes({"zones": {"z": {"records": now}}}, {"zones": {"z": {"records": wanted}}})
        if one.kind == "record"
    ]


def by_name(records):
    found = {}
    for one in records:
        found.setdefault(one["name"], []).append(json.dumps(one, sort_keys=True))
    return {name: sorted(texts) for name, texts in found.items()}


@pytest.mark.parametrize("seed", range(40))
def test_between_two_transactions_each_name_is_as_before_or_as_after(seed):
    chance = random.Random(seed)

    def records():
        names = [f"n{number}" for number in range(30)]
        found = []
        for name in chance.sample(names, 20):
            if chance.random() < 0.2:
                found.append({"name": name, "type": "CNAME", "content": f"t{chance.randrange(9)}.example"})
                continue
            found += [
                {"name": name, "type": chance.choice(["A", "TXT"]), "content": f"192.0.2.{number}"}
                for number in chance.sample(range(6), chance.randrange(1, 5))
            ]
        return found

    now, wanted = records(), records()
    parts = portions(planned(now, wanted), 8)

    assert all(0 < len(part) <= 8 for part in parts)
    held, before, after = list(now), by_name(now), by_name(wanted)
    gone = False
    for part in parts:
        for change in part:
            if change.before is not None:
                held.remove(change.before)
            if change.after is not None:
                held.append(change.after)
        between = by_name(held)
        for name in before.keys() | after.keys():
            assert between.get(name) in (before.get(name), after.get(name))
        gone = gone or bool((before.keys() - after.keys()) - between.keys())
        assert not gone or after.keys() <= between.keys(), "nothing goes before everything came"
    assert by_name(held) == after


def test_one_name_with_more_than_a_transaction_takes_is_never_without_records():
    now = [{"name": "@", "type": "A", "content": f"192.0.2.{number}"} for number in range(20)]
    wanted = [{"name": "@", "type": "AAAA", "content": f"2001:db8::{number}"} for number in range(20)]

    parts = portions(planned(now, wanted), 8)

    signs = "".join(change.sign for part in parts for change in part)
    assert signs == "+" * 20 + "-" * 20


def test_a_request_is_no_larger_than_the_api_takes():
    text = "x" * 2_000
    wanted = [{"name": f"n{number}", "type": "TXT", "content": text} for number in range(3_500)]

    parts = portions(planned([], wanted), 3_500)

    assert len(parts) == 2
    assert all(len(json.dumps([one.after for one in part])) < BODY_BYTES_MAX for part in parts)


def test_a_zone_of_another_plan_changes_in_one_transaction(edgecli, kv_server, file):
    zone = kv_server.make_zone("many.example")
    plan = {"plan": {"id": "94f3b7b768b0458b56d2cac4fe5ec0f9"}}
    assert kv_server.call("PATCH", f"/zones/{zone}", plan).status == 200

    assert edgecli("apply", file(addresses(450, 1)), "--yes").code == 0

    history = json.loads(edgecli("zone", "history", "many.example", "--json").out)
    assert history[0]["changes_count"] == 450


def test_a_signed_delegation_comes_and_goes_whatever_its_types_are_called(edgecli, file):
    ds = {"name": "sub", "type": "DS", "content": f"1 13 2 {'ab' * 32}"}
    wanted = [ds, {"name": "sub", "type": "NS", "content": "ns.example.net"}]

    for records in (wanted, [], wanted):
        done = edgecli("apply", file(records), "--yes")
        assert done.code == 0, done.err
        assert edgecli("plan", file(records), "--check").out.endswith("Nothing differs.\n")


def test_several_transactions_are_taken_back_by_one_command(edgecli, file):
    edgecli("apply", file(addresses(5, 1)), "--yes")

    done = edgecli("apply", file(addresses(450, 2)), "--yes")

    assert done.code == 0, done.err
    (line,) = [one for one in done.out.splitlines() if "takes them back" in one]
    assert "3 transactions" in line
    command = line.split("`")[1].split()[1:]
    assert edgecli(*command, "--yes").code == 0
    assert edgecli("plan", file(addresses(5, 1)), "--check").out.endswith("Nothing differs.\n")


@pytest.mark.parametrize("is_sent", [False, True], ids=["before it is sent", "before it is answered"])
def test_a_run_that_broke_off_is_run_again(edgecli, file, monkeypatch, is_sent):
    edgecli("apply", file(addresses(300, 1)), "--yes")
    wanted = file([*addresses(550, 2), {"name": "extra", "type": "TXT", "content": "same"}])
    whole, batches = Api.call, []

    def breaking(self, method, path, **named):
        if path.endswith(BATCH):
            batches.append(path)
            if len(batches) == 2:
                if is_sent:
                    whole(self, method, path, **named)
                raise Failed("The connection ended.")
        return whole(self, method, path, **named)

    with monkeypatch.context() as patched:
        patched.setattr(Api, "call", breaking)
        broken = edgecli("apply", wanted, "--yes")

    assert broken.code == 1
    left = json.loads(edgecli("plan", wanted, "--json").out)
    assert 0 < len(left) < 551
    assert edgecli("apply", wanted, "--yes").code == 0
    assert edgecli("plan", wanted, "--check").out.endswith("Nothing differs.\n")
    names = [one["name"] for one in json.loads(edgecli("record", "list", "many.example", "--json").out)]
    assert len(names) == len(set(names)) == 551


NOT_MADE = {"SOA", "DNAME", "DNSKEY"}  # the server's own; of a transfer; of a zone with several signers
NAMES = {"SRV": "_sip._tcp.{}", "TLSA": "_443._tcp.{}", "URI": "_http._tcp.{}", "SMIMEA": "{}._smimecert"}


@pytest.mark.parametrize("form", ["toml", "json"])
def test_records_of_every_type_are_what_they_were_after_export_and_apply(edgecli, kv_server, tmp_path, form):
    zone = make_every_record(kv_server)
    assert kv_server.make_record(zone, "TXT", "blanks", '" two  and one "').status == 200
    before = held(kv_server, zone)
    written = str(tmp_path / f"every.{form}")
    assert edgecli("export", "--zone", "every.example", "-o", written).code == 0
    assert edgecli("plan", written, "--check").out.endswith("Nothing differs.\n")
    edgecli("zone", "delete", "every.example", "--yes")

    done = edgecli("apply", written, "--yes")

    assert done.code == 0, done.err
    after = held(kv_server, kv_server.call("GET", "/zones?name=every.example").result[0]["id"])
    assert after == before
    assert edgecli("plan", written, "--check").out.endswith("Nothing differs.\n")


def make_every_record(server):
    """One of each sample, in every.example."""
    zone, refused = server.make_zone("every.example"), []
    for place, one in enumerate(one for one in GOOD if one.type not in NOT_MADE):
        name = NAMES.get(one.type, "{}").format(f"n{place}")
        if one.type == "DS":
            server.make_record(zone, "NS", name, "ns.example.net")
        body = {"type": one.type, "name": name, **one.body}
        made = server.call("POST", f"/zones/{zone}/dns_records", body)
        refused += [(one.type, made.body["errors"])] if made.status != 200 else []
    assert refused == []
    return zone


@pytest.fixture(scope="module")
def as_clients_know_it(tmp_path_factory):
    """A server that answers texts as they were sent, as the hosted service does."""
    folder = tmp_path_factory.mktemp("clients")
    server = EdgeServer(folder / "data", *patient(folder), "--profile", "clients").start()
    make_every_record(server)
    yield server
    server.close()


@pytest.mark.parametrize("words", ["apply {} --yes", "import --from {}"])
def test_records_of_every_type_move_in_and_nothing_differs(edgecli, as_clients_know_it, monkeypatch, words):
    base = as_clients_know_it.ready["api_base"]
    monkeypatch.setenv("IMPORT_TOKEN", as_clients_know_it.ready["api_token"])

    done = edgecli(*words.format(base).split(), "--zone", "every.example")

    assert done.code == 0, done.err
    planned = edgecli("plan", base, "--zone", "every.example", "--check")
    assert (planned.code, planned.out) == (0, "Nothing differs.\n"), planned.out


def test_a_long_text_is_one_however_it_is_written(edgecli, file):
    key = "v=DKIM1; k=rsa; p=" + "A" * 392
    edgecli("apply", file([{"name": "k._domainkey", "type": "TXT", "content": key}]), "--yes")

    for content in (key, f'"{key[:255]}" "{key[255:]}"'):
        path = file([{"name": "k._domainkey", "type": "TXT", "content": content}])
        assert edgecli("plan", path, "--check").out.endswith("Nothing differs.\n")
    other = file([{"name": "k._domainkey", "type": "TXT", "content": f'"{key[:200]}" "{key[200:]}"'}])
    assert edgecli("plan", other, "--check").code == 1  # other strings are another record


def held(server, zone):
    members = ("type", "name", "content", "data", "priority")
    found = server.call("GET", f"/zones/{zone}/dns_records?per_page=1000").result
    return sorted(json.dumps([one.get(member) for member in members], sort_keys=True) for one in found)
