"""Any body, path, query and header: an answer in the envelope, never a 5xx, and the zone stays whole."""

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgestead.model import names
from edgestead.model.records import TYPES
from tests.support.api import BEARER, LocalApi

FIELDS = ("flags", "tag", "value", "priority", "weight", "port", "target", "service", "usage", "selector")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
LABEL = st.text("abcXYZ019-_*.\\é ", max_size=8)
CONTENT = st.one_of(
    st.text(max_size=40),
    st.ip_addresses().map(str),
    st.sampled_from(("a.example.net", ".", '"a" "b"', '"', "\\", "1 2 3 a.b", "0 issue x", "\x00", "")),
    st.text('0123456789abcdef. "\\', max_size=60),
)
DATA = st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=6), JSON | CONTENT, max_size=6)
BODY = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(sorted(TYPES)) | JSON,
        "name": LABEL | st.sampled_from(("@", "_a._tcp", "*", "www")) | JSON,
        "content": CONTENT | JSON,
        "data": DATA | JSON,
        "ttl": st.sampled_from((1, 60, 86_400, 59, "120")) | JSON,
        "proxied": st.booleans() | JSON,
        "priority": st.integers(-1, 70_000) | JSON,
        "comment": st.text(max_size=20) | JSON,
        "tags": st.lists(st.text("ab:-_ \n", max_size=6), max_size=3) | JSON,
        "settings": DATA | JSON,
        "unknown": JSON,
    },
)
MANY = settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture(scope="module")
def world():
    """One API for all examples: what one leaves behind, the next one meets."""
    with tempfile.TemporaryDirectory() as folder:
        api = LocalApi(Path(folder))
        zone_id = api.post("/zones", {"name": "example.com"}).result["id"]
        yield api, f"/zones/{zone_id}/dns_records"
        api.close()


def check(answer):
    assert answer.status < 500, answer.body
    envelope = answer.json
    assert set(envelope) - {"result_info"} == {"result", "success", "errors", "messages"}
    assert envelope["success"] is (answer.status == 200)
    assert bool(envelope["errors"]) is not envelope["success"]
    assert envelope["success"] or envelope["result"] is None
    assert all(isinstance(error["code"], int) and error["message"] for error in envelope["errors"])


@MANY
@given(body=BODY)
def test_any_record_body_is_answered_and_what_is_made_can_be_read(world, body):
    api, records = world

    answer = api.post(records, body)

    check(answer)
    if answer.status == 200:
        made = answer.result
        assert api.get(f"{records}/{made['id']}").result == made
        assert made in api.get(f"{records}?name={_quoted(made['name'])}&per_page=1000").result


@MANY
@given(body=BODY, method=st.sampled_from(("PATCH", "PUT")))
def test_any_change_is_made_whole_or_not_at_all(world, body, method):
    api, records = world
    listed = api.get(f"{records}?per_page=1").result
    if not listed:
        listed = [api.post(records, {"type": "A", "name": "www", "content": "192.0.2.1"}).result]
    before = listed[0]

    answer = api.call(method, f"{records}/{before['id']}", body)

    check(answer)
    after = api.get(f"{records}/{before['id']}").result
    assert after == (answer.result if answer.status == 200 else before)


@MANY
@given(octets=st.binary(max_size=60) | BODY.map(lambda body: json.dumps(body).encode()[:-1]))
def test_any_bytes_as_a_body_are_answered(world, octets):
    api, records = world
    check(api.post(records, octets or b"{"))


@MANY
@given(
    path=st.lists(st.text("az09/%-_.{}~é ", max_size=12).map(lambda part: _quoted(part)), max_size=5),
    query=st.text("abc=&%+[]<>01.page_name\x00é", max_size=30),
)
def test_any_path_and_query_are_answered(world, path, query):
    api, records = world
    for target in ("/" + "/".join(path), "/zones", records):
        check(api.get(f"{target}?{query.encode('ascii', 'replace').decode().replace(chr(0), '%00')}"))


@MANY
@given(
    headers=st.dictionaries(
        st.sampled_from(("authorization", "x-auth-email", "x-auth-key")), st.text("aB @:\x7fé0", max_size=40)
    )
)
def test_any_credentials_are_answered(world, headers):
    api, _ = world
    answer = api.get(
        "/zones", auth={name: value.encode("latin-1").decode("latin-1") for name, value in headers.items()}
    )
    check(answer)
    assert answer.status in (400, 403)


def test_after_all_of_it_every_name_still_parses(world):
    api, records = world
    for record in api.get(f"{records}?per_page=5000", auth=BEARER).result:
        names.wire_from_text(record["name"])
        assert record["name"].endswith("example.com")


def _quoted(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="")
