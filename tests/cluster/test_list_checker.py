"""The checker of lists finds what is wrong with histories that are, and nothing in the others."""

from random import Random

import pytest

from tests.cluster.list_checker import Append, Read, faults

GOOD = {
    "empty": ([], []),
    "one after the other": ([Append(1, 0, 1), Append(2, 2, 3)], [Read(4, 5, [1, 2])]),
    "beside one another": ([Append(1, 0, 9), Append(2, 0, 9)], [Read(1, 2, [2]), Read(10, 11, [2, 1])]),
    "read beside an append": ([Append(1, 0, 9)], [Read(1, 2, []), Read(3, 4, [1]), Read(10, 11, [1])]),
    "unknown, and lost": ([Append(1, 0), Append(2, 1, 2)], [Read(3, 4, [2])]),
    "unknown, and seen late": ([Append(1, 0), Append(2, 1, 2)], [Read(3, 4, [2]), Read(9, 10, [2, 1])]),
}
BAD = {
    "stale read": ([Append(1, 0, 1)], [Read(2, 3, []), Read(4, 5, [1])], "a read of 0 numbers began after"),
    "read that goes back": (
        [Append(1, 0, 9)],
        [Read(1, 2, [1]), Read(3, 4, []), Read(10, 11, [1])],
        "a read of 0 numbers began after a read of 1",
    ),
    "lost": ([Append(1, 0, 1)], [Read(2, 3, [])], "1 was acknowledged"),
    "duplicate": ([Append(1, 0, 1)], [Read(2, 3, [1, 1])], "twice"),
    "from nowhere": ([], [Read(2, 3, [7])], "nobody appended"),
    "reordered": ([Append(1, 0, 1), Append(2, 2, 3)], [Read(4, 5, [2, 1])], "the append of 2 began after"),
    "two orders": (
        [Append(1, 0, 9), Append(2, 0, 9)],
        [Read(1, 2, [2]), Read(10, 11, [1, 2])],
        "no beginning",
    ),
    "read before it was written": (
        [Append(1, 5, 6)],
        [Read(1, 2, [1]), Read(9, 10, [1])],
        "the append of 1 began after a read",
    ),
    "later than the next acknowledged": (
        [Append(1, 2, 3), Append(2, 0, 1)],
        [Read(4, 5, [1, 2])],
        "the append of 1 began after the append of 2",
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_history_that_a_list_could_have_has_no_fault(name):
    assert faults(*GOOD[name]) == []


@pytest.mark.parametrize("name", BAD)
def test_a_bad_history_is_found(name):
    appends, reads, words = BAD[name]

    found = faults(appends, reads)

    assert any(words in fault for fault in found)


@pytest.mark.parametrize("seed", range(20))
def test_a_real_list_has_no_fault_and_one_answer_that_is_stale_is_found(seed):
    random, numbers = Random(seed), []
    appends, reads = [], []
    for moment in range(0, 2_000, 10):
        began, ended = moment - random.choice((0, 5, 40)), moment + random.choice((1, 5, 40))
        if random.random() < 0.5:
            numbers.append(moment)
            appends.append(Append(moment, began, random.choice((ended, ended, float("inf")))))
        else:
            reads.append(Read(began, ended, list(numbers)))
    reads.append(Read(3_000, 3_001, list(numbers)))
    assert faults(appends, reads) == []

    acknowledged = [append for append in appends if append.ended < 2_500]
    first = numbers.index(random.choice(acknowledged).number)
    reads.append(Read(2_600, 2_601, numbers[:first]))

    assert faults(appends, reads) != []
