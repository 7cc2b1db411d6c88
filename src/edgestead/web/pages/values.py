"""Namespaces of keys and values.

Owns  these pages, a value as text, JSON or hexadecimal and back, its expiry, writing and deleting one.
Not   which keys and values may be: the API says.
"""

import codecs
from collections.abc import Sequence
from itertools import accumulate

import msgspec

from edgestead.web.asker import PER_PAGE, Json, Refused
from edgestead.web.pages.shared import account_of, listed, tried
from edgestead.web.visit import ROOT, Data, Moved, Shown, Visit, segment

SHOWN_BYTES = 8_192  # of a value: the page stays below 60 KB, its two files included
SHOWN_BYTES_MAX = 65_536  # for who asks for all of a text
HEX_BYTES_A_LINE = 16
KEYS_OCTETS_MAX = 24_000  # of the links of one list: there are fewer keys on a page where they are long
KEYS_MIN = 10  # of a list, however long they are


async def _base(visit: Visit) -> str:
    return f"/accounts/{await account_of(visit)}/storage/kv/namespaces"


async def show_all(visit: Visit, error: str = "") -> Shown:
    found = await listed(visit, await _base(visit))
    return Shown("namespaces.html", "Keys and values", {"namespaces": found, "error": error})


async def create(visit: Visit) -> Shown | Moved:
    refused = await tried(visit, "POST", await _base(visit), {"title": visit.field("title")})
    return (
        Moved(f"{ROOT}/values", "The namespace is made.")
        if refused is None
        else await show_all(visit, str(refused))
    )


async def show(namespace: str, visit: Visit, refused: Refused | None = None) -> Shown:
    base = f"{await _base(visit)}/{segment(namespace)}"
    query = {
        "prefix": visit.query.get("prefix", ""),
        "cursor": visit.query.get("cursor", ""),
        "limit": PER_PAGE,
    }
    answer = await visit.api.get(f"{base}/keys", query)
    fitting = _fitting(answer["result"])
    if fitting < len(answer["result"]):
        answer = await visit.api.get(f"{base}/keys", query | {"limit": fitting})
    data: Data = {
        "namespace": await visit.api.result(base),
        "keys": answer["result"],
        "prefix": query["prefix"],
        "after": answer["result_info"]["cursor"],
        "form": {name: visit.field(name) for name in ("key", "expiration_ttl", "as")}
        | {"value": _typed(visit)},
        "errors": refused.messages if refused else [],
    }
    return Shown("keys.html", data["namespace"]["title"], data, 400 if refused else 200)


def _fitting(keys: Sequence[Json]) -> int:
    """How many of the first ones a page can have."""
    sizes = accumulate(len(segment(one["name"])) for one in keys)
    return max(KEYS_MIN, sum(size <= KEYS_OCTETS_MAX for size in sizes))


async def put(namespace: str, visit: Visit) -> Shown | Moved:
    key = visit.field("key")
    refused = await _write(visit, f"{await _base(visit)}/{segment(namespace)}/values/{segment(key)}")
    if refused is not None:
        return await show(namespace, visit, refused)
    return Moved(f"{ROOT}/values/{segment(namespace)}/{segment(key)}", "The value is written.")


async def show_one(namespace: str, key: str, visit: Visit, refused: Refused | None = None) -> Shown:
    base = f"{await _base(visit)}/{segment(namespace)}"
    octets = await visit.api.octets(f"{base}/values/{segment(key)}")
    keys = await visit.api.result(f"{base}/keys", {"prefix": key, "limit": 10})
    listed_key: Json = next((one for one in keys if one["name"] == key), {})
    as_ = visit.field("as") or visit.query.get("as")
    data: Data = {
        "namespace": await visit.api.result(base),
        "key": key,
        "expires": listed_key.get("expiration"),
        "as_hex": as_ == "hex",
        "length": len(octets),
        **_shown(octets, SHOWN_BYTES_MAX if as_ == "all" else SHOWN_BYTES, as_hex=as_ == "hex"),
        "metadata": await visit.api.result(f"{base}/metadata/{segment(key)}"),
        "typed": _typed(visit) if refused else None,
        "expiration_ttl": visit.field("expiration_ttl"),
        "errors": refused.messages if refused else [],
    }
    return Shown("value.html", key, data, 400 if refused else 200)


async def change(namespace: str, key: str, visit: Visit) -> Shown | Moved:
    base = f"{await _base(visit)}/{segment(namespace)}"
    path = f"{base}/values/{segment(key)}"
    if visit.field("what") == "delete":
        await visit.api.send("DELETE", path)
        return Moved(f"{ROOT}/values/{segment(namespace)}", "The key is deleted.")
    metadata = await _metadata(visit, f"{base}/metadata/{segment(key)}")
    refused = await _write(visit, path, **metadata)
    if refused is not None:
        return await show_one(namespace, key, visit, refused)
    return Moved(f"{ROOT}/values/{segment(namespace)}/{segment(key)}", "The value is written.")


async def _metadata(visit: Visit, path: str) -> dict[str, str]:
    """The field of a form that keeps it; none where there is none, or no key any more."""
    try:
        held = await visit.api.result(path)
    except Refused as refused:
        if refused.status != 404:
            raise
        held = None
    return {} if held is None else {"metadata": msgspec.json.encode(held).decode()}


async def _write(visit: Visit, path: str, **metadata: str) -> Refused | None:
    try:
        await visit.api.send_form(path, _expiry(visit), "PUT", value=_value(visit), **metadata)
    except Refused as refused:
        if refused.status != 400:
            raise
        return refused
    return None


def _typed(visit: Visit) -> str:
    """A browser sends each line break as two characters (HTML, "Constructing the entry list")."""
    return (visit.form or {}).get("value", "").replace("\r\n", "\n")


def _value(visit: Visit) -> str | bytes:
    """Raises Refused: no hexadecimal digits, where that was said."""
    if visit.field("as") != "hex":
        return _typed(visit)
    try:
        return bytes.fromhex(_typed(visit))
    except ValueError:
        message = "Hexadecimal is two digits for each byte, with blanks between bytes or without."
        raise Refused(400, [{"code": 1001, "message": message}]) from None


def _expiry(visit: Visit) -> dict[str, str]:
    """Of a form: seconds from now, or the time that was there."""
    for name in ("expiration_ttl", "expiration"):
        if visit.field(name):
            return {name: visit.field(name)}
    return {}


def _shown(octets: bytes, bytes_max: int, *, as_hex: bool) -> Data:
    """Text where it is text, JSON with indents, else hexadecimal digits of its beginning.

    Only a whole one can be edited, and only a text whose line breaks a form can say: others as hexadecimal.
    """
    head = octets[:bytes_max]
    is_whole, text = head == octets, _text(head, is_whole=head == octets)
    if text is not None and not as_hex:
        return {
            "text": text,
            "json": _indented(octets, bytes_max),
            "is_text": True,
            "can_be_text": True,
            "is_editable": is_whole and "\r" not in text,
            "shown": None if is_whole else len(head),
            "has_more": len(head) < min(len(octets), SHOWN_BYTES_MAX),
        }
    head = octets[:SHOWN_BYTES]
    is_whole = head == octets
    lines = [head[at : at + HEX_BYTES_A_LINE].hex(" ") for at in range(0, len(head), HEX_BYTES_A_LINE)]
    return {
        "text": "\n".join(lines),
        "json": "",
        "is_text": False,
        "can_be_text": text is not None,
        "is_editable": is_whole,
        "shown": None if is_whole else len(head),
        "has_more": False,
    }


def _text(head: bytes, *, is_whole: bool) -> str | None:
    """None where it is none; a cut may be within a character."""
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(head, is_whole)
    except UnicodeDecodeError:
        return None
    return text if all(character.isprintable() or character in "\n\r\t" for character in text) else None


def _indented(octets: bytes, bytes_max: int) -> str:
    """An object or a list as JSON with indents; "" for what is none, or too long."""
    if octets[:1] not in (b"{", b"[") or len(octets) > bytes_max:
        return ""
    try:
        text = msgspec.json.format(octets, indent=2).decode()
        return text if len(text) <= bytes_max else ""
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
