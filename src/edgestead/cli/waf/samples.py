"""Requests from files: a request as it was sent, HAR files, access logs, lines of JSON.

Owns  what each form says of a request, and which form a file has.
Not   reading files (bytes come in), inspecting.

A log holds no bodies and few headers, so what it gives is less than what was sent; headers that nobody logs
are filled in as a browser sends them, so that their absence is not held against a request.

Source: RFC 9112 (a request); HTTP Archive 1.2; the combined log format.
"""

import json
from base64 import b64decode
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from edgestead.waf.transaction import Header, Request

LINE_BYTES_MAX = 1 << 20  # of a log; longer lines are passed over
HAR_ENTRIES_MAX = 100_000  # requests of one file
# What a log does not say and every browser sends.
USUAL: tuple[Header, ...] = (
    (b"host", b"www.example.com"),
    (b"user-agent", b"Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"),
    (b"accept", b"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
)
_FORM = b"application/x-www-form-urlencoded"
_WITH_BODY = ("POST", "PUT", "PATCH")
_JSON_TEXT = {"user_agent": b"user-agent", "host": b"host", "referer": b"referer", "cookie": b"cookie"}


class Sample(NamedTuple):
    """A request and where it stood, as ``access.log:17``."""

    request: Request
    source: str


class NotARequest(ValueError):
    """What stands there is no request; the words say why."""


def one_request(text: bytes, source: str = "") -> Sample:
    """A request as it was sent: its line, headers, an empty line, a body.

    Lines of the head may end in LF alone, as editors leave them. Where no length is given, the body is what
    stands behind the head, without the line end that editors add, and gets its length. A chunked one is put
    together, as the edge does. Raises: NotARequest.
    """
    head, gap, body = text.partition(b"\r\n\r\n")
    other = text.partition(b"\n\n")
    if not gap or len(other[0]) < len(head):
        head, gap, body = other
    lines = head.replace(b"\r\n", b"\n").lstrip(b"\n").split(b"\n")
    words = lines[0].split(b" ")
    if len(words) != 3 or not words[2].startswith(b"HTTP/") or not words[0]:
        raise NotARequest("the first line is no request line, such as: GET /path HTTP/1.1")
    headers = []
    for line in filter(None, lines[1:]):
        name, colon, value = line.partition(b":")
        if not colon or not name or name != name.strip():
            raise NotARequest(f"no header: {line[:80].decode('latin-1')!r}")
        headers.append((name.lower(), value.strip()))
    names = dict(headers)
    if names.get(b"transfer-encoding", b"").lower() == b"chunked":
        body = _unchunked(body)
    elif (length := names.get(b"content-length", b"")).isdigit():
        body = body[: int(length)]
    elif body and b"transfer-encoding" not in names:
        body = body.removesuffix(b"\n").removesuffix(b"\r")
        headers.append((b"content-length", b"%d" % len(body)))
    return Sample(_request(words[0], words[1], tuple(headers), body, version=words[2]), source)


def _unchunked(body: bytes) -> bytes:
    """RFC 9112 §7.1, without extensions and trailers. Raises: NotARequest."""
    out: list[bytes] = []
    at = 0
    while (end := body.find(b"\n", at)) >= 0:
        size = body[at:end].partition(b";")[0].strip()
        if not size or len(size) > 8 or not _is_hex(size):
            break
        at = end + 1 + int(size, 16)
        if at == end + 1:
            return b"".join(out)
        out.append(body[end + 1 : at])
        at += 2 if body.startswith(b"\r\n", at) else 1
    raise NotARequest("its body is said to be chunked, and is not")


def requests_of(lines: Iterable[bytes], source: str = "") -> Iterator[Sample | None]:
    """The requests of a log, line by line: JSON or the combined format. None for a line that holds none."""
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text:
            continue
        found = None
        if len(text) <= LINE_BYTES_MAX:
            found = _of_json(text) if text.startswith(b"{") else _of_log(text)
        yield None if found is None else Sample(found, f"{source}:{number}")


def is_har(start: bytes) -> bool:
    """Whether a file that begins so is a HAR file, and not lines of JSON."""
    text = start.lstrip(b"\xef\xbb\xbf \t\r\n")
    return text.startswith(b"{") and text[1:].lstrip().startswith(b'"log"')


def requests_of_har(content: bytes, source: str = "") -> list[Sample]:
    """The requests of a HAR file. Raises: NotARequest."""
    try:
        entries = json.loads(content.removeprefix(b"\xef\xbb\xbf"))["log"]["entries"]
        samples = []
        for number, entry in enumerate(entries[:HAR_ENTRIES_MAX], 1):
            samples.append(Sample(_of_har(entry["request"]), f"{source}:{number}"))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise NotARequest(f"not a HAR file: {error!r}") from None
    return samples


def _of_har(one: dict[str, Any]) -> Request:
    url = urlsplit(one["url"])
    headers = [
        (_bytes(header["name"]).lower(), _bytes(header["value"]))
        for header in one.get("headers", ())
        if not header["name"].startswith(":")  # HTTP/2's own
    ]
    if not any(name == b"host" for name, _ in headers):
        headers.insert(0, (b"host", _bytes(url.netloc.rpartition("@")[2])))
    target = _bytes(url.path or "/") + (b"?" + _bytes(url.query) if url.query else b"")
    content = _posted(one.get("postData") or {}, headers)
    return _request(_bytes(one["method"]), target, _with_length(one["method"], headers, content), content)


def _posted(posted: dict[str, Any], headers: list[Header]) -> bytes:
    """The body, whose type is added where no header says it. Fields that stand there one by one are a form,
    also those of a multipart body: its files are not there.
    """
    text, params = posted.get("text") or "", posted.get("params") or ()
    kind = _bytes(posted.get("mimeType") or "")
    if params and not text:
        fields = [(one["name"], one.get("value") or "") for one in params if not one.get("fileName")]
        text, kind = urlencode(fields, errors="surrogatepass"), _FORM
        headers[:] = [header for header in headers if header[0] not in (b"content-type", b"content-length")]
    if text and kind and not any(name == b"content-type" for name, _ in headers):
        headers.append((b"content-type", kind))
    return b64decode(text) if posted.get("encoding") == "base64" else _bytes(text)


def _with_length(method: str, headers: Iterable[Header], body: bytes) -> tuple[Header, ...]:
    """Over HTTP/1.1, which the edge speaks, clients say how long a body is; logs and HTTP/3 do not."""
    known = tuple(headers)
    if not (body or method in _WITH_BODY) or {b"content-length", b"transfer-encoding"} & dict(known).keys():
        return known
    return (*known, (b"content-length", b"%d" % len(body)))


def _of_json(text: bytes) -> Request | None:
    """An event of the edge, or a line of a log that was told to be JSON."""
    try:
        one = json.loads(text)
        method = one.get("method") or one.get("request_method")
        target = one.get("target") or one.get("uri") or one.get("request_uri") or one.get("url")
        if target is None and one.get("path"):
            target = one["path"] + ("?" + one["query"] if one.get("query") else "")
        if not isinstance(method, str) or not isinstance(target, str):
            return None
        headers = one.get("headers") or {}
        pairs = headers.items() if isinstance(headers, dict) else headers
        given = [(_bytes(name).lower(), _bytes(value)) for name, value in pairs]
        texts = {name: one.get(key) for key, name in _JSON_TEXT.items()}
        given += [(name, _bytes(text)) for name, text in texts.items() if isinstance(text, str)]
        body = one.get("body")
        content = _bytes(body) if body else b""
        headers = _with_length(method, _filled(given), content)
        return _request(_bytes(method), _bytes(target), headers, content)
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None


def _of_log(text: bytes) -> Request | None:
    """``192.0.2.1 - - [day] "GET /a HTTP/1.1" 200 17 "referrer" "agent"``, or the common format."""
    quoted = _quoted(text)
    words = quoted[0].split(b" ") if quoted else []
    if len(words) != 3 or not words[2].startswith(b"HTTP/"):
        return None
    given: list[Header] = []
    if len(quoted) >= 3:
        given = [
            (name, value)
            for name, value in ((b"referer", quoted[1]), (b"user-agent", quoted[2]))
            if value not in (b"-", b"")
        ]
    client = text.split(b" ", 1)[0].decode("latin-1")
    headers = _with_length(words[0].decode("latin-1"), _filled(given), b"")
    return _request(words[0], words[1], headers, b"", version=words[2], client=client)


def _quoted(text: bytes) -> list[bytes]:
    r"""The texts in double quotes; ``\"`` and ``\xHH`` inside of them as servers write them."""
    found, at = [], text.find(b'"')
    while 0 <= at < len(text):
        out = bytearray()
        at += 1
        while at < len(text) and text[at] != 34:
            if text[at] == 92 and at + 1 < len(text):
                digits = text[at + 2 : at + 4]
                if text[at + 1] == 120 and len(digits) == 2 and _is_hex(digits):
                    out.append(int(digits, 16))
                    at += 4
                else:
                    out.append(text[at + 1])
                    at += 2
            else:
                out.append(text[at])
                at += 1
        found.append(bytes(out))
        at = text.find(b'"', at + 1)
    return found


def _is_hex(digits: bytes) -> bool:
    return all(digit in b"0123456789abcdefABCDEF" for digit in digits)


def _filled(given: list[Header]) -> tuple[Header, ...]:
    names = {name for name, _ in given}
    return (*(header for header in USUAL if header[0] not in names), *given)


def _request(
    method: bytes,
    target: bytes,
    headers: tuple[Header, ...],
    body: bytes,
    *,
    version: bytes = b"HTTP/1.1",
    client: str = "192.0.2.1",
) -> Request:
    if target.startswith((b"http://", b"https://")):
        url = urlsplit(target)
        target = (url.path or b"/") + (b"?" + url.query if url.query else b"")
    return Request(
        method=method, target=target, version=version, headers=headers, body=body, client_address=client
    )


def _bytes(text: Any) -> bytes:
    return str(text).encode("utf-8", "surrogatepass")
