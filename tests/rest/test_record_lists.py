"""Records of a zone: found, ordered, paged, counted; and never an old page after a change."""

import itertools

import pytest

from edgestead.tables import record_lists
from tests.rest.conftest import WWW
from tests.rest.tokens import RESTRICTED, policy, put_token, zone

SAMPLES = (
    {"type": "TXT", "name": "b", "content": '"Hello  World"'},
    {"type": "A", "name": "b", "content": "192.0.2.2", "ttl": 60},
    {"type": "A", "name": "a", "content": "192.0.2.9", "ttl": 300},
    {"type": "A", "name": "a", "content": "192.0.2.1", "proxied": True},
    {"type": "CNAME", "name": "c", "content": "Target.example.net"},
    {"type": "TXT", "name": "@", "content": "v=spf1 -all"},
)
# Positions in SAMPLES, in the order of the answer.
DEFAULT = [3, 2, 1, 4, 0, 5]
QUERIES = {
    "": DEFAULT,
    "order=type": DEFAULT,
    "order=type&direction=desc": DEFAULT[::-1],
    "order=name": [3, 2, 1, 0, 4, 5],
    "order=name&direction=desc": [5, 4, 0, 1, 2, 3],
    "order=ttl": [3, 4, 0, 5, 1, 2],
    "order=content": [3, 1, 2, 0, 4, 5],
    "order=proxied&direction=desc": [3, 5, 0, 4, 1, 2],
    "type=A": [3, 2, 1],
    "type=a": [3, 2, 1],
    "type=MX": [],
    "name=a.example.com": [3, 2],
    "name=A.EXAMPLE.COM.": [3, 2],
    "name.exact=b.example.com": [1, 0],
    "name=@": [5],
    "name=a": [3, 2],
    "name=nothing.example.com": [],
    "name=a..b": [],
    "content=192.0.2.9": [2],
    "content.exact=target.EXAMPLE.net": [4],
    "content=hello%20world": [0],
    "content=%22HELLO%20%20world%22": [0],
    "content=v%3Dspf1+-all": [5],
    "content=hello": [],
    "proxied=true": [3],
    "proxied=false": [2, 1, 4, 0, 5],
    "type=A&name=a.example.com&content=192.0.2.1": [3],
    "type=TXT&name=a.example.com": [],
    "type=&name=&content=": DEFAULT,
    "match=all&unknown=1": DEFAULT,
}


@pytest.fixture
def made(api, records):
    return [api.post(records, {"name": "x", **sample}).result for sample in SAMPLES]


@pytest.mark.parametrize(("query", "expected"), QUERIES.items(), ids=QUERIES)
def test_records_are_found_and_ordered(api, records, made, query, expected):
    for _ in range(2):  # read, and from the kept page
        answer = api.get(f"{records}?{query}").json
        assert [made.index(record) for record in answer["result"]] == expected
        assert answer["result_info"]["total_count"] == len(expected)


@pytest.mark.parametrize("order", ["type", "name", "content", "ttl", "proxied"])
@pytest.mark.parametrize("direction", ["asc", "desc"])
def test_pages_of_any_order_join_without_gap_or_repetition(api, records, made, order, direction):
    query = f"order={order}&direction={direction}&per_page=2"

    pages = [api.get(f"{records}?{query}&page={page}").result for page in (1, 2, 3)]

    assert list(itertools.chain(*pages)) == api.get(f"{records}?order={order}&direction={direction}").result


def test_a_flag_that_is_none_is_refused(api, records):
    assert api.get(f"{records}?proxied=perhaps").codes == [1001]


@pytest.mark.parametrize("query", ["", "?type=A", "?name=www.example.com", "?per_page=1000"])
def test_a_list_shows_every_change_at_once(api, records, query):
    def listed():
        return api.get(f"{records}{query}").result

    assert listed() == []
    made = api.post(records, WWW).result
    assert listed() == [made]
    commented = api.patch(f"{records}/{made['id']}", {"comment": "DNS does not see this"}).result
    assert listed() == [commented]
    changed = api.patch(f"{records}/{made['id']}", {"content": "192.0.2.7"}).result
    assert listed() == [changed]
    api.delete(f"{records}/{made['id']}")
    assert listed() == []


def test_zones_do_not_share_pages(api, records, www):
    other = api.post("/zones", {"name": "other.test"}).result["id"]

    assert len(api.get(records).result) == 1
    assert api.get(f"/zones/{other}/dns_records").result == []


def test_a_kept_page_is_only_for_those_who_may_read_it(api, zone_id, records, www):
    other = api.post("/zones", {"name": "other.test"}).result["id"]
    put_token(api, policy("DNS Read", resources=zone(other)))

    for _ in range(2):
        assert len(api.get(records).result) == 1
        assert api.get(records, auth=RESTRICTED).codes == [10000]
    assert api.get(f"/zones/{other}/dns_records", auth=RESTRICTED).result == []


def test_a_kept_page_goes_with_its_zone(api, zone_id, records, www):
    assert len(api.get(records).result) == 1
    api.delete(f"/zones/{zone_id}")

    assert api.get(records).codes == [1001]


def test_a_kept_page_is_not_read_again_until_something_is_written(api, records, www, monkeypatch):
    first = api.get(records).body
    monkeypatch.setattr(record_lists, "bodies", lambda *_: pytest.fail("it was read again"))

    assert api.get(records).body == first
    api.post("/zones", {"name": "other.test"})  # another zone's version is not this one's
    assert api.get(records).body == first


def test_a_long_query_is_answered_and_not_kept(api, records, www):
    query = "&".join(f"x{number}={'y' * 20}" for number in range(40))

    for name, count in (("www.example.com", 1), ("not.example.com", 0)):
        assert len(api.get(f"{records}?{query}&name={name}").result) == count
