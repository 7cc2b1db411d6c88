"""Requests in HTTP/2 that could be two things in HTTP/1.1 (RFC 9113 §10.3), and those that merely look so.

A row is a name, what is sent on one stream, and what becomes of it: `written` puts the proxied host in the
place of `HOST`, and the row's own `/ID-` in the place of the `/` that a path begins with. `SM` is a request
that must never be seen as one of its own, wherever it stands.
"""

from typing import NamedTuple

from tests.edge.forms import SM
from tests.edge.http2_client import HOST, fields

HEADS = {  # name: (fields, status of the refusal)
    "no method": ([(b":scheme", b"https"), (b":path", b"/")], 400),
    "no path": ([(b":method", b"GET"), (b":scheme", b"https")], 400),
    "no scheme": ([(b":method", b"GET"), (b":path", b"/")], 400),
    "another scheme": (fields(scheme=b"http"), 400),
    "two paths": ([*fields(), (b":path", b"/other")], 400),
    "a path behind a header": ([*fields()[:3], (b"accept", b"*/*"), (b":path", b"/")], 400),
    "a path behind a cookie": ([*fields()[:3], (b"cookie", b"a=b"), (b":path", b"/")], 400),
    "an unknown pseudo-header": ([*fields(), (b":version", b"HTTP/1.1")], 400),
    "a pseudo-header of an answer": ([*fields(), (b":status", b"200")], 400),
    "an absolute path": (fields(path=b"http://www.example.com/"), 400),
    "an empty path": (fields(path=b""), 400),
    "a line end in the path": (fields(path=b"/ HTTP/1.1\r\nx: y"), 400),
    "a blank in the path": (fields(path=b"/a b"), 400),
    "a tab in the path": (fields(path=b"/a\tb"), 400),
    "a blank in the method": (fields(method=b"GET /x"), 501),
    "a small method": (fields(method=b"get"), 501),
    "a method of one's own": (fields(method=b"SMUGGLE"), 501),
    "a capital in a name": (fields(b"GET", b"/", (b"Accept", b"*/*")), 400),
    "a colon in a name": (fields(b"GET", b"/", (b"a:b", b"c")), 400),
    "a line end in a name": (fields(b"GET", b"/", (b"a\r\nb", b"c")), 400),
    "a blank in a name": (fields(b"GET", b"/", (b"a b", b"c")), 400),
    "an octet beyond ASCII in a name": (fields(b"GET", b"/", (b"a\xe9", b"c")), 400),
    "no name": (fields(b"GET", b"/", (b"", b"c")), 400),
    "a line end in a value": (fields(b"GET", b"/", (b"a", b"b\r\nhost: other")), 400),
    "a bare LF in a value": (fields(b"GET", b"/", (b"a", b"b\nc")), 400),
    "a bare CR in a value": (fields(b"GET", b"/", (b"a", b"b\rc")), 400),
    "a NUL in a value": (fields(b"GET", b"/", (b"a", b"b\0c")), 400),
    "a blank before a value": (fields(b"GET", b"/", (b"a", b" b")), 400),
    "a tab behind a value": (fields(b"GET", b"/", (b"a", b"b\t")), 400),
    "a line end in a cookie": (fields(b"GET", b"/", (b"cookie", b"b\r\nc")), 400),
    "a line end in the authority": (fields(authority=b"a.example\r\nx: y"), 400),
    "connection": (fields(b"GET", b"/", (b"connection", b"close")), 400),
    "keep-alive": (fields(b"GET", b"/", (b"keep-alive", b"1")), 400),
    "proxy-connection": (fields(b"GET", b"/", (b"proxy-connection", b"close")), 400),
    "transfer-encoding": (fields(b"POST", b"/", (b"transfer-encoding", b"chunked")), 400),
    "upgrade": (fields(b"GET", b"/", (b"upgrade", b"h2c")), 400),
    "te of gzip": (fields(b"GET", b"/", (b"te", b"gzip")), 400),
    "another host": (fields(b"GET", b"/", (b"host", b"other.example")), 400),
    "two hosts": (fields(b"GET", b"/", (b"host", b"www.example.com"), (b"host", b"www.example.com")), 400),
    "another protocol": ([*fields(b"CONNECT"), (b":protocol", b"connect-udp")], 501),
    "a protocol without CONNECT": ([*fields(), (b":protocol", b"websocket")], 501),
    "too many fields": (fields(b"GET", b"/", *((b"a%d" % n, b"") for n in range(140))), 431),
}

PASSES = "passes"
CUT_OFF = "the stream is reset, cut off where it had begun"
UPGRADE = "passes, as an upgrade alone"  # each origin answers it with another status


class Form(NamedTuple):
    """`frames` follow `fields`: octets are DATA, lists are fields again. The last of all ends the stream.

    `outcome` is PASSES, CUT_OFF, UPGRADE or the status of a refusal.
    """

    fields: list
    frames: tuple
    outcome: int | str


def get(*more, outcome=PASSES, **pseudo):
    return Form(fields(b"GET", pseudo.pop("path", b"/a"), *more, **pseudo), (), outcome)


def post(*more, frames=(), outcome=PASSES):
    return Form(fields(b"POST", b"/a", *more), frames, outcome)


def length(said, *frames, outcome=PASSES):
    return post((b"content-length", said), frames=frames, outcome=outcome)


def trailers(*said, outcome=PASSES):
    """Behind a body without a stated length, which is said in chunks to an origin in HTTP/1.1."""
    return post(frames=(b"hello", [*said]), outcome=outcome)


def connect(*more, outcome):
    return Form([(b":method", b"CONNECT"), (b":authority", HOST), *more], (), outcome)


FORMS = {name: Form(said, (), status) for name, (said, status) in HEADS.items()} | {
    # the length, and DATA
    "as much as the length": length(b"5", b"hello"),
    "as much as the length, in pieces": length(b"5", b"he", b"", b"llo"),
    "less than the length": length(b"50", b"hello", outcome=CUT_OFF),
    "nothing of the length": length(b"5", outcome=400),
    "an empty piece of the length": length(b"5", b"", outcome=CUT_OFF),
    "more than the length, a request": length(b"5", b"hello" + SM, outcome=CUT_OFF),
    "more than the length, a request in a piece of its own": length(b"5", b"hello", SM, outcome=CUT_OFF),
    "a length of 0, and a request": length(b"0", SM, outcome=CUT_OFF),
    "a length of 0, and nothing": length(b"0"),
    "a length with zeros in front": length(b"0005", b"hello"),
    "a request as a body": post(frames=(SM,)),
    "a request as the body of a GET": Form(fields(b"GET", b"/a"), (SM,), PASSES),
    "chunks as a body, and a request": post(frames=(b"0\r\n\r\n" + SM,)),
    "chunks as a body with a length": length(b"LEN", b"0\r\n\r\n" + SM),
    "no body, said by an empty piece": post(frames=(b"",)),
    "two lengths": post(
        (b"content-length", b"5"), (b"content-length", b"0"), frames=(b"hello",), outcome=400
    ),
    "two equal lengths": post(*[(b"content-length", b"5")] * 2, frames=(b"hello",), outcome=400),
    "a list of lengths": length(b"5, 5", b"hello", outcome=400),
    "a length with a plus": length(b"+5", b"hello", outcome=400),
    "a negative length": length(b"-5", SM, outcome=400),
    "a hexadecimal length": length(b"0x5", b"hello", outcome=400),
    "an empty length": length(b"", SM, outcome=400),
    "a length with a blank in it": length(b"1 0", b"helloworld", outcome=400),
    "a length behind a vertical tab": length(b"\x0b5", b"hello", outcome=400),
    "a length beyond 64 bits": length(b"18446744073709551621", b"hello", outcome=400),
    "a length with an underscore in its name": post((b"content_length", b"5"), frames=(SM,), outcome=400),
    "chunked in capitals": post((b"transfer-encoding", b"CHUNKED"), frames=(b"0\r\n\r\n" + SM,), outcome=400),
    "chunked, and a length": post(
        (b"transfer-encoding", b"chunked"), (b"content-length", b"5"), frames=(b"0\r\n\r\n",), outcome=400
    ),
    "an encoding with an underscore in its name": post(
        (b"transfer_encoding", b"chunked"), frames=(b"0\r\n\r\n" + SM,), outcome=400
    ),
    # trailers
    "trailers": trailers((b"x-trailer", b"1")),
    "trailers before the end of the length": length(b"50", b"hello", [(b"x-trailer", b"1")], outcome=CUT_OFF),
    "trailers that go on": post(frames=(b"hello", [(b"x-trailer", b"1")], b"more"), outcome=CUT_OFF),
    "a trailer that is a length": trailers((b"content-length", b"50")),
    "a trailer that is an encoding": trailers((b"transfer-encoding", b"chunked"), outcome=CUT_OFF),
    "a trailer that is a host": trailers((b"host", b"elsewhere.example")),
    "a trailer that is a path": trailers((b":path", b"/smuggled"), outcome=CUT_OFF),
    "a trailer with a request in its value": trailers((b"x", b"y\r\n\r\n" + SM), outcome=CUT_OFF),
    "a trailer with a line end in its name": trailers((b"x: y\r\nz", b"1"), outcome=CUT_OFF),
    # who is asked
    "a host that says the same": get((b"host", HOST)),
    "a host alone": Form([*fields()[:2], (b":path", b"/a"), (b"host", HOST)], (), PASSES),
    "nobody": Form([*fields()[:2], (b":path", b"/a")], (), 400),
    "an empty authority": get(authority=b"", outcome=400),
    "an authority in capitals": get(authority=HOST.upper()),
    "an authority with a user": get(authority=b"elsewhere.example@" + HOST, outcome=400),
    "an authority with a path": get(authority=HOST + b"/elsewhere", outcome=400),
    "an authority with a blank": get(authority=HOST + b" elsewhere", outcome=400),
    "a list of authorities": get(authority=HOST + b", elsewhere.example", outcome=400),
    "another authority, and this host": get((b"host", HOST), authority=b"elsewhere.example", outcome=400),
    # fields
    "a request in a value": get((b"x", b"y\r\n\r\n" + SM), outcome=400),
    "a request in a name": get((b"x: y\r\n\r\n" + SM, b""), outcome=400),
    "a request in the path": get(path=b"/a HTTP/1.1\r\nHost: x\r\n\r\n" + SM, outcome=400),
    "a request in the method": Form(fields(b"GET /a HTTP/1.1\r\n\r\n" + SM, b"/a"), (), 400),
    "a request in the scheme": get(scheme=b"https\r\n\r\n" + SM, outcome=400),
    "a folded value": get((b"x", b"y\r\n z"), outcome=400),
    "a NUL in the path": get(path=b"/a\0b", outcome=400),
    "a fragment": get(path=b"/a#b", outcome=400),
    "the asterisk of another method": get(path=b"*", outcome=400),
    "crumbs of a cookie": get((b"cookie", b"a=1"), (b"x", b"y"), (b"cookie", b"b=2")),
    "NUL in a crumb of a cookie": get((b"cookie", b"a=1"), (b"cookie", b"b\0"), outcome=400),
    "te of trailers": get((b"te", b"trailers")),
    "te of trailers and more": get((b"te", b"trailers, chunked"), outcome=400),
    "two te": get((b"te", b"trailers"), (b"te", b"chunked"), outcome=400),
    "connection without a value": get((b"connection", b""), outcome=400),
    "settings of an upgrade": get((b"http2-settings", b"AAMAAABkAAQAAP__"), outcome=400),
    "a client's address by underscores": get((b"x_forwarded_for", b"6.6.6.6"), outcome=400),
    "a body that was expected": post((b"expect", b"100-continue"), frames=(b"hello",)),
    # other methods
    "CONNECT": connect(outcome=400),
    "CONNECT with a path": connect((b":scheme", b"https"), (b":path", b"/a"), outcome=501),
    "CONNECT with a request behind it": Form(fields(b"CONNECT", b"/a"), (SM,), 501),
    "TRACE": Form(fields(b"TRACE", b"/a"), (), 501),
    "a WebSocket that its origin does not want, and a request": Form(
        [*fields(b"CONNECT", b"/a"), (b":protocol", b"websocket")], (SM,), UPGRADE
    ),
    "a WebSocket with a length, and a request": Form(
        [*fields(b"CONNECT", b"/a", (b"content-length", b"5")), (b":protocol", b"websocket")], (SM,), 400
    ),
}  # fmt: skip


def written(form, host, identity):
    """A form for a host, each octet as it is sent."""
    octets = sum(len(_put(piece, host, identity)) for piece in form.frames if isinstance(piece, bytes))

    def put(said):
        return [
            (_put(name, host, identity), _put(value, host, identity, path=name == b":path", octets=octets))
            for name, value in said
        ]

    frames = [put(one) if isinstance(one, list) else _put(one, host, identity) for one in form.frames]
    return form._replace(fields=put(form.fields), frames=tuple(frames))


def _put(text, host, identity, *, path=False, octets=0):
    if path and text.startswith(b"/"):
        text = b"/ID-" + text[1:]
    text = text.replace(HOST, host).replace(HOST.upper(), host.upper())
    return text.replace(b"HOST", host).replace(b"ID", identity).replace(b"LEN", b"%d" % octets)
