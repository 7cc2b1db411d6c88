"""Counts over several workers, in one memory."""

import random

import pytest

from edgestead.edge.tools import rates
from edgestead.edge.tools.rates import Rates, memory_octets

SECRET = bytes(32)
PERIOD_MS = 10_000


class Clock:
    seconds = 1_000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def evictions():
    return []


@pytest.fixture
def workers(clock, evictions):
    """Three ends of one memory."""
    memory = memoryview(bytearray(memory_octets(3)))
    return [
        Rates(memory, SECRET, worker=number, workers=3, now=clock, evicted=lambda: evictions.append(1))
        for number in range(3)
    ]


def add(worker, key, amount=1):
    return worker.add(key, amount, PERIOD_MS, worker.now_ms()).total


def test_every_worker_sees_the_sum(workers):
    key = workers[0].key(b"rule", [b"client"])
    assert [add(workers[number], key) for number in (0, 1, 2, 0, 2)] == [1, 2, 3, 4, 5]
    assert {worker.look(key, worker.now_ms()).total for worker in workers} == {5}


def test_other_rules_and_other_clients_count_for_themselves(workers):
    keys = [
        workers[0].key(*about)
        for about in ((b"r", [b"a"]), (b"r", [b"b"]), (b"s", [b"a"]), (b"r", [b"a", b""]))
    ]
    assert len(set(keys)) == 4
    assert [add(workers[0], key) for key in keys] == [1, 1, 1, 1]


def test_parts_of_a_key_do_not_run_together(workers):
    assert workers[0].key(b"r", [b"ab", b"c"]) != workers[0].key(b"r", [b"a", b"bc"])


def test_a_window_begins_with_the_first_request_and_is_the_same_for_all(workers, clock):
    key = workers[0].key(b"rule", [])
    add(workers[0], key)
    clock.seconds += 9
    assert add(workers[1], key) == 2
    clock.seconds += 1
    assert add(workers[2], key) == 1  # ten seconds after the first one
    assert add(workers[1], key) == 2


def test_a_mitigation_holds_in_every_worker_until_its_end(workers, clock):
    key = workers[0].key(b"rule", [])
    now_ms = workers[0].now_ms()
    workers[1].mitigate(key, now_ms + 60_000, now_ms)

    clock.seconds += 59.9
    assert all(worker.look(key, worker.now_ms()).mitigation_end_ms for worker in workers)
    clock.seconds += 0.1
    assert not any(worker.look(key, worker.now_ms()).mitigation_end_ms for worker in workers)


def test_a_worker_that_starts_again_goes_on(clock):
    memory = memoryview(bytearray(memory_octets(2)))
    key = Rates(memory, SECRET, now=clock, workers=2).key(b"rule", [])
    for life in (1, 2, 3):
        assert add(Rates(memory, SECRET, worker=1, workers=2, now=clock), key) == life


def same_bucket(count):
    """That many keys of one bucket."""
    return [1 + 2 * rates.BUCKETS * number for number in range(1, count + 1)]


def test_a_full_bucket_gives_up_the_place_that_is_over_first(workers, clock, evictions):
    worker = workers[0]
    keys = same_bucket(rates.PLACES + 1)
    for key in keys[:-1]:
        add(worker, key, 5)
        clock.seconds += 1
    assert evictions == []

    assert add(worker, keys[-1]) == 1
    assert evictions == [1]
    counts = [worker.look(key, worker.now_ms()).total for key in keys]
    assert counts == [0, 5, 5, 5, 5, 5, 5, 5, 1]


def test_a_place_whose_time_is_over_is_taken_without_loss(workers, clock, evictions):
    worker = workers[0]
    keys = same_bucket(rates.PLACES + 1)
    for key in keys[:-1]:
        add(worker, key)
    clock.seconds += 11
    assert add(worker, keys[-1]) == 1
    assert evictions == []


def test_random_requests_over_random_workers_are_counted_as_by_one_list(workers, clock):
    chance = random.Random(9)
    keys = [workers[0].key(b"rule", [b"%d" % number]) for number in range(50)]
    ends, counts = {}, {}
    for _ in range(5_000):
        clock.seconds += chance.random() / 10
        key, now_ms = chance.choice(keys), workers[0].now_ms()
        if ends.get(key, 0) <= now_ms:
            ends[key], counts[key] = now_ms + PERIOD_MS, 0
        counts[key] += 1
        assert add(chance.choice(workers), key) == counts[key]


def test_counts_and_amounts_stay_in_their_cells(workers):
    key = workers[0].key(b"rule", [])
    add(workers[0], key, rates.COUNT_MAX)
    assert add(workers[0], key, rates.COUNT_MAX) == rates.COUNT_MAX
