"""Whatever JSON arrives, a refusal or rdata comes out; and rdata survives every spelling."""

import dns.rdata
import dns.rdataclass
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from edgestead.model.names import InvalidValue, absolute_text, wire_from_labels
from edgestead.model.records import TYPES, folded_content, folded_query, from_wire, parse
from edgestead.model.records.kinds import (
    Address,
    Base64,
    Choice,
    Hex,
    Host,
    Integer,
    Number,
    String,
    Tail,
    Target,
)
from edgestead.model.records.svcb import ServiceParams
from edgestead.model.records.txt import Strings
from edgestead.model.records.words import quoted, quoted_ascii, string_octets, words
from edgestead.model.refusals.record import RecordRefused

IN = dns.rdataclass.IN
type_names = st.sampled_from(sorted(TYPES))

# What callers send.

SNIPPETS = [
    "a.test", "192.0.2.1", "::1", '"', "\\", '"x"', " ", "1", " 0 ", "N", "E", "alpn=h2", "key7=", "=", "ab",
    "AQ==", "\\065", "é",
]  # fmt: skip
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.characters(categories=["Cs"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
contents = st.text() | st.lists(st.sampled_from(SNIPPETS), max_size=14).map("".join)
field_values = st.integers(0, 90) | contents | json_values

# Rdata that may exist, built from the kinds of the table.

octets = st.binary(min_size=1, max_size=60)
unicode_octets = st.text(st.characters(exclude_categories=["Cs"]), max_size=40).map(str.encode)
host_labels = st.from_regex(r"[a-z_][a-z0-9_-]{0,10}", fullmatch=True).map(str.encode)
any_labels = st.binary(min_size=1, max_size=20).filter(lambda label: not label[-1:].isdigit())
names = st.lists(host_labels | any_labels, max_size=5).map(
    lambda labels: wire_from_labels([*labels, b"test"])
)
params = st.lists(
    st.sampled_from(
        ['alpn="h3,h2"', r'alpn="a\\\\,b,c\\,d"', "port=443", "ipv4hint=192.0.2.1,192.0.2.2", "key667",
         'ipv6hint="2001:db8::1"', "ech=AATAAQAA", r'key668="a\"\255 b"', "ohttp", "key3000=é"]
    ),
    max_size=5,
    unique_by=lambda word: word.split("=")[0],
).map(" ".join)  # fmt: skip

VALUES = {
    Address: lambda kind: st.binary(min_size=kind.octets, max_size=kind.octets),
    Base64: lambda kind: octets,
    Choice: lambda kind: st.sampled_from(sorted(kind.choices.values())),
    Hex: lambda kind: octets.map(bytes.hex) | octets.map(lambda raw: raw.hex().upper()),
    Host: lambda kind: names | st.just(b"\x00"),
    Integer: lambda kind: st.integers(0, kind.maximum),
    Number: lambda kind: st.integers(int(kind.minimum / kind.step), int(kind.maximum / kind.step)).map(
        lambda steps: steps * kind.step
    ),
    ServiceParams: lambda kind: params,
    String: lambda kind: unicode_octets,
    Strings: lambda kind: st.lists(st.binary(max_size=255), min_size=1, max_size=8).map(tuple),
    Tail: lambda kind: unicode_octets.filter(bool),
    Target: lambda kind: (names | st.just(b"\x00")).map(absolute_text),
}


@st.composite
def substitutions(draw):
    """The regex of NAPTR. Of octets by chance hardly any is one, and to draw until one is fails by itself."""
    delimiter = draw(st.sampled_from("!/#"))
    pattern = draw(
        st.lists(st.sampled_from(["a", ".*", "é", r"\(", "[(]", "\\" + delimiter, "(x)"]), max_size=12)
    )
    references = [f"\\{number}" for number in range(1, min(pattern.count("(x)"), 9) + 1)]
    replacement = draw(st.lists(st.sampled_from(["sip:", "é", r"\\", *references]), max_size=8))
    flags = draw(st.sampled_from(["", "i"]))
    return delimiter.join(["", "".join(pattern), "".join(replacement), flags]).encode()


SPECIAL = {("NAPTR", "regex"): substitutions() | st.just(b"")}

# The peer wants the length that belongs to these kinds of digest; the samples have such digests.
PEER_KINDS = {"DS": "digest_type", "TLSA": "matching_type", "SMIMEA": "matching_type", "SSHFP": "type"}
# It reads decimals as floats and cuts them: 34.87 m become 3486 cm. The samples have plain numbers.
PEER_ROUNDS = {"LOC"}


@st.composite
def rdatas(draw, type_name):
    row = TYPES[type_name]
    usual = [VALUES[type(field.kind)](field.kind) for field in row.fields]
    fields = zip(row.fields, usual, strict=True)
    rdata = row.rdata(*[draw(SPECIAL.get((type_name, field.name), some)) for field, some in fields])
    try:
        rdata.check()
    except InvalidValue:
        assume(False)
    return rdata


def read(reader, *arguments, **members):
    """Rdata, or None when it was refused. Anything else that is raised is a failure."""
    try:
        return reader(*arguments, **members)
    except RecordRefused as refusal:
        assert_that_it_speaks(refusal)
        return None


def assert_that_it_speaks(refusal):
    assert len(refusal.message) > 20
    assert refusal.code in {9002, 9005, 9006, 9007, 9015, 9101, 9102}


@given(type_names, contents | json_values, json_values)
def test_any_content_is_read_or_refused(type_name, content, priority):
    rdata = read(parse, type_name, content=content, priority=priority)

    if rdata:
        assert parse(type_name, content=rdata.to_content(), priority=rdata.top_priority) == rdata
        assert from_wire(type_name, rdata.to_wire()).to_wire() == rdata.to_wire()


@given(type_names, st.data())
def test_any_data_is_read_or_refused(type_name, data):
    fields = {field.name: field_values for field in TYPES[type_name].fields}
    body = data.draw(json_values | st.fixed_dictionaries({}, optional=fields))

    rdata = read(parse, type_name, data=body, content="a.test", priority=5)

    if rdata:
        assert from_wire(type_name, rdata.to_wire()).to_wire() == rdata.to_wire()
        assert rdata.to_zone_text().isascii()


@given(json_values)
def test_any_type_is_refused_when_nothing_follows(type_name):
    assert read(parse, type_name) is None


@given(type_names, st.binary(max_size=80))
def test_any_octets_are_read_or_refused(type_name, wire):
    rdata = read(from_wire, type_name, wire)

    if rdata:
        assert from_wire(type_name, rdata.to_wire()) == rdata
        assert parse(type_name, content=rdata.to_content(), priority=rdata.top_priority) == rdata


@pytest.mark.parametrize("type_name", sorted(TYPES))
@given(data=st.data())
def test_rdata_survives_every_spelling(type_name, data):
    rdata = data.draw(rdatas(type_name))

    assert parse(type_name, content=rdata.to_content(), priority=rdata.top_priority) == rdata
    assert from_wire(type_name, rdata.to_wire()).to_wire() == rdata.to_wire()
    if rdata.to_data():
        assert parse(type_name, data=rdata.to_data(), priority=rdata.top_priority) == rdata


@pytest.mark.parametrize("type_name", sorted(TYPES))
@given(data=st.data())
def test_dnspython_reads_and_writes_the_same(type_name, data):
    rdata = data.draw(rdatas(type_name))
    wire = rdata.to_wire()

    kind = getattr(rdata, PEER_KINDS.get(type_name, ""), 255)
    assume(kind > 4)
    peer = dns.rdata.from_wire(IN, type_name, wire, 0, len(wire))

    assert peer.to_wire() == wire
    if type_name not in PEER_ROUNDS:
        assert dns.rdata.from_text(IN, type_name, rdata.to_zone_text()).to_wire() == wire
        assert (
            from_wire(type_name, dns.rdata.from_text(IN, type_name, peer.to_text()).to_wire()).to_wire()
            == wire
        )


@given(st.binary(max_size=80))
def test_a_string_survives_both_ways_of_quoting(raw):
    for text in (quoted(raw), quoted_ascii(raw)):
        assert words(text) == [text]
        assert string_octets(text) == raw


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200))
def test_a_filter_finds_the_text_as_it_was_sent_and_as_it_was_answered(text):
    try:
        rdata = parse("TXT", content=text)
    except RecordRefused:
        assume(False)

    assert folded_query(text) == folded_content(rdata)
    assert folded_query(rdata.to_content()) == folded_content(rdata)
