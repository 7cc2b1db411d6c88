"""The checker of histories finds what is wrong with those that are, and nothing in the others."""

import pytest

from tests.cluster.checker import Read, Write, faults


def write(name, began, ended, ok=True):
    return Write(name, began, ended, ok)


def read(began, ended, *names, node="a"):
    return Read(node, began, ended, frozenset(names))


GOOD = {
    "empty": ([], []),
    "one after the other": ([write("x", 0, 1)], [read(2, 3, "x")]),
    "read beside a write, with it": ([write("x", 0, 3)], [read(1, 2, "x")]),
    "read beside a write, without it": ([write("x", 0, 3)], [read(1, 2)]),
    "unknown, never seen": ([write("x", 0, 1, False)], [read(2, 3), read(4, 5)]),
    "not acknowledged, at one node": ([write("x", 0, 9)], [read(1, 2, "x"), read(3, 4, node="b")]),
    "unknown, seen late": ([write("x", 0, 1, False)], [read(2, 3), read(4, 5, "x")]),
    "two reads beside one another differ": ([write("x", 0, 9)], [read(1, 4, "x"), read(2, 3, node="b")]),
}
BAD = {
    "a stale read": ([write("x", 0, 1)], [read(2, 3)], "acknowledged before"),
    "stale at one node": ([write("x", 0, 1)], [read(2, 3, "x"), read(2, 3, node="b")], "read at b lacks"),
    "lost": ([write("x", 0, 1)], [read(2, 3, "x"), read(4, 5)], "acknowledged before"),
    "seen and gone": ([write("x", 0, 9, False)], [read(1, 2, "x"), read(3, 4)], "read there before"),
    "read before it was written": ([write("x", 5, 6)], [read(1, 2, "x")], "written after"),
    "from nowhere": ([], [read(1, 2, "x")], "or never"),
    "in another order": (
        [write("x", 0, 9), write("y", 0, 9)],
        [read(1, 2, "x"), read(3, 4, "y", node="b")],
        "which a larger one",
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_history_that_a_server_could_have_has_no_fault(name):
    assert faults(*GOOD[name]) == []


@pytest.mark.parametrize("name", BAD)
def test_a_bad_history_is_found(name):
    writes, reads, words = BAD[name]

    found = faults(writes, reads)

    assert any(words in fault for fault in found)
