"""What control does in the background goes on after a round that failed as nobody thought."""

import asyncio
from contextlib import ExitStack, closing
from types import SimpleNamespace

import pytest

from edgestead.server.control import history, kv, uses
from edgestead.server.control.history import HistoryPart
from edgestead.server.control.kv import KvPart
from edgestead.server.control.uses import UsesPart
from edgestead.server.rounds import Rounds as ForEver
from edgestead.sqlite.control import SqliteControlStore
from edgestead.tables.schema import MIGRATIONS

SECONDS_MAX = 60


class Rounds:
    """The first one fails; `over` is set by the second."""

    def __init__(self):
        self.count, self.over = 0, asyncio.Event()

    async def one(self, *_):
        self.count += 1
        if self.count == 1:
            raise LookupError("odd")
        self.over.set()


def history_part(tmp_path, monkeypatch, rounds, undo):
    monkeypatch.setattr(history, "FORGET_SECONDS", 0)
    part = HistoryPart(None, days=1, rows_max=1, audit_days=1, audit_octets_max=1, now_us=lambda: 0)
    monkeypatch.setattr(part, "forget", rounds.one)
    return part


def uses_part(tmp_path, monkeypatch, rounds, undo):
    monkeypatch.setattr(uses, "WRITE_SECONDS", 0)
    part = UsesPart(SimpleNamespace(read=lambda fn: None))
    monkeypatch.setattr(part, "write", rounds.one)
    return part


def kv_part(tmp_path, monkeypatch, rounds, undo):
    monkeypatch.setattr(kv, "SWEEP_SECONDS", 0)
    store = undo.enter_context(closing(SqliteControlStore(tmp_path / "control.db", MIGRATIONS)))
    part = KvPart(tmp_path, store)
    monkeypatch.setattr(part, "_sweep", rounds.one)
    return part


@pytest.mark.parametrize("make", [history_part, uses_part, kv_part])
def test_a_round_that_fails_is_not_the_last_one(tmp_path, monkeypatch, caplog, make):
    async def live(undo):
        rounds = Rounds()
        part = make(tmp_path, monkeypatch, rounds, undo)
        part.open()
        try:
            await asyncio.wait_for(rounds.over.wait(), SECONDS_MAX)
        finally:
            ended = part.close()
            if ended is not None:
                await ended

    with ExitStack() as undo:
        asyncio.run(live(undo))

    assert "LookupError: odd" in caplog.text


def test_rounds_that_fail_are_told_now_and_then_and_what_is_away_is_not(caplog):
    outcomes = [OSError("away"), *[LookupError("odd")] * 3]

    async def live():
        over = asyncio.Event()

        async def one():
            if outcomes:
                raise outcomes.pop(0)
            over.set()

        rounds = ForEver("a look at it", 0, one, away=(OSError,))
        rounds.open()
        await asyncio.wait_for(over.wait(), SECONDS_MAX)
        rounds.close()

    asyncio.run(live())

    assert caplog.messages[0] == "a look at it failed (1 since the last line)"
    assert "away" not in caplog.text
