"""What is answered for each type of record and each usual spelling of it, as a table.

Owns  the rows, and the page docs/reference/sent-and-answered.md, which is written from them:
      `.venv/bin/python -m tests.sent_and_answered`.
Not   what is refused (tests/rest/test_records.py); asking (tests/rest/test_sent_and_answered.py in both
      profiles, tests/clients/test_readers.py with families of clients).

A row without a name has one of its own. In names `{zone}` stands for the zone's.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "sent-and-answered.md"
HEX = "ab" * 32
LONG = "v=DKIM1; p=" + "A" * 344  # 355 octets: two strings
Json = dict[str, Any]
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Row(NamedTuple):
    """`answered` holds the members that differ from those sent, or that matter beside them; `clients` those
    that the profile of that name answers otherwise.
    """

    type: str
    sent: Json
    answered: Mapping[str, Any] = _NOTHING
    clients: Mapping[str, Any] = _NOTHING
    name: str = ""
    shown_name: str = ""


class Case(NamedTuple):
    """A row with its names in a zone: the body to send, and what each profile answers."""

    sent: Json
    spec: Json
    clients: Json


A = {"content": "192.0.2.1"}
SRV = {"priority": 10, "weight": 5, "port": 5060, "target": "sip.example.net"}
SRV_WORDS = "5 5060 sip.example.net"
CAA = {"flags": 0, "tag": "issue", "value": "ca.example"}
TLSA = {"usage": 3, "selector": 1, "matching_type": 1, "certificate": HEX}
SSHFP = {"algorithm": 4, "type": 2, "fingerprint": HEX}
CERT = {"type": 1, "key_tag": 2, "algorithm": 8, "certificate": "AQID"}
DS = {"key_tag": 1, "algorithm": 13, "digest_type": 2, "digest": HEX}
NAPTR = {
    "order": 30,
    "preference": 100,
    "flags": "S",
    "service": "SIP+D2T",
    "regex": "",
    "replacement": "_sip._tcp.example.net",
}
LOC = {
    "lat_degrees": 37,
    "lat_minutes": 46,
    "lat_seconds": 46,
    "lat_direction": "N",
    "long_degrees": 122,
    "long_minutes": 23,
    "long_seconds": 35,
    "long_direction": "W",
    "altitude": 0,
    "size": 100,
    "precision_horz": 0,
    "precision_vert": 0,
}
SVCB = {"priority": 1, "target": ".", "value": 'alpn="h3,h2"'}


def as_text(data: Mapping[str, Any]) -> Json:
    """Numbers as text, as older clients and configurations send them."""
    return {name: str(value) for name, value in data.items()}


ROWS = (
    Row("A", A, name="short", shown_name="short.{zone}"),
    Row("A", A, name="full.{zone}"),
    Row("A", A, name="dot.{zone}.", shown_name="dot.{zone}"),
    Row("A", A, name="UPPER.{zone}", shown_name="upper.{zone}"),
    Row("A", A, name="@", shown_name="{zone}"),
    Row("A", A, name="*", shown_name="*.{zone}"),
    Row("A", A, name="_under.{zone}"),
    Row("A", A, name="münchen", shown_name="xn--mnchen-3ya.{zone}"),
    Row("AAAA", {"content": "2001:db8::10"}),
    Row("AAAA", {"content": "2001:DB8::10"}, {"content": "2001:db8::10"}),
    Row("AAAA", {"content": "2001:DB8:0::2"}, {"content": "2001:db8::2"}),
    Row("AAAA", {"content": "2001:0db8:0000:0000:0000:0000:0000:0003"}, {"content": "2001:db8::3"}),
    Row("CNAME", {"content": "target.example.net"}),
    Row("CNAME", {"content": "Target.Example.net."}, {"content": "target.example.net"}),
    Row("CNAME", {"content": "target.example.net", "proxied": True}),
    Row("MX", {"content": "mx.example.net", "priority": 10}),
    Row("MX", {"content": "MX.example.net.", "priority": 10}, {"content": "mx.example.net"}),
    Row("MX", {"content": "mx.example.net", "priority": "20"}, {"priority": 20}),
    Row("MX", {"content": "mx.example.net", "priority": 0}),
    Row("MX", {"content": ".", "priority": 0}),
    Row("NS", {"content": "ns1.example.net"}, name="deleg.{zone}"),
    Row("NS", {"content": "NS2.example.net."}, {"content": "ns2.example.net"}, name="deleg.{zone}"),
    Row("PTR", {"content": "host.example.net"}),
    Row("PTR", {"content": "Host.example.net."}, {"content": "host.example.net"}),
    Row("TXT", {"content": '"in quotes"'}),
    Row("TXT", {"content": "bare"}, {"content": '"bare"'}, {"content": "bare"}),
    Row("TXT", {"content": "v=spf1 -all"}, {"content": '"v=spf1 -all"'}, {"content": "v=spf1 -all"}),
    Row("TXT", {"content": "Capitals; kept"}, {"content": '"Capitals; kept"'}, {"content": "Capitals; kept"}),
    Row("TXT", {"content": '"two" "strings"'}),
    Row("TXT", {"content": '"two"   "strings"'}, {"content": '"two" "strings"'}),
    Row("TXT", {"content": LONG}, {"content": f'"{LONG[:255]}" "{LONG[255:]}"'}, {"content": LONG}),
    Row("TXT", {"content": f'"{LONG[:255]}" "{LONG[255:]}"'}),
    Row("CAA", {"data": CAA}, {"content": '0 issue "ca.example"'}),
    Row("CAA", {"data": as_text(CAA)}, {"data": CAA}),
    Row("CAA", {"content": '0 issue "ca.example"'}, {"data": CAA}),
    Row("SRV", {"data": SRV}, {"content": SRV_WORDS, "priority": 10}, name="_a._tcp.{zone}"),
    Row("SRV", {"data": SRV, "priority": 10}, name="_b._tcp.{zone}"),
    Row("SRV", {"data": as_text(SRV)}, {"data": SRV, "priority": 10}, name="_c._tcp.{zone}"),
    Row(
        "SRV",
        {"data": SRV | {"target": "SIP.example.net."}},
        {"data": SRV, "priority": 10},
        name="_d._tcp.{zone}",
    ),
    Row("SRV", {"content": SRV_WORDS, "priority": 10}, {"data": SRV}, name="_e._tcp.{zone}"),
    Row(
        "SRV",
        {"content": f"10 {SRV_WORDS}"},
        {"content": SRV_WORDS, "data": SRV, "priority": 10},
        name="_f._tcp.{zone}",
    ),
    Row("URI", {"priority": 5, "data": {"weight": 1, "target": "http://example.net/x"}}),
    Row(
        "URI",
        {"priority": "5", "data": {"weight": "1", "target": "http://example.net/x"}},
        {"priority": 5, "data": {"weight": 1, "target": "http://example.net/x"}},
    ),
    Row("NAPTR", {"data": NAPTR}),
    Row("NAPTR", {"data": as_text(NAPTR)}, {"data": NAPTR}),
    Row("DS", {"data": DS}, name="deleg.{zone}"),
    Row(
        "DS",
        {"data": as_text(DS | {"key_tag": 2})},
        {"data": DS | {"key_tag": 2}},
        name="deleg.{zone}",
    ),
    Row("SSHFP", {"data": SSHFP}, {"content": f"4 2 {HEX}"}),
    Row("SSHFP", {"data": as_text(SSHFP)}, {"data": SSHFP}),
    Row("SSHFP", {"data": SSHFP | {"fingerprint": HEX.upper()}}),
    Row("TLSA", {"data": TLSA}, name="_443._tcp.{zone}"),
    Row("TLSA", {"data": as_text(TLSA)}, {"data": TLSA}, name="_444._tcp.{zone}"),
    Row("SMIMEA", {"data": TLSA}),
    Row("SMIMEA", {"data": as_text(TLSA)}, {"data": TLSA}),
    Row("CERT", {"data": CERT}),
    Row("CERT", {"data": as_text(CERT)}, {"data": CERT}),
    # With a comment: the Python SDK's type of this one alone has no null there, which other types have.
    Row("OPENPGPKEY", {"content": "AQIDBA==", "comment": "a key"}),
    Row("LOC", {"data": LOC}),
    Row("LOC", {"data": as_text(LOC)}, {"data": LOC}),
    Row("LOC", {"content": "37 46 46.000 N 122 23 35.000 W 0.00 100.00 0.00 0.00"}, {"data": LOC}),
    Row("SVCB", {"data": SVCB | {"target": "svc.example.net"}}),
    Row("SVCB", {"data": {"priority": "1", "target": ".", "value": 'alpn="h3,h2"'}}, {"data": SVCB}),
    Row("HTTPS", {"data": SVCB}, {"content": '1 . alpn="h3,h2"'}),
    Row("HTTPS", {"data": SVCB | {"value": "alpn=h2 port=8443"}}),
)


def cases(zone: str) -> Iterator[Case]:
    """Every row with its names in a zone. All can be there at the same time."""
    for number, row in enumerate(ROWS, 1):
        name = (row.name or f"r{number}.{{zone}}").format(zone=zone)
        shown = (row.shown_name or name).format(zone=zone)
        sent = {"type": row.type, "name": name, "ttl": 1, **row.sent}
        spec = {**sent, "name": shown, **row.answered}
        yield Case(sent, spec, {**spec, **row.clients})


_HEAD = """# What is sent, and what is answered

<!-- Written by tests/sent_and_answered.py; change the table there instead. -->

Clients that keep what they wrote compare it with what the server answers: each difference below is one that
such a client sees at every look, and that no write of the same ends. To have none, write what stands under
*answered*. Every row is written and read in both profiles, and written again as it was sent and as it was
answered. Three families of clients write and read it under `--profile clients`: the Python SDK 5 with its
types checked, the older Python library (2.19) and the Node SDK 7.

A member that is not named is answered as it was sent, and *the same* is said of a whole row; further members
may stand beside. Names are those of the zone `example.com`; a row that shows none was sent a full one.

Not in the table: SOA, which is [a view of a DNS setting](settings.md#soa); DNSKEY, which needs
`dnssec_multi_signer`; and [DHCID](record-types.md#dhcid) and [DNAME](record-types.md#dname), which none of
these clients has a type of.

* SRV: `priority` is answered in `data` and at the top, as the specification has it. A configuration that
  names it only in `data` sees the other one come, with the hosted service too: write both.
* Numbers in text, as `"flags": "0"` of CAA, are taken and answered as numbers. An import into a configuration
  that has them as text differs until the configuration has numbers.
* OPENPGPKEY: a record without a comment answers null, as every other; the Python SDK's type admits a text
  only, which it tells nobody unless it is asked to check answers strictly.
* TXT: in the default profile content gets quotes; `--profile clients` answers what was sent.

The SDK for Go is not among the readers that run with the tests: it is in Go's own registry of modules alone,
and the tests install from Debian, PyPI and npm. By hand its release 2.4.0, built from its source with Go
1.19, wrote and read each row on 2026-11-23, as created, as read and in the list. Its type of SRV has no
`priority` at the top; it has no type of OPENPGPKEY, and reads such a record as another.
"""


def page() -> str:
    """The reference page."""
    lines = _HEAD.splitlines()
    last = ""
    for row, case in zip(ROWS, cases("example.com"), strict=True):
        if row.type != last:
            last = row.type
            lines += ["", f"## {row.type}", ""]
            lines += ["| sent | answered | with `--profile clients` |", "| --- | --- | --- |"]
        named = {"name": row.name.format(zone="example.com")} if row.name else {}
        renamed = {"name": case.spec["name"]} if case.spec["name"] != case.sent["name"] else {}
        answered = _cell({**renamed, **row.answered})
        lines.append(
            f"| {_cell(named | row.sent)} | {answered} | {_cell(row.clients) if row.clients else ''} |"
        )
    return "\n".join(lines) + "\n"


def _cell(members: Mapping[str, Any]) -> str:
    """The members as JSON, in a table of Markdown; what is long in part."""
    if not members:
        return "the same"
    shown = {name: _short(value) for name, value in members.items()}
    return f"`{json.dumps(shown, ensure_ascii=False)[1:-1]}`".replace("|", "\\|")


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _short(one) for name, one in value.items()}
    is_long = isinstance(value, str) and len(value) > 100
    return f"{value[:20]}… ({len(value)} characters)" if is_long else value


if __name__ == "__main__":
    PAGE.write_text(page())
