"""What PowerDNS serves: its SQLite database, or its API.

Owns  rows and answers of it as lines of a zone file.
Not   records (`zonefile`).

Database: tables `domains` and `records` of the generic schema, names without a dot at their end. API: its
`/api/v1/servers/localhost`, with the key in PDNS_API_KEY.
"""

import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from edgestead.cli.failure import Failed
from edgestead.cli.state.document import Json
from edgestead.cli.state.sources.gathered import Gathered, text_of
from edgestead.cli.state.sources.zonefile import add_zone

KEY_VARIABLE = "PDNS_API_KEY"
ANSWER_BYTES_MAX = 256 << 20
SECONDS_MAX = 60.0
PRIMARY = frozenset({"NATIVE", "MASTER", "PRIMARY", "PRODUCER"})
_ENDS_IN_A_NAME = frozenset({"CNAME", "NS", "MX", "PTR", "SRV", "DNAME", "ALIAS", "AFSDB", "KX"})


def gather(place: str, found: Gathered) -> None:
    """Raises Failed."""
    if "://" in place:
        _ask(place.rstrip("/"), found)
    else:
        _read(Path(place), found)


def _read(path: Path, found: Gathered) -> None:
    import apsw

    if not path.is_file():
        raise Failed(f"{path}: there is no such file.")
    try:
        database = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        domains = list(database.execute("SELECT id, name, type FROM domains ORDER BY name"))
        for number, name, kind in domains:
            if found.takes(name) and _is_primary(kind, name, str(path), found):
                _add(found, name, _rows(database, number, name, str(path), found), str(path))
    except apsw.Error as error:
        raise Failed(f"{path} is no database of PowerDNS: {error}.") from None


def _rows(database: Any, domain: int, zone: str, where: str, found: Gathered) -> Iterator[str]:
    columns = "name, type, content, ttl, prio, disabled"
    rows = database.execute(f"SELECT {columns} FROM records WHERE domain_id = ? ORDER BY id", (domain,))
    for name, kind, content, ttl, priority, disabled in rows:
        if kind is None:
            continue  # a name without records, kept for denial
        owner, text = f"{name}.", content or ""
        if kind in ("MX", "SRV") and priority is not None and not _has_priority(kind, text):
            text = f"{priority} {text}"
        if kind in _ENDS_IN_A_NAME and not text.endswith("."):
            text += "."
        if disabled:
            found.leave(where, f"{name} {kind} {content} is disabled")
        else:
            yield from _line(owner, kind, text, ttl, where, found)


def _has_priority(kind: str, content: str) -> bool:
    """Whether the content has all of its numbers, as versions write it that leave `prio` alone."""
    return content.count(" ") == {"MX": 1, "SRV": 3}[kind]


def _line(owner: str, kind: str, content: str, ttl: object, where: str, found: Gathered) -> Iterator[str]:
    if kind == "ALIAS":  # a CNAME is flattened here where other records stand beside it
        found.leave(where, f"{owner} ALIAS became a CNAME, which is flattened at the apex")
        kind = "CNAME"
    if kind == "LUA":
        found.leave(where, f"{owner} LUA: there are no records here that are programs")
        return
    yield f"{owner} {ttl or ''} IN {kind} {content}"


def _is_primary(kind: str | None, name: str, where: str, found: Gathered) -> bool:
    if (kind or "").upper() in PRIMARY:
        return True
    found.leave(where, f"{name} is a copy ({kind}): take it from its primary")
    return False


def _add(found: Gathered, zone: str, lines: Iterator[str], where: str) -> None:
    kept = list(lines)
    add_zone(found, zone, "\n".join(kept), lambda number: f"{where}, {kept[number - 1]}")


def _ask(base: str, found: Gathered) -> None:
    server = f"{base}/api/v1/servers/localhost"
    for zone in _get(f"{server}/zones"):
        name, kind = text_of(zone.get("name")).rstrip("."), text_of(zone.get("kind"))
        if not found.takes(name) or not _is_primary(kind, name, base, found):
            continue
        whole = _get(f"{server}/zones/{text_of(zone.get('id'))}")
        _add(found, name, _rrsets(whole["rrsets"], base, found), base)


def _rrsets(rrsets: list[Json], where: str, found: Gathered) -> Iterator[str]:
    told: dict[str, int] = defaultdict(int)
    for rrset in rrsets:
        for record in rrset["records"]:
            if record.get("disabled"):
                found.leave(where, f"{rrset['name']} {rrset['type']} {record['content']} is disabled")
            else:
                yield from _line(rrset["name"], rrset["type"], record["content"], rrset["ttl"], where, found)
        told["comments"] += len(rrset.get("comments") or ())
    if told["comments"]:
        found.leave(where, f"{told['comments']} comments of RRsets: here each record has its own")


def _get(url: str) -> Any:
    """Raises Failed."""
    import json
    import urllib.error
    import urllib.request

    key = os.environ.get(KEY_VARIABLE)
    if not key:
        raise Failed(f"The API of PowerDNS asks for a key: set {KEY_VARIABLE}.")
    request = urllib.request.Request(url, headers={"X-API-Key": key})
    try:
        with urllib.request.urlopen(request, timeout=SECONDS_MAX) as answer:
            return json.loads(answer.read(ANSWER_BYTES_MAX))
    except urllib.error.HTTPError as error:
        error.close()
        raise Failed(
            f"{url} did not answer as PowerDNS does: {error}.", f"Is {KEY_VARIABLE} its key?"
        ) from None
    except (OSError, ValueError) as error:
        raise Failed(f"{url} did not answer as PowerDNS does: {error}.") from None
