"""What has to change so that one document is true where another one is.

Owns  the changes, in the order in which they are made, and how each reads.
Not   making them. Pure.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

from edgestead.cli.state.document import DNSSEC_DEFAULTS as _DEFAULTS
from edgestead.cli.state.document import Json, ruleset_name
from edgestead.cli.state.secondaries import SECONDARY

Sign = Literal["+", "-", "~"]
Kind = (
    Literal["zone", "record", "setting", "dns setting", "dnssec", "dnssec setting", "primaries"]
    | Literal["ruleset", "rules", "tsig key", "namespace", "token"]
)
_OVER_LINES = ("ruleset", "rules")  # whose words are lines


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
        gap = "" if not self.words else "\n" if self.kind in _OVER_LINES else ": "
        return f"{self.sign} {self.kind} {self.what}{gap}{self.words}"


def changes(now: Json, wanted: Json) -> list[Change]:
    """From `now` to `wanted`; zones and namespaces that `wanted` does not name stay."""
    found = [
        Change("+", "", "namespace", title, None, title)
        for title in wanted.get("namespaces", ())
        if title not in now.get("namespaces", ())
    ]
    found += _keys(now.get("tsig_keys", ()), wanted.get("tsig_keys", ()))
    found += _rulesets(now.get("rulesets", ()), wanted.get("rulesets", ()))
    for phase, rules in wanted.get("rules", {}).items():
        found += _rules("", phase, now.get("rules", {}).get(phase, []), rules)
    for name, zone in wanted.get("zones", {}).items():
        there = now.get("zones", {}).get(name)
        if there is None:
            is_secondary = zone.get("type") == SECONDARY
            after, words = (SECONDARY, SECONDARY) if is_secondary else (name, "")
            found.append(Change("+", name, "zone", name, None, after, words))
        found += _zone(name, there or {}, zone)
    return [*found, *_tokens(now.get("tokens", ()), wanted.get("tokens", ()))]


def unnamed(now: Json, wanted: Json) -> list[str]:
    """What is there, and stays, because nothing names it."""
    zones = [f"zone {name}" for name in now.get("zones", {}) if name not in wanted.get("zones", {})]
    titles = wanted.get("namespaces")
    namespaces = [
        f"namespace {title}"
        for title in now.get("namespaces", ())
        if titles is not None and title not in titles
    ]
    named = {_owned(one) for one in wanted.get("tokens", ())}
    tokens = [
        f"token {one['name']}"
        for one in now.get("tokens", ())
        if "tokens" in wanted and _owned(one) not in named
    ]
    called = {ruleset_name(one) for one in wanted.get("rulesets", ())}
    rulesets = [
        f"ruleset {ruleset_name(one)}"
        for one in now.get("rulesets", ())
        if "rulesets" in wanted and ruleset_name(one) not in called
    ]
    named_keys = {one["name"] for one in wanted.get("tsig_keys", ())}
    keys = [
        f"TSIG key {one['name']}"
        for one in now.get("tsig_keys", ())
        if "tsig_keys" in wanted and one["name"] not in named_keys
    ]
    return zones + rulesets + keys + namespaces + tokens


def _keys(now: Sequence[Json], wanted: Sequence[Json]) -> Iterator[Change]:
    held = {one["name"]: one for one in now}
    for key in wanted:
        old = held.get(key["name"])
        if old is None:
            yield Change("+", "", "tsig key", key["name"], None, key)
        elif old != key:
            yield Change("~", "", "tsig key", key["name"], old, key, _difference(old, key))


def _rulesets(now: Sequence[Json], wanted: Sequence[Json]) -> Iterator[Change]:
    held = {ruleset_name(one): one for one in now}
    for ruleset in wanted:
        name = ruleset_name(ruleset)
        old = held.get(name)
        if old == ruleset:
            continue
        before, after = old or {}, ruleset.get("description")
        words = _rules_words(before.get("rules", []), ruleset["rules"])
        if after != before.get("description"):
            words = "\n".join(filter(None, (f"    description {_shown(after)}", words)))
        yield Change("~" if old else "+", "", "ruleset", name, old, ruleset, words)


def _tokens(now: Sequence[Json], wanted: Sequence[Json]) -> Iterator[Change]:
    """By name and owner; of several with one name those that are equal belong together."""
    left = list(now)
    missing = []
    for token in wanted:
        left.remove(token) if token in left else missing.append(token)
    for token in missing:
        old = next((one for one in left if _owned(one) == _owned(token)), None)
        if old is None:
            yield Change("+", "", "token", token["name"], None, token, _may(token))
        else:
            left.remove(old)
            yield Change("~", "", "token", token["name"], old, token, _difference(_flat(old), _flat(token)))


def _owned(token: Json) -> tuple[str, bool]:
    return token["name"], bool(token.get("account"))


def _flat(token: Json) -> Json:
    return {**token, "policies": _may(token)}


def _may(token: Json) -> str:
    return "; ".join(
        f"{one['effect']} {', '.join(one['permissions'])} on {', '.join(one['on'])}"
        for one in token["policies"]
    )


def _zone(name: str, now: Json, wanted: Json) -> Iterator[Change]:
    if "records" in wanted:
        yield from _records(name, now.get("records", ()), wanted["records"])
    if "rrsets" in wanted:
        named = {(one["name"], one["type"]) for one in wanted["rrsets"]}
        held = [one for one in now.get("records", ()) if (one["name"], one["type"]) in named]
        yield from _records(name, held, wanted["rrsets"])
    for member, kind in _VALUES:
        for key, value in wanted.get(member, {}).items():
            before = now.get(member, {}).get(key, _DEFAULTS.get(key) if member == "dnssec_settings" else None)
            if before != value:
                yield Change("~", name, kind, key, before, value, f"{_shown(before)} → {_shown(value)}")
    if "primaries" in wanted and wanted["primaries"] != now.get("primaries", []):
        before = now.get("primaries", [])
        words = f"{_places(before)} → {_places(wanted['primaries'])}"
        yield Change("~", name, "primaries", name, before, wanted["primaries"], words)
    held = now.get("dnssec", "disabled")
    if wanted.get("dnssec", held) != held:
        yield Change("~", name, "dnssec", name, held, wanted["dnssec"], f"{held} → {wanted['dnssec']}")
    for phase, rules in wanted.get("rules", {}).items():
        yield from _rules(name, phase, now.get("rules", {}).get(phase, []), rules)
    if wanted.get("paused", now.get("paused", False)) != now.get("paused", False):
        words = "paused" if wanted["paused"] else "no longer paused"
        yield Change("~", name, "zone", name, not wanted["paused"], wanted["paused"], words)


_VALUES: tuple[tuple[str, Kind], ...] = (
    ("settings", "setting"),
    ("dns_settings", "dns setting"),
    ("dnssec_settings", "dnssec setting"),
)


def _places(primaries: Sequence[Json]) -> str:
    named = [" ".join([one["ip"], *(f"{key} {one[key]}" for key in one if key != "ip")]) for one in primaries]
    return ", ".join(named) or "none"


def _records(zone: str, now: Sequence[Json], wanted: Sequence[Json]) -> Iterator[Change]:
    """Records that differ in TTL, comment and such are one; else those of a name and type are paired."""
    held: dict[tuple[Any, ...], list[Json]] = defaultdict(list)
    for one in now:
        held[_identity(one)].append(one)
    missing = []
    for record in wanted:
        same = held.get(_identity(record))
        if not same:
            missing.append(record)
        elif (old := same.pop(0)) != record:
            yield Change("~", zone, "record", _title(record), old, record, _difference(old, record))
    spare: dict[tuple[str, str], list[Json]] = defaultdict(list)
    for one in (one for same in held.values() for one in same):
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
    sign: Sign = "+" if not now else "~" if wanted else "-"
    yield Change(sign, zone, "rules", phase, now, wanted, _rules_words(now, wanted))


def _rules_words(now: list[Json], wanted: list[Json]) -> str:
    gone = [f"- {_rule(rule)}" for rule in now if rule not in wanted]
    new = [f"+ {_rule(rule)}" for rule in wanted if rule not in now]
    lines = "\n".join(f"    {line}" for line in gone + new)
    return lines or ("" if now == wanted else "    another order")


def _rule(rule: Json) -> str:
    return f"{rule['action']}: {rule.get('description') or rule.get('expression', 'true')}"


def _shown(value: object) -> str:
    if value is None:
        return "default"
    return {True: "on", False: "off"}.get(value, str(value)) if isinstance(value, bool) else str(value)
