"""A request or a response as rules see it: variables by name.

Owns  what a request line, headers, cookies and a query mean.
Not   rules; changing what is sent on.

A variable that holds one value is there from the start, empty until it has one: rules ask whether it is not
this or that. What ModSecurity computes is computed the same, with these differences, each on the side of
seeing more or refusing earlier:

* over a limit there is a refusal, where ModSecurity stops reading or goes on without the rest;
* the processors JSON and XML are chosen by content type without a rule of the configuration;
* a cookie in quotes with escapes is seen unescaped, too, as Django and Werkzeug read it;
* a POST that names no type is read as a form, as Rack does.

Source: reference manual of ModSecurity v3, "Variables"; RFC 6265 §4.2 (cookies).
"""

from collections.abc import Generator
from functools import lru_cache
from time import gmtime

from edgestead.waf.bodies import body as bodies
from edgestead.waf.bodies.form import arguments, count, reading, set_arguments
from edgestead.waf.bodies.media_types import processor_of
from edgestead.waf.limits import ARGUMENTS_MAX, CALL_UNITS, COOKIES_MAX, PART_BYTES
from edgestead.waf.terms.encodings import percent_decode
from edgestead.waf.terms.transformations import percent_decode_in_portions, unquote_cookie_in_portions
from edgestead.waf.transaction import Pair, Refused, Request, Response, Values

SPACE = b" \t\n\v\f\r"
# Shared by all requests: values are replaced, never changed.
_EMPTY: Values = {
    name: [(b"", b"")]
    for name in """
    ARGS_COMBINED_SIZE AUTH_TYPE FILES_COMBINED_SIZE FULL_REQUEST FULL_REQUEST_LENGTH
    MULTIPART_BOUNDARY_QUOTED MULTIPART_BOUNDARY_WHITESPACE MULTIPART_CRLF_LF_LINES MULTIPART_DATA_AFTER
    MULTIPART_DATA_BEFORE MULTIPART_FILE_LIMIT_EXCEEDED MULTIPART_HEADER_FOLDING
    MULTIPART_INVALID_HEADER_FOLDING MULTIPART_INVALID_PART MULTIPART_INVALID_QUOTING MULTIPART_LF_LINE
    MULTIPART_MISSING_SEMICOLON MULTIPART_SEMICOLON_MISSING MULTIPART_STRICT_ERROR
    MULTIPART_UNMATCHED_BOUNDARY OUTBOUND_DATA_ERROR PATH_INFO QUERY_STRING REQBODY_ERROR
    REQBODY_ERROR_MSG REQBODY_PROCESSOR REQBODY_PROCESSOR_ERROR REQBODY_PROCESSOR_ERROR_MSG
    REQUEST_BASENAME REQUEST_BODY REQUEST_BODY_LENGTH REQUEST_FILENAME REQUEST_URI RESPONSE_BODY
    RESPONSE_CONTENT_LENGTH RESPONSE_CONTENT_TYPE RESPONSE_PROTOCOL RESPONSE_STATUS SERVER_NAME SESSIONID
    STATUS_LINE USERAGENT_IP USERID WEBAPPID"""
    "".split()
}
_EMPTY["URLENCODED_ERROR"] = _EMPTY["INBOUND_DATA_ERROR"] = _EMPTY["MSC_PCRE_LIMITS_EXCEEDED"] = [(b"", b"0")]
_EMPTY["MODSEC_BUILD"] = [(b"", b"030015100")]  # whose behaviour rules may expect: 3.0.15
add_body = bodies.add_body
add_response_body = bodies.add_response_body


def request_values(request: Request) -> Generator[int, None, Values]:
    """What is known of a request before its body: phase 1. Tells the units of work of each portion.

    Raises: Refused over `ARGUMENTS_MAX` (414) or `COOKIES_MAX` (431), for a body of several types (400).
    """
    target, method = request.target, request.method
    client = [(b"", request.client_address.encode())]
    values = _EMPTY | {
        "REQUEST_METHOD": [(b"", method)],
        "REQUEST_LINE": [(b"", b"%b %b %b" % (method, target, request.version))],
        "REQUEST_PROTOCOL": [(b"", request.version)],
        "REQUEST_URI_RAW": [(b"", target)],
        "REMOTE_ADDR": client,
        "REMOTE_HOST": client,
        "REMOTE_PORT": [(b"", b"%d" % request.client_port)],
        "SERVER_ADDR": [(b"", request.server_address.encode())],
        "SERVER_PORT": [(b"", b"%d" % request.server_port)],
    }
    if request.unique_id:
        values["UNIQUE_ID"] = [(b"", request.unique_id.encode())]
    values.update(_times(request.time_epoch_seconds))
    yield from _add_target(values, target, request.arguments_max or ARGUMENTS_MAX)
    values["REQUEST_HEADERS"] = list(request.headers)
    values["REQUEST_HEADERS_NAMES"] = [(name, name) for name, _ in request.headers]
    for name, value in request.headers:
        kind = name.lower()
        if kind == b"cookie":
            yield from _cookies(values, value)
        elif (reader := _READERS.get(kind)) is not None:
            reader(values, value)
    if request.body:
        _check_types(request)
        if not values["REQBODY_PROCESSOR"][0][1] and bodies.is_form_by_default(request):
            values["REQBODY_PROCESSOR"] = [(b"", b"URLENCODED")]
    return values


def _add_target(values: Values, target: bytes, arguments_max: int) -> Generator[int, None, None]:
    whole = target.partition(b"#")[0]
    raw_path, _, query = whole.partition(b"?")
    path = (
        percent_decode(raw_path)
        if len(raw_path) <= PART_BYTES
        else (yield from percent_decode_in_portions(raw_path))
    )
    if raw_path is whole:
        uri = path
    else:
        uri = (
            percent_decode(whole)
            if len(whole) <= PART_BYTES
            else (yield from percent_decode_in_portions(whole))
        )
    uri = _without_origin(uri)
    if uri:
        values["REQUEST_URI"] = [(b"", uri)]
    if path:
        values["REQUEST_FILENAME"] = values["PATH_INFO"] = [(b"", path)]
        base = path[max(path.rfind(b"/"), path.rfind(b"\\")) + 1 :]
        if base and base is not path:
            values["REQUEST_BASENAME"] = [(b"", base)]
    found: list[Pair] = []
    if query:
        values["QUERY_STRING"] = [(b"", query)]
        if count(query) > arguments_max:
            raise Refused("arguments", 414)
        found, bad = arguments(query) if len(query) <= PART_BYTES else (yield from reading(query))
        if bad:
            values["URLENCODED_ERROR"] = [(b"", b"1")]
    set_arguments(values, found, [])


def _without_origin(uri: bytes) -> bytes:
    """The target of a request to a proxy without scheme and host."""
    if uri[:1] == b"/" or b"://" not in uri:
        return uri
    colon = uri.find(b":")
    if uri[colon + 1 : colon + 3] != b"//":
        return uri
    slash = uri.find(b"/", colon + 3)
    return uri if slash < 0 else uri[slash:]


def _cookies(values: Values, header: bytes) -> Generator[int, None, None]:
    pairs = values.setdefault("REQUEST_COOKIES", [])
    parts = header.removesuffix(b";").rstrip(SPACE).split(b";")
    for number, part in enumerate(parts, 1):
        name, _, value = part.partition(b"=")
        name = name.lstrip(SPACE)
        if name:
            pairs.append((name, value))
            if b"\\" in value and value.strip(SPACE)[:1] == b'"':
                pairs.append((name, (yield from unquote_cookie_in_portions(value))))
        if number % COOKIES_MAX == 0:
            yield COOKIES_MAX * CALL_UNITS
    if len(pairs) > COOKIES_MAX:
        raise Refused("cookies", 431)
    values["REQUEST_COOKIES_NAMES"] = [(name, name) for name, _ in pairs]


def _host(values: Values, header: bytes) -> None:
    if name := header.partition(b":")[0]:
        values["SERVER_NAME"] = [(b"", name)]


def _authorization(values: Values, header: bytes) -> None:
    if scheme := header.partition(b" ")[0]:
        values["AUTH_TYPE"] = [(b"", scheme)]


def _content_type(values: Values, header: bytes) -> None:
    if processor := processor_of(header):
        values["REQBODY_PROCESSOR"] = [(b"", processor.encode())]


def _check_types(request: Request) -> None:
    """RFC 9110 §8.3: there is one. Of several, the application may take another one than rules do."""
    if sum(name.lower() == b"content-type" for name, _ in request.headers) > 1:
        raise Refused("content-types", 400)


_READERS = {
    b"authorization": _authorization,
    b"content-type": _content_type,
    b"host": _host,
}


@lru_cache(maxsize=4)
def _times(epoch_seconds: int) -> Values:
    """UTC, whatever the machine's zone: rules that ask for the hour give the same answer everywhere."""
    now = gmtime(epoch_seconds)
    fields = {
        "TIME": b"%02d:%02d:%02d" % (now.tm_hour, now.tm_min, now.tm_sec),
        "TIME_DAY": b"%02d" % now.tm_mday,
        "TIME_EPOCH": b"%d" % epoch_seconds,
        "TIME_HOUR": b"%02d" % now.tm_hour,
        "TIME_MIN": b"%02d" % now.tm_min,
        "TIME_MON": b"%02d" % now.tm_mon,
        "TIME_SEC": b"%02d" % now.tm_sec,
        "TIME_WDAY": b"%d" % ((now.tm_wday + 1) % 7),
        "TIME_YEAR": b"%d" % now.tm_year,
    }
    return {name: [(b"", value)] for name, value in fields.items()}


def response_values(response: Response) -> Values:
    """What is known of a response before its body: phase 3. To be added to the request's values."""
    headers = response.headers
    values: Values = {
        "RESPONSE_STATUS": [(b"", b"%d" % response.status)],
        "RESPONSE_PROTOCOL": [(b"", response.version)],
        "STATUS_LINE": [(b"", b"%b %d %b" % (response.version, response.status, response.reason))],
        "RESPONSE_HEADERS": list(headers),
        "RESPONSE_HEADERS_NAMES": [(name, name) for name, _ in headers],
        "OUTBOUND_DATA_ERROR": [(b"", b"0")],
    }
    for name, value in headers:
        if name.lower() == b"content-type" and value:
            values["RESPONSE_CONTENT_TYPE"] = [(b"", value)]
    return values
