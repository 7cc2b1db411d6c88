"""Forms of answers that could be read in two ways, and what three parsers read of what the edge says.

    PYTHONPATH=src:. python -m tests.edge.answer_forms > docs/explanation/framing.md

Every status with every framing, closing and interim answer goes through the edge; behind it the same client
asks again, for a page that says `good`. Whatever the origin did, its client has to see two answers, or one
that is cut off and an end: nothing of what stands behind an answer, or within one, is the next one's.
"""

import http.client
import io
import sys
from itertools import product
from typing import NamedTuple

import h11
import httptools

from edgestead.edge.http.client import ClientConnection
from tests.edge.bench import Bench, Transport
from tests.edge.forms import FORMS
from tests.edge.http2_forms import FORMS as HTTP2_FORMS

BODY = b"page"
POISON = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\npoison"
GOOD = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ngood"
LENGTH, CHUNKED = b"content-length: 4\r\n", b"transfer-encoding: chunked\r\n"
CHUNKS = b"4\r\npage\r\n0\r\n\r\n"
FRAMINGS = {  # name: (header lines, what follows the head)
    "a length": (LENGTH, BODY),
    "a length of 0": (b"content-length: 0\r\n", b""),
    "nothing that says so": (b"", BODY),
    "chunks": (CHUNKED, CHUNKS),
    "chunks with extensions": (CHUNKED, b'4;a="b;c"\r\npage\r\n0;x\r\n\r\n'),
    "chunks with a length in their trailers": (
        CHUNKED, b"4\r\npage\r\n0\r\ncontent-length: 9\r\n\r\n"
    ),
    "a length, and less": (b"content-length: 9\r\n", BODY),
    "a length, and another answer behind it": (LENGTH, BODY + POISON),
    "a length of 0, and another answer behind it": (b"content-length: 0\r\n", POISON),
    "chunks, and another answer behind them": (CHUNKED, CHUNKS + POISON),
    "chunks without an end": (CHUNKED, b"4\r\npage\r\n"),
    "chunks whose size is none": (CHUNKED, b"4x\r\npage\r\n0\r\n\r\n"),
    "chunks whose size has a sign": (CHUNKED, b"+4\r\npage\r\n0\r\n\r\n"),
    "chunks whose size has 0x": (CHUNKED, b"0x4\r\npage\r\n0\r\n\r\n"),
    "chunks whose size has a blank": (CHUNKED, b"4 \r\npage\r\n0\r\n\r\n"),
    "chunks larger than any": (CHUNKED, b"f" * 17 + b"\r\npage\r\n0\r\n\r\n"),
    "chunks without their line end": (CHUNKED, b"4\r\npage0\r\n\r\n"),
    "chunks with LF alone": (CHUNKED, b"4\npage\n0\n\n"),
    "chunks, and a length": (LENGTH + CHUNKED, CHUNKS),
    "a length, and chunks": (CHUNKED + LENGTH, CHUNKS),
    "chunked twice": (CHUNKED + CHUNKED, CHUNKS),
    "chunked, gzip": (b"transfer-encoding: chunked, gzip\r\n", CHUNKS),
    "gzip, chunked": (b"transfer-encoding: gzip, chunked\r\n", CHUNKS),
    "an encoding that nobody knows": (b"transfer-encoding: xchunked\r\n", CHUNKS),
    "an encoding of nothing": (b"transfer-encoding: \r\n" + LENGTH, BODY),
    "an encoding behind a tab": (b"transfer-encoding:\tchunked\r\n", CHUNKS),
    "an encoding with a blank before the colon": (b"transfer-encoding : chunked\r\n" + LENGTH, BODY),
    "an encoding on a folded line": (b"transfer-encoding:\r\n chunked\r\n", CHUNKS),
    "an encoding by an underscore, and a length": (b"transfer_encoding: chunked\r\n" + LENGTH, BODY),
    "two equal lengths": (LENGTH + LENGTH, BODY),
    "two lengths": (LENGTH + b"content-length: 40\r\n", BODY),
    "a list of lengths": (b"content-length: 4, 4\r\n", BODY),
    "a length with a sign": (b"content-length: +4\r\n", BODY),
    "a length below 0": (b"content-length: -4\r\n", BODY),
    "a length in hexadecimals": (b"content-length: 0x4\r\n", BODY),
    "a length with a fraction": (b"content-length: 4.0\r\n", BODY),
    "a length with a blank within": (b"content-length: 4 0\r\n", BODY),
    "a length that is none": (b"content-length: four\r\n", BODY),
    "a length without digits": (b"content-length:\r\n", BODY),
    "a length beyond any": (b"content-length: 99999999999999999999999\r\n", BODY),
    "a length that Connection lists": (b"connection: content-length\r\n" + LENGTH, BODY),
    "lines that end in LF": (b"x: y\n" + LENGTH[:-2] + b"\n", BODY),
    "CR within a value": (b"x: y\rcontent-length: 40\r\n" + LENGTH, BODY),
    "NUL within a value": (b"x: y\0z\r\n" + LENGTH, BODY),
    "a line without a colon": (b"nonsense\r\n" + LENGTH, BODY),
    "a name with a blank": (b"content length: 40\r\n" + LENGTH, BODY),
    "an upgrade that nobody asked for": (b"connection: upgrade\r\nupgrade: websocket\r\n" + LENGTH, BODY),
}  # fmt: skip
CLOSINGS = ("stays", "closes", "is reset", "says more later")
INTERIMS = {
    "none": b"",
    "100": b"HTTP/1.1 100 Continue\r\n\r\n",
    "103 twice": b"HTTP/1.1 103 X\r\nlink: </a>\r\n\r\n" * 2,
    "103 with a length": b"HTTP/1.1 103 X\r\ncontent-length: 4\r\n\r\n",
    "103 with chunks": b"HTTP/1.1 103 X\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "101": b"HTTP/1.1 101 X\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
}
STATUSES = (99, 100, 101, 103, 199, 200, 204, 205, 206, 304, 404, 500, 999)
METHODS = (b"GET", b"HEAD")


class Form(NamedTuple):
    method: bytes
    status: int
    framing: str
    closing: str
    interim: str


FORMS_OF_ANSWERS = tuple(Form(*one) for one in product(METHODS, STATUSES, FRAMINGS, CLOSINGS, INTERIMS))


_BENCH = Bench()  # one for all: to make it takes longer than ten forms


def renewed():
    """An edge as new: another client, and one connection to the origin."""
    bench = _BENCH
    bench.edge.pool.close()
    bench.connection.connection_lost(None)
    bench.connection, bench.client = ClientConnection(bench.edge, port=80), Transport()
    bench.connection.connection_made(bench.client)
    bench.keep_origin()
    return bench


def through_the_edge(form):
    """All that the client was sent, and whether its connection has ended."""
    bench = renewed()
    bench.connection.data_received(b"%b /1 HTTP/1.1\r\nHost: www.example.com\r\n\r\n" % form.method)
    lines, body = FRAMINGS[form.framing]
    if form.method == b"HEAD" and POISON not in body:
        body = b""
    answer = b"HTTP/1.1 %03d X\r\n%b\r\n%b" % (form.status, lines, body)
    said_by(bench, INTERIMS[form.interim] + answer)
    if form.closing == "closes":
        end(bench, None)
    elif form.closing == "is reset":
        end(bench, ConnectionResetError())
    elif form.closing == "says more later":
        said_by(bench, POISON)
    if bench.client.state == "open":
        if bench.origin not in bench.edge.pool.idle or bench.server.state != "open":
            bench.keep_origin()
        bench.connection.data_received(b"GET /2 HTTP/1.1\r\nHost: www.example.com\r\n\r\n")
        if bench.server.written.count(b"GET /2 ") == 1:
            said_by(bench, GOOD)
    return bench.client.written, bench.client.state != "open"


def said_by(bench, data):
    if bench.server.state == "open":
        bench.origin.data_received(data)


def end(bench, error):
    if bench.server.state == "open":
        bench.server.state = "closed"
        bench.origin.connection_lost(error)


class Read(NamedTuple):
    """An answer: `body` None where it is cut off, or is still to come."""

    status: int
    body: bytes | None


def by_h11(data, methods, ended):
    connection, found = h11.Connection(h11.CLIENT), []
    if not data:  # it would be the end
        return [], b""
    connection.receive_data(data)
    for method in methods:
        connection.send(h11.Request(method=method, target="/", headers=[("Host", "a")]))
        connection.send(h11.EndOfMessage())
        status, body = None, b""
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                if status is not None:
                    found.append(Read(status, None))
                return found, b""
            if isinstance(event, h11.InformationalResponse):
                found.append(Read(event.status_code, b""))
            elif isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                found.append(Read(status, body))
                break
        if connection.our_state is h11.MUST_CLOSE:
            break
        connection.start_next_cycle()
    return found, connection.trailing_data[0]


class _Llhttp:
    def __init__(self):
        self.body, self.is_whole = b"", False

    def on_body(self, body):
        self.body += body

    def on_message_complete(self):
        self.is_whole = True


def by_llhttp(data, methods, ended):
    """One parser for each answer, which is given its body by the octet: so it is known where it ends."""
    found, methods = [], list(methods)
    while data and methods:
        seen = _Llhttp()
        parser, at = httptools.HttpResponseParser(seen), 0
        head = data.find(b"\r\n\r\n") + 4
        while at < len(data) and not seen.is_whole:
            size = head if at == 0 else 1
            parser.feed_data(data[at : at + size])
            at += size
            if at == head and methods[0] == b"HEAD" and parser.get_status_code() >= 200:
                seen.is_whole = True
        status = parser.get_status_code()
        data = data[at:]
        found.append(Read(status, seen.body if seen.is_whole else None))
        if status >= 200:
            methods.pop(0)
    return found, data


class _Socket:
    def __init__(self, file):
        self.file = file

    def makefile(self, mode):
        return self.file


class _Kept(io.BytesIO):
    """`http.client` closes what it has read."""

    def close(self):
        pass


def by_http_client(data, methods, ended):
    file, found = _Kept(data), []
    for method in methods:
        status = 0
        while status < 200:
            if file.tell() == len(data):
                return found, b""
            skipped = data[file.tell() :].startswith(b"HTTP/1.1 100 ")
            answer = http.client.HTTPResponse(_Socket(file), method=method.decode())
            answer.begin()
            status = answer.status
            if skipped:
                found.append(Read(100, b""))
            if status < 200:
                found.append(Read(status, b""))
        try:
            found.append(Read(status, answer.read()))
        except http.client.IncompleteRead:
            found.append(Read(status, None))
            return found, b""
        if answer.will_close:
            break
    return found, file.read()


PARSERS = {"h11": by_h11, "llhttp": by_llhttp, "http.client": by_http_client}


def read(form):
    """What each parser reads of it, and what is left behind that."""
    data, ended = through_the_edge(form)
    methods = (form.method, b"GET")
    return {name: parser(data, methods, ended) for name, parser in PARSERS.items()}, ended


def verdict(form):
    """In a word, what became of the first answer. All parsers have read the same."""
    ways, ended = read(form)
    (found, _), *_ = ways.values()
    last = [one for one in found if one.status >= 200]
    if not last:
        return "waits"
    first = last[0]
    if first.status == 520 and form.status != 520:
        return "520"
    if first.body is None:
        return "cut off" if ended else "waits"
    return "passes"


INTRODUCTION = """\
# What is one request, and what is one answer

<!-- Written by tests/edge/answer_forms.py; change the code instead. -->

Whoever reads a message to another end than the server next to it takes the rest for the next message, and that
is of somebody else. So the edge refuses what can be read in two ways, and says everything else anew. These are
the forms that its tests send, and what becomes of each.

## Answers

{statuses} statuses, {framings} framings, {closings} closings and {interims} interim answers in front, for GET and HEAD: {forms:,} forms.
What the client is sent of each, and of the good answer to its next request, is read by h11, llhttp and Python's
`http.client`: all three read the same answers and leave nothing behind, and an answer that an origin hid within
another one is never one of them. The connection to the origin is used again only where nothing followed.

* passes: as one answer, said anew in one spelling
* 520: the edge answers in its place
* cut off: it had begun, and its client notices
* waits: more has to come, until a deadline"""  # noqa: E501
REQUESTS = """\
Answers in HTTP/2 have no framing to be read in two ways, but fields, and a length beside the frames' ends:
[the same rules](edge.md#http2-to-origins-and-grpc) hold for them.

## Requests

{forms} forms, each sent through the edge to nginx, Apache, Caddy and h11 in HTTP/1.1, and to nginx in HTTP/2.
The edge and the origin see the same requests, each with a ray of its own."""
REQUESTS_IN_HTTP2 = """\
### In HTTP/2

{forms} forms of what clients of HTTP/2 say, where lengths delimit what blanks and line ends do in HTTP/1.1.
They are sent to the same origins. What passes arrives as one request with the fields, the one framing and
the body that were meant; a request that is hidden in any of them is never read as one."""


def page():
    """docs/explanation/framing.md"""
    out = [
        INTRODUCTION.format(
            statuses=len(STATUSES),
            framings=len(FRAMINGS),
            closings=len(CLOSINGS),
            interims=len(INTERIMS),
            forms=len(FORMS_OF_ANSWERS),
        ),
        "",
        "| a 200 for GET, framed by | " + " | ".join(f"the origin {one}" for one in CLOSINGS) + " |",
        "|---|" + "---|" * len(CLOSINGS),
    ]
    for framing in FRAMINGS:
        cells = [verdict(Form(b"GET", 200, framing, closing, "none")) for closing in CLOSINGS]
        out.append(f"| {framing} | " + " | ".join(cells) + " |")
    framings = ("a length", "a length of 0", "nothing that says so", "chunks", "chunks, and a length")
    out += [
        "",
        "| the status, where the origin closes | " + " | ".join(framings) + " |",
        "|---|" + "---|" * len(framings),
    ]
    for status in STATUSES:
        cells = [verdict(Form(b"GET", status, framing, "closes", "none")) for framing in framings]
        out.append(f"| {status:03d} | " + " | ".join(cells) + " |")
    out += ["", "| in front of a 200 with a length | |", "|---|---|"]
    for interim in INTERIMS:
        out.append(f"| {interim} | {verdict(Form(b'GET', 200, 'a length', 'stays', interim))} |")
    out += [
        "",
        REQUESTS.format(forms=len(FORMS)),
        "",
        "| the request | what becomes of it |",
        "|---|---|",
    ]
    for name, _, (paths, refusal) in FORMS:
        out.append(f"| {name} | {_outcome(paths, refusal)} |")
    out += [
        "",
        REQUESTS_IN_HTTP2.format(forms=len(HTTP2_FORMS)),
        "",
        "| the request | what becomes of it |",
        "|---|---|",
    ]
    for name, form in HTTP2_FORMS.items():
        outcome = form.outcome if isinstance(form.outcome, str) else f"refused: {form.outcome}"
        out.append(f"| {name} | {outcome} |")
    return "\n".join(line.rstrip() for line in out) + "\n"


def _outcome(paths, refusal):
    if refusal is None:
        requests = len([path for path in paths if path != "end"])
        return "passes" if requests <= 1 else f"passes, as {requests} requests"
    codes = refusal if isinstance(refusal, tuple) else (refusal,)
    return "refused: " + " or ".join(map(str, codes)) + (", cut off where it had begun" if paths else "")


if __name__ == "__main__":
    sys.stdout.write(page())
