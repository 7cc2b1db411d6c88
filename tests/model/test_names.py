"""Names: one form for each, and who may bear which."""

import dns.name
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgestead.model.call import Profile
from edgestead.model.names import (
    ROOT,
    InvalidName,
    absolute_text,
    check_address_name,
    check_any_name,
    check_port_name,
    check_service_name,
    check_zone_name,
    is_at_or_below,
    is_wildcard,
    labels,
    owner_from_text,
    parent,
    read_wire,
    text_from_wire,
    wire_from_labels,
    wire_from_text,
)

# text as sent, wire, text as answered
GOOD = [
    (".", b"\x00", "."),
    ("test", b"\x04test\x00", "test"),
    ("WWW.Example.TEST.", b"\x03www\x07example\x04test\x00", "www.example.test"),
    ("*._x-1.test", b"\x01*\x04_x-1\x04test\x00", "*._x-1.test"),
    (r"a\.b.test", b"\x03a.b\x04test\x00", r"a\.b.test"),
    (r"\065\032\255.test", b"\x03a \xff\x04test\x00", r"a\032\255.test"),
    (r"a\\.test", b"\x02a\\\x04test\x00", r"a\\.test"),
    (r"test\.", b"\x05test.\x00", r"test\."),
    (r"\@\$\;\".test", b'\x04@$;"\x04test\x00', r"\@\$\;\".test"),
    ("0/25.2.0.192.test", b"\x040/25\x012\x010\x03192\x04test\x00", "0/25.2.0.192.test"),
    ("Bücher.test", b"\x0dxn--bcher-kva\x04test\x00", "xn--bcher-kva.test"),
    ("xn--bcher-kva.test", b"\x0dxn--bcher-kva\x04test\x00", "xn--bcher-kva.test"),
    ("例え。テスト．", b"\x0bxn--r8jz45g\x0axn--zckzah\x00", "xn--r8jz45g.xn--zckzah"),
    ("Ｗｗｗ.test", b"\x03www\x04test\x00", "www.test"),
    ("a" * 63, b"\x3f" + b"a" * 63 + b"\x00", "a" * 63),
    (".".join(["a" * 63] * 3 + ["b" * 61]), (b"\x3f" + b"a" * 63) * 3 + b"\x3d" + b"b" * 61 + b"\x00", None),
]  # fmt: skip

BAD = [
    ("", "1 to 255"),
    ("..", "empty"),
    (".test", "empty"),
    ("a..test", "empty"),
    ("test..", "empty"),
    (r"\a..test", "empty"),
    ("a" * 64 + ".test", "64 octets"),
    (".".join(["a" * 63] * 3 + ["b" * 62]), "256 octets"),
    ("a b.test", "escaped"),
    ("a\x00.test", "escaped"),
    ("a@b.test", "escaped"),
    (r"a@\b.test", "escaped"),
    ('"a".test', "escaped"),
    ("a\\", "backslash"),
    (r"\25.test", "three digits"),
    (r"\256.test", "three digits"),
    (r"\2²5.test", "no single meaning"),
    ("\\é.test", "no single meaning"),
    ("straße.test", "no single meaning"),
    ("a\u200db.test", "no single meaning"),
    ("🯰.test", "no single meaning"),  # a digit younger than the tables of RFC 3491
    ("℀.test", "no single meaning"),
    ("\u00ad.test", "no single meaning"),
    ("é" * 64, "63 characters"),
    ("é" * 60, "66 octets"),
    ("\ud800.test", "no name"),
    ("\u202eabc.test", "no name"),
]

BAD_WIRE = [
    b"",
    b"\x01",
    b"\x01a",
    b"\xc0\x0c",
    b"\x40" + b"a" * 64 + b"\x00",
    (b"\x3f" + b"a" * 63) * 4 + b"\x00",
]

NEITHER, CLIENTS_ONLY, BOTH = range(3)
ADDRESS_NAMES = [
    ("www.a.test", BOTH),
    ("a.test", BOTH),
    ("*.a.test", BOTH),
    ("*.x.a.test", BOTH),
    ("_dmarc.a.test", BOTH),
    ("x_y-z9.a.test", BOTH),
    ("xn--bcher-kva.a.test", BOTH),
    ("1.a.test", CLIENTS_ONLY),
    ("x.1a.a.test", CLIENTS_ONLY),
    ("-x.a.test", NEITHER),
    ("x-.a.test", NEITHER),
    ("x_.a.test", NEITHER),
    ("_.a.test", NEITHER),
    ("x/y.a.test", NEITHER),
    (r"x\.y.a.test", NEITHER),
    (r"\255.a.test", NEITHER),
    ("x.*.a.test", NEITHER),
    ("**.a.test", NEITHER),
    ("*x.a.test", NEITHER),
]

SERVICE_NAMES = [
    ("_sip._tcp.a.test", True),
    ("_sip._tcp.x.a.test", True),
    ("sip._tcp.a.test", False),
    ("_sip.tcp.a.test", False),
    ("_._tcp.a.test", False),
    ("_sip", False),
    ("*._tcp.a.test", False),
]

PORT_NAMES = [
    ("_443._tcp.a.test", True),
    ("_0._udp.a.test", True),
    ("*._tcp.a.test", True),
    ("_65535._tcp.a.test", True),
    ("_65536._tcp.a.test", False),
    ("_0000443._tcp.a.test", False),
    ("_https._tcp.a.test", False),
    ("443._tcp.a.test", False),
    ("_443.tcp.a.test", False),
    ("*", False),
]

ZONE_NAMES = [
    ("a.test", True),
    ("1-2.xn--bcher-kva.test", True),
    ("2.0.192.in-addr.arpa", True),
    ("test", False),
    (".", False),
    ("-a.test", False),
    ("a-.test", False),
    ("a_b.test", False),
    ("*.a.test", False),
    (r"a\.b.test", False),
]

any_names = st.lists(st.binary(min_size=1, max_size=20), max_size=9).map(wire_from_labels)
short_names = st.lists(st.binary(min_size=1, max_size=20), max_size=5).map(wire_from_labels)  # two fit in one


@pytest.mark.parametrize(("text", "wire", "answered"), GOOD)
def test_a_name_has_one_form(text, wire, answered):
    assert wire_from_text(text) == wire
    assert read_wire(b"\x07" + wire + b"\x07", 1) == (wire, len(wire) + 1)
    assert text_from_wire(wire) == (answered or text)
    assert wire_from_text(text_from_wire(wire)) == wire


@pytest.mark.parametrize(("text", "words"), BAD)
def test_what_is_no_name_is_refused(text, words):
    with pytest.raises(InvalidName, match=words) as caught:
        wire_from_text(text)

    assert len(caught.value.reason) < 200


@pytest.mark.parametrize("piece", ["a", "a.", "\\", "é", "*", "。"])
def test_a_megabyte_is_refused_before_it_is_walked(piece):
    with pytest.raises(InvalidName, match="1 to 255"):
        wire_from_text(piece * 1_000_000)


@pytest.mark.parametrize("wire", BAD_WIRE)
def test_octets_that_are_no_name_are_refused(wire):
    with pytest.raises(InvalidName):
        read_wire(wire, 0)


@given(st.text(max_size=80) | st.text(".\\aé*1 \ud800", max_size=20))
def test_any_text_is_a_name_or_is_refused(text):
    try:
        wire = wire_from_text(text)
    except InvalidName:
        return
    assert wire_from_text(absolute_text(wire)) == wire


@given(any_names)
def test_dnspython_agrees_on_every_name(wire):
    peer = dns.name.from_wire(wire, 0)[0]

    assert wire_from_text(peer.to_text()) == wire
    assert dns.name.from_text(text_from_wire(wire)).to_wire() == wire
    assert labels(wire) == peer.labels[:-1]


@given(short_names, short_names)
def test_dnspython_agrees_on_what_is_below(one, other):
    joined = wire_from_labels([*labels(one), *labels(other)])
    ancestor = dns.name.from_wire(other, 0)[0]

    for name in (joined, one):
        assert is_at_or_below(name, other) == dns.name.from_wire(name, 0)[0].is_subdomain(ancestor)


@pytest.mark.parametrize(
    ("name", "ancestor", "is_below"),
    [
        ("a.test", "a.test", True),
        ("www.a.test", "a.test", True),
        ("a.test", ".", True),
        (".", ".", True),
        ("xa.test", "a.test", False),
        ("test", "a.test", False),
        (r"x\001a.test", "a.test", False),  # its octets end in those of a.test
    ],
)
def test_a_name_is_below_another_at_a_dot_only(name, ancestor, is_below):
    assert is_at_or_below(wire_from_text(name), wire_from_text(ancestor)) is is_below


def test_parents_lead_to_the_root():
    name = wire_from_text("www.a.test")

    assert [text_from_wire(name := parent(name)) for _ in range(4)] == ["a.test", "test", ".", "."]


@pytest.mark.parametrize(
    ("name", "expected"), [("*.a.test", True), ("**.a.test", False), ("x.*.test", False)]
)
def test_a_wildcard_is_a_star_alone_and_first(name, expected):
    assert is_wildcard(wire_from_text(name)) is expected


@pytest.mark.parametrize(
    ("text", "owner"),
    [
        ("@", "a.test"),
        ("", "a.test"),
        ("www", "www.a.test"),
        ("www.A.test", "www.a.test"),
        ("www.a.test.", "www.a.test"),
        ("a.test", "a.test"),
        ("*", "*.a.test"),
        ("xa.test", "xa.test.a.test"),
    ],
)
def test_an_owner_is_relative_unless_it_ends_in_the_zone(text, owner):
    assert text_from_wire(owner_from_text(text, wire_from_text("a.test"))) == owner


@pytest.mark.parametrize("text", ["a..b", "b." * 126])
def test_a_bad_owner_is_refused(text):
    with pytest.raises(InvalidName):
        owner_from_text(text, wire_from_text("a.test"))


def allows(check, *arguments):
    try:
        check(*arguments)
    except InvalidName:
        return False
    return True


@pytest.mark.parametrize(("text", "who"), ADDRESS_NAMES)
def test_address_names_follow_the_rule_of_the_profile(text, who):
    name, apex = wire_from_text(text), wire_from_text("a.test")

    assert allows(check_address_name, name, Profile.SPEC, apex) is (who == BOTH)
    assert allows(check_address_name, name, Profile.CLIENTS, apex) is (who != NEITHER)


def test_the_labels_of_the_zone_itself_are_not_judged():
    assert allows(check_address_name, wire_from_text("www.1a.test"), Profile.SPEC, wire_from_text("1a.test"))


@pytest.mark.parametrize(
    ("check", "text", "is_allowed"),
    [
        *((check_service_name, *row) for row in SERVICE_NAMES),
        *((check_port_name, *row) for row in PORT_NAMES),
        (check_any_name, r"\000.test", True),
    ],
)
def test_names_with_a_shape(check, text, is_allowed):
    assert allows(check, wire_from_text(text), Profile.SPEC, ROOT) is is_allowed


@pytest.mark.parametrize(("text", "is_allowed"), ZONE_NAMES)
def test_zone_names(text, is_allowed):
    assert allows(check_zone_name, wire_from_text(text)) is is_allowed
