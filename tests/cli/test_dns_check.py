"""What `edgecli dns check` finds in a zone's records."""

import pytest

from edgestead.cli.zone.dns_check import dmarc, findings, spf

ZONE = "example.com"
SOUND = [
    ("A", "example.com", "192.0.2.1"),
    ("AAAA", "www.example.com", "2001:db8::1"),
    ("MX", "example.com", "mail.example.com"),
    ("A", "mail.example.com", "192.0.2.2"),
    ("TXT", "example.com", '"v=spf1 mx ip4:192.0.2.0/24 include:_spf.example.net -all"'),
    ("TXT", "_dmarc.example.com", '"v=DMARC1; p=reject; rua=mailto:a@example.com; pct=50; adkim=s"'),
    ("CNAME", "alias.example.com", "www.example.com"),
    ("CNAME", "away.example.com", "host.example.net"),
    ("A", "*.wild.example.com", "192.0.2.3"),
    ("CNAME", "covered.example.com", "any.wild.example.com"),
    ("NS", "child.example.com", "ns.child.example.com"),
    ("A", "ns.child.example.com", "192.0.2.4"),
    ("CNAME", "into.example.com", "www.child.example.com"),
    ("SRV", "_sip._tcp.example.com", {"target": "www.example.com"}),
    ("HTTPS", "example.com", {"target": "."}),
]
BROKEN = {
    # records added, words of the finding, its level
    "dangling": (
        ("CNAME", "x.example.com", "gone.example.com"),
        "gone.example.com, which does not",
        "broken",
    ),
    "ring": (("CNAME", "x.example.com", "x.example.com"), "leads back to itself", "broken"),
    "mail": (("MX", "example.com", "gone.example.com"), "gone.example.com, which has no address", "broken"),
    "mail to an alias": (("MX", "example.com", "alias.example.com"), "is an alias (RFC 2181", "broken"),
    "service": (("SRV", "_x._tcp.example.com", {"target": "gone.example.com"}), "no address here", "broken"),
    "glue": (("NS", "sub.example.com", "ns.sub.example.com"), "ns.sub.example.com, which has no", "broken"),
    "asterisk": (("NS", "*.sub.example.com", "ns.example.net"), "delegates an asterisk", "broken"),
    "beside": (("TXT", "alias.example.com", '"x"'), "TXT beside a CNAME", "hint"),
    "below": (("TXT", "x.child.example.com", '"x"'), "below child.example.com, which is delegated", "hint"),
    "two policies": (("TXT", "example.com", '"v=spf1 -all"'), "several SPF policies", "broken"),
    "two DMARC": (("TXT", "_dmarc.example.com", '"v=DMARC1; p=none"'), "several policies", "broken"),
    "no DMARC": (("TXT", "_dmarc.sub2.example.com", '"hello"'), "there is no policy", "broken"),
}


def record(kind, name, content):
    held = {"type": kind, "name": name, "content": content if isinstance(content, str) else ""}
    return held | ({"data": content} if isinstance(content, dict) else {})


def found(*rows, name_servers=()):
    return findings(ZONE, name_servers, [record(*row) for row in rows])


def test_a_sound_zone_has_no_findings():
    assert found(*SOUND) == []


@pytest.mark.parametrize(("row", "words", "level"), BROKEN.values(), ids=BROKEN)
def test_what_is_wrong_is_found(row, words, level):
    (one,) = found(*SOUND, row)

    assert (one.level, words in one.words) == (level, True), one


def test_a_zone_without_records_only_gets_hints():
    assert [one.level for one in found()] == ["hint"]


def test_a_name_server_of_the_zone_needs_an_address_in_it():
    assert found(*SOUND, name_servers=["ns1.example.net", "mail.example.com"]) == []
    (one,) = found(*SOUND, name_servers=["ns9.example.com"])
    assert (one.level, one.name) == ("broken", "ns9.example.com")


def test_mail_without_dmarc_is_a_hint_and_what_is_broken_comes_first():
    rows = [row for row in SOUND if row[1] != "_dmarc.example.com"]

    levels = [one.level for one in found(*rows, ("CNAME", "x.example.com", "gone.example.com"))]

    assert levels == ["broken", "hint"]


SPF = {
    "v=spf1 -all": [],
    "v=spf1 a mx/24 a:example.com/24//64 ip6:2001:db8::/32 exists:%{i}.x.test ?all": [],
    "v=spf1 redirect=_spf.example.net": [],
    "v=spf1 unknown=x -all": [],
    "v=spf1 ip4:192.0.2.256 -all": ["broken"],
    "v=spf1 ip6:192.0.2.1 -all": ["broken"],
    "v=spf1 include: -all": ["broken"],
    "v=spf1 inklude:x.test -all": ["broken"],
    "v=spf1 +all": ["hint"],
    "v=spf1 mx": ["hint"],
    "v=spf1 -all mx": ["hint"],
    "v=spf1 " + "a " * 11 + "-all": ["broken"],
    "v=spf1 " + "a " * 10 + "-all": [],
}
DMARC = {
    "v=DMARC1; p=none": [],
    "v=DMARC1;p=quarantine;sp=reject;aspf=r;rua=mailto:a@x.test,mailto:b@x.test!10m;": [],
    "v=DMARC1": ["broken"],
    "v=dmarc1; p=none": ["broken"],
    "v=DMARC1; p=maybe": ["broken"],
    "v=DMARC1; p=none; p=none": ["broken"],
    "v=DMARC1; p=none; pct=101": ["broken"],
    "v=DMARC1; p=none; rua=a@x.test": ["broken"],
    "v=DMARC1; p=none; adkim=x": ["broken"],
    "v=DMARC1; p=none; zzz=1": ["hint"],
    "v=DMARC1; p=none; broken": ["broken"],
}


@pytest.mark.parametrize(("policy", "levels"), SPF.items())
def test_spf(policy, levels):
    assert [level for level, _ in spf(policy)] == levels


@pytest.mark.parametrize(("policy", "levels"), DMARC.items())
def test_dmarc(policy, levels):
    assert [level for level, _ in dmarc(policy)] == levels
