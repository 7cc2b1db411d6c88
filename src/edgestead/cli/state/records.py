"""Records of a plan, made through the API: one transaction, or as few as the API takes.

Owns  how many changes go into one, and their order where it takes several.
Not   which records change (`cli.state.plan`). Imports click and the standard library only.

Where it takes several, DNS answers between two of them. Changes of one name stay together, so each name has
all of its old records or all of its new ones, and what comes is there before anything goes
(docs/design/0058-one-file.md).
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from edgestead.cli.failure import changed_meanwhile
from edgestead.cli.http import Refused
from edgestead.cli.state.document import RECORD_DEFAULTS, Json, absolute, record_form
from edgestead.cli.state.plan import Change
from edgestead.cli.state.server import records_of
from edgestead.model.plans import PLAN_AT_BIRTH, PLANS

if TYPE_CHECKING:
    from edgestead.cli.http import Api

BODY_BYTES_MAX = 4_000_000  # of one transaction's request: the API takes 4 MiB
MEMBER_BYTES = 64  # of a change beside its record: braces, an id
_FREE = frozenset({400, 401, 403, 404, 405})  # what who may not read a zone's history gets


def make_records(server: "Api", zone: Json, changes: Sequence[Change], tell: Callable[[str], None]) -> None:
    """Make them. `tell` gets a line for each, and says how all are taken back if they were not one.

    Raises Failed at the first transaction that the server refuses, of which nothing is done.
    """
    parts = portions(changes, changes_max(zone))
    ids = _ids(server, zone, changes)
    if len(parts) > 1 and (before := _last_change(server, zone)) is not None:
        name = zone["name"]
        tell(f"{name}: {len(parts)} transactions; `edgecli zone restore {name} {before}` takes them back")
    for part in parts:
        body = _batch(part, ids, zone["name"])
        server.call("POST", f"/zones/{zone['id']}/dns_records/batch", json_body=body, repeat=False)
        for change in part:
            tell(f"{zone['name']}: {change}")


def changes_max(zone: Json) -> int:
    """What the API takes in one transaction, by the zone's plan."""
    plan = (zone.get("plan") or {}).get("legacy_id") or PLAN_AT_BIRTH
    return PLANS.get(plan, PLANS[PLAN_AT_BIRTH]).batch_changes_max


def portions(changes: Sequence[Change], size: int) -> list[Sequence[Change]]:
    """Changes of records in transactions of at most `size`. One, if it can be, has them in their order."""
    if len(changes) <= size and sum(map(_bytes, changes)) <= BODY_BYTES_MAX:
        return [changes] if changes else []
    names: dict[str, list[Change]] = {}
    for change in changes:
        names.setdefault((change.before or change.after)["name"], []).append(change)
    found: list[list[Change]] = [[]]
    room, space = size, BODY_BYTES_MAX
    for group in sorted(names.values(), key=_turn):
        for one in _split(group, size):
            weight = sum(map(_bytes, one))
            if found[-1] and (len(one) > room or weight > space):
                found.append([])
                room, space = size, BODY_BYTES_MAX
            found[-1] += one
            room, space = room - len(one), space - weight
    return list(found)


def _turn(group: Sequence[Change]) -> int:
    """Of all changes of a name: what comes, what becomes another, what goes. A DNAME goes first, because
    nothing may come below it."""
    signs = {change.sign for change in group}
    if any(change.sign == "-" and change.before["type"] == "DNAME" for change in group):
        return 0
    return 1 if signs == {"+"} else 3 if signs == {"-"} else 2


def _split(group: Sequence[Change], size: int) -> Iterator[Sequence[Change]]:
    """A name with more changes than a transaction takes: what comes first, but behind an alias that goes."""
    if len(group) <= size and sum(map(_bytes, group)) <= BODY_BYTES_MAX:
        yield group
        return
    ordered = sorted(group, key=lambda one: (not _is_alias(one), "~+-".index(one.sign)))
    part: list[Change] = []
    space = BODY_BYTES_MAX
    for change in ordered:
        if part and (len(part) == size or _bytes(change) > space):
            yield part
            part, space = [], BODY_BYTES_MAX
        part.append(change)
        space -= _bytes(change)
    yield part


def _is_alias(change: Change) -> bool:
    return change.sign == "-" and change.before["type"] in ("CNAME", "DNAME")


def _bytes(change: Change) -> int:
    return MEMBER_BYTES + len(json.dumps(change.after))


def _batch(part: Sequence[Change], ids: dict[str, list[str]], zone: str) -> Json:
    def of(change: Change) -> str:
        return ids[_key(change.before)].pop()

    gone = sorted((one for one in part if one.sign == "-"), key=lambda one: _rank(one.before), reverse=True)
    new = sorted((one for one in part if one.sign == "+"), key=lambda one: _rank(one.after))
    return {
        "deletes": [{"id": of(one)} for one in gone],
        "puts": [{"id": of(one), **_body(one.after, zone)} for one in part if one.sign == "~"],
        "posts": [_body(one.after, zone) for one in new],
    }


def _rank(record: Json) -> int:
    """The order in which every zone takes records: a DS record stands beside NS records only."""
    return {"NS": 0, "DS": 2}.get(record["type"], 1)


def _ids(server: "Api", zone: Json, changes: Sequence[Change]) -> dict[str, list[str]]:
    """Of the records that are there. Raises Failed: one was changed since the plan."""
    ids: dict[str, list[str]] = defaultdict(list)
    for one in records_of(server, zone) if changes else ():
        ids[_key(record_form(one, zone["name"]))].append(one["id"])
    wanted = Counter(_key(change.before) for change in changes if change.before is not None)
    for change in changes:
        if change.before is not None and len(ids[key := _key(change.before)]) < wanted[key]:
            raise changed_meanwhile(f"{zone['name']}: {change.what}")
    return ids


def _key(record: Json) -> str:
    return json.dumps(record, sort_keys=True)


def _body(record: Json, zone: str) -> Json:
    whole = {**RECORD_DEFAULTS, **record, "name": absolute(record["name"], zone)}
    return {member: value for member, value in whole.items() if member != "priority" or value is not None}


def _last_change(server: "Api", zone: Json) -> int | None:
    """The number of a zone's newest change, 0 before the first; None for who may not read them."""
    try:
        found = server.call("GET", f"/zones/{zone['id']}/history", query={"per_page": 1})["result"]
    except Refused as refusal:
        if refusal.status not in _FREE:
            raise
        return None
    return int(found[0]["sequence"]) if found else 0
