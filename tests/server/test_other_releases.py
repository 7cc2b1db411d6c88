"""Documents and messages of another release, played to all that read them on a machine without control.

A newer control's have fields, kinds and words that this release does not know; an older one's lack some.
"""

import logging
from contextlib import closing
from typing import Any, get_args

import msgspec
import pytest

from edgestead.dns import tsig
from edgestead.dns.journal import Journal
from edgestead.dns.keyring import Keyring
from edgestead.dns.table import Table
from edgestead.feed import protocol
from edgestead.feed.follower import Position
from edgestead.model import edge as edge_model
from edgestead.model import ruleset_document as rulesets
from edgestead.model import served, transfers
from edgestead.model import tsig as keys
from edgestead.server.cluster import frames
from edgestead.server.nodes import join
from edgestead.server.nodes.kinds import NODE_KINDS
from edgestead.server.relay.expiry import Expiry
from edgestead.server.relay.file import RelayFile
from edgestead.store.changes import Change
from edgestead.store.controllog import Entry
from edgestead.tables.accounts import UserRow
from edgestead.tables.tokens import TokenRow
from edgestead.usecases.access import identities
from edgestead.usecases.access.identities import FedAccess
from tests.dns.serving import Asker, changes_of, read_zone
from tests.edge.bench import GET, Bench
from tests.edge.made import rule
from tests.support.newer.fields import newer

ZONE = served.ServedZone(b"\1a\0", 60, bytes(20), (b"sig",), private=True, lost=True, expired=True)
NAME = served.ServedName(b"\1a\0", b"\1w\1a\0", (served.ServedRRset(1, 60, (b"\1\2\3\4",)),))
OWNED = ((NAME.owner, NAME.rrsets),)
DOCUMENTS = {
    served.KIND_ZONE: (served.decode_zone, ZONE),
    served.KIND_NAME: (served.decode_name, NAME),
    served.KIND_JOURNAL: (
        served.decode_change,
        served.ServedChange(ZONE, ZONE, OWNED, OWNED, whole=False),
    ),
    keys.KIND_KEY: (
        keys.decode_key,
        keys.ServedKey(b"\1k\0", "hmac-sha256", "a", b"sealed", transfer=True, update=True),
    ),
    keys.KIND_OWNER: (keys.decode_owner, keys.ServedOwner(b"\1a\0", "account")),
    transfers.KIND_OUTGOING: (
        transfers.decode_outgoing,
        transfers.ServedOutgoing(
            b"\1a\0", "account", True, (transfers.ServedPeer("192.0.2.1", 53, "key", True),), 7
        ),
    ),
    transfers.KIND_ACL: (transfers.decode_acl, transfers.ServedAcl(("192.0.2.0/24",))),
    edge_model.KIND_EDGE_ZONE: (
        edge_model.decode_zone,
        edge_model.EdgeZone("a.test", "account", "free", True, {"ssl": "full"}),
    ),
    edge_model.KIND_EDGE_NAME: (
        edge_model.decode_name,
        edge_model.EdgeName(b"\1a\0", (b"\1\2\3\4",), b"\1b\0"),
    ),
}
RULESET = rulesets.RulesetDocument("id", "zone", "phase", "1", msgspec.Raw(b"[]"))
MESSAGES = {
    protocol.decode: (
        protocol.Message,
        (
            protocol.Register("dns", "ams-1", ("zone",), "feed", 7, True, "part", 9),
            protocol.Snapshot("feed", 7, "part", 9),
            protocol.Changes(6, 7, (Change(7, "s", "zone", "k", b"doc", "dns"),)),
            protocol.Ack(7),
            protocol.Serve(7),
            protocol.Resumed("feed"),
            protocol.Beat(7, 8),
            protocol.Beaten(),
            protocol.Loading(),
            protocol.Hello("1.0", "ams", 7, 8),
            protocol.SnapshotPart(b"octets", True),
            protocol.Renew(7),
            protocol.Granted(7, 5_000),
            protocol.Elsewhere("192.0.2.1:1"),
            protocol.Secret("certificates", b"octets", True),
        ),
    ),
    frames._decoder.decode: (
        frames.Message,
        (
            frames.Follow(7, 8, b"chain"),
            frames.Admitted(7, 8),
            frames.Elsewhere(),
            frames.Reload(),
            frames.Entries((Entry(7, 1, 8, b"chain", 9, b"body"),)),
            frames.Applied(7, (("dns", "ams-1"),)),
            frames.Ping(),
        ),
    ),
    join._decode: (
        join.Message,
        (
            join.Welcome(b"pem"),
            join.Ask("id", b"secret", b"key", "192.0.2.1:1", "1.0"),
            join.Granted(b"pem", ("192.0.2.1:1",), "serve", {"seal.key": b"k"}),
            join.Refused("words"),
        ),
    ),
}

ASKED = [(kind, *both) for kind, both in DOCUMENTS.items()] + [
    (type(one).__name__, decode, one) for decode, (_, all_) in MESSAGES.items() for one in all_
]
NAMES = [name for name, *_ in ASKED]

# A field that came later has a default: an older release does not send it. These may only become fewer.
REQUIRED = {
    **{served.ServedZone: 3, served.ServedName: 3, served.ServedRRset: 3, served.ServedChange: 4},
    **{keys.ServedKey: 5, keys.ServedOwner: 2, rulesets.RulesetDocument: 5},
    **{transfers.ServedOutgoing: 5, transfers.ServedPeer: 4, transfers.ServedAcl: 1},
    **{edge_model.EdgeZone: 5, edge_model.EdgeName: 2, Change: 5, Entry: 6},
    **{protocol.Register: 6, protocol.Snapshot: 2, protocol.Changes: 3, protocol.Ack: 1, protocol.Serve: 1},
    **{protocol.Resumed: 1, protocol.Beat: 1, protocol.Beaten: 0, protocol.Loading: 0, protocol.Hello: 4},
    **{protocol.SnapshotPart: 2, protocol.Renew: 1, protocol.Granted: 2, protocol.Elsewhere: 1},
    **{protocol.Secret: 3, frames.Follow: 3, frames.Admitted: 2, frames.Elsewhere: 0, frames.Reload: 0},
    **{frames.Entries: 1, frames.Applied: 1, frames.Ping: 0},
    **{join.Welcome: 1, join.Ask: 5, join.Granted: 4, join.Refused: 1},
}


def older(value: msgspec.Struct) -> tuple[Any, msgspec.Struct]:
    """What msgpack gets of a message without the fields that have defaults, and what it then stands for."""
    about, fields = type(value).__struct_config__, msgspec.structs.fields(type(value))
    needed = {one.name: getattr(value, one.name) for one in fields if one.required}
    meant = type(value)(**needed)
    if not about.array_like:
        return ({} if about.tag is None else {about.tag_field: about.tag}) | needed, meant
    return [*([] if about.tag is None else [about.tag]), *needed.values()], meant


def test_there_is_one_of_everything():
    of_nodes = {kind for kinds in NODE_KINDS.values() for kind in kinds}
    assert of_nodes == {*DOCUMENTS, rulesets.KIND_RULESET}
    for message, samples in MESSAGES.values():
        assert {type(one) for one in samples} == set(get_args(message))
        assert {type(one) for one in samples} <= REQUIRED.keys()


@pytest.mark.parametrize(("decode", "value"), [one[1:] for one in ASKED], ids=NAMES)
def test_fields_that_are_not_known_are_passed_over(decode, value):
    assert decode(msgspec.msgpack.encode(newer(value))) == value


@pytest.mark.parametrize(("decode", "value"), [one[1:] for one in ASKED], ids=NAMES)
def test_fields_that_came_later_may_be_missing(decode, value):
    sent, meant = older(value)
    assert decode(msgspec.msgpack.encode(sent)) == meant


def test_a_ruleset_with_more_members_is_read():
    document = msgspec.json.decode(rulesets.encode(RULESET)) | {"newer": {"of": 1}}
    assert rulesets.decode(msgspec.json.encode(document)) == RULESET


def test_no_field_is_asked_for_that_an_older_release_does_not_send():
    asked = {type_: sum(one.required for one in msgspec.structs.fields(type_)) for type_ in REQUIRED}
    assert asked == REQUIRED


@pytest.mark.parametrize(
    ("decode", "refusal"),
    [(protocol.decode, protocol.ProtocolError), (frames._decoder.decode, msgspec.DecodeError)],
)
def test_a_message_that_is_not_known_ends_the_connection_in_words(decode, refusal):
    with pytest.raises(refusal, match="99"):
        decode(msgspec.msgpack.encode([99, 1]))


def test_who_may_call_is_not_read_by_half():
    """A field here may take something away, so it comes with a schema, at which an older control stops."""
    token = TokenRow("i", "user", "u", "", b"h", "active", "[]", None, None, None, 1, 1)
    for read, row in (
        (identities._read_token, token),
        (identities._read_user, UserRow("i", "a@b.test", "a@b.test", b"k", 1)),
    ):
        with pytest.raises(msgspec.ValidationError, match="length"):
            read(msgspec.msgpack.encode([*row, "newer"]))


ZONE_TEXT = "@ 60 IN SOA ns.test. h.test. {} 2 3 100 5\n@ 60 IN NS ns.test.\nwww 60 IN A 192.0.2.1\n"


def zone(apex, serial=1):
    return [
        Change(0, apex, one.kind, one.key, one.doc)
        for one in changes_of(read_zone(apex, ZONE_TEXT.format(serial)))
    ]


def odd(scope):
    """Changes of kinds that nobody here knows, in a scope that may be known."""
    kinds = ("zone2", "secret:tsig2", "edge:zone2", "identity:token2")
    logged = Change(100, scope, "log:journal2", "", b"\xc1")  # what a log says is never taken back
    documents = [(kind, doc) for kind in kinds for doc in (b"\xc1", None)]
    return [
        logged,
        *(Change(number, scope, kind, "key", doc) for number, (kind, doc) in enumerate(documents, 101)),
    ]


@pytest.mark.parametrize("scope", ["a.test.", "5" * 32, "a scope of a newer release", keys.SCOPE])
def test_kinds_and_scopes_that_are_not_known_change_nothing(scope, tmp_path):
    table, journal, ring, access, edge = Table(), Journal(), Keyring(), FedAccess(), Bench()
    table.apply(zone("a.test."))
    for take in (table.apply, journal.take, ring.take, access.apply, edge.routes.apply):
        take(odd(scope))
        take(odd(scope))
    access.begin()
    access.load(odd(scope))
    access.swap()
    with closing(RelayFile(tmp_path, "dns", 0)) as file:
        file.keep([*zone("a.test."), *odd(scope)], Position("feed", 7)).result()
        assert Expiry(1e9).look(file.store, 1_000) == 1
        file.keep([Change(0, "a scope of a newer release", "", "", None)], Position("feed", 8)).result()

    assert Asker(table)("www.a.test.").answer
    edge.connection.data_received(GET)
    assert edge.server.written.startswith(b"GET / ")
    assert (journal.rows(), dict(ring.keys), access.accounts) == ([], {}, ())


def test_a_mark_that_is_not_known_makes_its_zone_fail_and_no_other(caplog):
    """What its owner answers nobody knows: neither data nor that there is none would be true."""
    table = Table()
    changes = [*zone("a.test."), *zone("b.test.")]
    table.apply(changes)
    name = served.ServedName(b"\1a\4test\0", b"\3www\1a\4test\0", (served.mark(served.EXISTS + 1),))

    table.apply([Change(9, "a.test.", served.KIND_NAME, name.owner.hex(), served.encode(name))])

    assert Asker(table)("www.a.test.").rcode().name == "SERVFAIL"
    assert Asker(table)("www.b.test.").answer
    assert "newer release" in caplog.text
    table.apply(zone("a.test.", 2))
    assert Asker(table)("www.a.test.").answer


def test_a_key_with_an_algorithm_that_is_not_known_is_left_out(caplog):
    ring = Keyring(lambda served_key: b"s" * 32)
    ring.take(
        Change(1, keys.SCOPE, keys.KIND_KEY, algorithm, keys.encode(document))
        for algorithm in ("hmac-sha256", "hmac-sha3")
        for document in [keys.ServedKey(bytes((1, algorithm.encode()[-1], 0)), algorithm, "a", b"x", True)]
    )

    assert [key.algorithm for key in ring.keys.values()] == [b"\x0bhmac-sha256\0"]
    assert {key.algorithm for key in ring.keys.values()} <= tsig.HASHES.keys()
    assert "hmac-sha3 is of a newer release" in caplog.text


RULES = [
    rule("newer_action"),
    rule("block", "http.newer.field eq 1"),
    rule("block", "newer_function(http.host)"),
    rule("block", action_parameters={"response": {"newer": 1}}),
]


@pytest.mark.parametrize("newer_rule", RULES)
def test_a_rule_that_is_not_known_is_left_out_in_words_and_the_next_one_acts(newer_rule, caplog):
    caplog.set_level(logging.ERROR)
    edge = Bench(
        {"http_request_firewall_custom": [newer_rule, rule("block", 'http.request.uri.path eq "/"')]}
    )

    edge.connection.data_received(GET)

    assert edge.client.status == 403
    assert [decision.rule_id for decision in edge.decisions] == ["r2"]
    assert "rule r1 of ruleset zone-http_request_firewall_custom is left out" in caplog.text


@pytest.mark.parametrize("settings", [{"newer_setting": {"a": 1}}, {"ambiguous_paths": "newer"}])
def test_a_setting_that_is_not_known_keeps_nobody_out(settings):
    edge = Bench({"a_newer_phase": [rule("block")]}, settings)

    edge.connection.data_received(GET)

    assert edge.server.written.startswith(b"GET / ")


def test_a_word_for_ambiguous_paths_that_is_not_known_refuses_them():
    edge = Bench(settings={"ambiguous_paths": "newer"})

    edge.connection.data_received(GET.replace(b" / ", b" /a%2fb "))

    assert edge.client.status == 400


def test_the_relay_keeps_fields_for_its_next_release(tmp_path):
    """It writes a zone's document anew while it is cut off, and may be upgraded meanwhile."""
    soa = next(one for one in zone("a.test.") if one.kind == served.KIND_ZONE)
    document = msgspec.msgpack.encode(newer(served.decode_zone(soa.doc)))
    expiry = Expiry(1e9)
    with closing(RelayFile(tmp_path, "dns", 0)) as file:
        file.keep([msgspec.structs.replace(soa, doc=document)], Position("feed", 7)).result()

        def kept():
            found = []
            file.store.feed.snapshot(frozenset(), found.extend)
            return found[0].doc

        assert expiry.look(file.store, 1_000) == 1
        assert served.decode_zone(kept()).expired
        assert expiry.look(file.store, 0) == 1
        assert kept() == document


def test_a_relay_that_asks_for_more_than_its_file_has_begins_with_a_snapshot(tmp_path):
    """It may be answered from meanwhile: only its feed is none that could be gone on with."""
    with closing(RelayFile(tmp_path, "dns", 0, kinds=("zone", "name"))) as file:
        file.keep(zone("a.test."), Position("feed", 7)).result()
        assert file.position == Position("feed", 7)
    with closing(RelayFile(tmp_path, "dns", 0, kinds=("name", "zone"))) as file:
        assert file.position == Position("feed", 7)
    with closing(RelayFile(tmp_path, "dns", 0, kinds=("zone", "name", "newer"))) as file:
        assert file.position == Position("", 7)
        file.begin()
        file.load(zone("a.test.", 2))
        file.swap(Position("feed", 9))
        assert file.position == Position("feed", 9)
