"""What has to change so that one document is true where another one is.

Owns  the changes, in the order in which they are made, and how each reads.
Not   making them. Pure.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

from edgestead.cli.state.document import Json

Sign = Literal["+", "-", "~"]
Kind = Literal["zone", "record", "setting", "dns setting", "rules", "namespace"]


class Change(NamedTuple):
    """`where` is the zone, "" for the account; `what` names the thing, `words` say how it differs.

    `before` and `after` are what the documents hold; None where there is nothing.
    """

    sign: Sign
    where: str
    kind: Kind
    what: str
    before: Any
    after: Any
    words: str = ""

    def __str__(self) -> str:
        gap = "" if not self.words else "\n" if self.kind == "rules" else ": "
        return f"{self.sign} {self.kind} {self.what}{gap}{self.words}"


def changes(now: Json, wanted: Json) -> list[Change]:
    """From `now` to `wanted`; zones and namespaces that `wanted` does not name stay."""
    found = [
        Change("+", "", "namespace", title, None, title)
        for title in wanted.get("namespaces", ())
        if title not in now.get("namespaces", ())
    ]
    for name, zone in wanted.get("zones", {}).items():
        there = now.get("zones", {}).get(name)
        if there is None:
            found.append(Change("+", name, "zone", name, None, name))
        found += _zone(name, there or {}, zone)
    return found


def unnamed(now: Json, wanted: Json) -> list[str]:
    """What is there, and stays, because nothing names it."""
    zones = [f"zone {name}" for name in now.get("zones", {}) if name not in wanted.get("zones", {})]
    titles = wanted.get("namespaces")
    return zones + [
        f"namespace {title}"
        for title in now.get("namespaces", ())
        if titles is not None and title not in titles
    ]


def _zone(name: str, now: Json, wanted: Json) -> Iterator[Change]:
    if "records" in wanted:
        yield from _records(name, now.get("records", ()), wanted["records"])
    if "rrsets" in wanted:
        named = {(one["name"], one["type"]) for one in wanted["rrsets"]}
        held = [one for one in now.get("records", ()) if (one["name"], one["type"]) in named]
        yield from _records(name, held, wanted["rrsets"])
    for member, kind in _VALUES:
        for key, value in wanted.get(member, {}).items():
            before = now.get(member, {}).get(key)
            if before != value:
                yield Change("~", name, kind, key, before, value, f"{_shown(before)} → {_shown(value)}")
    for phase, rules in wanted.get("rules", {}).items():
        yield from _rules(name, phase, now.get("rules", {}).get(phase, []), rules)
    if wanted.get("paused", now.get("paused", False)) != now.get("paused", False):
        words = "paused" if wanted["paused"] else "no longer paused"
        yield Change("~", name, "zone", name, not wanted["paused"], wanted["paused"], words)


_VALUES: tuple[tuple[str, Kind], ...] = (("settings", "setting"), ("dns_settings", "dns setting"))


def _records(zone: str, now: Sequence[Json], wanted: Sequence[Json]) -> Iterator[Change]:
    """Records that differ in TTL, comment and such are one; else those of a name and type are paired."""
    left, missing = list(now), []
    for record in wanted:
        same = next((one for one in left if _identity(one) == _identity(record)), None)
        if same is None:
            missing.append(record)
            continue
        left.remove(same)
        if same != record:
            yield Change("~", zone, "record", _title(record), same, record, _difference(same, record))
    spare: dict[tuple[str, str], list[Json]] = defaultdict(list)
    for one in left:
        spare[one["name"], one["type"]].append(one)
    made = []
    for record in missing:
        pair = spare[record["name"], record["type"]]
        if pair:
            old = pair.pop(0)
            yield Change("~", zone, "record", _title(old), old, record, _difference(old, record))
        else:
            made.append(Change("+", zone, "record", _title(record), None, record))
    for gone in (one for pair in spare.values() for one in pair):
        yield Change("-", zone, "record", _title(gone), gone, None)
    yield from made


def _identity(record: Json) -> tuple[Any, ...]:
    return tuple(record.get(member) for member in ("name", "type", "content", "priority"))


def _title(record: Json) -> str:
    priority = "" if record.get("priority") is None else f"{record['priority']} "
    return f"{record['name']} {record['type']} {priority}{record['content']}"


def _difference(before: Json, after: Json) -> str:
    members = [name for name in (*before, *after) if before.get(name) != after.get(name)]
    return ", ".join(
        f"{name} {_shown(before.get(name))} → {_shown(after.get(name))}" for name in dict.fromkeys(members)
    )


def _rules(zone: str, phase: str, now: list[Json], wanted: list[Json]) -> Iterator[Change]:
    """A phase is written as a whole; its lines say which rules come and go."""
    if now == wanted:
        return
    gone = [f"- {_rule(rule)}" for rule in now if rule not in wanted]
    new = [f"+ {_rule(rule)}" for rule in wanted if rule not in now]
    words = "\n".join(f"    {line}" for line in gone + new) or "    another order"
    sign: Sign = "+" if not now else "~" if wanted else "-"
    yield Change(sign, zone, "rules", phase, now, wanted, words)


def _rule(rule: Json) -> str:
    return f"{rule['action']}: {rule.get('description') or rule.get('expression', 'true')}"


def _shown(value: object) -> str:
    if value is None:
        return "default"
    return {True: "on", False: "off"}.get(value, str(value)) if isinstance(value, bool) else str(value)
