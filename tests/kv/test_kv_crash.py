"""SIGKILL under load: no acknowledged write is lost, no row dangles, no file is left after the sweep."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from edgestead.sqlite.kv import BLOBS_NAME, SqliteKvStore
from edgestead.store.kv import BLOB_GRACE_SECONDS, Pair

from .crash_writer import NAMESPACE, content_of

ROUNDS = 10
ROUNDS_LONG = 200
WRITER = Path(__file__).with_name("crash_writer.py")
NOW = 1_800_000_000


def run_until_killed(folder, number, seconds):
    """Let the writer run, kill it, and return what it said."""
    source = Path(__file__).parents[2] / "src"
    process = subprocess.Popen(
        [sys.executable, str(WRITER), str(folder), str(number)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(source)},
    )
    first = process.stdout.readline()
    time.sleep(seconds)
    process.kill()
    rest = process.stdout.read()
    process.wait()
    process.stdout.close()
    # The last line may be cut: then it was not said.
    return [line.split() for line in (first + rest).decode().split("\n")[:-1]]


def possible_turns(said, before):
    """For each key the turns that it may hold: the last acknowledged one, and one that was under way."""
    possible = {key: {turn} for key, turn in before.items()}
    for what, key, text in said:
        turn = None if what == "deleted" else int(text)
        if what == "begin":
            under_way = None if int(text) % 7 == 6 else int(text)
            possible.setdefault(key, {None}).add(under_way)
        else:
            possible[key] = {turn}
    return possible


def turn_of(store, key):
    value = store.get(NAMESPACE, key, NOW)
    if value is None:
        return None
    with value:
        content = value.read()
    turn = int(content.split(b" ", 1)[0])
    assert content in (content_of(turn), b"%d" % turn)
    return turn


def crash_and_check(folder, rounds, random_):
    held = {}
    for number in range(rounds):
        said = run_until_killed(folder, number, random_.uniform(0.02, 0.15))
        store = SqliteKvStore(folder)
        try:
            for key, turns in possible_turns(said, held).items():
                held[key] = turn_of(store, key)
                assert held[key] in turns, key
            check_blobs(store, folder)
        finally:
            store.close()
    return held


def check_blobs(store, folder):
    store._sweep_blobs(int(time.time()) + BLOB_GRACE_SECONDS + 2)
    rows = {
        id_ for (id_,) in store.database._db.execute("SELECT blob_id FROM entries WHERE blob_id IS NOT NULL")
    }
    assert rows == {file.name for file in (folder / BLOBS_NAME).iterdir()}


def test_a_killed_writer_has_lost_nothing_that_it_acknowledged(tmp_path):
    assert crash_and_check(tmp_path, ROUNDS, random.Random(5))


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_writer_killed_many_times_has_lost_nothing(tmp_path):
    assert crash_and_check(tmp_path, ROUNDS_LONG, random.Random())


def test_the_check_itself_notices_a_lost_write(tmp_path):
    store = SqliteKvStore(tmp_path)
    store.put(NAMESPACE, [Pair("k", b"1")]).result(60)

    assert turn_of(store, "k") not in possible_turns([["begin", "k", "1"], ["written", "k", "2"]], {})["k"]
    store.close()
