"""Lists that are changed while their pages are read."""

import json

import pytest

from edgestead.cli import target
from edgestead.cli.target import READS_MAX, ListChanged, pages, whole_list

ROWS = list(range(5))


class Server:
    """Pages of two of its rows; what `changes` has for a request happens behind it, counted from 1."""

    def __init__(self, changes):
        self.rows = list(ROWS)
        self.changes = changes
        self.asked = 0

    def call(self, method, path, *, query):
        first = 2 * (query["page"] - 1)
        info = {"total_pages": (len(self.rows) + 1) // 2, "total_count": len(self.rows)}
        answer = {"result": self.rows[first : first + 2], "result_info": info}
        self.asked += 1
        self.changes.get(self.asked, lambda rows: None)(self.rows)
        return answer


def test_nothing_is_left_out_of_a_list_of_which_something_goes():
    server = Server({1: lambda rows: rows.remove(0)})

    assert whole_list(server, "/rows", {}) == [1, 2, 3, 4]


def test_nothing_is_in_a_list_twice_when_something_comes():
    server = Server({2: lambda rows: rows.insert(0, -1)})

    assert whole_list(server, "/rows", {}) == [-1, 0, 1, 2, 3, 4]


def test_a_list_that_never_rests_is_not_answered():
    server = Server({number: lambda rows: rows.append(0) for number in range(1, 100)})

    with pytest.raises(ListChanged, match=r"^/rows was changed while it was read\.\nRun it again\.$"):
        whole_list(server, "/rows", {})
    assert server.asked == 2 * READS_MAX


def test_a_list_that_grows_at_its_end_may_do_so():
    grown = Server({1: lambda rows: rows.append(5)})
    shrunk = Server({1: lambda rows: rows.remove(0)})

    assert list(pages(grown, "/rows", {}, grows=True)) == [0, 1, 2, 3, 4, 5]
    with pytest.raises(ListChanged):
        list(pages(shrunk, "/rows", {}, grows=True))


def test_the_audit_log_is_read_while_it_grows(edgecli, monkeypatch):
    """The oldest first, so that what is written meanwhile comes at the end."""
    edgecli("zone", "create", "lists.example")
    edgecli("zone", "delete", "lists.example", "--yes")
    monkeypatch.setattr(target, "PAGE_ITEMS", 1)

    entries = [json.loads(line) for line in edgecli("audit", "--json").out.splitlines()]

    assert len(entries) > 1
    assert [one["when"] for one in entries] == sorted(one["when"] for one in entries)
