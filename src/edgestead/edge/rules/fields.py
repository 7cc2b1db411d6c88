"""What expressions see of an exchange: one loader per field.

Owns  the table of loaders: which fields the edge knows; how an exchange gets its view.
Not   what a field means in general (docs/reference/fields.md).

A loader runs once per view, when an expression first asks for its field. Fields without one have their
default always: what a machine of your own does not know.
"""

import os
from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import attrgetter

from edgestead.edge.exchanges.exchange import Exchange, Headers, values_of
from edgestead.edge.exchanges.fingerprints import ClientHello, hello_of
from edgestead.edge.rules.parts import Parts, parts_of
from edgestead.edge.tools import texts
from edgestead.language import FIELDS, Loader, Shortcuts, Value, View, ip_value, loader_table
from edgestead.language.types import VALUE_BYTES_MAX

BODY_OCTETS_SEEN_MAX = VALUE_BYTES_MAX  # of a body, where an expression asks for it
_SEED_OCTETS = 16
_FORM = b"application/x-www-form-urlencoded"
_MULTIPART = b"multipart/"
_ADDRESSES_KEPT_MAX = 4_096
_US, _MS = 1_000_000, 1_000

address = lru_cache(_ADDRESSES_KEPT_MAX)(ip_value)
Load = Loader[Exchange]


def _header(name: bytes) -> Load:
    """Empty where there is none, as rules that look for its absence expect."""
    return lambda exchange: exchange.by_name.get(name, b"")


def _is_normal(path: bytes) -> bool:
    """Nearly every one is."""
    text = path.decode("latin-1")  # looking into a str takes a fifth of the time
    return not ("%" in text or "//" in text or "/." in text or "\\" in text)


def _normal(exchange: Exchange) -> bytes:
    return exchange.path if _is_normal(exchange.path) else texts.normal_path(exchange.path)


def _with_query(path: bytes, query: bytes) -> bytes:
    return b"%b?%b" % (path, query) if query else path


def _uri(exchange: Exchange) -> bytes:
    return _with_query(_normal(exchange), exchange.query)


def _full(exchange: Exchange, uri: bytes) -> bytes:
    return b"%b://%b%b" % (exchange.scheme, exchange.host, uri)


def _raw_path(exchange: Exchange) -> bytes:
    return exchange.raw_target.partition(b"?")[0]


def _raw_query(exchange: Exchange) -> bytes:
    return exchange.raw_target.partition(b"?")[2]


def _names(items: list[tuple[bytes, bytes]]) -> list[bytes]:
    return [name for name, _ in items]


def _values(items: list[tuple[bytes, bytes]]) -> list[bytes]:
    return [value for _, value in items]


def _languages(exchange: Exchange) -> list[bytes]:
    return texts.languages(exchange.by_name.get(b"accept-language", b""))


def _cookies(exchange: Exchange) -> dict[bytes, list[bytes]]:
    return texts.grouped(texts.cookie_pairs(exchange.by_name.get(b"cookie", b"")))


def _body(exchange: Exchange) -> bytes:
    return exchange.body[:BODY_OCTETS_SEEN_MAX]


def _is_cut(exchange: Exchange) -> bool:
    """Whether there is more of the body than expressions see."""
    return not exchange.body_complete or len(exchange.body) > BODY_OCTETS_SEEN_MAX


def _body_size(exchange: Exchange) -> int | None:
    if exchange.body_complete:
        return len(exchange.body)
    return exchange.body_length


def _mime(exchange: Exchange) -> bytes | None:
    found = exchange.header(b"content-type")
    return None if found is None else texts.media_type(found)


def _form(exchange: Exchange) -> list[tuple[bytes, bytes]] | None:
    return texts.pairs(_body(exchange)) if _mime(exchange) == _FORM else None


def _of_form(read: Callable[[list[tuple[bytes, bytes]]], list[bytes] | dict[bytes, list[bytes]]]) -> Load:
    return lambda exchange: None if (form := _form(exchange)) is None else read(form)


def _of_parts(read: Callable[[Parts], Value]) -> Load:
    def load(exchange: Exchange) -> Value | None:
        content_type = exchange.header(b"content-type") or b""
        if not texts.media_type(content_type).startswith(_MULTIPART):
            return None
        return read(parts_of(content_type, _body(exchange), not _is_cut(exchange)))

    return load


def _part_header(name: bytes) -> Load:
    return _of_parts(lambda parts: parts.headers(name))


def _of_hello(read: Callable[[ClientHello], Value]) -> Load:
    def load(exchange: Exchange) -> Value | None:
        hello = hello_of(exchange.tls.hello) if exchange.tls is not None else None
        return None if hello is None else read(hello)

    return load


def _response_headers(exchange: Exchange) -> Headers:
    return exchange.response.headers if exchange.response is not None else []


def _media_type(exchange: Exchange) -> bytes | None:
    found = values_of(_response_headers(exchange), b"content-type")
    return texts.media_type(found[0]) if found else None


_REQUEST: Mapping[str, Load] = {
    "http.host": attrgetter("host"),
    "http.cookie": _header(b"cookie"),
    "http.referer": _header(b"referer"),
    "http.user_agent": _header(b"user-agent"),
    "http.x_forwarded_for": _header(b"x-forwarded-for"),
    "http.request.method": attrgetter("method"),
    "http.request.version": attrgetter("version"),
    "http.request.full_uri": lambda exchange: _full(exchange, _uri(exchange)),
    "http.request.uri": _uri,
    "http.request.uri.path": _normal,
    "http.request.uri.path.extension": lambda exchange: texts.extension(_normal(exchange)),
    "http.request.uri.query": attrgetter("query"),
    "http.request.uri.args": lambda exchange: texts.grouped(texts.pairs(exchange.query)),
    "http.request.uri.args.names": lambda exchange: _names(texts.pairs(exchange.query)),
    "http.request.uri.args.values": lambda exchange: _values(texts.pairs(exchange.query)),
    "raw.http.request.full_uri": lambda exchange: _full(exchange, exchange.raw_target),
    "raw.http.request.uri": attrgetter("raw_target"),
    "raw.http.request.uri.path": _raw_path,
    "raw.http.request.uri.path.extension": lambda exchange: texts.extension(_raw_path(exchange)),
    "raw.http.request.uri.query": _raw_query,
    "raw.http.request.uri.args": lambda exchange: texts.grouped(texts.pairs(_raw_query(exchange))),
    "raw.http.request.uri.args.names": lambda exchange: _names(texts.pairs(_raw_query(exchange))),
    "raw.http.request.uri.args.values": lambda exchange: _values(texts.pairs(_raw_query(exchange))),
    "http.request.headers": lambda exchange: texts.grouped(exchange.headers),
    "http.request.headers.names": lambda exchange: _names(exchange.headers),
    "http.request.headers.values": lambda exchange: _values(exchange.headers),
    "http.request.cookies": _cookies,
    "http.request.accepted_languages": _languages,
    "http.request.timestamp.sec": lambda exchange: exchange.arrived_us // _US,
    "http.request.timestamp.msec": lambda exchange: exchange.arrived_us % _US // _MS,
    "ip.src": lambda exchange: address(exchange.client),
    "ssl": lambda exchange: exchange.scheme == b"https",
    "cf.zone.name": lambda exchange: exchange.zone.name,
    "cf.zone.plan": lambda exchange: exchange.zone.plan.encode(),
    "cf.ray_id": attrgetter("ray"),
    "cf.random_seed": lambda exchange: os.urandom(_SEED_OCTETS),
    "cf.edge.server_ip": lambda exchange: address(exchange.server) if exchange.server else None,
    "cf.edge.server_port": lambda exchange: exchange.port,
    "cf.edge.client_tcp": lambda exchange: True,
    "cf.tls_version": lambda exchange: exchange.tls.version if exchange.tls else None,
    "cf.tls_cipher": lambda exchange: exchange.tls.cipher if exchange.tls else None,
    "cf.tls_client_hello_length": _of_hello(attrgetter("length")),
    "cf.tls_client_random": _of_hello(lambda hello: b64encode(hello.random)),
    "cf.tls_ciphers_sha1": _of_hello(attrgetter("ciphers_sha1")),
    "cf.tls_client_extensions_sha1": _of_hello(attrgetter("extensions_sha1")),
    "cf.tls_client_extensions_sha1_le": _of_hello(attrgetter("extensions_sha1_le")),
    "cf.bot_management.ja3_hash": _of_hello(attrgetter("ja3")),
    "cf.bot_management.ja4": _of_hello(attrgetter("ja4")),
}
_BODY: Mapping[str, Load] = {
    "http.request.body.raw": _body,
    "http.request.body.truncated": _is_cut,
    "http.request.body.form": _of_form(texts.grouped),
    "http.request.body.form.names": _of_form(_names),
    "http.request.body.form.values": _of_form(_values),
    "http.request.body.size": _body_size,
    "http.request.body.multipart": _of_parts(attrgetter("grouped")),
    "http.request.body.multipart.names": _of_parts(attrgetter("names")),
    "http.request.body.multipart.filenames": _of_parts(attrgetter("filenames")),
    "http.request.body.multipart.values": _of_parts(attrgetter("values")),
    "http.request.body.multipart.content_types": _part_header(b"content-type"),
    "http.request.body.multipart.content_dispositions": _part_header(b"content-disposition"),
    "http.request.body.multipart.content_transfer_encodings": _part_header(b"content-transfer-encoding"),
}
_ABOUT_BODY: Mapping[str, Load] = {"http.request.body.mime": _mime}
_RESPONSE: Mapping[str, Load] = {
    "http.response.code": lambda exchange: exchange.response.status if exchange.response else None,
    "http.response.content_type.media_type": _media_type,
    **{
        f"{prefix}http.response.headers{suffix}": load
        for prefix in ("", "raw.")
        for suffix, load in (
            ("", lambda exchange: texts.grouped(_response_headers(exchange))),
            (".names", lambda exchange: _names(_response_headers(exchange))),
            (".values", lambda exchange: _values(_response_headers(exchange))),
        )
    },
}

KNOWN = {**_REQUEST, **_BODY, **_ABOUT_BODY, **_RESPONSE}
LOADERS = loader_table(KNOWN)


class ExchangeView(dict[int, Value | None]):
    """What `LazyView` is, but it cuts nothing: limits of heads and bodies are below those of values.

    A head has at most 64 KiB and 128 headers, `texts.pairs` makes at most as many pairs as a value has items,
    and the body's loaders cut it.
    """

    __slots__ = ("request",)

    def __init__(self, exchange: Exchange) -> None:
        self.request = exchange

    def __missing__(self, slot: int) -> Value | None:
        value = self[slot] = LOADERS[slot](self.request)
        return value


def view_of(exchange: Exchange) -> View:
    """What expressions see of an exchange; made when the first of them asks."""
    view = exchange.view
    if view is None:
        view = exchange.view = ExchangeView(exchange)
    return view


_PATH = FIELDS["http.request.uri.path"]
# The fields that rules ask for most, as Python says them of an exchange (`language.inline`).
SHORT = Shortcuts(
    view="view_of(r)",
    values={
        "http.host": "r.host",
        "http.request.method": "r.method",
        # What takes work is kept by the view, for all rulesets.
        "http.request.uri.path": f"r.path if is_normal(r.path) else view_of(r)[{_PATH.slot}]",
        "http.request.uri.query": "r.query",
        "http.cookie": 'r.by_name.get(b"cookie", b"")',
        "http.referer": 'r.by_name.get(b"referer", b"")',
        "http.user_agent": 'r.by_name.get(b"user-agent", b"")',
        "http.x_forwarded_for": 'r.by_name.get(b"x-forwarded-for", b"")',
        "ip.src": "address(r.client)",
    },
    keys={"http.request.headers": "r.by_name"},
    names={"address": address, "is_normal": _is_normal, "view_of": view_of},
)

BODY_FIELDS = frozenset(_BODY)  # an expression with one of these wants the body
RESPONSE_FIELDS = frozenset(name for name, field in FIELDS.items() if field.direction == "response")
