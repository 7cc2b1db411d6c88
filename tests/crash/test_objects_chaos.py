"""A class that does everything at random next to good objects: they answer again, and lose nothing."""

import json
import random
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from tests.crash.objects_chaos import ENDING, HARMLESS

SOURCE = str(Path(__file__).with_name("objects_chaos.py"))
SETTINGS = "objects-workers = 2\nobjects-memory-mib = 250\n"
GOOD, GOOD_LONG = 40, 1_000
DEEDS_LONG = 400
ANSWER_SECONDS_MAX = 300.0  # until a good object answers again: a hang, not a measure
PROBES = 8  # objects by which it is seen that every process answers


@pytest.fixture
def server(new_server, tmp_path):
    (tmp_path / "edge.toml").write_text(SETTINGS)
    return new_server("--objects", SOURCE, "--config", str(tmp_path / "edge.toml")).start()


class Counts:
    """Calls good objects in turn, and knows what each has acknowledged."""

    def __init__(self, server, count):
        self.server, self.names = server, [f"good {number}" for number in range(count)]
        self.told, self.tried = dict.fromkeys(self.names, 0), dict.fromkeys(self.names, 0)
        self.worst_seconds, self.wrong, self.is_over = 0.0, [], threading.Event()

    def add(self, name):
        began = time.monotonic()
        while time.monotonic() - began < ANSWER_SECONDS_MAX:
            self.tried[name] += 1
            try:
                answer = self.server.call_object(f"Good/{name.replace(' ', '%20')}/add")
            except OSError:
                continue
            if answer.status == 200:
                self.worst_seconds = max(self.worst_seconds, time.monotonic() - began)
                if not self.told[name] < answer.result <= self.tried[name]:
                    self.wrong.append((name, answer.result, self.told[name], self.tried[name]))
                self.told[name] = answer.result
                return
        self.wrong.append((name, "did not answer", answer))

    def run(self):
        while not self.is_over.is_set():
            for name in self.names:
                self.add(name)


def do(server, number, deed):
    """Have a new object do it. A connection that ends is an end, too. None: the class is held."""
    try:
        answer = server.call_object(f"Chaos/{number}/do", deed=deed)
    except OSError:
        return "lost"
    if answer.status == 503 and answer.body["errors"][0]["code"] == 10476:
        server._ask(server.ready["objects"], "DELETE", "/operate/quarantine/Chaos", None, None)
        return None
    return answer.status


def is_well(server, number):
    try:
        return server.call_object(f"Good/probe{number}/count").status == 200
    except OSError:
        return False


def takes_deeds(server):
    """The class has a process of its own after its first end, which the good objects do not notice."""
    return do(server, "probe", "raise") not in (503, "lost")


def ends_of(server, deeds, counts):
    """What became of each deed, while the good objects are called."""
    calling = threading.Thread(target=counts.run)
    calling.start()
    try:
        ends = []
        for number, deed in enumerate(deeds):
            server.wait_until(lambda: all(map(partial(is_well, server), range(PROBES))), ANSWER_SECONDS_MAX)
            server.wait_until(lambda: takes_deeds(server), ANSWER_SECONDS_MAX)
            while (end := do(server, number, deed)) is None:
                pass
            ends.append((deed, end))
        return ends
    finally:
        counts.is_over.set()
        calling.join()


def judge(ends, counts):
    assert counts.wrong == []
    for deed, end in ends:
        assert (end in (503, "lost")) is (deed in (*ENDING, "abort")), (deed, end)
    for name in counts.names:
        counts.add(name)
    assert counts.wrong == []


@pytest.mark.timeout(1_800)
def test_whatever_a_class_does_the_others_answer_again_and_lose_nothing(server):
    counts = Counts(server, GOOD)
    deeds = [*HARMLESS, "exit", "block", "allocate"]
    judge(ends_of(server, deeds, counts), counts)
    server.wait_for_log("blocked its process for 1 s", "made its process larger than 250 MiB")


@pytest.mark.long
def test_at_random_nobody_is_away_for_long_and_nothing_is_lost(server):
    seed = random.randrange(2**32)
    chance, counts = random.Random(seed), Counts(server, GOOD_LONG)
    deeds = [chance.choice(ENDING + HARMLESS) for _ in range(DEEDS_LONG)]
    judge(ends_of(server, deeds, counts), counts)
    figures = {"seed": seed, "acknowledged": sum(counts.told.values()), "worst seconds": counts.worst_seconds}
    print(json.dumps(figures))  # noqa: T201
