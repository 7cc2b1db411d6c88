"""Each type reads what callers send, and every way out agrees with every way in."""

import dns.rdata
import dns.rdataclass
import dns.rdatatype
import pytest

from edgestead.model.call import Profile
from edgestead.model.names import ROOT, wire_from_text
from edgestead.model.records import TYPES, TYPES_BY_NUMBER, from_wire, parse
from edgestead.model.refusals.record import ContentRefused, NameRefused, RecordRefused, UnknownType
from tests.model.samples import BAD, GOOD, Bad, Good

SPEC_TYPES = set(
    "A AAAA CNAME MX TXT CAA SRV SVCB HTTPS PTR SOA NS DS DNSKEY URI NAPTR SSHFP TLSA SMIMEA CERT".split()
)
IN = dns.rdataclass.IN

BAD_WIRE = [
    ("A", b"\x01\x02\x03", "cut short"),
    ("A", b"\x01\x02\x03\x04\x05", "behind its end"),
    ("CNAME", b"\x03www", "cut short"),
    ("CNAME", b"\xc0\x0c", "compressed"),
    ("MX", b"\x00\x0a", "cut short"),
    ("TXT", b"", "cut short"),
    ("TXT", b"\x05abc", "cut short"),
    ("CAA", b"\x00\x06permitx", "one of issue"),
    ("DS", b"\x00\x01\x08\x02\xab", "32 octets"),
    ("DNSKEY", b"\x01\x01\x03\x08", "empty"),
    ("TLSA", b"\x03\x01\x01", "hexadecimal"),
    ("URI", b"\x00\x01\x00\x01", "empty"),
    ("LOC", b"\x01" + bytes(15), "version"),
    ("LOC", b"\x00" + bytes(15), "beyond"),
    ("LOC", b"\x00\xa0\x00\x00" + bytes(12), "power of ten"),
]


def test_the_table_holds_the_types_of_the_specification_and_four_more():
    assert set(TYPES) == SPEC_TYPES | {"DHCID", "DNAME", "LOC", "OPENPGPKEY"}
    assert {row.name for row in TYPES.values() if row.is_extension} == {"DNAME"}
    assert {row.name for row in TYPES.values() if row.proxiable} == {"A", "AAAA", "CNAME"}


@pytest.mark.parametrize("row", TYPES.values(), ids=lambda row: row.name)
def test_each_row_names_its_source_and_number(row):
    assert row.source.startswith("RFC ")
    assert row.number == dns.rdatatype.from_text(row.name)
    assert TYPES_BY_NUMBER[row.number] is row


@pytest.mark.parametrize("row", TYPES.values(), ids=lambda row: row.name)
def test_only_the_last_field_may_be_long(row):
    """The limit of a record is only checked for rows that end in such a field."""
    assert all(field.kind.is_bounded for field in row.fields[:-1])


def test_every_type_has_samples():
    assert {good.type for good in GOOD} == set(TYPES)
    assert {bad.type for bad in BAD} >= set(TYPES) - {"PTR", "SVCB", "SMIMEA"}  # same classes as others


@pytest.mark.parametrize("good", GOOD, ids=lambda good: f"{good.type}-{good.content[:24]}")
class TestGood:
    def test_is_answered_as_the_contract_says(self, good: Good):
        rdata = parse(good.type, **good.body)

        assert rdata.to_content() == good.content
        assert rdata.to_data() == good.data
        assert list(rdata.to_data() or ()) == sorted(rdata.to_data() or ())
        assert rdata.top_priority == good.priority

    def test_is_read_back_from_its_own_answer(self, good: Good):
        rdata = parse(good.type, **good.body)

        assert parse(good.type, content=good.content, priority=good.priority) == rdata
        if good.data:
            assert parse(good.type, data=good.data, priority=good.priority) == rdata

    def test_has_the_octets_that_dnspython_makes(self, good: Good):
        rdata = parse(good.type, **good.body)

        peer = dns.rdata.from_text(IN, good.type, good.zone_text)

        assert rdata.to_zone_text() == good.zone_text
        assert rdata.to_wire() == peer.to_wire()

    def test_is_read_back_from_its_octets(self, good: Good):
        wire = parse(good.type, **good.body).to_wire()

        again = from_wire(good.type, wire)

        assert again.to_wire() == wire
        assert dns.rdata.from_text(IN, good.type, again.to_zone_text()).to_wire() == wire


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: f"{bad.type}-{bad.words[:24]}")
def test_bad_is_refused_with_its_field_and_words(bad: Bad):
    with pytest.raises(RecordRefused) as caught:
        parse(bad.type, **bad.body)

    refusal = caught.value
    assert type(refusal) is bad.refusal
    assert refusal.field == bad.field
    assert bad.words in refusal.message
    assert refusal.status == 400
    assert refusal.pointer == f"/{bad.field}"
    assert len(refusal.message) < 250


@pytest.mark.parametrize(("type_", "wire", "words"), BAD_WIRE)
def test_bad_octets_are_refused(type_, wire, words):
    with pytest.raises(ContentRefused, match=words):
        from_wire(type_, wire)


def test_octets_of_an_unknown_type_are_refused():
    with pytest.raises(UnknownType):
        from_wire("SPF", b"\x00")


def test_capitals_in_octets_are_folded():
    assert from_wire("CNAME", b"\x03WwW\x04Test\x00") == parse("CNAME", content="www.test")


def test_spellings_differ_but_the_identity_is_the_octets():
    one, other = parse("TLSA", content="3 1 1 ABCD"), parse("TLSA", content="3 1 1 abcd")

    assert one != other
    assert one.to_wire() == other.to_wire()


@pytest.mark.parametrize(
    ("type_", "name", "is_allowed"),
    [
        ("A", "www.a.test", True),
        ("A", "1.a.test", False),
        ("TXT", "1.a.test", True),
        ("SRV", "_sip._tcp.a.test", True),
        ("SRV", "sip.a.test", False),
        ("TLSA", "tlsa.a.test", True),
    ],
)
def test_a_row_knows_which_owner_names_its_type_may_have(type_, name, is_allowed):
    check = TYPES[type_].check_name

    if is_allowed:
        check(wire_from_text(name), Profile.SPEC, ROOT)
    else:
        with pytest.raises(NameRefused) as caught:
            check(wire_from_text(name), Profile.SPEC, ROOT)
        assert (caught.value.code, caught.value.field) == (9000, "name")
