"""Input without an end, and the widest and deepest there is, to each parser that reads what strangers send.

A row has a parser, and its input as a generator that never ends. It is fed until the parser refuses, or as
far as its callers let it: then it returns. It may hold 32 MiB by `tracemalloc`, and refuses by its own name.
HTTP itself is in tests/http1/test_budgets.py.
"""

import tracemalloc
from itertools import chain, islice, repeat

import pytest
from hyperframe.frame import ContinuationFrame, HeadersFrame, SettingsFrame

from edgestead.dns.query import read as read_query
from edgestead.dns.tcp import QUERY_OCTETS_MAX
from edgestead.dns.tsig import find as find_tsig
from edgestead.dns.update import MESSAGE_OCTETS_MAX as UPDATE_OCTETS_MAX
from edgestead.dns.update import read as read_update
from edgestead.dns.wire import BadMessage, expand_name
from edgestead.edge.http import hello, proxy_header
from edgestead.feed.protocol import FRAME_BYTES_MAX, Frames, ProtocolError
from edgestead.language.errors import FilterError
from edgestead.language.parser import parse_filter
from edgestead.model import zonefile
from edgestead.model.jsonarray import ArrayItems, ItemTooLong, NotAnArray
from edgestead.model.names import wire_from_text
from edgestead.model.refusals.record import LineUnreadable
from edgestead.model.refusals.request import InvalidBody
from edgestead.rest import body as json_body
from edgestead.rest.limits import BODY_BYTES_MAX, ZONE_FILE_BYTES_MAX
from edgestead.waf.bodies import form, xml
from edgestead.waf.bodies import json as waf_json
from edgestead.waf.transaction import Refused
from tests.edge.http2_client import Http2Client, http2_bench

MEMORY_BYTES_MAX = 32 << 20
INSPECTED_BYTES_MAX = 128 << 10
ITEM_BYTES_MAX = 4 << 20
FILTER = "http_request_firewall_custom"
QUERY = b"\1\0\0\1\0\0\0\0\0\0"  # without its ID
MESSAGE = b"\0\0\x28\0\0\0\0\0\0\0\xff\xff"  # an update of 65,535 additional records
MESSAGE_OCTETS_MAX = 65_535
LONGEST_FRAME = b"\xff\xff\xff\0\0\0\0\0\1"
UPDATE = b"\0\0\x28\0\0\1\0\0\3\xe7\0\0\0\0\6\0\1"  # of 999 records to the root


def piece(text, octets):
    """So many octets of a text that repeats for ever."""
    return b"".join(islice(repeat(text), -(-octets // len(text))))[:octets]


def items(data):
    reader = ArrayItems(item_bytes_max=ITEM_BYTES_MAX)
    return sum(len(list(reader.feed(part))) for part in data)


def frames(data):
    reader = Frames()
    return sum(len(list(reader.feed(part))) for part in data)


def zone_file(data):
    return sum(1 for _ in zonefile.read(data.decode(), wire_from_text("example.com")))


def drained(steps):
    return sum(1 for _ in steps)


def endless(first, again, octets):
    """Portions of a stream: what it begins with, and what follows for ever; cut off after so many octets."""
    return chain([first], repeat(again, octets // len(again)))


def http2(data):
    """A connection is fed until it is closed."""
    client = Http2Client(http2_bench())
    client.edge.data_received(client.h2.data_to_send())
    for part in data:
        if client.transport.state != "open":
            return
        client.edge.data_received(part)
    pytest.fail("it goes on taking that")


def http2_fields(again):
    """A request's fields without an end, none of them known to the table of the compression."""
    return endless(
        HeadersFrame(1, data=b"").serialize(), ContinuationFrame(1, data=again).serialize(), 1 << 26
    )


# name: (parser, input, what it may raise; without any it has to end by itself)
ROWS = {
    "json: arrays inside one another": (
        lambda data: json_body.decode(data, dict),
        lambda: piece(b"[", BODY_BYTES_MAX),
        InvalidBody,
    ),
    "json: objects inside one another": (
        lambda data: json_body.decode(data, dict),
        lambda: piece(b'{"a":', BODY_BYTES_MAX),
        InvalidBody,
    ),
    "json: a wide array": (
        lambda data: json_body.decode(data, list),
        lambda: b"[" + piece(b"[],", 3 * (BODY_BYTES_MAX // 3 - 1)) + b"[]]",
        (),
    ),
    "json: a number": (
        lambda data: json_body.decode(data, int),
        lambda: piece(b"9", BODY_BYTES_MAX),
        InvalidBody,
    ),
    "a bulk of values: no item ends": (
        items,
        lambda: endless(b'[{"key":"', b"x" * 65_536, 1 << 30),
        ItemTooLong,
    ),
    "a bulk of values: brackets": (
        items,
        lambda: endless(b"[", b"[" * 65_536, 1 << 30),
        NotAnArray,
    ),
    "a bulk of values: blanks": (items, lambda: endless(b"[", b" " * 65_536, 1 << 27), ItemTooLong),
    "a zone file: one line": (zone_file, lambda: piece(b"a", ZONE_FILE_BYTES_MAX // 16), LineUnreadable),
    "a zone file: an open parenthesis": (
        zone_file,
        lambda: b"a TXT (" + piece(b'"b"\n', ZONE_FILE_BYTES_MAX),
        LineUnreadable,
    ),
    "a zone file: $GENERATE": (
        zone_file,
        lambda: piece(b"$GENERATE 0-2147483647 h$ A 192.0.2.1\n", ZONE_FILE_BYTES_MAX),
        LineUnreadable,
    ),
    "http/2: fields": (http2, lambda: http2_fields(b"\x40\x01a\x7f\xe1\x1f" + b"x" * 4_192), ()),
    "http/2: a field": (http2, lambda: http2_fields(b"\x00\x01a\x7f\xff\xff\xff\x3f" + b"x" * 16_000), ()),
    "http/2: fields of two octets": (http2, lambda: http2_fields(b"\x40\x01a\x00" * 4_000), ()),
    "http/2: a frame": (
        http2,
        lambda: endless(b"\xff\xff\xff\x00\x00\x00\x00\x00\x01", b"x" * 65_536, 1 << 26),
        (),
    ),
    "http/2: settings": (
        http2,
        lambda: endless(b"", SettingsFrame(0, settings={0xFF00: 1}).serialize() * 100, 1 << 22),
        (),
    ),
    "the feed: a frame": (
        frames,
        lambda: endless(b"\xff\xff\xff\xff", b"x" * 65_536, 1 << 30),
        ProtocolError,
    ),
    "the feed: an allowed length": (
        frames,
        lambda: endless((FRAME_BYTES_MAX + 1).to_bytes(4, "big"), b"x" * 65_536, 1 << 30),
        ProtocolError,
    ),
    "update: records": (read_update, lambda: UPDATE + piece(b"\0" * 11, UPDATE_OCTETS_MAX), BadMessage),
    "update: labels": (read_update, lambda: UPDATE + piece(b"\1a", UPDATE_OCTETS_MAX), BadMessage),
    "update: pointers": (read_update, lambda: UPDATE + piece(b"\xc0\x0c", UPDATE_OCTETS_MAX), BadMessage),
    "tsig: records": (find_tsig, lambda: MESSAGE + piece(b"\0" * 11, MESSAGE_OCTETS_MAX), BadMessage),
    "tsig: labels": (find_tsig, lambda: MESSAGE + piece(b"\1a", MESSAGE_OCTETS_MAX), BadMessage),
    "tsig: pointers": (
        lambda data: expand_name(data, len(data) - 2),
        lambda: b"".join((0xC000 | max(0, at - 2)).to_bytes(2, "big") for at in range(0, 0x4000, 2)),
        BadMessage,
    ),
    "dns: a name": (read_query, lambda: QUERY + piece(b"\1a", QUERY_OCTETS_MAX), BadMessage),
    "dns: a ring of pointers": (read_query, lambda: QUERY + b"\xc0\x0a" + piece(b"\0", 4), BadMessage),
    "dns: records": (
        read_query,
        lambda: QUERY[:8] + b"\xff\xff\0\0\1\0\1" + piece(b"\0\0\x29\x04\xd0\0\0\0\0\0\0", QUERY_OCTETS_MAX),
        BadMessage,
    ),
    "dns: EDNS options": (
        read_query,
        lambda: (
            QUERY[:8] + b"\0\1\0\0\1\0\1\0\0\x29\x04\xd0\0\0\0\0\x0f\xa0" + piece(b"\xff\xff\xff\xff", 4_000)
        ),
        BadMessage,
    ),
    "PROXY: a line": (proxy_header.read, lambda: b"PROXY " + piece(b"x", 5_000), proxy_header.BadHeader),
    "PROXY: extensions": (
        proxy_header.read,
        lambda: b"\r\n\r\n\0\r\nQUIT\n\x21\x11\xff\xff" + piece(b"\0", 5_000),
        proxy_header.BadHeader,
    ),
    "TLS: a hello": (
        hello.read,
        lambda: b"\x16\3\1\x40\0\1\xff\xff\xff" + piece(b"x", hello.HELLO_BYTES_MAX),
        hello.NoHello,
    ),
    "TLS: tiny records": (hello.read, lambda: piece(b"\x16\3\1\0\1\1", hello.HELLO_BYTES_MAX), hello.NoHello),
    "an expression: parentheses": (
        lambda text: parse_filter(text.decode(), FILTER),
        lambda: piece(b"(", 1 << 20),
        FilterError,
    ),
    "an expression: not": (
        lambda text: parse_filter(text.decode(), FILTER),
        lambda: piece(b"not ", 4_000),
        FilterError,
    ),
    "inspected: a form": (
        lambda data: drained(form.reading(data)),
        lambda: piece(b"a&", INSPECTED_BYTES_MAX),
        (),
    ),
    "inspected: json, deep": (
        lambda data: drained(waf_json.reading(data)),
        lambda: piece(b"[", INSPECTED_BYTES_MAX),
        (Refused, ValueError),
    ),
    "inspected: json, wide": (
        lambda data: drained(waf_json.reading(data)),
        lambda: b"[" + piece(b"0,", INSPECTED_BYTES_MAX - 2) + b"0]",
        (Refused, ValueError),
    ),
    "inspected: xml, deep": (
        lambda data: drained(xml.reading(data)),
        lambda: piece(b"<a>", INSPECTED_BYTES_MAX),
        (Refused, ValueError),
    ),
    "inspected: xml, wide": (
        lambda data: drained(xml.reading(data)),
        lambda: b"<a>" + piece(b"<b/>", INSPECTED_BYTES_MAX),
        (Refused, ValueError),
    ),
    "inspected: xml, entities": (
        lambda data: drained(xml.reading(data)),
        lambda: b"<!DOCTYPE a [<!ENTITY b '" + piece(b"c", 1_000) + b"'><!ENTITY d '&b;&b;&b;'>]><a>&d;</a>",
        (Refused, ValueError),
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_input_without_an_end_is_refused_by_name_and_holds_little(name):
    parse, make, refusals = ROWS[name]
    data = make()
    tracemalloc.start()
    try:
        if refusals:
            with pytest.raises(refusals):
                parse(data)
        else:
            parse(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak <= MEMORY_BYTES_MAX
