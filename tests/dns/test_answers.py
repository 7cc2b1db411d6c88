"""What a question gets, by the RFC that says so."""

import dns.message
import pytest

from tests.dns.serving import Asker, changes_of, read_zone, said, table_of

LONG_TEXT = f'"{"a" * 255}" "{"b" * 100}"'
EXAMPLE = """
example.test. 3600 SOA ns1.example.test. hostmaster.example.test. 1 7200 900 86400 600
example.test. 3600 NS ns1.example.test.
example.test. 3600 NS ns.elsewhere.invalid.
example.test. 300 A 192.0.2.10
ns1.example.test. 3600 A 192.0.2.1
www.example.test. 300 A 192.0.2.80
www.example.test. 300 AAAA 2001:db8::80
mail.example.test. 300 MX 10 www.example.test.
deep.under.void.example.test. 300 A 192.0.2.90
_sip._tcp.example.test. 300 SRV 1 2 5060 www.example.test.
service.example.test. 300 HTTPS 0 www.example.test.
_none.example.test. 300 SVCB 0 .
long.example.test. 300 TXT {long_text}
unknown.example.test. 300 TYPE65280 \\# 3 0a0b0c

alias.example.test. 60 CNAME www.example.test.
alias2.example.test. 60 CNAME alias.example.test.
away.example.test. 60 CNAME www.elsewhere.invalid.
across.example.test. 60 CNAME www.other.test.
dangling.example.test. 60 CNAME nothing.example.test.
dangling-other.example.test. 60 CNAME nothing.other.test.
self.example.test. 60 CNAME self.example.test.
ring1.example.test. 60 CNAME ring2.example.test.
ring2.example.test. 60 CNAME ring1.example.test.
to-cut.example.test. 60 CNAME host.cut.example.test.
to-wild.example.test. 60 CNAME x.wild.example.test.
to-apex.example.test. 60 CNAME other.test.
to-asterisk.example.test. 60 CNAME *.www.example.test.
to-long.example.test. 60 CNAME verylong.other.test.
to-shop.example.test. 60 CNAME shop.wildalias.example.test.

*.wild.example.test. 300 A 192.0.2.99
*.wild.example.test. 300 TXT "from the asterisk"
here.wild.example.test. 300 TXT "here"
a.ent.wild.example.test. 300 TXT "makes ent.wild exist"
*.wildalias.example.test. 60 CNAME www.example.test.
*.wildring.example.test. 60 CNAME a.wildring.example.test.

cut.example.test. 300 NS ns.cut.example.test.
cut.example.test. 300 NS ns.sibling.example.test.
cut.example.test. 300 NS ns1.example.test.
cut.example.test. 300 NS ns.elsewhere.invalid.
cut.example.test. 900 DS 4711 13 2 abababababababababababababababababababababababababababababababab
cut.example.test. 300 TXT "not ours to say"
ns.cut.example.test. 300 A 192.0.2.40
ns.cut.example.test. 300 AAAA 2001:db8::40
sibling.example.test. 300 NS ns.sibling.example.test.
ns.sibling.example.test. 300 A 192.0.2.41
deeper.cut.example.test. 300 NS ns.deeper.cut.example.test.
*.cut.example.test. 300 A 192.0.2.42
""".replace("{long_text}", LONG_TEXT)

OTHER = """
other.test. 60 SOA ns1.example.test. hostmaster.example.test. 1 7200 900 86400 600
other.test. 3600 NS ns1.example.test.
other.test. 300 A 192.0.2.20
www.other.test. 300 A 192.0.2.21
verylong.other.test. 300 TXT {long_text}
verylong.other.test. 300 TXT {long_text} "more"
sub.other.test. 300 NS ns1.example.test.
sub.other.test. 300 DS 4712 13 2 cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd
shadowed.quiet.other.test. 300 A 192.0.2.22
beside.other.test. 300 NS shadowed.quiet.other.test.
""".replace("{long_text}", LONG_TEXT)

SUB_OTHER = """
sub.other.test. 300 SOA ns1.example.test. hostmaster.example.test. 1 7200 900 86400 600
sub.other.test. 3600 NS ns1.example.test.
www.sub.other.test. 300 A 192.0.2.31
"""

QUIET_OTHER = """
quiet.other.test. 300 SOA ns1.example.test. hostmaster.example.test. 1 7200 900 86400 600
quiet.other.test. 3600 NS ns1.example.test.
"""

SHOP = """
shop.wildalias.example.test. 300 SOA ns1.example.test. hostmaster.example.test. 1 7200 900 86400 600
shop.wildalias.example.test. 3600 NS ns1.example.test.
"""

SOA = "example.test. 600 soa ns1.example.test. hostmaster.example.test. 1 7200 900 86400 600"
SOA_OTHER = "other.test. 60 soa ns1.example.test. hostmaster.example.test. 1 7200 900 86400 600"
SOA_SUB = "sub.other.test. 300 soa ns1.example.test. hostmaster.example.test. 1 7200 900 86400 600"
WWW = "www.example.test. 300 a 192.0.2.80"
ALIAS = "alias.example.test. 60 cname www.example.test."
CUT = [
    "cut.example.test. 300 ns ns.cut.example.test.",
    "cut.example.test. 300 ns ns.elsewhere.invalid.",
    "cut.example.test. 300 ns ns.sibling.example.test.",
    "cut.example.test. 300 ns ns1.example.test.",
]
GLUE = [
    "ns.cut.example.test. 300 a 192.0.2.40",
    "ns.cut.example.test. 300 aaaa 2001:db8::40",
    "ns.sibling.example.test. 300 a 192.0.2.41",
    "ns1.example.test. 3600 a 192.0.2.1",
]


def answer(*records):
    return ("NOERROR", "AA", list(records), [], [])


def nodata(soa=SOA, *records):
    return ("NOERROR", "AA", list(records), [soa], [])


def nxdomain(soa=SOA, *records):
    return ("NXDOMAIN", "AA", list(records), [soa], [])


REFUSED = ("REFUSED", "", [], [], [])
NOTAUTH = ("NOTAUTH", "", [], [], [])
REFERRAL = ("NOERROR", "", [], CUT, GLUE)

GETS = {
    "RFC 1034 §4.3.2: data": {
        "www.example.test A": answer(WWW),
        "WWW.Example.TEST A": answer(WWW),
        "www.example.test AAAA": answer("www.example.test. 300 aaaa 2001:db8::80"),
        "example.test A": answer("example.test. 300 a 192.0.2.10"),
        "mail.example.test MX": answer("mail.example.test. 300 mx 10 www.example.test."),
        "_sip._tcp.example.test SRV": answer("_sip._tcp.example.test. 300 srv 1 2 5060 www.example.test."),
        "example.test SOA": answer(SOA.replace("600 soa", "3600 soa")),
        "other.test A": answer("other.test. 300 a 192.0.2.20"),
    },
    "RFC 3597: types we know nothing about": {
        "unknown.example.test TYPE65280": answer("unknown.example.test. 300 type65280 \\# 3 0a0b0c"),
        "www.example.test TYPE65281": nodata(),
        "www.example.test TYPE200": nodata(),
        "www.example.test TYPE0": nodata(),
    },
    "our own NS come with the addresses that the zone has": {
        "example.test NS": (
            "NOERROR",
            "AA",
            ["example.test. 3600 ns ns.elsewhere.invalid.", "example.test. 3600 ns ns1.example.test."],
            [],
            ["ns1.example.test. 3600 a 192.0.2.1"],
        ),
    },
    "RFC 2308 §3: no data, no name; the smaller TTL": {
        "www.example.test TXT": nodata(),
        "nothing.example.test A": nxdomain(),
        "a.b.c.nothing.example.test A": nxdomain(),
        "under.www.example.test A": nxdomain(),
        "other.test TXT": nodata(SOA_OTHER),
        "nothing.other.test A": nxdomain(SOA_OTHER),
    },
    "RFC 4592 §2.2.2, RFC 8020: an empty non-terminal exists": {
        "under.void.example.test A": nodata(),
        "void.example.test ANY": nodata(),
        "other.under.void.example.test A": nxdomain(),
        "_tcp.example.test SRV": nodata(),
    },
    "RFC 1034 §3.6.2, RFC 6604 §2.1: aliases, the last name's rcode": {
        "alias.example.test CNAME": answer(ALIAS),
        "alias.example.test A": answer(ALIAS, WWW),
        "alias2.example.test A": answer(ALIAS, "alias2.example.test. 60 cname alias.example.test.", WWW),
        "alias.example.test MX": nodata(SOA, ALIAS),
        "away.example.test A": answer("away.example.test. 60 cname www.elsewhere.invalid."),
        "dangling.example.test A": nxdomain(SOA, "dangling.example.test. 60 cname nothing.example.test."),
        "to-wild.example.test A": answer(
            "to-wild.example.test. 60 cname x.wild.example.test.", "x.wild.example.test. 300 a 192.0.2.99"
        ),
    },
    "aliases into another zone of ours": {
        "across.example.test A": answer(
            "across.example.test. 60 cname www.other.test.", "www.other.test. 300 a 192.0.2.21"
        ),
        "to-asterisk.example.test A": nxdomain(SOA, "to-asterisk.example.test. 60 cname *.www.example.test."),
        "dangling-other.example.test A": nxdomain(
            SOA_OTHER, "dangling-other.example.test. 60 cname nothing.other.test."
        ),
        "to-apex.example.test TXT": nodata(SOA_OTHER, "to-apex.example.test. 60 cname other.test."),
    },
    "a ring of aliases ends where it closes": {
        "self.example.test A": answer("self.example.test. 60 cname self.example.test."),
        "ring1.example.test A": answer(
            "ring1.example.test. 60 cname ring2.example.test.",
            "ring2.example.test. 60 cname ring1.example.test.",
        ),
        "a.wildring.example.test A": answer("a.wildring.example.test. 60 cname a.wildring.example.test."),
        "b.wildring.example.test A": answer(
            "a.wildring.example.test. 60 cname a.wildring.example.test.",
            "b.wildring.example.test. 60 cname a.wildring.example.test.",
        ),
    },
    "an alias into a delegation": {
        "to-cut.example.test A": (
            "NOERROR",
            "AA",
            ["to-cut.example.test. 60 cname host.cut.example.test."],
            CUT,
            GLUE,
        ),
    },
    "RFC 4592 §3.3: wildcards, from the closest encloser only": {
        "x.wild.example.test A": answer("x.wild.example.test. 300 a 192.0.2.99"),
        "x.y.z.wild.example.test A": answer("x.y.z.wild.example.test. 300 a 192.0.2.99"),
        "*.wild.example.test A": answer("*.wild.example.test. 300 a 192.0.2.99"),
        "x.wild.example.test MX": nodata(),
        "wild.example.test A": nodata(),
        "here.wild.example.test A": nodata(),
        "under.here.wild.example.test A": nxdomain(),
        "ent.wild.example.test A": nodata(),
        "b.ent.wild.example.test A": nxdomain(),
        "x.wildalias.example.test A": answer(WWW, "x.wildalias.example.test. 60 cname www.example.test."),
        "x.wildalias.example.test CNAME": answer("x.wildalias.example.test. 60 cname www.example.test."),
        "x.wildalias.example.test MX": nodata(SOA, "x.wildalias.example.test. 60 cname www.example.test."),
    },
    "RFC 1034 §4.3.2 3b, RFC 9471: delegations with every address we have": {
        "cut.example.test A": REFERRAL,
        "cut.example.test NS": REFERRAL,
        "cut.example.test TXT": REFERRAL,
        "cut.example.test ANY": REFERRAL,
        "a.b.cut.example.test A": REFERRAL,
        "ns.cut.example.test A": REFERRAL,
        "x.deeper.cut.example.test A": REFERRAL,
        "x.cut.example.test DS": REFERRAL,
    },
    "RFC 4035 §3.1.4.1: DS is the parent's": {
        "cut.example.test DS": answer("cut.example.test. 900 ds 4711 13 2 " + "ab" * 32),
        "sibling.example.test DS": nodata(),
        "example.test DS": nodata(),
        "sub.other.test DS": answer("sub.other.test. 300 ds 4712 13 2 " + "cd" * 32),
        "quiet.other.test DS": nodata(SOA_OTHER),
        "shop.wildalias.example.test DS": nodata(),
        "not-a-zone.wildalias.example.test DS": nodata(
            SOA, "not-a-zone.wildalias.example.test. 60 cname www.example.test."
        ),
        "to-shop.example.test DS": nodata(SOA, "to-shop.example.test. 60 cname shop.wildalias.example.test."),
    },
    "the zone with the longest apex answers": {
        "www.sub.other.test A": answer("www.sub.other.test. 300 a 192.0.2.31"),
        "nothing.sub.other.test A": nxdomain(SOA_SUB),
        "sub.other.test A": nodata(SOA_SUB),
        "shadowed.quiet.other.test A": nxdomain(SOA_SUB.replace("sub.", "quiet.")),
        "beside.other.test A": (
            "NOERROR",
            "",
            [],
            ["beside.other.test. 300 ns shadowed.quiet.other.test."],
            [],
        ),
    },
    "RFC 8482 §4.1: ANY gets one RRset, the smallest": {
        "www.example.test ANY": answer(WWW),
        "alias.example.test ANY": answer(ALIAS),
        "example.test ANY": answer("example.test. 300 a 192.0.2.10"),
        "mail.example.test ANY": answer("mail.example.test. 300 mx 10 www.example.test."),
        "x.wild.example.test ANY": answer("x.wild.example.test. 300 a 192.0.2.99"),
        "nothing.example.test ANY": nxdomain(),
    },
    "RFC 9460 §2.4.2: an AliasMode is data; whoever asks follows it": {
        "service.example.test HTTPS": answer("service.example.test. 300 https 0 www.example.test."),
        "service.example.test A": nodata(),
        "_none.example.test SVCB": answer("_none.example.test. 300 svcb 0 ."),
    },
    "RFC 1035 §3.3.14: a TXT record is as many strings as it takes": {
        "long.example.test TXT": answer("long.example.test. 300 txt " + LONG_TEXT),
    },
    "RFC 8906 §3.1.4: not ours, not now": {
        "www.elsewhere.invalid A": REFUSED,
        "test A": REFUSED,
        ". NS": REFUSED,
        "notexample.test A": REFUSED,
        "example.test AXFR": REFUSED,
        "nothing.example.test AXFR": NOTAUTH,
        "www.example.test IXFR": NOTAUTH,
        "nothing.example.test IXFR": NOTAUTH,
        "outside.invalid IXFR": REFUSED,
    },
}
ROWS = [
    pytest.param(question, expected, id=f"{source} / {question}")
    for source, rows in GETS.items()
    for question, expected in rows.items()
]


@pytest.fixture(scope="module")
def table():
    zones = {"example.test.": EXAMPLE, "other.test.": OTHER}
    zones |= {"sub.other.test.": SUB_OTHER, "quiet.other.test.": QUIET_OTHER}
    return table_of(zones | {"shop.wildalias.example.test.": SHOP})


@pytest.mark.parametrize(("question", "expected"), ROWS)
@pytest.mark.parametrize(
    "options", [{"use_edns": False}, {"use_edns": 0, "payload": 1232}], ids=["plain", "edns"]
)
def test_a_question_gets(table, question, expected, options):
    name, kind = question.split()

    assert said(Asker(table)(name, kind, **options)) == expected


@pytest.mark.parametrize(("question", "expected"), ROWS)
def test_a_question_in_any_case_and_asked_again_gets_the_same(table, question, expected):
    name, kind = question.split()
    asker = Asker(table)

    again = [said(asker(form, kind)) for form in (name, name.upper(), name, name.title(), name)]

    assert again == [expected] * 5


@pytest.mark.parametrize("rdclass", ["CH", "HS", "NONE", "ANY", "CLASS77"])
@pytest.mark.parametrize("name", ["www.example.test.", "nothing.example.test.", "version.bind."])
def test_another_class_is_refused(table, rdclass, name):
    asker = Asker(table)
    asker("www.example.test.")

    reply = asker(name, "A", rdclass=rdclass)

    assert said(reply) == REFUSED


def test_the_question_comes_back_as_it_was_written(table):
    query = dns.message.make_query("wWw.eXaMPLE.tEST", "A", use_edns=False).to_wire()

    reply = Asker(table).raw(query)

    assert reply[12 : len(query)] == query[12:]


def test_names_are_compressed_only_where_rfc_3597_allows_it(table):
    mx = Asker(table).raw(dns.message.make_query("mail.example.test", "MX", use_edns=False).to_wire())
    srv = Asker(table).raw(dns.message.make_query("_sip._tcp.example.test", "SRV", use_edns=False).to_wire())

    assert mx.count(b"\x07example\x04test\0") == 1
    assert srv.count(b"\x07example\x04test\0") == 2


@pytest.mark.parametrize("ad", [0, dns.flags.AD], ids=["without AD", "with AD"])
def test_what_an_alias_leads_to_in_another_zone_is_truncated_like_all_else(table, ad):
    query = {"use_edns": False, "flags": dns.flags.RD | ad}

    short = Asker(table)("to-long.example.test.", "TXT", **query)
    whole = Asker(table, udp=False)("to-long.example.test.", "TXT", **query)

    assert short.flags == dns.flags.QR | dns.flags.AA | dns.flags.TC | dns.flags.RD
    assert said(short)[2:] == ([], [], [])
    assert len(whole.answer) == 2


def test_a_chain_ends_after_sixteen_aliases():
    zone = "long.test. 60 SOA . . 1 2 3 4 5\n" + "".join(
        f"a{i}.long.test. 60 CNAME a{i + 1}.long.test.\n" for i in range(40)
    )

    reply = Asker(table_of({"long.test.": zone}), udp=False)("a0.long.test.")

    assert reply.rcode() == 0
    assert len(reply.answer) == 16


def test_what_was_kept_for_old_tables_is_let_go_as_fast_as_it_gathers():
    table = table_of(
        {"example.test.": "example.test. 60 SOA . . 1 2 3 4 5\nwww.example.test. 60 A 192.0.2.1\n"}
    )
    asker = Asker(table)

    for turn in range(200):
        table.apply(changes_of(read_zone("example.test.", f"example.test. 60 SOA . . {turn} 2 3 4 5\n")))
        for _ in range(3):
            asker("www.example.test.")

    assert len(asker.responder._fading) <= 2
