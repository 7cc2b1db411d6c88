"""What control does in the background goes on after a round that failed as nobody thought."""

import asyncio
from contextlib import ExitStack, closing
from types import SimpleNamespace

import pytest

from edgestead.rest.quota import Quota
from edgestead.server.cluster import bases
from edgestead.server.control import history, kv, quota, samples_file, uses
from edgestead.server.control.history import HistoryPart
from edgestead.server.control.kv import KvPart
from edgestead.server.control.quota import QuotaPart
from edgestead.server.control.samples_file import SamplesFile
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
        self.step()

    def step(self, *_):
        self.count += 1
        if self.count == 1:
            raise LookupError("odd")
        self.over.set()


def history_part(tmp_path, monkeypatch, rounds, undo):
    monkeypatch.setattr(history, "FORGET_SECONDS", 0)
    monkeypatch.setattr(HistoryPart, "forget", lambda _: rounds.one())
    return HistoryPart(None, days=1, rows_max=1, audit_days=1, audit_octets_max=1, now_us=lambda: 0)


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


def bases_part(tmp_path, monkeypatch, rounds, undo):
    monkeypatch.setattr(bases, "LOOK_SECONDS", 0)
    monkeypatch.setattr(bases, "uploads", rounds.step)
    return bases.Bases(tmp_path, None, None, lambda: 0)


def quota_part(tmp_path, monkeypatch, rounds, undo):
    monkeypatch.setattr(quota, "TELL_SECONDS", 0)
    monkeypatch.setattr(QuotaPart, "tell", rounds.one)
    part = QuotaPart(Quota(1), lambda: False, lambda: 0)
    return SimpleNamespace(open=lambda: part.tell_by(None), close=part.close)


def dashboards_samples(tmp_path, monkeypatch, rounds, undo):
    monkeypatch.setattr(samples_file, "KEEP_SECONDS", 0)
    monkeypatch.setattr(SamplesFile, "_write", lambda *_: None)
    file = SamplesFile(SimpleNamespace(encoded=rounds.step), tmp_path, lambda: 0)
    running = []

    def close():
        running[0].cancel()

    return SimpleNamespace(open=lambda: running.append(asyncio.create_task(file.run())), close=close)


PARTS = [history_part, uses_part, kv_part, bases_part, quota_part, dashboards_samples]


@pytest.mark.parametrize("make", PARTS)
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


@pytest.mark.parametrize("known", [(), (LookupError,)])
def test_rounds_that_fail_are_told_now_and_then_and_what_is_away_is_not(caplog, known):
    outcomes = [OSError("away"), *[LookupError("odd")] * 3]

    async def live():
        over = asyncio.Event()

        async def one():
            if outcomes:
                raise outcomes.pop(0)
            over.set()

        rounds = ForEver("a look at it", 0, one, away=(OSError,), known=known)
        rounds.open()
        await asyncio.wait_for(over.wait(), SECONDS_MAX)
        rounds.close()

    asyncio.run(live())

    words = "a look at it failed (1 since the last line)"
    assert caplog.messages[0] == words + ": LookupError('odd')" * bool(known)
    assert ("Traceback" in caplog.text) != bool(known)
    assert "away" not in caplog.text


def test_the_first_round_is_as_late_as_it_is_told():
    def is_begun_at_once(first_seconds):
        begun = []

        async def one():
            begun.append(True)

        async def live():
            rounds = ForEver("a look at it", 1_000, one, first_seconds=first_seconds)
            rounds.open()
            for _ in range(10):
                await asyncio.sleep(0)
            rounds.close()

        asyncio.run(live())
        return begun == [True]

    assert (is_begun_at_once(0), is_begun_at_once(1_000)) == (True, False)
