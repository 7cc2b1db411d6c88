"""Every filter of the list of records, alone and together, against what it says in words."""

import pytest

from edgestead.tables import record_lists
from edgestead.tables.record_lists import TESTS, Condition, Filter
from tests.support.portable import to_postgres

SAMPLES = {
    "a": {"type": "A", "name": "www", "content": "192.0.2.1", "comment": "Main  site", "tags": ["team:Web"]},
    "b": {"type": "A", "name": "web", "content": "192.0.2.17", "proxied": True, "tags": ["prod"]},
    "c": {"type": "TXT", "name": "www.eu", "content": '"Hello  World" " again"', "comment": "main text"},
    "d": {"type": "CNAME", "name": "_acme.www", "content": "acme.example.net", "tags": ["team:dns", "prod:"]},
    "e": {"type": "MX", "name": "@", "content": "mail.example.net", "priority": 1, "comment": "ÜBER"},
    "f": {"type": "A", "name": "bücher", "content": "192.0.2.99", "tags": ["team:web-eu", "Prod:yes"]},
    "g": {"type": "TXT", "name": "long", "content": "y" * 60 + "abcdefgh"},
}
# query: the samples that it finds
FILTERS = {
    "name.exact=WWW.example.com": "a",
    "name.exact=@": "e",
    "name=bücher": "f",
    "name.contains=WWW": "acd",
    "name.contains=www.e": "acd",
    "name.contains=b%C3%BCcher": "f",
    "name.contains=nothing": "",
    "name.startswith=w": "abc",
    "name.startswith=www.": "ac",
    "name.startswith=_ACME": "d",
    "name.endswith=www.example.com": "ad",
    "name.endswith=.www.example.com.": "d",
    "name.endswith=and.much.longer.than.every.name.of.the.zone.example.com": "",
    "content.exact=192.0.2.1": "a",
    "content.exact=hello+world+again": "c",
    "content.exact=%22hello+world%22+%22+again%22": "c",
    "content.contains=192.0.2": "abf",
    "content.contains=EXAMPLE.net": "de",
    "content.contains=world again": "c",
    "content.startswith=192.0.2.1": "ab",
    "content.startswith=hello": "c",
    "content.startswith=" + "y" * 60 + "abcde": "g",
    "content.startswith=" + "y" * 60 + "abd": "",
    "content.exact=" + "y" * 60 + "abcdefgh": "g",
    "content.exact=" + "y" * 60 + "abcd": "",
    "content.endswith=example.net": "de",
    "content.endswith=7": "b",
    "comment=main+site": "a",
    "comment.exact=MAIN site": "a",
    "comment.contains=%C3%BCb": "e",
    "comment.contains=ain": "ac",
    "comment.startswith=main": "ac",
    "comment.endswith=text": "c",
    "proxied=": "abcdefg",
    "name=&type=&search=&tag=&content.contains=&match=&order=&direction=&per_page=&page=": "abcdefg",
    "comment.present": "ace",
    "comment.present=false": "ace",
    "comment.absent": "bdfg",
    "comment.absent=&comment.present=": "",
    "tag=team:web": "a",
    "tag=TEAM": "adf",
    "tag=prod": "bdf",
    "tag=prod:": "bd",
    "tag.exact=team:WEB": "a",
    "tag.exact=prod": "bd",
    "tag.present=team": "adf",
    "tag.absent=team": "bceg",
    "tag.contains=team:eb": "af",
    "tag.contains=team": "adf",
    "tag.startswith=team:web": "af",
    "tag.endswith=team:eu": "f",
    "tag.endswith=team:s": "d",
    "tag=team&tag=prod": "df",
    "tag=team&tag.absent=prod": "a",
    "tag=team:web&tag=team:dns": "",
    "tag=team:web&tag=team:dns&tag_match=any": "ad",
    "tag=team:web&tag=team:dns&tag-match=any": "ad",
    "tag=team:web&tag.absent=prod&tag_match=any": "aceg",
    "tag=": "abcdefg",
    "type=A&proxied=false": "af",
    "type=A,TXT": "",
    "name=contains:www": "",
    "type=TXT&comment.contains=main": "c",
    "match=any&type=TXT&comment.contains=main": "acg",
    "match=any&name.exact=@&content.exact=192.0.2.1": "ae",
    "match=any&name.exact=@&content.contains=world": "ce",
    "match=any&type=MX": "e",
    "match=any": "abcdefg",
    "match=any&type=MX&tag=team:web&tag=prod": "e",
    "match=any&type=MX&tag=team&tag=prod": "def",
    "match=any&type=MX&tag=team:web&tag=prod&tag_match=any": "abdef",
    "match=any&name.exact=@&tag=team:web&tag=prod&tag_match=any": "abdef",
    "match=any&tag=team:web&tag=prod&tag_match=any": "abdf",
    "match=any&tag=team&tag=prod": "df",
    "search=acme": "d",
    "search=MAIN": "ac",
    "search=mail.example": "e",
    "search=team:web": "af",
    "search=example.com": "abcdefg",
    "search=192.0.2&type=A&name.startswith=w": "ab",
    "match=any&type=MX&comment.present&search=main": "ac",
    "name.startswith=w&content.startswith=192.0.2.1&tag=team&comment.present": "a",
    "content.exact=192.0.2.1&name.exact=www&type=A&per_page=1": "a",
    "include_shadow_metadata=true&shadowed_by_name=x": "abcdefg",
}
# What is found by an index, however large the zone is.
LED = (
    "name.exact",
    "name.startswith",
    "content.exact",
    "content.startswith",
    "comment.exact",
    "comment.startswith",
    "comment.contains",
    "comment.endswith",
    "tag.exact",
    "tag.startswith",
    "tag.contains",
    "tag.endswith",
    "tag.present",
)
REFUSED = ("match=some", "tag_match=none", "tag-match=none", "proxied=1", "order=id")


@pytest.fixture
def made(api, records):
    return {key: api.post(records, sample).result["id"] for key, sample in SAMPLES.items()}


def test_each_filter_finds_what_it_says(api, records, made):
    keys = {record_id: key for key, record_id in made.items()}

    for query, expected in FILTERS.items():
        for _ in range(2):  # read, and kept
            answer = api.get(f"{records}?{query.replace('ü', '%C3%BC').replace(' ', '%20')}").json
            found = "".join(sorted(keys[record["id"]] for record in answer["result"]))
            assert (query, found) == (query, expected)
            assert answer["result_info"]["total_count"] == len(expected), query


@pytest.mark.parametrize("query", REFUSED)
def test_what_a_parameter_cannot_say_is_refused(api, records, query):
    assert api.get(f"{records}?{query}").codes == [1001]


def test_filters_follow_every_change_of_comment_and_tags(api, records, made):
    path = f"{records}/{made['a']}"

    def found(query):
        return [record["id"] for record in api.get(f"{records}?{query}").result]

    api.patch(path, {"comment": "other", "tags": ["new:x", "NEW:X"]})
    assert found("comment=main+site") == found("tag=team:web") == []
    assert found("comment=other") == found("tag=new:x") == [made["a"]]
    api.patch(path, {"ttl": 60})
    assert found("comment=other") == found("tag=new:x") == [made["a"]]
    api.delete(path)
    assert found("comment=other") == found("tag=new:x") == []
    notes = "select name from record_notes where record_id = ?"
    assert api.store.read(lambda reader: reader.rows(notes, (made["a"],))) == []


def test_a_filter_stays_in_its_zone(api, records, made):
    other = api.post("/zones", {"name": "other.test"}).result["id"]

    for query in FILTERS:
        path = f"/zones/{other}/dns_records?{query.replace('ü', '%C3%BC').replace(' ', '%20')}"
        assert api.get(path).result == []


@pytest.mark.parametrize("key", LED)
def test_a_lead_reads_no_more_than_what_it_finds(api, key):
    """By the planner's own words: every step is a search, and none walks all rows of a zone."""
    condition = Condition(key, "x", "n")
    wanted = Filter(tags=(condition,)) if key.startswith("tag.") else Filter((condition,))
    where = record_lists._where(record_lists._shape(wanted)).sql
    sql = record_lists._page(where, record_lists.ORDERS["type"][0])

    marks = (None,) * to_postgres(sql).count("$")
    plan = [row[3] for row in api.store.read(lambda reader: reader.rows(f"explain query plan {sql}", marks))]

    assert not [step for step in plan if step.startswith("SCAN ") or step.endswith("(zone_id=?)")], plan


def test_without_a_lead_the_zone_is_walked(api):
    """The check above can see the difference."""
    sql = record_lists._page(TESTS["name.contains"].format(value="?"), "type")

    plan = [
        row[3] for row in api.store.read(lambda reader: reader.rows(f"explain query plan {sql}", (1,) * 3))
    ]

    assert any(step.startswith("SCAN records") for step in plan)
