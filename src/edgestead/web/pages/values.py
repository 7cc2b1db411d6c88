"""Namespaces of keys and values.

Owns  these pages, a value as text, JSON or hexadecimal, its expiry, writing and deleting one.
Not   which keys and values may be: the API says.
"""

import codecs

import msgspec

from edgestead.web.asker import PER_PAGE, Json, Refused
from edgestead.web.pages.shared import account_of, listed, tried
from edgestead.web.visit import ROOT, Data, Moved, Shown, Visit, segment

SHOWN_BYTES = 8_192  # of a value: the page stays below 60 KB, its two files included
SHOWN_BYTES_MAX = 65_536  # for who asks for all of it


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
    data: Data = {
        "namespace": await visit.api.result(base),
        "keys": answer["result"],
        "prefix": query["prefix"],
        "after": answer["result_info"]["cursor"],
        "form": {name: visit.field(name) for name in ("key", "expiration_ttl")} | {"value": _value(visit)},
        "errors": refused.messages if refused else [],
    }
    return Shown("keys.html", data["namespace"]["title"], data, 400 if refused else 200)


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
    as_ = visit.query.get("as")
    data: Data = {
        "namespace": await visit.api.result(base),
        "key": key,
        "expires": listed_key.get("expiration"),
        "as_hex": as_ == "hex",
        "length": len(octets),
        **_shown(octets, SHOWN_BYTES_MAX if as_ == "all" else SHOWN_BYTES, as_hex=as_ == "hex"),
        "metadata": await visit.api.result(f"{base}/metadata/{segment(key)}"),
        "typed": _value(visit) if refused else None,
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


def _value(visit: Visit) -> str:
    """A browser sends each line break as two characters (HTML, "Constructing the entry list")."""
    return (visit.form or {}).get("value", "").replace("\r\n", "\n")


def _expiry(visit: Visit) -> dict[str, str]:
    """Of a form: seconds from now, or the time that was there."""
    for name in ("expiration_ttl", "expiration"):
        if visit.field(name):
            return {name: visit.field(name)}
    return {}


def _shown(octets: bytes, bytes_max: int, *, as_hex: bool) -> Data:
    """Text where it is text, JSON with indents, else a hexadecimal dump of its beginning.

    Only a whole text can be edited, and only one whose line breaks a form can say.
    """
    head = octets[:bytes_max]
    is_whole = head == octets
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(head, is_whole)  # a cut may be in a character
        if not as_hex and all(character.isprintable() or character in "\n\r\t" for character in text):
            return {
                "text": text,
                "json": _indented(octets, bytes_max),
                "is_text": True,
                "is_editable": is_whole and "\r" not in text,
                "shown": None if is_whole else len(head),
                "has_more": len(head) < min(len(octets), SHOWN_BYTES_MAX),
            }
    except UnicodeDecodeError:
        pass
    lines = [f"{at:08x}  {head[at : at + 16].hex(' ')}" for at in range(0, min(len(head), 4_096), 16)]
    shown = None if len(octets) <= 4_096 else 4_096
    about = {"is_text": False, "is_editable": False, "shown": shown, "has_more": False}
    return {"text": "\n".join(lines), "json": "", **about}


def _indented(octets: bytes, bytes_max: int) -> str:
    """An object or a list as JSON with indents; "" for what is none, or too long."""
    if octets[:1] not in (b"{", b"[") or len(octets) > bytes_max:
        return ""
    try:
        text = msgspec.json.format(octets, indent=2).decode()
        return text if len(text) <= bytes_max else ""
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
