"""Zones of a node that is cut off, on an invented clock: SERVFAIL from their SOA's expire time on."""

from contextlib import closing

import msgspec
import pytest

from edgestead.dns.table import Table
from edgestead.feed.follower import Position
from edgestead.model.served import decode_zone, encode
from edgestead.server.relay.expiry import Expiry
from edgestead.server.relay.file import RelayFile
from edgestead.store.changes import Change
from tests.dns.serving import Asker, changes_of, read_zone

STALE_SECONDS = 5_000.0
EXPIRES = {"short.test.": 100, "long.test.": 1_000, "longest.test.": 604_800}


def zone(apex, *, serial=1):
    lines = (
        f"@ 60 IN SOA ns.test. h.test. {serial} 2 3 {EXPIRES[apex]} 5",
        "@ 60 IN NS ns.test.",
        f"www 60 IN A 192.0.2.{serial}",
    )
    text = "\n".join(lines) + "\n"
    return [Change(0, apex, one.kind, one.key, one.doc) for one in changes_of(read_zone(apex, text))]


class Node:
    """A relay's file, and a DNS process that follows it."""

    def __init__(self, folder):
        self._folder = folder
        self._begin()

    def _begin(self):
        self.file, self.expiry, self.table = RelayFile(self._folder, "dns", 0), Expiry(STALE_SECONDS), Table()
        state = []
        self._seen = self.file.store.feed.snapshot(frozenset(), state.extend)
        self.table.apply(state)

    def begin_again(self):
        """The whole machine."""
        self.file.close()
        self._begin()

    def keep(self, changes):
        """They came from control."""
        self.file.keep(changes, Position("feed", 1)).result()

    def cut_off_for(self, seconds):
        """How many zones are others now."""
        return self.expiry.look(self.file.store, seconds)

    def close(self):
        self.file.close()

    def answers(self):
        """The zones that are answered, by the end of their names."""
        changes = self.file.store.feed.tail(self._seen, 1 << 20)
        self._seen += len(changes)
        self.table.apply(changes)
        found = {apex: Asker(self.table)(f"www.{apex}").rcode().name for apex in EXPIRES}
        assert set(found.values()) <= {"NOERROR", "SERVFAIL"}
        return {apex.removesuffix(".test.") for apex, rcode in found.items() if rcode == "NOERROR"}


ALL = {"short", "long", "longest"}


@pytest.fixture
def node(tmp_path):
    with closing(Node(tmp_path)) as made:
        made.keep([change for apex in EXPIRES for change in zone(apex)])
        yield made


def test_each_zone_is_answered_until_its_own_expire_time_and_none_beyond_the_nodes(node):
    for seconds, answered in (
        (0.0, ALL),
        (99.9, ALL),
        (100.0, {"long", "longest"}),
        (999.9, {"long", "longest"}),
        (1_000.0, {"longest"}),
        (4_999.9, {"longest"}),
        (5_000.0, set()),
        (9e9, set()),
    ):
        node.cut_off_for(seconds)
        assert node.answers() == answered, seconds


def test_who_is_back_answers_them_all_and_is_cut_off_from_the_beginning_again(node):
    node.cut_off_for(1_500.0)
    assert node.answers() == {"longest"}

    assert node.cut_off_for(0.0) == 2
    assert node.answers() == ALL
    assert node.cut_off_for(0.0) == 0
    assert node.cut_off_for(99.0) == 0
    assert node.cut_off_for(101.0) == 1
    assert node.answers() == {"long", "longest"}


def test_a_restart_of_the_machine_changes_nothing(node):
    node.cut_off_for(150.0)
    node.begin_again()
    assert node.answers() == {"long", "longest"}
    node.cut_off_for(1_200.0)
    node.begin_again()
    assert node.answers() == {"longest"}

    node.cut_off_for(0.0)

    assert node.answers() == ALL


def test_a_zone_that_comes_meanwhile_is_not_undone(node):
    """Before the lease is back, as the tail arrives; and a zone that control itself calls lost stays lost."""
    node.cut_off_for(1_500.0)
    node.keep(zone("short.test.", serial=2))
    (*names, last) = zone("long.test.", serial=2)
    lost = encode(msgspec.structs.replace(decode_zone(last.doc), lost=True))
    node.keep([*names, msgspec.structs.replace(last, doc=lost)])
    assert node.answers() == {"short", "longest"}

    node.cut_off_for(0.0)

    assert node.answers() == {"short", "longest"}


def test_a_zone_that_is_gone_is_left_out(node):
    node.cut_off_for(50.0)
    node.keep([Change(0, "short.test.", "", "", None)])
    assert node.cut_off_for(150.0) == 0
