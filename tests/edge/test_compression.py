"""Answers that are compressed for their clients: which, how, and which never."""

import zlib

import brotli
import pytest
import zstandard

from edgestead.edge.exchanges import packing
from edgestead.edge.exchanges.packing import CODINGS, PACKED_MAX, PACKED_PER_CLIENT_MAX, chosen
from edgestead.edge.phases.compression_rules import PHASE
from tests.edge.bench import Bench, Transport
from tests.edge.http2_client import Http2Client, fields, http2_bench

PAGE = b"<p>" + b"the same words again and again, " * 200
OCTETS = len(PAGE)
ALL = b"gzip, deflate, br, zstd"
WORDS = b" ".join(b"%x" % (number * number % 2_003) for number in range(14_000))


def unpacked(coding, data):
    if coding == b"gzip":
        return zlib.decompressobj(31).decompress(data)
    if coding == b"br":
        return brotli.Decompressor().process(data)
    return zstandard.ZstdDecompressor().decompressobj().decompress(data)


def get(accepted=ALL, more=b"", method=b"GET", version=b"1.1"):
    said = b"" if accepted is None else b"Accept-Encoding: %b\r\n" % accepted
    return b"%b / HTTP/%b\r\nHost: www.example.com\r\n%b%b\r\n" % (method, version, said, more)


def head(kind=b"text/html", more=b"", status=200, length=OCTETS):
    stated = b"" if length is None else b"content-length: %d\r\n" % length
    return b"HTTP/1.1 %d X\r\ncontent-type: %b\r\n%b%b\r\n" % (status, kind, stated, more)


def parts(written):
    """(headers, content) of an answer of HTTP/1.1, out of its chunks."""
    said, _, body = written.partition(b"\r\n\r\n")
    headers = [line.split(b": ", 1) for line in said.split(b"\r\n")[1:]]
    if [b"transfer-encoding", b"chunked"] in headers:
        data, body = body, b""
        while data:
            size, _, data = data.partition(b"\r\n")
            assert int(size, 16) or data == b"\r\n"
            body, data = body + data[: int(size, 16)], data[int(size, 16) + 2 :]
    return {bytes(name): bytes(value) for name, value in headers}, body


def answered(request, *pieces, bench=None):
    bench = bench or Bench()
    bench.connection.data_received(request)
    for piece in pieces:
        bench.origin.data_received(piece)
    return parts(bench.client.written)


@pytest.mark.parametrize("name", CODINGS)
def test_a_page_is_compressed_as_its_client_likes_it(name):
    token = CODINGS[name].token
    headers, body = answered(get(token), head(), PAGE)
    assert headers[b"content-encoding"] == token
    assert headers[b"vary"] == b"Accept-Encoding"
    assert b"content-length" not in headers
    assert len(body) < len(PAGE) / 10
    assert unpacked(token, body) == PAGE


def test_gzip_is_as_small_as_zlib_makes_it():
    _, body = answered(get(b"gzip"), head(length=len(WORDS)), WORDS)
    assert unpacked(b"gzip", body) == WORDS
    assert len(body) < 1.02 * len(zlib.compress(WORDS, packing.GZIP_LEVEL, 31))


def test_gzip_needs_no_more_than_the_standard_library(monkeypatch):
    monkeypatch.setattr(packing, "compressobj", zlib.compressobj)
    bench = Bench()
    headers, body = answered(get(b"gzip"), head(length=None), PAGE, bench=bench)
    assert headers[b"content-encoding"] == b"gzip"
    assert zlib.decompressobj(31).decompress(body) == PAGE


@pytest.mark.parametrize("name", CODINGS)
def test_in_whatever_pieces_it_comes_and_however_large_it_is(name):
    token, content = CODINGS[name].token, bytes(range(256)) * 8_000
    pieces = [content[at : at + 7_001] for at in range(0, len(content), 7_001)]
    headers, body = answered(get(token), head(length=len(content)), *pieces)
    assert unpacked(headers[b"content-encoding"], body) == content


@pytest.mark.parametrize("name", CODINGS)
def test_a_stream_of_events_waits_for_nothing(name):
    token, bench = CODINGS[name].token, Bench()
    bench.connection.data_received(get(token))
    bench.origin.data_received(head(b"text/event-stream", b"transfer-encoding: chunked\r\n", length=None))
    said = b""
    for number in range(5):
        event = b"data: %d\n\n" % number
        bench.origin.data_received(b"%x\r\n%b\r\n" % (len(event), event))
        said += event
        body = parts(bench.client.written)[1]
        assert unpacked(token, body) == said


ACCEPTED = [
    # (Accept-Encoding, what is chosen of auto)
    (b"gzip, deflate, br, zstd", "zstd"),
    (b"gzip, deflate, br", "brotli"),
    (b"gzip, deflate", "gzip"),
    (b"x-gzip", "gzip"),
    (b"GZIP", "gzip"),
    (b"gzip;q=1.0, br;q=0.5", "gzip"),
    (b"gzip ; q=0.4 ,\tbr; q=0.5", "brotli"),
    (b"*", "zstd"),
    (b"*;q=0.5, gzip", "gzip"),
    (b"*, zstd;q=0", "brotli"),
    (b"identity", None),
    (b"", None),
    (b"deflate, compress", None),
    (b"gzip;q=0", None),
    (b"gzip;q=0.000", None),
    (b"*;q=0", None),
    (b"gzip;q=2", None),
    (b"gzip;q=a", None),
    (b"gzip;q=nan", None),
    (b"gzip;q=-1", None),
    (b"gzip;q=0.0001", None),
    (b"gzip;level=9", None),
    (b"gzipped", None),
    (b", ,;;q=1,", None),
    (b"x" * 600 + b", gzip", None),
]


@pytest.mark.parametrize(("accepted", "name"), ACCEPTED)
def test_what_is_chosen(accepted, name):
    assert chosen(("auto",), accepted) == name


@pytest.mark.parametrize(
    ("names", "name"),
    [
        (("gzip",), "gzip"),
        (("brotli", "gzip"), "brotli"),
        (("none",), None),
        (("none", "gzip"), None),
        (("default",), "brotli"),
        (("zstd",), None),
        (("zstd", "gzip"), "gzip"),
        (("zstd", "none", "gzip"), None),
        (("zstd", "auto"), "brotli"),
    ],
)
def test_what_rules_choose_of_it(names, name):
    assert chosen(names, b"gzip, br") == name


NEVER = {  # (request, head of the answer)
    "the client says nothing": (get(None), head()),
    "it accepts nothing that is known": (get(b"deflate"), head()),
    "it is packed already": (get(), head(more=b"content-encoding: gzip\r\n")),
    "it is packed in a way nobody knows": (get(), head(more=b"Content-Encoding: x-own\r\n")),
    "its type does not compress": (get(), head(b"image/png")),
    "it has no type": (get(), head(b"")),
    "it is gRPC": (get(), head(b"application/grpc")),
    "it is small": (get(), head(length=255)),
    "it is a part": (get(), head(status=206, more=b"content-range: bytes 0-6402/9999\r\n")),
    "it is a part by its header": (get(), head(more=b"content-range: bytes 0-6402/9999\r\n")),
    "it is to stay as it is": (get(), head(more=b"cache-control: public, No-Transform\r\n")),
    "it has a digest": (get(), head(more=b"repr-digest: sha-256=:x:\r\n")),
    "somebody else's page may have asked for a secret": (get(more=b"Cookie: a=b\r\n"), head()),
    "so it may with credentials": (get(more=b"Authorization: Basic eDp5\r\n"), head()),
    "and says so": (get(more=b"Cookie: a=b\r\nSec-Fetch-Site: cross-site\r\n"), head()),
    "a neighbour is somebody else": (get(more=b"Cookie: a=b\r\nSec-Fetch-Site: same-site\r\n"), head()),
}


@pytest.mark.parametrize("name", NEVER)
def test_what_is_never_compressed(name):
    request, said = NEVER[name]
    length = 255 if b"content-length: 255" in said else len(PAGE)
    headers, body = answered(request, said, PAGE[:length])
    assert body == PAGE[:length]
    assert headers[b"content-length"] == b"%d" % length
    assert headers.get(b"content-encoding") == (
        None
        if b"ontent-encoding" not in said.lower()
        else said.lower().split(b"encoding: ")[1].split(b"\r")[0]
    )
    assert b"vary" not in headers


@pytest.mark.parametrize(
    ("settings", "more"),
    [
        ({}, b""),
        ({}, b"Cookie: a=b\r\nSec-Fetch-Site: same-origin\r\n"),
        ({}, b"Cookie: a=b\r\nSec-Fetch-Site: none\r\n"),
        ({"compression": "on"}, b"Cookie: a=b\r\n"),
        ({"compression": "on"}, b"Cookie: a=b\r\nSec-Fetch-Site: cross-site\r\n"),
    ],
)
def test_what_gives_nothing_away_is(settings, more):
    headers, _ = answered(get(more=more), head(), PAGE, bench=Bench(settings=settings))
    assert headers[b"content-encoding"] == b"zstd"


def test_nothing_is_where_the_zone_says_so():
    headers, body = answered(get(), head(), PAGE, bench=Bench(settings={"compression": "off"}))
    assert (body, b"content-encoding" in headers) == (PAGE, False)


@pytest.mark.parametrize(
    ("said", "then"),
    [
        (b'etag: "a"\r\n', {b"etag": b'W/"a"'}),
        (b'etag: W/"a"\r\n', {b"etag": b'W/"a"'}),
        (b"vary: accept-encoding, cookie\r\n", {b"vary": b"accept-encoding, cookie"}),
        (b"vary: *\r\n", {b"vary": b"*"}),
        (b"accept-ranges: bytes\r\n", {b"accept-ranges": None}),
        (b"content-md5: x\r\n", {b"content-md5": None}),
        (b"content-encoding: identity\r\n", {b"content-encoding": b"zstd"}),
    ],
)
def test_what_spoke_of_the_other_content_speaks_of_this_one(said, then):
    headers, _ = answered(get(), head(more=said), PAGE)
    for name, value in then.items():
        assert headers.get(name) == value


def test_a_head_says_what_a_get_would_say():
    headers, body = answered(get(method=b"HEAD"), head())
    assert (headers[b"content-encoding"], body) == (b"zstd", b"")
    assert b"content-length" not in headers


def test_http_1_0_gets_it_until_the_connection_ends():
    bench = Bench()
    headers, body = answered(get(b"gzip", version=b"1.0"), head(), PAGE, bench=bench)
    assert unpacked(b"gzip", body) == PAGE
    assert b"transfer-encoding" not in headers
    assert bench.client.state == "closed"


def test_an_answer_that_breaks_off_is_broken_off():
    bench = Bench()
    answered(get(), head(), PAGE[:1_000], bench=bench)
    bench.origin.connection_lost(None)
    assert bench.client.state == "aborted"
    assert not bench.client.written.endswith(b"\r\n0\r\n\r\n")
    assert len(bench.edge.packers) == 0


def test_http_2_gets_it_too():
    bench = http2_bench()
    client = Http2Client(bench)
    number = client.ask(fields(b"GET", b"/", (b"accept-encoding", ALL)))
    bench.origin.data_received(head() + PAGE)
    client.listen()
    answer = client.answers[number]
    assert unpacked(answer.headers[b"content-encoding"], answer.body) == PAGE
    assert answer.ended
    assert b"content-length" not in answer.headers


# rules


def rule(*names, expression="true"):
    return {
        "id": "r" * 32,
        "action": "compress_response",
        "expression": expression,
        "action_parameters": {"algorithms": [{"name": name} for name in names]},
    }


@pytest.mark.parametrize(
    ("rules", "coding"),
    [
        ([rule("gzip")], b"gzip"),
        ([rule("brotli", "gzip")], b"br"),
        ([rule("none")], None),
        ([rule("none"), rule("gzip")], b"gzip"),
        ([rule("gzip"), rule("none")], None),
        ([rule("gzip", expression='http.request.uri.path eq "/other"')], b"zstd"),
        ([rule("none", expression="http.response.code eq 200")], None),
        ([rule("none", expression='http.response.content_type.media_type eq "text/html"')], None),
    ],
)
def test_rules_choose_and_the_last_one_that_matches_does(rules, coding):
    headers, _ = answered(get(), head(), PAGE, bench=Bench(rules={PHASE: rules}))
    assert headers.get(b"content-encoding") == coding


def test_a_rule_does_not_pack_what_is_packed():
    bench = Bench(rules={PHASE: [rule("gzip")]})
    headers, body = answered(get(), head(more=b"content-encoding: br\r\n"), PAGE, bench=bench)
    assert (headers[b"content-encoding"], body) == (b"br", PAGE)


@pytest.mark.parametrize(
    "more",
    [
        b"cache-control: no-transform\r\ncache-control: private\r\n",
        b"content-encoding: br\r\ncontent-encoding: identity\r\n",
    ],
)
def test_of_what_is_stated_twice_the_first_counts_as_well(more):
    headers, body = answered(get(), head(more=more), PAGE)
    assert (body, b"vary" in headers) == (PAGE, False)


def test_a_header_that_a_rule_sets_is_seen():
    transform = {
        "id": "t" * 32,
        "action": "rewrite",
        "expression": "true",
        "action_parameters": {"headers": {"Cache-Control": {"operation": "set", "value": "no-transform"}}},
    }
    bench = Bench(rules={"http_response_headers_transform": [transform]})
    headers, body = answered(get(), head(), PAGE, bench=bench)
    assert (body, b"content-encoding" in headers) == (PAGE, False)


# memory


NETWORKS = {"IPv4": "192.0.2.{network}", "IPv6": "2001:db8:0:{network:x}::{number:x}"}


@pytest.mark.parametrize("kind", NETWORKS)
def test_coders_have_an_end_by_network_and_in_all(kind):
    bench = Bench()
    opened = []
    for number in range(PACKED_MAX + 40):
        network = number // (PACKED_PER_CLIENT_MAX + 2)
        peer = NETWORKS[kind].format(network=network, number=number)
        connection, transport = type(bench.connection)(bench.edge, port=80), Transport(peer)
        connection.connection_made(transport)
        connection.data_received(get())
        bench.origin.data_received(head(length=None) + PAGE)
        bench.keep_origin()
        opened.append((connection, transport, network))
    packed = [network for _, transport, network in opened if b"content-encoding" in transport.written]
    assert len(packed) == PACKED_MAX
    assert packed.count(0) == PACKED_PER_CLIENT_MAX
    for connection, _, _ in opened:
        connection.connection_lost(None)
    assert len(bench.edge.packers) == 0
    assert bench.edge.packers._by_network == {}


@pytest.mark.parametrize("name", CODINGS)
def test_a_coder_holds_no_more_than_its_window(name):
    """Whatever comes is on its way soon: it is not kept to the end."""
    coder, given, got = CODINGS[name].make(), 0, 0
    pieces = [bytes((number * at * at >> 7) & 0xFF for at in range(8_192)) for number in range(1, 9)]
    for turn in range(200):
        piece = pieces[turn % 8] + turn.to_bytes(4, "big")
        given += len(piece)
        got += len(coder.pack(piece))
    assert got > 0
    rest = coder.finish()
    assert len(rest) < 400_000 < given


def test_the_table_of_types_has_none_that_is_packed():
    assert all(one.count(b"/") == 1 for one in packing.TYPES)
    assert not {b"image/png", b"image/jpeg", b"font/woff2", b"application/zip", b"video/mp4"} & packing.TYPES
