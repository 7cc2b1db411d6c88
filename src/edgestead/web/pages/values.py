"""Namespaces of keys and values.

Owns  these pages, a value as text or hexadecimal, writing and deleting one.
Not   which keys and values may be: the API says.
"""

from urllib.parse import quote

from edgestead.web.asker import PER_PAGE
from edgestead.web.pages.shared import account_of, listed, tried
from edgestead.web.visit import ROOT, Data, Moved, Shown, Visit

SHOWN_BYTES_MAX = 65_536  # of a value


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


async def show(namespace: str, visit: Visit) -> Shown:
    base = f"{await _base(visit)}/{_segment(namespace)}"
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
    }
    return Shown("keys.html", data["namespace"]["title"], data)


async def put(namespace: str, visit: Visit) -> Moved:
    key = visit.field("key")
    await visit.api.put_octets(
        f"{await _base(visit)}/{_segment(namespace)}/values/{_segment(key)}",
        (visit.form or {}).get("value", "").encode(),
    )
    return Moved(f"{ROOT}/values/{namespace}/{_segment(key)}", "The value is written.")


async def show_one(namespace: str, key: str, visit: Visit) -> Shown:
    base = f"{await _base(visit)}/{_segment(namespace)}"
    octets = await visit.api.octets(f"{base}/values/{_segment(key)}")
    data: Data = {
        "namespace": await visit.api.result(base),
        "key": key,
        "length": len(octets),
        **_shown(octets),
        "metadata": await visit.api.result(f"{base}/metadata/{_segment(key)}"),
    }
    return Shown("value.html", key, data)


async def change(namespace: str, key: str, visit: Visit) -> Moved:
    path = f"{await _base(visit)}/{_segment(namespace)}/values/{_segment(key)}"
    if visit.field("what") == "delete":
        await visit.api.send("DELETE", path)
        return Moved(f"{ROOT}/values/{namespace}", "The key is deleted.")
    await visit.api.put_octets(path, (visit.form or {}).get("value", "").encode())
    return Moved(f"{ROOT}/values/{namespace}/{_segment(key)}", "The value is written.")


def _shown(octets: bytes) -> Data:
    """Text where it is text, else a hexadecimal dump of its beginning; only a whole text can be edited."""
    head = octets[:SHOWN_BYTES_MAX]
    try:
        text = head.decode()
        if all(character.isprintable() or character in "\n\r\t" for character in text):
            return {"text": text, "is_text": True, "is_whole": len(octets) <= SHOWN_BYTES_MAX}
    except UnicodeDecodeError:
        pass
    lines = [f"{at:08x}  {head[at : at + 16].hex(' ')}" for at in range(0, min(len(head), 4_096), 16)]
    return {"text": "\n".join(lines), "is_text": False, "is_whole": False}


def _segment(text: str) -> str:
    return quote(text, safe="")
