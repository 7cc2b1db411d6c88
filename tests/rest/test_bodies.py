"""What a body may be, and how it is refused."""

import json

import pytest

from edgestead.rest.limits import BODY_BYTES_MAX, JSON_DEPTH_MAX, TWINS_BODY_BYTES_MAX
from tests.rest.conftest import WWW
from tests.support.api import CREDENTIALS

NOT_JSON = (b"", b"{", b"nonsense", b'{"type":"A",}', b'{"type":"A"} x', b'"\xff"', b'{"name":"\\ud800"}')
OTHER_TYPES = ("text/plain", "application/x-www-form-urlencoded", "application/jsonx", "json")
WRONG_SHAPES = {
    b"[]": "",
    b"null": "",
    b'{"name":5}': "/name",
    b'{"ttl":"soon"}': "/ttl",
    b'{"ttl":1.5}': "/ttl",
    b'{"proxied":"perhaps"}': "/proxied",
    b'{"data":[]}': "/data",
    b'{"tags":"a:b"}': "/tags",
    b'{"tags":["a:b",1]}': "/tags/1",
    b'{"settings":{"ipv4_only":[]}}': "/settings/ipv4_only",
}


TWINS = (
    b'{"type":"A","name":"a","content":"192.0.2.1","content":"192.0.2.2"}',
    b'{"type":"A","name":"a","content":"192.0.2.1","cont\\u0065nt":"192.0.2.1"}',
    b'{"type":"A","name":"a","content":"192.0.2.1","settings":{"ipv4_only":true,"ipv4_only":true}}',
    b'{"type":"A","name":"a","content":"192.0.2.1","unknown":[1,{"a":1,"b":2,"a":3}]}',
)


@pytest.mark.parametrize("body", TWINS)
def test_a_member_that_stands_twice_is_refused(api, records, body):
    answer = api.post(records, body)

    assert (answer.status, answer.codes) == (400, [9207])
    assert "twice" in answer.json["errors"][0]["message"]
    assert api.get(records).result == []


def test_a_long_body_is_not_searched(api, records):
    padding = b'"x":"' + b"x" * TWINS_BODY_BYTES_MAX + b'",'
    body = b"{" + padding + b'"type":"A","name":"a","content":"192.0.2.1","content":"192.0.2.2"}'

    assert api.post(records, body).result["content"] == "192.0.2.2"


def test_the_same_name_in_objects_beside_and_inside_one_another_is_no_twin(api, records):
    body = b'{"type":"A","name":"a","content":"192.0.2.1","x":[{"name":1},{"name":{"name":-1e999}}]}'

    assert api.post(records, body).status == 200


@pytest.mark.parametrize("body", NOT_JSON)
def test_what_is_not_json_is_refused(api, records, body):
    answer = api.post(records, body)

    assert (answer.status, answer.codes) == (400, [9207])


def test_zones_accounts_and_users_call_it_a_decode_failure(api, zone_id):
    zone, account = f"/zones/{zone_id}", f"/accounts/{CREDENTIALS.account_id}"
    for call in (
        ("POST", "/zones"),
        ("PATCH", zone),
        ("PUT", f"{zone}/subscription"),
        ("PATCH", f"{zone}/settings"),
        ("PATCH", f"{zone}/settings/ssl"),
        ("PUT", account),
        ("PATCH", "/user"),
    ):
        for body in (b"", b"{", b"nonsense", b"{} x"):
            answer = api.call(*call, body)
            assert (answer.status, answer.codes) == (400, [1198]), (call, body)


@pytest.mark.parametrize(("body", "pointer"), WRONG_SHAPES.items(), ids=str)
def test_a_member_of_the_wrong_shape_is_refused_and_pointed_at(api, records, body, pointer):
    answer = api.post(records, body)

    assert (answer.status, answer.codes) == (400, [9207])
    assert answer.json["errors"][0]["source"] == {"pointer": pointer}


@pytest.mark.parametrize("content_type", OTHER_TYPES)
def test_another_content_type_is_refused(api, records, content_type):
    answer = api.post(records, WWW, headers={"content-type": content_type})

    assert (answer.status, answer.codes) == (400, [9207])


@pytest.mark.parametrize("content_type", ["application/json; charset=UTF-8", "Application/JSON", ""])
def test_json_with_parameters_passes_and_so_does_none_at_all(api, records, content_type):
    assert api.post(records, WWW, headers={"content-type": content_type}).status == 200


def test_a_body_on_get_and_delete_is_ignored(api, www):
    headers = {"content-type": "text/plain"}

    assert api.call("GET", www, b"{", headers=headers).status == 200
    assert api.call("DELETE", www, b"{", headers=headers).status == 200


def test_a_body_above_the_limit_is_413_and_ends_the_connection(api, records):
    answer = api.post(records, b" " * (BODY_BYTES_MAX + 1))

    assert (answer.status, answer.codes) == (413, [1413])
    assert answer.headers["connection"] == "close"


@pytest.mark.inside("on a connection what comes behind the announced length is another request")
def test_a_body_that_grows_above_the_limit_without_announcing_it_is_413(api, records):
    answer = api.post(records, b" " * (BODY_BYTES_MAX + 1), headers={"content-length": "10"})

    assert answer.status == 413


@pytest.mark.inside("`http1` refuses it first")
def test_a_length_of_many_digits_is_413(api, records):
    assert api.post(records, b"{}", headers={"content-length": "9" * 30}).status == 413


def test_a_body_at_the_limit_is_read(api, records):
    body = b'{"type":"A","name":"www","content":"192.0.2.1"'
    body += b" " * (BODY_BYTES_MAX - len(body) - 1) + b"}"

    assert api.post(records, body).status == 200


@pytest.mark.parametrize(
    ("levels", "status"), [(JSON_DEPTH_MAX - 1, 200), (JSON_DEPTH_MAX, 400), (100_000, 400)]
)
def test_nesting_has_a_limit(api, records, levels, status):
    deep = b"[" * levels + b"]" * levels
    body = b'{"type":"A","name":"www","content":"192.0.2.1","unknown":' + deep + b"}"

    answer = api.post(records, body)

    assert answer.status == status
    assert answer.codes == ([] if status == 200 else [9207])


def test_brackets_inside_of_strings_do_not_nest(api, records):
    comment = '[{"\\' * 25

    assert api.post(records, {**WWW, "comment": comment}).result["comment"] == comment


def test_unknown_members_are_ignored_and_null_means_not_sent(api, records):
    sent = {**WWW, "zone_id": 1, "locked": "x", "nonsense": {}, "proxied": None, "data": None, "tags": None}

    result = api.post(records, sent).result

    assert (result["proxied"], result["tags"], result["ttl"]) == (False, [], 3600)
    assert "nonsense" not in result


def test_numbers_and_truth_values_may_be_text(api, records):
    sent = {**WWW, "ttl": "120", "proxied": "false", "priority": "0"}
    srv = {"priority": "1", "weight": "2", "port": "37", "target": "a.example.net"}

    assert api.post(records, sent).result["ttl"] == 120
    made = api.post(records, {"type": "SRV", "name": "_sip._tcp", "data": srv}).result
    assert made["data"]["port"] == 37


def test_the_member_that_stands_twice_is_found_in_one_pass(api, records):
    """Counted, not timed: each name is compared with a set, however far its twin is."""
    members = {f"m{number}": 1 for number in range(5_000)}
    body = json.dumps(members)[:-1].encode() + b', "m4999": 2}'

    answer = api.post(records, body)

    assert (answer.status, answer.codes) == (400, [9207])
    assert "m4999" in answer.json["errors"][0]["message"]
