"""Lists that are changed while their pages are read."""

import json

import pytest

from edgestead.cli import target
from edgestead.cli.target import READS_MAX, ListChanged, pages, whole_list

ROWS = 5


def row(number):
    return {"id": number}


def numbers(rows):
    return [one["id"] for one in rows]


class Server:
    """Pages of two of its rows; what `changes` has for a request happens behind it, counted from 1."""

    def __init__(self, changes, counts=("total_pages", "total_count")):
        self.rows = [row(number) for number in range(ROWS)]
        self.changes = changes
        self.counts = counts
        self.asked = 0

    def call(self, method, path, *, query):
        first = 2 * (query["page"] - 1)
        info = {"total_pages": (len(self.rows) + 1) // 2, "total_count": len(self.rows)}
        told = {name: info[name] for name in self.counts}
        answer = {"result": self.rows[first : first + 2], "result_info": told or None}
        self.asked += 1
        self.changes.get(self.asked, lambda rows: None)(self.rows)
        return answer


def test_nothing_is_left_out_of_a_list_of_which_something_goes():
    server = Server({1: lambda rows: rows.remove(row(0))})

    assert numbers(whole_list(server, "/rows", {})) == [1, 2, 3, 4]


def test_nothing_is_in_a_list_twice_when_something_comes():
    """Nor is anything left out that was there at the beginning; what comes may be."""
    server = Server({number: lambda rows, new=-number: rows.insert(0, row(new)) for number in (1, 2, 3)})

    assert numbers(whole_list(server, "/rows", {})) == [0, 1, 2, 3, 4]
    assert server.asked == 4


def test_a_list_that_grows_all_the_time_comes_to_an_end():
    """Half as fast as it is read."""
    server = Server({number: lambda rows: rows.append(row(len(rows))) for number in range(1, 100)})

    assert numbers(pages(server, "/rows", {})) == list(range(8))


def test_where_more_comes_than_a_page_has_the_list_is_read_again():
    server = Server({1: lambda rows: rows.__setitem__(slice(0, 0), map(row, (-3, -2, -1)))})

    assert numbers(whole_list(server, "/rows", {})) == list(range(-3, 5))


def test_a_list_of_which_something_always_goes_is_not_answered():
    server = Server({number: lambda rows: rows.pop() for number in range(1, 100)})
    server.rows = [row(number) for number in range(50)]

    with pytest.raises(ListChanged, match=r"^/rows was changed while it was read\.\nRun it again\.$"):
        whole_list(server, "/rows", {})
    assert server.asked == 2 * READS_MAX


def test_a_list_that_grows_at_its_end_may_do_so_by_more_than_a_page():
    grown = Server({1: lambda rows: rows.extend(map(row, (5, 6, 7)))})
    shrunk = Server({1: lambda rows: rows.remove(row(0))})

    assert numbers(pages(grown, "/rows", {}, grows=True)) == list(range(8))
    with pytest.raises(ListChanged):
        list(pages(shrunk, "/rows", {}, grows=True))


@pytest.mark.parametrize(
    ("counts", "found"),
    [(("total_pages",), [0, 1, 2, 3, 4]), (("total_count",), [0, 1, 2, 3, 4]), ((), [0, 1])],
)
def test_a_server_may_count_pages_or_items_or_have_one_page(counts, found):
    server = Server({}, counts)

    assert numbers(whole_list(server, "/rows", {})) == found


def test_the_audit_log_is_read_while_it_grows(edgecli, monkeypatch):
    """The oldest first, so that what is written meanwhile comes at the end."""
    edgecli("zone", "create", "lists.example")
    edgecli("zone", "delete", "lists.example", "--yes")
    monkeypatch.setattr(target, "PAGE_ITEMS", 1)

    entries = [json.loads(line) for line in edgecli("audit", "--json").out.splitlines()]

    assert len(entries) > 1
    assert [one["when"] for one in entries] == sorted(one["when"] for one in entries)
