"""Bodies: what rules see of them.

Owns  REQUEST_BODY, the variables on errors, which bodies are text.
Not   reading from the network; the event and the answer for a refusal (the proxy's).

A form, JSON, XML or multipart body is inspected whole or refused: over a limit with 413, when it cannot be
read with 400. Of a multipart body the rest may follow (`late_parts`), if the caller says so. Any other body
is opaque: never arguments, only REQUEST_BODY, and only its inspected prefix; so is the beginning of a body
whose rest its caller lets pass, unless it is a form.

REQUEST_BODY holds forms and opaque bodies; a body that became arguments, files or XML only when a rule asks
(``ctl:forceRequestBodyVariable``). ModSecurity 3 always holds it, against its manual, and so sees binary
files as text.

Source: reference manual of ModSecurity v3, "REQBODY_PROCESSOR", "REQUEST_BODY".
"""

from collections.abc import Callable, Generator

from edgestead.waf.bodies import charsets, json, multipart, xml
from edgestead.waf.bodies.form import count, reading, set_all, set_arguments
from edgestead.waf.bodies.media_types import TYPE_BYTES_MAX
from edgestead.waf.limits import ARGUMENTS_MAX, BODY_BYTES_MAX, CALL_UNITS, UPLOAD_BYTES_MAX
from edgestead.waf.transaction import Pair, Refused, Request, Response, Values

# Of answers. Style sheets and programs are left out: large, static, and without personal data.
_TEXT_TYPES = frozenset(
    (b"", b"text/html", b"text/plain", b"text/xml", b"application/json", b"application/xml")
)  # "" is sniffed, as text where it looks like it
_TEXT_SUFFIXES = (b"+json", b"+xml")


def is_form_by_default(request: Request) -> bool:
    """A POST whose body has no type: some take it for a form."""
    return request.method == b"POST" and not content_type_of(request).strip()


def is_text(content_type: bytes) -> bool:
    """Whether an answer of that type is inspected with its body."""
    media_type = content_type[:TYPE_BYTES_MAX].partition(b";")[0].strip().lower()
    return media_type in _TEXT_TYPES or media_type.endswith(_TEXT_SUFFIXES)


Reading = Generator[int, None, Refused | None]


def add_body(values: Values, request: Request, processor: str, force: bool) -> Reading:
    """Add what the body says: phase 2. Ends with why an application may read another text than rules do, 415,
    or None; tells the units of work of each portion.

    Raises: Refused, 413 for a body, a number of arguments or parts, a depth over its limit, 400 for a body
    that its processor cannot read, 415 for a packed one. REQBODY_ERROR and REQBODY_ERROR_MSG are set before.
    """
    body = request.body
    if request.partial and processor != "URLENCODED":
        processor = ""
    read = _PROCESSORS.get(processor)
    head = b"".join([b"%b: %b\n" % header for header in request.headers])
    values["FULL_REQUEST"] = [(b"", b"%b\n\n%b" % (head, body))]
    values["FULL_REQUEST_LENGTH"] = [(b"", b"%d" % (len(head) + 2 + len(body)))]
    if body:
        values["REQUEST_BODY_LENGTH"] = [(b"", b"%d" % len(body))]
        if force or processor in ("", "URLENCODED"):
            values["REQUEST_BODY"] = [(b"", body[: _bytes_max(request)])]
    trouble = None
    try:
        if read is not None and body:
            _check_coding(request)
            _check_size(request, processor)
            trouble = (yield from read(values, request)) or charsets.trouble_of_type(content_type_of(request))
    except Refused as error:
        _set_error(values, b"1", error.reason.encode())
        raise
    _set_error(values, b"0", b"")
    return trouble


def content_type_of(request: Request) -> bytes:
    """The first one; of several a body is refused."""
    return next((value for name, value in request.headers if name.lower() == b"content-type"), b"")


def _check_coding(request: Request) -> None:
    """A packed body cannot be inspected, and some applications unpack."""
    if request.unpacked:
        return
    for name, value in request.headers:
        if name.lower() == b"content-encoding" and value.strip().lower() not in (b"", b"identity"):
            raise Refused("content-encoding", 415)


def _check_size(request: Request, processor: str) -> None:
    most = UPLOAD_BYTES_MAX if processor == "MULTIPART" else _bytes_max(request)
    follows = request.partial or (processor == "MULTIPART" and request.rest_follows)
    if len(request.body) > most or not (request.body_complete or follows):
        raise Refused("body-size", 413)


def _bytes_max(request: Request) -> int:
    return request.body_bytes_max or BODY_BYTES_MAX


def _arguments_max(request: Request) -> int:
    return request.arguments_max or ARGUMENTS_MAX


def _set_error(values: Values, flag: bytes, reason: bytes) -> None:
    values["REQBODY_ERROR"] = values["REQBODY_PROCESSOR_ERROR"] = [(b"", flag)]
    if reason:
        values["REQBODY_ERROR_MSG"] = values["REQBODY_PROCESSOR_ERROR_MSG"] = [(b"", reason)]
        if reason == b"body-size":
            values["INBOUND_DATA_ERROR"] = [(b"", b"1")]


def _check_count(values: Values, found: list[Pair], arguments_max: int) -> None:
    if len(values["ARGS_GET"]) + len(found) > arguments_max:
        raise Refused("arguments", 413)


def _set_posted(values: Values, posted: list[Pair], request: Request) -> Refused | None:
    _check_count(values, posted, _arguments_max(request))
    set_arguments(values, values["ARGS_GET"], posted)
    return charsets.trouble_of_fields(posted)


def _read_form(values: Values, request: Request) -> Reading:
    if len(values["ARGS_GET"]) + count(request.body) > _arguments_max(request):
        raise Refused("arguments", 413)
    posted, bad = yield from reading(request.body)
    if bad:
        values["URLENCODED_ERROR"] = [(b"", b"1")]
    return _set_posted(values, posted, request)


def _read_json(values: Values, request: Request) -> Reading:
    """JSON fills ARGS, but neither ARGS_GET nor ARGS_POST: those are of forms."""
    found = yield from json.reading(request.body, _arguments_max(request))
    _check_count(values, found, _arguments_max(request))
    set_all(values, values["ARGS_GET"] + found)
    return None


def _read_xml(values: Values, request: Request) -> Reading:
    texts, attributes = yield from xml.reading(request.body)
    values["XML"] = [*((b"/*", text) for text in texts), *((b"//@*", value) for value in attributes)]
    yield CALL_UNITS // 3 * len(values["XML"])
    return None


def _read_multipart(values: Values, request: Request) -> Reading:
    found = multipart.Multipart(content_type_of(request))
    try:
        yield from found.reading(request.body, complete=request.body_complete)
    finally:
        values.update(found.variables())
    return _set_posted(values, found.fields, request) or found.trouble


_PROCESSORS: dict[str, Callable[[Values, Request], Reading]] = {
    "JSON": _read_json,
    "MULTIPART": _read_multipart,
    "URLENCODED": _read_form,
    "XML": _read_xml,
}


def add_response_body(values: Values, response: Response) -> None:
    """Add what is inspected of a response's body: phase 4."""
    if response.body:
        values["RESPONSE_BODY"] = [(b"", response.body)]
        values["RESPONSE_CONTENT_LENGTH"] = [(b"", b"%d" % len(response.body))]
    if not response.body_complete:
        values["OUTBOUND_DATA_ERROR"] = [(b"", b"1")]
