"""How nodes without control stand, as asked of control nodes over their port."""

import asyncio

import pytest

from edgestead.feed.publisher import NodeStanding
from edgestead.server.nodes import join, port, standing
from edgestead.server.nodes.standing import STANDING_ALPN, answering, ask, merged, state_of
from tests.support.nodes import Cluster

LIVE, JOINS, BEHIND = NodeStanding(True, 0, "1"), NodeStanding(False, 9, "2"), NodeStanding(True, 4, "1")


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    monkeypatch.setattr(standing, "ASK_SECONDS", 300.0)  # nobody here is silent
    return Cluster(tmp_path)


def asked(cluster, member, said, others=()):
    async def play():
        async with cluster.listening({STANDING_ALPN: answering(lambda: said)}):
            return await ask(member, [join.host_of(cluster.address), *others])

    return asyncio.run(play())


def test_a_control_node_says_how_its_nodes_stand_and_silent_ones_hold_nothing_up(cluster):
    said = {"ams-1": {"dns": LIVE, "edge": BEHIND}}
    nobody = ("127.0.0.1", 1)

    assert asked(cluster, cluster.main, said, [nobody]) == said


def test_who_has_not_the_role_control_is_told_nothing(cluster):
    edge = cluster.node("ams-1", "edge")

    assert asked(cluster, edge, {"ams-1": {"dns": LIVE}}) is None


def test_a_control_node_that_answers_nothing_sensible_counts_as_silent(cluster, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(standing, "ANSWER_BYTES_MAX", 100)
        assert asked(cluster, cluster.main, {f"n{n}": {"dns": LIVE} for n in range(50)}) is None

    async def nonsense(reader, writer, peer):
        writer.write(b"[]")

    async def play():
        async with cluster.listening({STANDING_ALPN: port.streams(nonsense)}):
            return await ask(cluster.main, [join.host_of(cluster.address)])

    assert asyncio.run(play()) is None


def test_of_a_node_that_changed_its_control_node_the_newer_place_is_believed():
    found = merged([{"a": {"dns": JOINS}}, {"a": {"dns": BEHIND}, "b": {"dns": LIVE}}, {"a": {"edge": LIVE}}])

    assert found == {"a": {"dns": BEHIND, "edge": LIVE}, "b": {"dns": LIVE}}


@pytest.mark.parametrize(
    ("groups", "state"),
    [
        ({"dns": LIVE, "edge": BEHIND}, "live"),
        ({"dns": LIVE, "edge": JOINS}, "joins"),
        ({"dns": LIVE}, "joins"),
        ({}, "away"),
    ],
)
def test_a_node_is_live_when_writes_wait_for_all_of_it(groups, state):
    assert state_of(groups) == state
