"""Whatever records a zone has: another reader reads its file, and imported again it is the zone."""

from pathlib import Path
from tempfile import TemporaryDirectory

import dns.zonefile
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgestead.model.call import Profile
from edgestead.model.records import TYPES
from tests.model.samples import GOOD
from tests.rest.test_zone_files import form
from tests.support.api import LocalApi

SAMPLES = [row for row in GOOD if row.type not in ("SOA", "DNSKEY", "DS")]
CHOSEN = ("name", "type", "priority", "ttl", "proxied", "settings", "comment", "tags")

graphic = st.text(st.characters(exclude_categories=["C", "Z"], include_characters=" "), max_size=30)
comments = (
    st.none() | graphic.map(str.strip) | st.sampled_from(["cf_tags=", "a edge_tags=b", "; x", '"', "("])
)
tag_values = st.text(st.characters(exclude_categories=["C", "Z"], include_characters=' ,":=\\'), max_size=20)
tags = st.lists(
    st.sampled_from(["a", "B-1", "c_d"])
    | st.builds("{}:{}".format, st.sampled_from(["owner", "x"]), tag_values),
    max_size=4,
)
owners = st.sampled_from(["@", "www", "*", "_443._tcp", "a.b.c", "xn--mnchen-3ya", "*.deep"])


@st.composite
def bodies(draw):
    row = draw(st.sampled_from(SAMPLES))
    body = {
        "type": row.type,
        "name": draw(owners),
        "ttl": draw(st.sampled_from([1, 60, 300, 86_400])),
        "comment": draw(comments),
        "tags": draw(tags),
        **row.body,
    }
    if TYPES[row.type].proxiable:
        body["proxied"] = draw(st.booleans())
    return body


@pytest.fixture(scope="module")
def api():
    """One API for all examples; each has its own zone."""
    with TemporaryDirectory() as folder:
        made = LocalApi(Path(folder), profile=Profile.CLIENTS)
        yield made
        made.close()


def stored(api, records):
    found = ({key: record.get(key) for key in CHOSEN} for record in api.get(records).result)
    return sorted(map(repr, found))


def contents(file):
    """The lines of a file behind when it was made and its SOA. Contents are there as DNS has them: a field
    that has several spellings comes back in its usual one.
    """
    return sorted(file.decode().splitlines()[3:])


def at_apex(body):
    return body["type"] == "NS" and body["name"] == "@"


@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(made=st.lists(bodies(), max_size=12))
def test_a_zone_survives_its_file(api, made):
    zone_id = api.post("/zones", {"name": "example.com"}).result["id"]
    records = f"/zones/{zone_id}/dns_records"
    try:
        for body in made:
            if not at_apex(body):  # the apex has the server's own
                api.post(records, body)  # whatever breaks a rule is not there
        before, file = stored(api, records), api.get(f"{records}/export").body
        # Line by line: it refuses what may stand beside a CNAME here.
        theirs = [dns.zonefile.read_rrsets(line, rdclass=None) for line in contents(file)]
        api.post(f"/zones/{zone_id}/history/0/restore", {})
        assert stored(api, records) == []

        sent, headers = form(file=file)
        answer = api.post(f"{records}/import", sent, headers=headers).result

        assert stored(api, records) == before
        assert contents(api.get(f"{records}/export").body) == contents(file)
        assert answer == {"recs_added": len(before), "total_records_parsed": len(before)}
        assert len(theirs) == len(before) + 2  # the server's own NS
    finally:
        api.delete(f"/zones/{zone_id}")


noise = st.text(max_size=200) | st.lists(
    st.sampled_from(
        ["$ORIGIN ", "$TTL ", "$GENERATE ", "$INCLUDE ", "1-3", "${1,2,x}", "$", "\n", " ", "\t", '"',
         "(", ")", ";", "\\", "A", "TXT", "MX", "IN", "60", "192.0.2.1", "@", "a.", "\\#", "4",
         "edge_tags=", ":", ","]
    ),
    max_size=60,
).map("".join)  # fmt: skip


@settings(
    max_examples=80,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(file=noise | st.binary(max_size=60))
def test_any_file_is_imported_or_refused_with_its_line(api, file):
    zone_id = api.post("/zones", {"name": "example.com"}).result["id"]
    try:
        octets = file if isinstance(file, bytes) else file.encode("utf-8", "surrogatepass")
        sent, headers = form(file=octets)
        answer = api.post(f"/zones/{zone_id}/dns_records/import", sent, headers=headers)

        assert answer.status in (200, 400)
        count = api.get(f"/zones/{zone_id}/dns_records").json["result_info"]["total_count"]
        if answer.status == 200:
            assert count == answer.result["recs_added"]
        else:
            assert count == 0
            assert all(error["message"].startswith("Line ") for error in answer.json["errors"])
    finally:
        api.delete(f"/zones/{zone_id}")
