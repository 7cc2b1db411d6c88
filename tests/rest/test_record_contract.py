"""Rows of the contract on DNS records that no other module here has."""

import pytest

from tests.rest.conftest import WWW
from tests.rest.test_records import TYPES

META = {"auto_added": False, "managed_by_apps": False, "managed_by_edge_tunnel": False, "source": "primary"}
SRV = {"priority": 10, "weight": 5, "port": 5223, "target": "server.example.com"}
# Content alone, with the top-level priority that is sent beside it.
SRV_CONTENTS = (
    ("5 5223 server.example.com", {"priority": 10}),
    ("5 5223 server.example.com.", {"priority": "10"}),
    ("10 5 5223 server.example.com", {}),
    ("10 5 5223 server.example.com", {"priority": 99}),
    ("10   5\t5223 Server.Example.com.", {}),
    ("10 5 5223 server.example.com", {"data": None}),
)
NO_SRV_CONTENTS = (
    ("5 5223 server.example.com", {}, 9101),
    ("5223 server.example.com", {"priority": 10}, 9007),
    ("1 10 5 5223 server.example.com", {}, 9007),
    ("5 70000 server.example.com", {"priority": 10}, 9007),
)
AS_TEXT = {
    "SRV": ("_a._tcp", {"priority": "10", "weight": "5", "port": "5223", "target": "a.example.net"}),
    "CAA": ("a", {"flags": "0", "tag": "issue", "value": "ca.example"}),
    "TLSA": ("a", {"usage": "3", "selector": "1", "matching_type": "1", "certificate": "ab" * 32}),
}
PLAN_LIMITS = {"free": (100, 60), "pro": (500, 60), "business": (500, 60), "enterprise": (500, 30)}


@pytest.fixture
def on_plan(api, zone_id):
    def move(plan):
        api.store.write(lambda tx: tx.run("update zones set plan = ? where id = ?", (plan, zone_id))).result(
            10
        )

    return move


@pytest.mark.parametrize(("content", "beside"), SRV_CONTENTS)
def test_srv_content_alone_is_read_as_three_or_four_fields(api, records, content, beside):
    made = api.post(records, {"type": "SRV", "name": "_a._tcp", "content": content, **beside}).result

    assert {key: made["data"][key] for key in SRV} == SRV
    assert (made["content"], made["priority"]) == ("5 5223 server.example.com", 10)


@pytest.mark.parametrize(("content", "beside", "code"), NO_SRV_CONTENTS)
def test_other_srv_content_is_refused(api, records, content, beside, code):
    answer = api.post(records, {"type": "SRV", "name": "_a._tcp", "content": content, **beside})

    assert (answer.status, answer.causes) == (400, [code])


@pytest.mark.parametrize(("type_", "sample"), AS_TEXT.items())
def test_numbers_in_data_may_be_text(api, records, type_, sample):
    name, data = sample

    made = api.post(records, {"type": type_, "name": name, "data": data}).result

    numbers = [value for key, value in data.items() if value.isdigit()]
    assert all(int(value) in made["data"].values() for value in numbers)


@pytest.mark.parametrize("type_", ["A", "AAAA", "CNAME", "TXT", "NS", "PTR", "CAA", "SSHFP"])
def test_a_priority_is_ignored_where_there_is_none(api, records, type_):
    made = api.post(records, {"type": type_, "name": "a", **TYPES[type_][0], "priority": 0}).result

    assert "priority" not in made


@pytest.mark.parametrize("type_", TYPES)
def test_meta_always_has_its_four_members(api, records, type_):
    made = api.post(records, {"type": type_, "name": "_a._tcp", **TYPES[type_][0], "meta": {"x": 1}}).result
    path = f"{records}/{made['id']}"

    for record in (
        made,
        api.get(path).result,
        api.get(records).result[0],
        api.patch(path, {"ttl": 60}).result,
    ):
        assert record["meta"] == META


def test_a_null_mx_has_the_root_and_priority_0(api, records):
    made = api.post(records, {"type": "MX", "name": "@", "content": ".", "priority": 0}).result

    assert (made["content"], made["priority"]) == (".", 0)


@pytest.mark.parametrize(("plan", "limits"), PLAN_LIMITS.items(), ids=PLAN_LIMITS)
def test_the_plan_decides_the_length_of_a_comment_and_the_lowest_ttl(api, records, on_plan, plan, limits):
    comment_max, ttl_min = limits
    on_plan(plan)

    made = api.post(records, {**WWW, "comment": "ü" * comment_max, "ttl": ttl_min}).result
    path = f"{records}/{made['id']}"

    assert (len(made["comment"]), made["ttl"]) == (comment_max, ttl_min)
    assert api.patch(path, {"comment": "x" * (comment_max + 1)}).codes == [9301]
    assert api.patch(path, {"ttl": ttl_min - 1}).codes == [9021]
    assert api.get(path).result == made


def test_a_comment_of_a_larger_plan_stays_on_a_smaller_one(api, records, on_plan):
    on_plan("pro")
    path = f"{records}/{api.post(records, {**WWW, 'comment': 'x' * 300}).result['id']}"
    on_plan("free")

    assert len(api.patch(path, {"ttl": 60}).result["comment"]) == 300
    assert api.patch(path, {"comment": "y" * 300}).codes == [9301]


@pytest.mark.parametrize("plan", PLAN_LIMITS)
def test_every_plan_has_twenty_tags(api, records, on_plan, plan):
    on_plan(plan)
    tags = [f"tag-{number}:x" for number in range(20)]

    made = api.post(records, {**WWW, "tags": tags}).result

    assert made["tags"] == tags
    assert api.patch(f"{records}/{made['id']}", {"tags": [*tags, "more"]}).codes == [9300]


def test_tags_that_are_sent_take_the_place_of_all_and_empty_ones_clear(api, records):
    path = f"{records}/{api.post(records, {**WWW, 'comment': 'x', 'tags': ['a:b', 'c']}).result['id']}"

    assert api.patch(path, {"tags": ["new"]}).result["tags"] == ["new"]
    assert api.patch(path, {"tags": []}).result["tags"] == []
    assert api.patch(path, {"comment": ""}).result["comment"] is None


def test_a_zone_may_lack_addresses(api, records):
    assert api.post(records, {"type": "TXT", "name": "@", "content": "only text"}).status == 200


def test_a_proxied_alias_needs_no_address_behind_it(api, records):
    body = {"type": "CNAME", "name": "a", "content": "nothing.example.com", "proxied": True}

    assert api.post(records, body).result["proxied"] is True


def test_an_old_filter_form_is_taken_literally(api, records):
    api.post(records, WWW)

    assert api.get(f"{records}?content=contains:192").result == []
