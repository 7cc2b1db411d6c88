"""Requests that two readers may read in two ways (RFC 9112 §11.2), and those that merely look like it.

A row is a name, the bytes, and what the edge makes of them: the endings of the paths that reach an origin, in
order, and the status of a refusal at the end, if there is one. `HOST` and `ID` stand for the proxied host and
the row; `SM` is a request that must never be seen as one of its own where it stands in a body, `END` a last
one that ends the connection.
"""

SM = b"GET /ID-smuggled HTTP/1.1\r\nHost: HOST\r\n\r\n"
END = b"GET /ID-end HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n"

REFUSED = ((), 400)
PASSED = (("a", "end"), None)


def post(*lines, body=b"", start=b"POST /ID-a HTTP/1.1", host=b"Host: HOST\r\n"):
    return start + b"\r\n" + host + b"".join(line + b"\r\n" for line in lines) + b"\r\n" + body


def get(*lines, start=b"GET /ID-a HTTP/1.1", host=b"Host: HOST\r\n"):
    return post(*lines, start=start, host=host)


CHUNKED = b"Transfer-Encoding: chunked"
LENGTH = b"Content-Length: "
AS_MUCH = b"Content-Length: LEN"  # of what stands behind the head
EMPTY = b"0\r\n\r\n"


def chunks(data):
    return post(CHUNKED, body=data)


FORMS = [
    # the length, twice
    ("length, then encoding", post(AS_MUCH, CHUNKED, body=EMPTY + SM), REFUSED),
    ("encoding, then length", post(CHUNKED, AS_MUCH, body=EMPTY + SM), REFUSED),
    ("length 0 and encoding", post(CHUNKED, LENGTH + b"0", body=EMPTY + SM), REFUSED),
    ("two lengths", post(LENGTH + b"0", AS_MUCH, body=SM), REFUSED),
    ("two lengths, the other way", post(AS_MUCH, LENGTH + b"0", body=SM), REFUSED),
    ("two equal lengths", post(LENGTH + b"5", LENGTH + b"5", body=b"hello"), REFUSED),
    ("a list of lengths", post(LENGTH + b"0, 5", body=b"hello"), REFUSED),
    ("a list of equal lengths", post(LENGTH + b"5, 5", body=b"hello"), REFUSED),
    ("two encodings", post(CHUNKED, CHUNKED, body=EMPTY + SM), REFUSED),
    # the length
    ("a length with a plus", post(LENGTH + b"+5", body=b"hello"), REFUSED),
    ("a negative length", post(LENGTH + b"-5", body=SM), REFUSED),
    ("a hexadecimal length", post(LENGTH + b"0x5", body=b"hello"), REFUSED),
    ("an empty length", post(LENGTH, body=SM), REFUSED),
    ("a length with an underscore", post(LENGTH + b"1_0", body=b"helloworld"), REFUSED),
    ("a length with a blank in it", post(LENGTH + b"1 0", body=b"helloworld"), REFUSED),
    ("a length with a fraction", post(LENGTH + b"5.0", body=b"hello"), REFUSED),
    ("a length beyond 64 bits", post(LENGTH + b"18446744073709551621", body=b"hello"), REFUSED),
    ("a length in other digits", post(LENGTH + "٥".encode(), body=b"hello"), REFUSED),
    ("a length behind a vertical tab", post(b"Content-Length:\x0b5", body=b"hello"), REFUSED),
    ("a length with zeros in front", post(LENGTH + b"0005", body=b"hello"), PASSED),
    ("a length between blanks", post(b"Content-Length:   5   ", body=b"hello"), PASSED),
    ("a length before a tab", post(b"Content-Length: 5\t", body=b"hello"), REFUSED),
    ("a length of a GET", get(LENGTH + b"5") + b"hello", PASSED),
    ("a length of a GET that hides a request", get(AS_MUCH) + SM, PASSED),
    ("a blank before the colon of the length", post(b"Content-Length : 5", body=b"hello"), REFUSED),
    ("a tab before the colon of the length", post(b"Content-Length\t: 5", body=b"hello"), REFUSED),
    ("a length with an underscore in its name", post(b"Content_Length: 5", body=SM), REFUSED),
    ("a length with a NUL in its name", post(b"Content-Length\0: 5", body=b"hello"), REFUSED),
    ("a length that Connection lists", post(b"Connection: content-length", AS_MUCH, body=SM), PASSED),
    # the encoding
    ("an unknown encoding", post(b"Transfer-Encoding: xchunked", body=EMPTY + SM), REFUSED),
    ("the identity encoding", post(b"Transfer-Encoding: identity", body=SM), REFUSED),
    ("an empty encoding", post(b"Transfer-Encoding:", body=SM), REFUSED),
    ("chunked and something behind", post(b"Transfer-Encoding: chunked, identity", body=EMPTY), REFUSED),
    ("something and chunked", post(b"Transfer-Encoding: gzip, chunked", body=EMPTY), REFUSED),
    ("chunked twice in a list", post(b"Transfer-Encoding: chunked, chunked", body=EMPTY), REFUSED),
    ("chunked with a parameter", post(b"Transfer-Encoding: chunked;q=1", body=EMPTY), REFUSED),
    ("chunked in quotes", post(b'Transfer-Encoding: "chunked"', body=EMPTY), REFUSED),
    ("chunked behind a comma", post(b"Transfer-Encoding: , chunked", body=EMPTY), REFUSED),
    ("chunked behind a vertical tab", post(b"Transfer-Encoding: \x0bchunked", body=EMPTY + SM), REFUSED),
    ("chunked behind a NUL", post(b"Transfer-Encoding: \0chunked", body=EMPTY + SM), REFUSED),
    ("chunked on the next line", post(b"Transfer-Encoding:\r\n chunked", body=EMPTY + SM), REFUSED),
    ("chunked as somebody shouts it", post(b"TRANSFER-ENCODING: CHUNKED", body=EMPTY), PASSED),
    ("a blank before the colon of the encoding", post(b"Transfer-Encoding : chunked", body=EMPTY), REFUSED),
    ("an encoding with an underscore in its name", post(b"Transfer_Encoding: chunked", body=EMPTY), REFUSED),
    ("an encoding of HTTP/1.0", post(CHUNKED, start=b"POST /ID-a HTTP/1.0", body=EMPTY + SM), REFUSED),
    (
        "an encoding that Connection lists",
        post(b"Connection: transfer-encoding", CHUNKED, body=EMPTY),
        PASSED,
    ),
    ("chunks of a GET", get(CHUNKED) + b"5\r\nhello\r\n" + EMPTY, PASSED),
    # chunks
    ("a chunk with an extension", chunks(b"5;a=b\r\nhello\r\n" + EMPTY), PASSED),
    ("a chunk with a quoted extension", chunks(b'5;a="b"\r\nhello\r\n' + EMPTY), PASSED),
    ("a chunk's size with zeros in front", chunks(b"0005\r\nhello\r\n" + EMPTY), PASSED),
    ("several zeros at the end", chunks(b"5\r\nhello\r\n000\r\n\r\n"), PASSED),
    ("a chunk's size with a prefix", chunks(b"0x5\r\nhello\r\n" + EMPTY), (("a",), 400)),
    ("a chunk's size with a plus", chunks(b"+5\r\nhello\r\n" + EMPTY), (("a",), 400)),
    ("a negative chunk", chunks(b"-1\r\nhello\r\n" + EMPTY), (("a",), 400)),
    ("a chunk's size behind a blank", chunks(b" 5\r\nhello\r\n" + EMPTY), (("a",), 400)),
    ("a chunk's size before a blank", chunks(b"5 \r\nhello\r\n" + EMPTY), (("a",), 400)),
    ("a chunk's size with an underscore", chunks(b"0_5\r\nhello\r\n" + EMPTY), (("a",), 400)),
    ("a chunk without a size", chunks(b"\r\nhello\r\n" + EMPTY), (("a",), 400)),
    ("a chunk's size that wraps around", chunks(b"10000000000000005\r\nhello\r\n" + EMPTY), (("a",), 400)),
    ("a chunk longer than its size", chunks(b"3\r\nhello\r\n" + EMPTY), (("a",), 400)),
    ("a chunk that ends in LF", chunks(b"5\r\nhello\n" + EMPTY + SM), (("a",), 400)),
    ("a size that ends in LF", chunks(b"5\nhello\r\n" + EMPTY + SM), (("a",), 400)),
    ("an extension that ends in LF", chunks(b"5;a\nhello\r\n" + EMPTY + SM), (("a",), 400)),
    ("an extension with a CR", chunks(b"5;a\rb\r\nhello\r\n" + EMPTY), (("a",), 400)),
    ("a last chunk that ends in LF", chunks(b"0\n\n" + SM), (("a",), 400)),
    ("a trailer", chunks(EMPTY[:3] + b"X-Trailer: 1\r\n\r\n"), PASSED),
    (
        "a trailer that is an encoding",
        chunks(EMPTY[:3] + b"Transfer-Encoding: chunked\r\n\r\n"),
        (("a",), 400),
    ),
    ("a trailer that is a length", chunks(EMPTY[:3] + b"Content-Length: 50\r\n\r\n"), (("a",), 400)),
    ("a trailer that is a host", chunks(EMPTY[:3] + b"Host: elsewhere.example\r\n\r\n"), PASSED),
    # lines
    ("LF behind the request line", b"GET /ID-a HTTP/1.1\nHost: HOST\r\n\r\n", REFUSED),
    ("LF behind a header", b"GET /ID-a HTTP/1.1\r\nHost: HOST\nX: y\r\n\r\n", REFUSED),
    ("LF as the empty line", b"GET /ID-a HTTP/1.1\r\nHost: HOST\r\n\n", REFUSED),
    ("CR in a value", get(b"X: y\rContent-Length: 5"), REFUSED),
    ("CR at the end of a value", get(b"X: y\r"), REFUSED),
    ("NUL in a value", get(b"X: y\0z"), REFUSED),
    ("a line without a colon", get(b"nonsense"), REFUSED),
    ("a header without a name", get(b": nobody"), REFUSED),
    ("a blank in a name", get(b"X Y: z"), REFUSED),
    ("brackets in a name", get(b"X(Y): z"), REFUSED),
    ("a name beyond ASCII", get("Ü: z".encode()), REFUSED),
    ("a folded line", get(b"X: y\r\n z"), REFUSED),
    ("a folded line that looks like a length", post(b"X: y\r\n Content-Length: 5", body=b"hello"), REFUSED),
    ("a blank before the first header", b"GET /ID-a HTTP/1.1\r\n Host: HOST\r\n\r\n", REFUSED),
    ("an empty line before the request", b"\r\n" + get(), PASSED),
    # the request line
    ("two blanks before the version", get(start=b"GET /ID-a  HTTP/1.1"), PASSED),
    ("tabs for blanks", get(start=b"GET\t/ID-a\tHTTP/1.1"), REFUSED),
    ("no version", b"GET /ID-a\r\n" + SM, REFUSED),
    ("a blank behind the version", get(start=b"GET /ID-a HTTP/1.1 "), REFUSED),
    ("a version in lower case", get(start=b"GET /ID-a http/1.1"), REFUSED),
    ("version 2.0", get(start=b"GET /ID-a HTTP/2.0"), ((), (400, 505))),
    ("version 1.10", get(start=b"GET /ID-a HTTP/1.10"), REFUSED),
    ("a blank in the target", get(start=b"GET /ID-a /b HTTP/1.1"), REFUSED),
    ("a NUL in the target", get(start=b"GET /ID-a\0b HTTP/1.1"), REFUSED),
    ("a fragment", get(start=b"GET /ID-a#b HTTP/1.1"), REFUSED),
    (
        "blanks beyond ASCII in the target",
        get(start=b"GET /ID-a\xa0\x85 HTTP/1.1"),
        (("a%A0%85", "end"), None),
    ),
    ("the absolute form", get(start=b"GET http://HOST/ID-a HTTP/1.1"), PASSED),
    (
        "the absolute form of another host",
        get(start=b"GET http://elsewhere.example/ID-a HTTP/1.1"),
        ((), 530),
    ),
    (
        "the absolute form, and a Host that is another",
        get(start=b"GET http://HOST/ID-a HTTP/1.1", host=b"Host: elsewhere.example\r\n"),
        PASSED,
    ),
    ("the absolute form without a Host", get(start=b"GET http://HOST/ID-a HTTP/1.1", host=b""), REFUSED),
    ("the absolute form with a user", get(start=b"GET http://x@HOST/ID-a HTTP/1.1"), REFUSED),
    ("the asterisk of another method", get(start=b"GET * HTTP/1.1"), REFUSED),
    ("a target that is no path", get(start=b"GET ID-a HTTP/1.1"), REFUSED),
    ("CONNECT", get(start=b"CONNECT HOST:80 HTTP/1.1"), ((), 501)),
    ("a method nobody knows", get(start=b"SMUGGLE /ID-a HTTP/1.1"), ((), 501)),
    ("a method beyond ASCII", get(start="GÖT /ID-a HTTP/1.1".encode()), ((), (400, 501))),
    ("a version beyond ASCII", get(start="GET /ID-a HTTP/1.1Ö".encode()), REFUSED),
    ("TRACE", get(start=b"TRACE /ID-a HTTP/1.1"), ((), 501)),
    ("a method with a colon", get(start=b"GET: /ID-a HTTP/1.1"), REFUSED),
    ("the preface of HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ((), (400, 405, 505))),
    # the host
    ("no host", get(host=b""), REFUSED),
    ("two hosts", get(b"Host: elsewhere.example"), REFUSED),
    ("two equal hosts", get(b"Host: HOST"), REFUSED),
    ("a list of hosts", get(host=b"Host: HOST, elsewhere.example\r\n"), REFUSED),
    ("a host with an empty label", get(host=b"Host: a..HOST\r\n"), REFUSED),
    ("a host that begins with a dot", get(host=b"Host: .HOST\r\n"), REFUSED),
    ("a host with a label beyond 63 octets", get(host=b"Host: %b.HOST\r\n" % (b"x" * 64)), REFUSED),
    ("a host with a path", get(host=b"Host: HOST/elsewhere\r\n"), REFUSED),
    ("a host with a user", get(host=b"Host: elsewhere.example@HOST\r\n"), REFUSED),
    ("a host with a blank", get(host=b"Host: HOST elsewhere\r\n"), REFUSED),
    ("a blank before the colon of the host", get(host=b"Host : HOST\r\n"), REFUSED),
    ("a host that Connection lists", get(b"Connection: host"), PASSED),
    # the connection
    ("two requests at once", get() + b"GET /ID-b HTTP/1.1\r\nHost: HOST\r\n\r\n", (("a", "b", "end"), None)),
    ("a body that was expected", post(b"Expect: 100-continue", LENGTH + b"5", body=b"hello"), PASSED),
    ("an expectation nobody knows", post(b"Expect: more", LENGTH + b"5", body=b"hello"), PASSED),
    (
        "an upgrade to h2c with a body",
        post(b"Connection: upgrade", b"Upgrade: h2c", AS_MUCH, body=SM),
        PASSED,
    ),
    (
        "an upgrade to websocket with a body",
        get(b"Connection: upgrade", b"Upgrade: websocket", AS_MUCH) + SM,
        PASSED,
    ),
    ("a keep-alive of HTTP/1.0", get(b"Connection: keep-alive", start=b"GET /ID-a HTTP/1.0"), PASSED),
    ("a client's address by underscores", get(b"X_Forwarded_For: 6.6.6.6"), REFUSED),
    ("an inspected header by underscores", get(b"User_Agent: () { :; }"), REFUSED),
    ("a type that its origin is not to see", get(b"Connection: Content-Type"), REFUSED),
]


def written(form, host, identity):
    """The bytes of a form for a host, the last request included."""
    head, empty, body = form.partition(b"\r\n\r\n")
    data = head + empty + body
    data = data.replace(b"HOST", host).replace(b"ID", identity)
    body = body.replace(b"HOST", host).replace(b"ID", identity)
    return data.replace(b"LEN", b"%d" % len(body)) + END.replace(b"HOST", host).replace(b"ID", identity)
