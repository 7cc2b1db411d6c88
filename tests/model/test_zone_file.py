"""Zone files: what is read from each form of a line, and what is refused, by line."""

import pytest

from edgestead.model import names
from edgestead.model.call import Profile
from edgestead.model.names import InvalidValue
from edgestead.model.refusals.record import LineUnreadable
from edgestead.model.zonefile import Notes, read, read_notes, write_notes
from edgestead.model.zonefile.generate import GENERATED_MAX
from edgestead.model.zonefile.lines import LINE_CHARACTERS_MAX, WORDS_MAX

APEX = names.wire_from_text("example.com")

# A file, and (owner, TTL, type, content) of each of its records; a priority stands before the content.
READ = {
    "relative owner": ("www A 192.0.2.1", [("www.example.com", None, "A", "192.0.2.1")]),
    "absolute owner": ("www.example.com. A 192.0.2.1", [("www.example.com", None, "A", "192.0.2.1")]),
    "apex": ("@ A 192.0.2.1", [("example.com", None, "A", "192.0.2.1")]),
    "other zone": ("www.other.test. A 192.0.2.1", [("www.other.test", None, "A", "192.0.2.1")]),
    "owner of the line before": (
        "www A 192.0.2.1\n\tAAAA 2001:db8::1",
        [("www.example.com", None, "A", "192.0.2.1"), ("www.example.com", None, "AAAA", "2001:db8::1")],
    ),
    "TTL, class": ("a 300 IN A 192.0.2.1", [("a.example.com", 300, "A", "192.0.2.1")]),
    "class, TTL": ("a IN 300 A 192.0.2.1", [("a.example.com", 300, "A", "192.0.2.1")]),
    "lower case": ("a in a 192.0.2.1", [("a.example.com", None, "A", "192.0.2.1")]),
    "TTL with units": ("a 1h30m A 192.0.2.1", [("a.example.com", 5_400, "A", "192.0.2.1")]),
    "$TTL": ("$TTL 1d\na A 192.0.2.1", [("a.example.com", 86_400, "A", "192.0.2.1")]),
    "TTL of the line before": (
        "a 60 A 192.0.2.1\nb A 192.0.2.2",
        [("a.example.com", 60, "A", "192.0.2.1"), ("b.example.com", 60, "A", "192.0.2.2")],
    ),
    "$TTL comes before that": (
        "$TTL 90\na 60 A 192.0.2.1\nb A 192.0.2.2",
        [("a.example.com", 60, "A", "192.0.2.1"), ("b.example.com", 90, "A", "192.0.2.2")],
    ),
    "$ORIGIN": (
        "$ORIGIN sub\na CNAME b\n$ORIGIN example.com.\na CNAME b",
        [
            ("a.sub.example.com", None, "CNAME", "b.sub.example.com."),
            ("a.example.com", None, "CNAME", "b.example.com."),
        ],
    ),
    "root origin": ("$ORIGIN .\na.example.com NS b.test", [("a.example.com", None, "NS", "b.test.")]),
    "relative target": ("@ MX 10 mail", [("example.com", None, "MX", "10 mail.example.com.")]),
    "target at the apex": ("a CNAME @", [("a.example.com", None, "CNAME", "example.com.")]),
    "null MX": ("@ MX 0 .", [("example.com", None, "MX", "0 .")]),
    "SRV": ("_a._tcp SRV 1 2 3 x", [("_a._tcp.example.com", None, "SRV", "1 2 3 x.example.com.")]),
    "NAPTR": (
        'n NAPTR 1 2 "S" "X" "" r',
        [("n.example.com", None, "NAPTR", '1 2 "S" "X" "" r.example.com.')],
    ),
    "HTTPS": ('h HTTPS 1 . alpn="h2,h3"', [("h.example.com", None, "HTTPS", '1 . alpn="h2,h3"')]),
    "two strings": ('t TXT one "two three"', [("t.example.com", None, "TXT", '"one" "two three"')]),
    "escapes": (r't TXT "a\"b\;\100"', [("t.example.com", None, "TXT", r'"a\"b\;\100"')]),
    "semicolon in quotes": ('t TXT "a;b" ; c', [("t.example.com", None, "TXT", '"a;b"')]),
    "parenthesis in quotes": ('t TXT "(a"', [("t.example.com", None, "TXT", '"(a"')]),
    "parentheses": (
        "t TXT ( a ; first\n  b\n\n  c )\nu A 192.0.2.1",
        [("t.example.com", None, "TXT", '"a" "b" "c"'), ("u.example.com", None, "A", "192.0.2.1")],
    ),
    "SOA over lines": ("@ SOA ns host (1 2\n 3 4 5)", [("example.com", None, "SOA", "")]),
    "comments and empty lines": (
        "; x\n\n  ; y\n \t\na A 192.0.2.1 ; z",
        [("a.example.com", None, "A", "192.0.2.1")],
    ),
    "Windows": (
        "\ufeffa A 192.0.2.1\r\nb A 192.0.2.2\r\n",
        [
            ("a.example.com", None, "A", "192.0.2.1"),
            ("b.example.com", None, "A", "192.0.2.2"),
        ],
    ),
    "unknown form": (r"a TYPE1 \# 4 C000 0201", [("a.example.com", None, "A", "192.0.2.1")]),
    "unknown form of MX": (
        r"a MX \# 4 000a 01 61 00".replace("4 ", "5 "),
        [("a.example.com", None, "MX", "10 a")],
    ),
    "escaped dollar": (r"\$TTL A 192.0.2.1", [(r"\$ttl.example.com", None, "A", "192.0.2.1")]),
    "$GENERATE": (
        "$TTL 60\n$GENERATE 8-10/2 h$ IN A 192.0.2.$",
        [("h8.example.com", 60, "A", "192.0.2.8"), ("h10.example.com", 60, "A", "192.0.2.10")],
    ),
    "$GENERATE with a format": (
        "$GENERATE 1-1 ${9,4,x} 60 CNAME h${-1}-$$.test.",
        [(r"000a.example.com", 60, "CNAME", r"h0-\$.test.")],
    ),
    "nothing": ("", []),
    "only comments": ("; nothing\n", []),
}

# A file, the line that is named, and words of the reason.
UNREADABLE = {
    "$INCLUDE": ("a A 192.0.2.1\n$INCLUDE /etc/passwd", 2, "$INCLUDE is not allowed"),
    "$include": ("$include x", 1, "$INCLUDE is not allowed"),
    "unknown directive": ("$DATE x", 1, "'$DATE' is unknown"),
    "$ORIGIN of two": ("$ORIGIN a b", 1, "one name"),
    "$TTL of none": ("$TTL", 1, "one number"),
    "$TTL of a word": ("$TTL soon", 1, "'soon' is not a number"),
    "long TTL": ("a 99999999999 A 192.0.2.1", 1, "seconds up to"),
    "very long TTL": (f"a {'9' * 5000} A 192.0.2.1", 1, "not a number"),
    "no owner": ("  A 192.0.2.1", 1, "no owner"),
    "no type": ("a 60 IN", 1, "before a type"),
    "no contents": ("\na A", 2, "no contents"),
    "unknown type": ("a WKS 192.0.2.1", 1, "'WKS' is not supported"),
    "unknown number": ("a TYPE65280 \\# 0", 1, "'TYPE65280' is not supported"),
    "long number": ("a TYPE000001 \\# 0", 1, "is not supported"),
    "other class": ("a CH TXT x", 1, "the class is CH"),
    "open quote": ('b A 192.0.2.1\nt TXT "a\nb"', 2, "quote is not closed"),
    "open quote at the end": ('t TXT "a', 1, "quote is not closed"),
    "open parenthesis": ("a TXT (\nb", 1, "parenthesis is not closed"),
    "closed twice": ("a TXT b )", 1, "do not match"),
    "nested": ("a TXT ((b))", 1, "do not match"),
    "backslash at the end": ("a TXT b\\", 1, "backslash"),
    "two dots": ("a..b A 192.0.2.1", 1, "label is empty"),
    "long name": (f"{'a' * 64} A 192.0.2.1", 1, "more than 63"),
    "bad target": ("a CNAME b..c", 1, "label is empty"),
    "bad hex": ("a TYPE1 \\# 4 C0000g01", 1, "hex"),
    "hex too short": ("a TYPE1 \\# 5 C0000201", 1, "hex"),
    "many words": ("a TXT " + "b " * WORDS_MAX, 1, "words"),
    "long line": ("a TXT (" + "\n" * (LINE_CHARACTERS_MAX + 1) + "b )", 1, "characters"),
    "$GENERATE too short": ("$GENERATE 1-2 a A", 1, "takes a range"),
    "$GENERATE backwards": ("$GENERATE 2-1 a A 192.0.2.$", 1, "upwards"),
    "$GENERATE without step": ("$GENERATE 1-2/0 a A 192.0.2.$", 1, "upwards"),
    "$GENERATE without range": ("$GENERATE 12 a A 192.0.2.$", 1, "start-stop"),
    "$GENERATE too many": (f"$GENERATE 0-{GENERATED_MAX} a A 192.0.2.$", 1, "more than"),
    "$GENERATE too large": ("$GENERATE 0-4294967296 a A 192.0.2.$", 1, "number from 0"),
    "$GENERATE too wide": ("$GENERATE 1-2 a${0,65} A 192.0.2.$", 1, "width"),
    "$GENERATE of another base": ("$GENERATE 1-2 a${0,1,b} A 192.0.2.$", 1, "base"),
    "$GENERATE below zero": ("$GENERATE 1-2 a${-2} A 192.0.2.$", 1, "below zero"),
    "$GENERATE unclosed": ("$GENERATE 1-2 a${1 A 192.0.2.$", 1, "brace"),
}

# What stands behind `;`, and what it says.
NOTES = {
    "": Notes(),
    "for the shop": Notes("for the shop"),
    "a edge_tags=b:c,d": Notes("a", ("b:c", "d")),
    "cf_tags=cf-proxied:true": Notes(None, (), {"proxied": True}),
    "edge_tags=EDGE-PROXIED:false,edge-flatten-cname:true": Notes(
        None, (), {"proxied": False, "flatten-cname": True}
    ),
    'a cf_tags=note:"x, y: \\"z\\"",b:c': Notes("a", ('note:x, y: "z"', "b:c")),
    "see cf_tags=x cf_tags=": Notes("see cf_tags=x"),
    "see xcf_tags=y": Notes("see xcf_tags=y"),
    "edge_tags=a:": Notes(None, ("a:",)),
    "edge_tags=edge-other:true": Notes(None, ("edge-other:true",)),
}
UNREADABLE_NOTES = [
    'edge_tags=a:"b',
    'edge_tags=a:"b"c',
    "edge_tags=,a",
    "edge_tags=:a",
    "cf_tags=cf-proxied:maybe",
    "cf_tags=cf-proxied",
    "edge_tags=" + ",".join(["a"] * 65),
]
WRITTEN = [
    Notes('a comment; with (everything) "in" it'),
    Notes("edge_tags=x"),
    Notes("mentions cf_tags= and more"),
    Notes("über", ("prod", "owner:web", "note:a, b", "eq:edge_tags=x cf_tags=y", 'q:"', "blank: ", "none:")),
    Notes(None, (), {"proxied": True, "ipv4-only": False}),
    Notes("all", ("a:b",), {"proxied": False, "flatten-cname": True}),
]


@pytest.mark.parametrize(("text", "expected"), READ.values(), ids=READ)
def test_a_file_is_read_record_by_record(text, expected):
    found = [
        (
            names.text_from_wire(entry.owner),
            entry.ttl,
            entry.type,
            entry.content if entry.priority is None else f"{entry.priority} {entry.content}",
        )
        for entry in read(text, APEX)
    ]

    assert found == expected


@pytest.mark.parametrize(("text", "line", "words"), UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_read_names_its_line(text, line, words):
    with pytest.raises(LineUnreadable) as refused:
        list(read(text, APEX))

    assert refused.value.facts["line"] == line
    assert words in refused.value.message
    assert refused.value.message.endswith(".")
    assert not refused.value.message.endswith("..")


def test_each_record_knows_its_line_also_behind_long_entries():
    text = '; one\na TXT ( "b"\n\n) ; said\n\nc A 192.0.2.1 ; more'

    assert [(entry.line, entry.comment) for entry in read(text, APEX)] == [(2, "said"), (6, "more")]


def test_a_long_file_lets_others_run_also_where_it_says_nothing():
    rests = []

    assert list(read(";\n" * 1_000, APEX, lambda: rests.append(1))) == []
    assert len(rests) == 3


@pytest.mark.parametrize(("text", "notes"), NOTES.items())
def test_a_comment_says_what_a_line_cannot(text, notes):
    assert read_notes(text) == notes


@pytest.mark.parametrize("text", UNREADABLE_NOTES)
def test_tags_that_cannot_be_read_are_refused(text):
    with pytest.raises(InvalidValue):
        read_notes(text)


@pytest.mark.parametrize("profile", Profile)
@pytest.mark.parametrize("notes", WRITTEN)
def test_what_is_written_is_read_back(notes, profile):
    assert read_notes(write_notes(notes, profile)) == notes


def test_each_profile_writes_its_own_word():
    notes = Notes("a", ("b",), {"proxied": True})

    assert write_notes(notes, Profile.SPEC) == "a edge_tags=b,edge-proxied:true"
    assert write_notes(notes, Profile.CLIENTS) == "a cf_tags=b,cf-proxied:true"
    assert write_notes(Notes("a"), Profile.SPEC) == "a"
    assert write_notes(Notes(), Profile.SPEC) == ""
