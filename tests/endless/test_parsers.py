"""Input without an end, and the widest and deepest there is, to each parser that reads what strangers send.

A row has a parser, and its input as a generator that never ends. It is fed until the parser refuses, or as
far as its callers let it: then it returns. It may hold 32 MiB by `tracemalloc`, and refuses by its own name.
Twice the input is at most 2.2 times the work, counted in lines of Python: what C does with it is not seen.
HTTP itself is in tests/http1/test_budgets.py.
"""

import asyncio
import base64
import gc
import io
import json
import os
import sys
import tempfile
import tracemalloc
from itertools import chain, repeat
from unittest.mock import Mock

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
from edgestead.model.kv import BULK_BYTES_MAX, VALUE_BYTES_MAX
from edgestead.model.names import wire_from_text
from edgestead.model.refusals.account import PasskeyRefused
from edgestead.model.refusals.certificate import CertificateUnreadable, KeyRefused, OriginRequestRefused
from edgestead.model.refusals.kv import KvBodyInvalid
from edgestead.model.refusals.record import LineUnreadable
from edgestead.model.refusals.request import InvalidBody
from edgestead.objects.runtime.wire import Answering
from edgestead.rest import body as json_body
from edgestead.rest import form as multipart_form
from edgestead.rest.limits import BODY_BYTES_MAX, JSON_VALUES_MAX, KEYS_BODY_BYTES_MAX, ZONE_FILE_BYTES_MAX
from edgestead.store.kv import Blob
from edgestead.usecases.access import webauthn
from edgestead.usecases.certificate import reading, signing
from edgestead.usecases.kv import values as kv_values
from edgestead.usecases.kv.values import READ_BYTES
from edgestead.usecases.limits import PASSKEY_ANSWER_BYTES_MAX
from edgestead.waf.bodies import form, xml
from edgestead.waf.bodies import json as waf_json
from edgestead.waf.bodies.multipart import Multipart
from edgestead.waf.transaction import Refused
from tests.edge.http2_client import Http2Client, http2_bench

MEMORY_BYTES_MAX = 32 << 20
INSPECTED_BYTES_MAX = 128 << 10
VALUE_FRAME_BYTES = len('[{"key":"k","value":""}]')
FILTER = "http_request_firewall_custom"
QUERY = b"\1\0\0\1\0\0\0\0\0\0"  # without its ID
MESSAGE = b"\0\0\x28\0\0\0\0\0\0\0\xff\xff"  # an update of 65,535 additional records
MESSAGE_OCTETS_MAX = 65_535
LONGEST_FRAME = b"\xff\xff\xff\0\0\0\0\0\1"
UPDATE = b"\0\0\x28\0\0\1\0\0\3\xe7\0\0\0\0\6\0\1"  # of 999 records to the root


def piece(text, octets):
    """So many octets of a text that repeats for ever."""
    return (text * -(-octets // len(text)))[:octets]


class BulkBody(io.RawIOBase):
    """A file as long as a bulk's body may be: its begin, what follows again and again, its end."""

    def __init__(self, first, again, last=b"", octets=BULK_BYTES_MAX):
        self._first, self._last, self._at = first, last, 0
        self._until = max(octets - len(last), len(first))
        self._again = again * (2 * READ_BYTES // len(again) + 1)
        self._period = len(again)

    def seek(self, at, whence=os.SEEK_SET):
        assert whence == os.SEEK_SET
        self._at = at
        return at

    def read(self, octets=-1):
        begin = self._at
        if begin < len(self._first):
            part = self._first[begin : begin + octets]
        elif begin < self._until:
            past = (begin - len(self._first)) % self._period
            part = self._again[past : past + min(octets, self._until - begin)]
        else:
            part = self._last[begin - self._until :][:octets]
        self._at += len(part)
        return part


class Nowhere:
    """Large values go there; what is held for them is not the parser's."""

    def __init__(self):
        self.blobs, self.length = self, 0

    def create(self):
        return self

    def write(self, chunk):
        self.length += len(chunk)

    def finish(self):
        return Blob("0" * 32, self.length, bytes(32))

    def discard(self):
        pass


def bulk_put(body):
    with tempfile.TemporaryFile() as staging:
        return kv_values.stage(body, staging, Nowhere(), now_s=0, blanks=False, pause=lambda: None).count


def bulk_delete(body):
    return len(kv_values.keys_to_delete(body, blanks=False, pause=lambda: None))


def frames(data):
    reader = Frames()
    return sum(len(list(reader.feed(part))) for part in data)


def zone_file(data):
    return sum(1 for _ in zonefile.read(data.decode(), wire_from_text("example.com")))


def drained(steps):
    return sum(1 for _ in steps)


def multipart(data):
    return drained(Multipart(b"multipart/form-data; boundary=x").reading(data))


def form_parts(parts):
    """A form in portions, as a body comes."""

    async def chunks():
        for part in parts:
            yield part

    async def read():
        return [len(portion) async for _, portion in multipart_form.portions(chunks(), b"x")]

    asyncio.run(read())


def passkey(attestation):
    """An authenticator's answer to a page that makes a key."""
    told = json.dumps(
        {"type": "webauthn.create", "challenge": "AAAA", "origin": "https://a.test", "crossOrigin": False}
    )
    answer = {
        "id": "AAAA",
        "rawId": "AAAA",
        "type": "public-key",
        "response": {"clientDataJSON": webtext(told.encode()), "attestationObject": webtext(attestation)},
        "clientExtensionResults": {},
    }
    return webauthn.registered(answer, "AAAA", "https://a.test")


def socket_frames(data):
    """A connection is fed until its end."""
    transport = Mock(is_closing=lambda: transport.abort.called)
    answering = Answering(None, set())
    answering.connection_made(transport)
    for part in data:
        if transport.abort.called:
            return
        answering.data_received(part)
    pytest.fail("it goes on taking that")


def webtext(octets):
    return base64.urlsafe_b64encode(octets).decode().rstrip("=")


def private_key(text):
    return reading._key_of(text.decode(), None)


PEM_CERTIFICATE = b"-----BEGIN CERTIFICATE-----\n"
PEM_CERTIFICATE_END = b"\n-----END CERTIFICATE-----"
PEM_KEY = b"-----BEGIN PRIVATE KEY-----\n"
PEM_REQUEST = b"-----BEGIN CERTIFICATE REQUEST-----\n"
PEM_FILLED = piece(b"MII/" * 16 + b"\n", BODY_BYTES_MAX - 200)
FORM_PART = b'--x\r\nContent-Disposition: form-data; name="value"\r\n\r\n'
CBOR_OCTETS = (PASSKEY_ANSWER_BYTES_MAX - 400) * 3 // 4  # as text in JSON


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
        InvalidBody,
    ),
    "json: the dearest of an allowed number of values": (
        lambda data: json_body.decode(data, list),
        lambda: b"[" + b'{"":[]},' * (JSON_VALUES_MAX // 3 - 1) + b"0]",
        (),
    ),
    "json: a number": (
        lambda data: json_body.decode(data, int),
        lambda: piece(b"9", BODY_BYTES_MAX),
        InvalidBody,
    ),
    "a bulk of values: a key": (bulk_put, lambda: BulkBody(b'[{"key":"', b"x"), KvBodyInvalid),
    "a bulk of values: a value": (bulk_put, lambda: BulkBody(b'[{"key":"k","value":"', b"x"), KvBodyInvalid),
    "a bulk of values: a value that ends": (
        bulk_put,
        lambda: BulkBody(b'[{"key":"k","value":"\xf0\x9f\x98\x80', b"x", b'"}]'),
        KvBodyInvalid,
    ),
    "a bulk of values: the longest value": (
        bulk_put,
        lambda: BulkBody(
            b'[{"key":"k","value":"\xf0\x9f\x98\x80', b"x", b'"}]', VALUE_BYTES_MAX + VALUE_FRAME_BYTES
        ),
        (),
    ),
    "a bulk of values: escapes": (
        bulk_put,
        lambda: BulkBody(b'[{"key":"k","value":"', rb"\ud83d\ude00\n", b'"}]', 14 * 4_000_000 + 21 + 3),
        (),
    ),
    "a bulk of values: base64": (
        bulk_put,
        lambda: BulkBody(b'[{"value":"', b"AAAA", b'","base64":true,"key":"k"}]', 30 << 20 | 11 + 27),
        (),
    ),
    "a bulk of values: many of the longest kind that is held": (
        bulk_put,
        lambda: BulkBody(
            b'[{"key":"k","value":""}', b',{"key":"k","value":"%b"}' % (b"\xc3\xa9" * 120_000), b"]"
        ),
        KvBodyInvalid,
    ),
    "a bulk of values: a name of a member": (bulk_put, lambda: BulkBody(b'[{"', b"x"), KvBodyInvalid),
    "a bulk of values: members": (
        bulk_put,
        lambda: BulkBody(b"[{", b'"%b":0,' % (b"a" * 100)),
        KvBodyInvalid,
    ),
    "a bulk of values: long members": (
        bulk_put,
        lambda: BulkBody(b'[{"a":""', b',"a":"%b"' % (b"x" * 300_000)),
        KvBodyInvalid,
    ),
    "a bulk of values: brackets": (bulk_put, lambda: BulkBody(b"[", b"["), KvBodyInvalid),
    "a bulk of values: numbers": (bulk_put, lambda: BulkBody(b"[", b"9"), KvBodyInvalid),
    "a bulk of values: blanks": (bulk_put, lambda: BulkBody(b"[", b" "), KvBodyInvalid),
    "a bulk of keys: a key": (
        bulk_delete,
        lambda: BulkBody(b'["', b"x", b'"]', KEYS_BODY_BYTES_MAX),
        KvBodyInvalid,
    ),
    "a bulk of keys: keys": (
        bulk_delete,
        lambda: BulkBody(b'["k"', b',"%b"' % (b"\xc3\xa9" * 256), b"", KEYS_BODY_BYTES_MAX),
        KvBodyInvalid,
    ),
    "a form: its first boundary": (form_parts, lambda: endless(b"--", b"y" * 65_536, 1 << 26), KvBodyInvalid),
    "a form: a header": (
        form_parts,
        lambda: endless(b"--x\r\nContent-Disposition: ", b"y" * 65_536, 1 << 26),
        KvBodyInvalid,
    ),
    "a form: headers": (form_parts, lambda: endless(b"--x\r\n", b"a: b\r\n" * 8_192, 1 << 26), KvBodyInvalid),
    "a form: parts": (
        form_parts,
        lambda: endless(b"", (FORM_PART + b"v\r\n") * 1_024, 1 << 26),
        KvBodyInvalid,
    ),
    "a form: what may be a boundary": (
        form_parts,
        lambda: endless(FORM_PART + b"v", b"\r\n--y" * 8_192, VALUE_BYTES_MAX),
        KvBodyInvalid,
    ),
    "a passkey: arrays inside one another": (passkey, lambda: piece(b"\x81", CBOR_OCTETS), PasskeyRefused),
    "a passkey: a wide array": (
        passkey,
        lambda: b"\x9a\xff\xff\xff\xff" + piece(b"\x80", CBOR_OCTETS),
        PasskeyRefused,
    ),
    "a passkey: an array of what is not there": (
        passkey,
        lambda: b"\x9b" + b"\x7f" * 8 + piece(b"\x00", CBOR_OCTETS),
        PasskeyRefused,
    ),
    "a passkey: a text": (
        passkey,
        lambda: b"\x7a\xff\xff\xff\xff" + piece(b"x", CBOR_OCTETS),
        PasskeyRefused,
    ),
    "a certificate: a long one": (
        lambda data: reading.certificates_in(data.decode()),
        lambda: PEM_CERTIFICATE + PEM_FILLED,
        CertificateUnreadable,
    ),
    "a certificate: as long as may be": (
        lambda data: reading.certificates_in(data.decode()),
        lambda: (
            (PEM_CERTIFICATE + PEM_FILLED)[: reading.CHAIN_CHARACTERS_MAX - 26]
            + b"\n-----END CERTIFICATE-----"
        ),
        CertificateUnreadable,
    ),
    "a certificate: empty ones": (
        lambda data: reading.certificates_in(data.decode()),
        lambda: piece(PEM_CERTIFICATE + b"MAA=\n-----END CERTIFICATE-----\n", reading.CHAIN_CHARACTERS_MAX),
        CertificateUnreadable,
    ),
    "a private key": (
        private_key,
        lambda: (PEM_KEY + PEM_FILLED)[: reading.KEY_CHARACTERS_MAX - 26] + b"\n-----END PRIVATE KEY-----",
        KeyRefused,
    ),
    "a certificate's request": (
        lambda data: signing.read_request(data.decode()),
        lambda: (PEM_REQUEST + PEM_FILLED)[: signing.REQUEST_CHARACTERS_MAX],
        OriginRequestRefused,
    ),
    "a socket of ours: a frame": (
        socket_frames,
        lambda: endless(b"\xff\xff\xff\xff", b"x" * 65_536, 1 << 30),
        (),
    ),
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
    "inspected: multipart, parts": (
        multipart,
        lambda: piece(b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nb\r\n', INSPECTED_BYTES_MAX),
        Refused,
    ),
    "inspected: multipart, headers": (
        multipart,
        lambda: b"--x\r\n" + piece(b"a: b\r\n", INSPECTED_BYTES_MAX),
        Refused,
    ),
    "inspected: multipart, lines": (
        multipart,
        lambda: FORM_PART + piece(b"\n--y", INSPECTED_BYTES_MAX),
        Refused,
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


COUNTED_OCTETS = 16_384  # and twice as many: enough for what grows with the square of them to show
COUNTED_BULK_OCTETS = 2 * READ_BYTES  # it is read in portions of a half
PORTION_OCTETS = 1_024
TIMES_MAX = 2.2  # more work for twice the octets


def begin_of(data, octets):
    """The begin of a row's input; streams in shorter portions, so that there are many."""
    if isinstance(data, bytes):
        return data[:octets]
    if isinstance(data, BulkBody):
        return io.BytesIO(data.read(octets))
    whole = b""
    while len(whole) < octets and (part := next(data, b"")):
        whole += part
    return (whole[at : at + PORTION_OCTETS] for at in range(0, octets, PORTION_OCTETS))


def lines_of(parse, data):
    """How many lines of Python are executed until the parser is done, or refuses."""
    lines = 0

    def trace(_frame, event, _argument):
        nonlocal lines
        lines += event == "line"
        return trace

    before = sys.gettrace()
    gc.collect()
    gc.disable()  # finalizers of other tests' objects are lines, too
    sys.settrace(trace)
    try:
        parse(data)
    except (Exception, pytest.fail.Exception):
        pass  # cut off, it is refused in any words
    finally:
        sys.settrace(before)
        gc.enable()
    return lines


@pytest.mark.parametrize("name", ROWS)
def test_twice_the_input_is_twice_the_work(name):
    parse, make, _ = ROWS[name]
    data = make()
    length = min(COUNTED_OCTETS, len(data) // 2) if isinstance(data, bytes) else COUNTED_OCTETS
    length = COUNTED_BULK_OCTETS if isinstance(data, BulkBody) else length
    lines_of(parse, begin_of(make(), length))  # what is imported, compiled and kept at first

    once, twice = (lines_of(parse, begin_of(make(), octets)) for octets in (length, 2 * length))

    assert once
    assert twice <= TIMES_MAX * once


def test_work_that_grows_with_the_square_is_seen():
    def parse(data):
        while data:
            data = data[1:]
            sum(1 for _ in data)

    once, twice = (lines_of(parse, b"x" * octets) for octets in (50, 100))

    assert twice > TIMES_MAX * once
