"""What a change of a ruleset leaves behind: versions, who executes whom, and the feed's documents."""

import itertools
from datetime import date

import msgspec
import pytest

from edgestead.model import ruleset_document
from edgestead.model.call import Actor, Call, Profile
from edgestead.sqlite.control import SqliteControlStore
from edgestead.tables import accounts, zones
from edgestead.tables import rulesets as rows
from edgestead.tables.accounts import AccountRow
from edgestead.tables.schema import MIGRATIONS
from edgestead.tables.zones import ZoneRow
from edgestead.usecases.platform import Platform
from edgestead.usecases.ruleset import change, reading, references
from edgestead.usecases.ruleset.body import read_create, read_entrypoint, read_rule_body
from edgestead.usecases.ruleset.scope import Scope
from tests.usecases.ruleset_samples import CUSTOM_PHASE, MANAGED, MANAGED_PHASE, block, execute, skip

ACCOUNT = Scope("account", "a" * 32)
ZONE = Scope("zone", "b" * 32)
_ids = itertools.count(1)
PLATFORM = Platform(
    nameservers=("ns1.edge.internal", "ns2.edge.internal"),
    edge_addresses=(),
    own_addresses=frozenset(),
    new_id=lambda: f"{next(_ids):032x}",
    managed=MANAGED,
)


def call(now_us: int = 1) -> Call:
    return Call(
        actor=Actor(kind="user", id="c" * 32),
        as_of=date(2026, 1, 1),
        profile=Profile.SPEC,
        now_us=now_us,
        request_id="r",
    )


@pytest.fixture
def store(tmp_path):
    made = SqliteControlStore(tmp_path / "control.db", MIGRATIONS)

    def fill(tx):
        accounts.insert_account(tx, AccountRow(ACCOUNT.id, "x", "standard", 1, 1))
        zones.insert(
            tx, ZoneRow(ZONE.id, ACCOUNT.id, "example.com", "full", "active", 0, "free", 1, 0, 0, 1, 1, 1)
        )

    made.write(fill).result()
    yield made
    made.close()


@pytest.fixture
def commit(store):
    """Plan a change in a transaction and make it; the ruleset that is answered, decoded."""

    def act(use_case, *arguments):
        done = store.write(lambda tx: change.commit(tx, use_case(*_with(use_case, tx), *arguments))).result()
        return msgspec.json.decode(done.value) if done.value is not None else None

    return act


def _with(use_case, tx):
    return (call(), tx, PLATFORM) if "call" in use_case.__code__.co_varnames else (tx, PLATFORM)


def put(commit, rules, phase=CUSTOM_PHASE, scope=ZONE):
    body = read_entrypoint({"rules": rules}, scope.entry_kind, phase)
    return commit(change.replace_entrypoint, scope, phase, body)


def custom(commit, rules=(), phase=CUSTOM_PHASE):
    body = read_create({"name": "x", "kind": "custom", "phase": phase, "rules": list(rules)}, "account")
    return commit(change.create, ACCOUNT, body)


def documents(store):
    """The feed's newest documents of rulesets by scope and key."""
    found = {}
    for scope, kind, key, doc in store.read(
        lambda reader: reader.rows("select scope, kind, key, doc from feed_state")
    ):
        if kind == ruleset_document.KIND_RULESET:
            found[scope, key] = ruleset_document.decode(doc)
    return found


def test_a_change_emits_what_the_rules_are_compiled_from(store, commit):
    made = put(commit, [block(), block(enabled=False)])

    document = documents(store)[ZONE.id, made["id"]]

    assert (document.id, document.kind, document.phase, document.version) == (
        made["id"],
        "zone",
        CUSTOM_PHASE,
        "1",
    )
    assert msgspec.json.decode(document.rules) == made["rules"]


def test_the_newest_document_is_the_current_version(store, commit):
    made = put(commit, [block()])
    changed = put(commit, [])

    (document,) = documents(store).values()

    assert (document.id, document.version, bytes(document.rules)) == (made["id"], "2", b"[]")
    assert changed["version"] == "2"


def test_rulesets_of_the_account_travel_in_its_own_scope(store, commit):
    made = custom(commit, [block()])

    assert documents(store).keys() == {(ACCOUNT.id, made["id"])}


def test_a_deleted_ruleset_leaves_nothing(store, commit):
    made = put(commit, [execute(custom(commit)["id"])])

    commit(change.remove, ZONE, made["id"])

    assert (ZONE.id, made["id"]) not in documents(store)
    for table in ("ruleset_uses", "ruleset_versions", "rulesets"):
        column = "id" if table == "rulesets" else "ruleset_id"
        sql = f"select count(*) from {table} where {column} = ?"
        assert store.read(lambda reader, sql=sql: reader.row(sql, (made["id"],))) == (0,)


def test_a_plan_that_is_not_committed_changes_nothing(store, commit):
    put(commit, [block()])
    before = store.read(lambda reader: reader.rows("select * from ruleset_versions"))
    body = read_entrypoint({"rules": []}, "zone", CUSTOM_PHASE)

    store.read(lambda reader: change.replace_entrypoint(call(), reader, PLATFORM, ZONE, CUSTOM_PHASE, body))

    assert store.read(lambda reader: reader.rows("select * from ruleset_versions")) == before


def test_who_executes_whom_follows_every_change(store, commit):
    inner = custom(commit)["id"]
    made = put(commit, [execute(inner), execute(inner)])

    def users():
        return store.read(lambda reader: rows.users_of(reader, inner))

    assert users() == [made["id"]]
    body = read_rule_body(block(), "zone", CUSTOM_PHASE)
    first, second = (rule["id"] for rule in made["rules"])
    commit(change.change_rule, ZONE, made["id"], first, body)
    assert users() == [made["id"]]
    commit(change.remove_rule, ZONE, made["id"], second)
    assert users() == []


def test_executing_the_managed_ruleset_is_noted_too(store, commit):
    made = put(commit, [execute()], MANAGED_PHASE)

    assert store.read(lambda reader: rows.users_of(reader, MANAGED.id)) == [made["id"]]


def test_a_change_of_nothing_makes_no_version_and_no_document(store, commit):
    made = put(commit, [block()])
    before = store.read(lambda reader: reader.rows("select * from feed_state"))

    answered = commit(
        change.replace_entrypoint, ZONE, CUSTOM_PHASE, read_entrypoint({}, "zone", CUSTOM_PHASE)
    )

    assert answered == made
    assert store.read(lambda reader: reader.rows("select * from feed_state")) == before


KEPT = [(3, 10**9, [3, 4, 5]), (10, 4, [4, 5]), (10, 1, [5]), (1, 10**9, [5]), (10, 10**9, [1, 2, 3, 4, 5])]


@pytest.mark.parametrize(("versions_max", "octets_max", "left"), KEPT)
def test_the_oldest_versions_go_first_and_the_newest_stays(store, commit, versions_max, octets_max, left):
    for _ in range(5):
        made = put(commit, [])  # two octets each

    forget(store, made["id"], versions_max, octets_max)

    assert kept_versions(store, ZONE, made["id"]) == left


def test_a_version_that_is_executed_by_number_outlives_the_limit(store, commit):
    inner = custom(commit)["id"]
    put(commit, [execute(inner, version="1")])
    for _ in range(3):
        commit(change.add_rule, ACCOUNT, inner, read_rule_body(block(), "custom", CUSTOM_PHASE))

    forget(store, inner, 1, 10**9)

    assert kept_versions(store, ACCOUNT, inner) == [1, 4]


NAMING = [
    (execute("a" * 32), ["a"]),
    (skip(rulesets=["a" * 32, "b" * 32]), ["a", "b"]),
    (skip(rules={"a" * 32: ["c" * 32]}), ["a"]),
    (skip(ruleset="current", phases=["http_ratelimit"]), []),
    (block(), []),
]


@pytest.mark.parametrize(("rule", "names"), NAMING)
def test_a_rule_names_what_it_executes_or_skips(rule, names):
    assert references.named([rule]) == {name * 32 for name in names}


def forget(store, ruleset_id, versions_max, octets_max):
    store.write(lambda tx: change.forget_old_versions(tx, ruleset_id, versions_max, octets_max)).result()


def kept_versions(store, scope, ruleset_id):
    kept = store.read(lambda reader: reading.versions(reader, PLATFORM, scope, ruleset_id))
    return [int(msgspec.json.decode(one)["version"]) for one in kept]
