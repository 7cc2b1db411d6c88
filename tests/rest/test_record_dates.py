"""What older dates answered and took: the dated rows of DNS records, on both sides of each day."""

from datetime import date, timedelta

import pytest

from edgestead.changes import CHANGES
from tests.rest.conftest import WWW
from tests.support.api import LocalApi

DAYS = {change.subject: change.day for change in CHANGES}
SRV = {"priority": 1, "weight": 2, "port": 3, "target": "a.example.net"}
SHOWN = {"port": 3, "priority": 1, "target": "a.example.net", "weight": 2}
LEGACY = {"service": "_sip", "proto": "_tcp", "name": "example.com"}
# What a record's own top-level name was besides, the members, and the name that came of both.
COMPOSED = (
    (None, {**LEGACY}, "_sip._tcp.example.com"),
    (None, {**LEGACY, "name": "@"}, "_sip._tcp.example.com"),
    (None, {**LEGACY, "name": "sub"}, "_sip._tcp.sub.example.com"),
    (None, {**LEGACY, "name": "Sub.Example.com."}, "_sip._tcp.sub.example.com"),
    (None, {"service": "_sip", "proto": "_tcp"}, "_sip._tcp.example.com"),
    ("ignored", {**LEGACY, "name": "sub"}, "_sip._tcp.sub.example.com"),
    ("sub", {"service": "_sip", "proto": "_tcp"}, "_sip._tcp.sub.example.com"),
    ("_old._udp.sub", {"service": "_sip", "proto": "_tcp"}, "_sip._tcp.sub.example.com"),
    ("_old._udp.sub.example.com", {"proto": "_tcp"}, "_old._tcp.sub.example.com"),
    ("_old._udp", {"name": "sub"}, "_old._udp.sub.example.com"),
    ("_sip._tcp.sub", {}, "_sip._tcp.sub.example.com"),
)
NOT_COMPOSED = (
    (None, {"service": "_sip"}, 9101),
    ("plain", {"proto": "_tcp"}, 9101),
    (None, {**LEGACY, "service": 5}, 9102),
    (None, {**LEGACY, "service": "sip"}, 9000),
    (None, {**LEGACY, "name": "a..b"}, 9000),
    (None, {}, 9000),
)


@pytest.fixture(params=["record-zone-fields", "record-locked", "srv-data-members", "dns-error-chain"])
def subject(request):
    return request.param


@pytest.fixture
def as_of(request):
    """Tests here say their own dates, by header."""
    return None


@pytest.fixture
def api(tmp_path):
    made = LocalApi(tmp_path, allow_as_of=True)
    yield made
    made.close()


def at(subject, days=0):
    return {"edge-as-of": str(DAYS[subject] + timedelta(days))}


BEFORE, SINCE = -1, 0


def everywhere(api, records, made, headers):
    """The record as each route of the five answers it."""
    path = f"{records}/{made['id']}"
    return [
        api.get(path, headers=headers).result,
        api.get(records, headers=headers).result[0],
        api.get(f"{records}?name={made['name']}", headers=headers).result[0],
        api.patch(path, {}, headers=headers).result,
        api.patch(path, {"comment": "x"}, headers=headers).result,
        api.put(
            path, {**WWW, "type": made["type"], "name": made["name"], **sent(made)}, headers=headers
        ).result,
    ]


def sent(made):
    return {"data": SRV} if made["type"] == "SRV" else {}


def test_zone_id_and_zone_name_stood_behind_the_id(api, records, zone_id):
    made = api.post(records, WWW, headers=at("record-zone-fields", BEFORE)).result

    for record in (made, *everywhere(api, records, made, at("record-zone-fields", BEFORE))):
        assert list(record)[:4] == ["id", "zone_id", "zone_name", "name"]
        assert (record["zone_id"], record["zone_name"]) == (zone_id, "example.com")
        assert "locked" not in record
    for record in everywhere(api, records, made, at("record-zone-fields", SINCE)):
        assert not {"zone_id", "zone_name", "locked"} & set(record)


def test_locked_was_always_false(api, records):
    made = api.post(records, {**WWW, "locked": True}, headers=at("record-locked", BEFORE)).result

    for record in (made, *everywhere(api, records, made, at("record-locked", BEFORE))):
        assert record["locked"] is False
        assert "zone_id" in record
        assert list(record)[list(record).index("ttl") + 1] == "locked"
    for record in everywhere(api, records, made, at("record-locked", SINCE)):
        assert "locked" not in record
        assert "zone_id" in record


def test_srv_data_told_service_proto_and_name(api, records):
    body = {"type": "SRV", "name": "_sip._tcp.sub", "data": SRV}
    made = api.post(records, body, headers=at("srv-data-members", BEFORE)).result
    members = {"service": "_sip", "proto": "_tcp", "name": "sub.example.com"}

    for record in (made, *everywhere(api, records, made, at("srv-data-members", BEFORE))):
        assert record["data"] == {**SHOWN, **members}
        assert list(record["data"]) == sorted(record["data"])
        assert record["name"] == "_sip._tcp.sub.example.com"
        assert record["locked"] is False
    for record in everywhere(api, records, made, at("srv-data-members", SINCE)):
        assert record["data"] == SHOWN


def test_a_batch_answers_in_the_shape_of_its_date(api, records):
    done = api.post(f"{records}/batch", {"posts": [WWW]}, headers=at("record-locked", BEFORE)).result

    assert (done["posts"][0]["locked"], done["posts"][0]["zone_name"]) == (False, "example.com")


@pytest.mark.parametrize(("name", "members", "full"), COMPOSED)
def test_an_srv_name_was_composed_from_the_data(api, records, name, members, full):
    body = {"type": "SRV", "name": name, "data": {**SRV, **members}}

    made = api.post(records, body, headers=at("srv-data-members", BEFORE)).result

    assert made["name"] == full
    assert api.get(f"{records}/{made['id']}").result["data"] == SHOWN


@pytest.mark.parametrize(("name", "members", "code"), NOT_COMPOSED)
def test_members_that_make_no_srv_name_are_refused(api, records, name, members, code):
    body = {"type": "SRV", "name": name, "data": {**SRV, **members}}

    answer = api.post(records, body, headers=at("srv-data-members", BEFORE))

    assert (answer.status, answer.causes) == (400, [code])


def test_members_in_a_patch_renamed_the_record_until_they_were_refused(api, records):
    made = api.post(records, {"type": "SRV", "name": "_sip._tcp.sub", "data": SRV}).result
    path = f"{records}/{made['id']}"
    body = {"data": {**SRV, "service": "_new"}}

    assert (
        api.patch(path, {"data": SRV}, headers=at("srv-data-members", BEFORE)).result["name"] == made["name"]
    )
    renamed = api.patch(path, body, headers=at("srv-data-members", BEFORE)).result
    assert renamed["name"] == "_new._tcp.sub.example.com"
    assert api.patch(path, body, headers=at("srv-data-members", SINCE)).codes == [9102]


@pytest.mark.parametrize("member", ["service", "proto", "name"])
def test_each_member_is_refused_since(api, records, member):
    body = {"type": "SRV", "name": "_sip._tcp", "data": {**SRV, member: LEGACY[member]}}

    answer = api.post(records, body)

    assert answer.codes == [9102]
    assert answer.json["errors"][0]["source"] == {"pointer": f"/data/{member}"}


def test_what_is_wrong_with_a_new_record_stood_in_a_chain(api, records):
    wrong = {**WWW, "content": "nope"}

    old = api.post(records, wrong, headers=at("dns-error-chain", BEFORE)).json
    new = api.post(records, wrong, headers=at("dns-error-chain", SINCE)).json

    (cause,) = new["errors"]
    assert (cause["code"], "error_chain" in cause) == (9005, False)
    assert old["errors"] == [{"code": 1004, "message": "DNS Validation Error", "error_chain": [cause]}]
    assert (old["success"], old["result"]) == (False, None)


def test_only_what_is_created_had_a_chain(api, records):
    before = at("dns-error-chain", BEFORE)
    made = api.post(records, WWW, headers=before).result
    path, wrong = f"{records}/{made['id']}", {**WWW, "content": "nope"}

    assert api.post(records, WWW, headers=before).codes == [81058]  # a conflict is not the record's own fault
    assert api.post(records, b"{", headers=before).codes == [9207]
    assert api.patch(path, wrong, headers=before).codes == [9005]
    assert api.put(path, wrong, headers=before).codes == [9005]
    for list_, code in (("posts", 1004), ("puts", 9005), ("patches", 9005)):
        batch = {list_: [{**wrong, "id": made["id"]}]}
        answer = api.post(f"{records}/batch", batch, headers=before)
        assert (answer.codes, answer.causes) == ([code], [9005])
        assert f"/{list_}/0/content" in answer.body.decode()


def test_members_that_left_are_ignored_in_requests_at_every_date(api, records, subject):
    strange = {"zone_id": 5, "zone_name": ["x"], "locked": "x"}

    for days in (BEFORE, SINCE):
        body = {**WWW, **strange, "name": f"n{-days}"}
        assert api.post(records, body, headers=at(subject, days)).status == 200


def test_a_day_begins_with_its_first_second(api, records):
    assert at("record-locked") == {"edge-as-of": "2024-07-14"}
    assert date(2024, 7, 14) == DAYS["record-locked"]
