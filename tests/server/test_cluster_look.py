"""What the dashboard shows of a cluster: one look for all who ask, who is how far behind, what went wrong."""

import asyncio
from types import SimpleNamespace

import pytest

from edgestead.server.control import cluster_look
from edgestead.server.control.cluster_look import KEPT_SECONDS, ClusterLook
from edgestead.server.errors import StartError

POSITIONS = {1: 40, 2: 31, 3: 38}  # of processes: the log's entries that they have applied


class Base:
    """The cluster's database, as far as a look asks it."""

    def __init__(self):
        self.looks, self.error = 0, None

    def facts(self, folder):
        self.looks += 1
        if self.error:
            raise self.error
        nodes = [{"name": name, "roles": "control,edge", "behind": None} for name in ("a", "b", "new")]
        nodes.append({"name": "edge", "roles": "edge", "behind": 7})
        return {"log_sequence": 40, "nodes": nodes, "error": ""}, {"a": [1], "b": [2, 3], "new": [9]}


@pytest.fixture
def base(monkeypatch):
    made = Base()
    monkeypatch.setattr(cluster_look, "_facts", made.facts)
    return made


@pytest.fixture
def now():
    return [100.0]


@pytest.fixture
def look(base, now, tmp_path):
    members = SimpleNamespace(positions=POSITIONS)
    part = SimpleNamespace(membership=SimpleNamespace(seat=SimpleNamespace(members=members)))
    return ClusterLook(tmp_path, part, lambda: now[0])


def test_a_node_is_as_far_behind_as_its_newest_process(look):
    """The one of before a restart does not count, and of a node that said nothing yet nothing is known."""
    found = asyncio.run(look())

    assert {one["name"]: one["behind"] for one in found["nodes"]} == {"a": 0, "b": 2, "new": None, "edge": 7}


def test_many_who_ask_are_one_look_that_is_kept_for_seconds(look, base, now):
    async def ask():
        await asyncio.gather(*(look() for _ in range(20)))
        now[0] += KEPT_SECONDS
        await look()
        kept = base.looks
        now[0] += 1
        await look()
        return kept, base.looks

    assert asyncio.run(ask()) == (1, 2)


def test_who_went_away_takes_nobody_elses_look_along(look, base):
    async def ask():
        gone, stays = asyncio.create_task(look()), asyncio.create_task(look())
        await asyncio.sleep(0)
        gone.cancel()
        return await stays

    assert asyncio.run(ask())["log_sequence"] == 40
    assert base.looks == 1


def test_a_database_that_is_away_is_said_and_asked_again_later(look, base, now):
    async def ask():
        base.error = StartError("the cluster's database: it does not answer")
        away = await look()
        base.error = None
        now[0] += KEPT_SECONDS + 1
        return away, await look()

    away, back = asyncio.run(ask())
    assert away == {"error": "the cluster's database: it does not answer"}
    assert back["error"] == ""
