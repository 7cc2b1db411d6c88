"""What another program holds, as it is gathered.

Owns  zones of a document (`cli.state.document`) while a source is read, and what of it stays behind.
Not   any program's form.
"""

from collections.abc import Collection
from typing import Any

from edgestead.cli.state.document import Json, record_form

TTL_SECONDS_MIN, TTL_SECONDS_MAX = 60, 86_400  # what a record may have on every plan
LEFT_MAX = 10_000  # remarks that are kept: a file of another kind would have one for each of its lines


class Gathered:
    """`zones` and `namespaces` as a document has them; `left` says what is not carried over, with its place.

    `wanted` are the zones that somebody asked for; none means all.
    """

    def __init__(self, wanted: Collection[str] = ()) -> None:
        self.wanted = frozenset(name.lower().rstrip(".") for name in wanted)
        self.zones: dict[str, Json] = {}
        self.namespaces: list[str] = []
        self.rules: dict[str, list[Json]] = {}  # of the account
        self.rulesets: list[Json] = []
        self.left: list[str] = []

    def takes(self, zone: str) -> bool:
        return not self.wanted or zone in self.wanted

    def leave(self, where: str, words: str) -> None:
        """Something is not carried over."""
        if len(self.left) < LEFT_MAX:
            self.left.append(f"{where}: {words}")

    def records(self, zone: str) -> list[Json]:
        """All records of a zone: those that are not added go."""
        found: list[Json] = self.zones.setdefault(zone, {}).setdefault("records", [])
        return found

    def add_rrset_record(self, zone: str, record: Json) -> None:
        """One of all records of its name and type; others of the zone stay."""
        rrsets = self.zones.setdefault(zone, {}).setdefault("rrsets", [])
        form = record_form(record, zone)
        if form not in rrsets:
            rrsets.append(form)

    def add_rule(self, zone: str, phase: str, rule: Json) -> None:
        """To the entry point of a zone, or of the account ("")."""
        held = self.zones.setdefault(zone, {}).setdefault("rules", {}) if zone else self.rules
        rules = held.setdefault(phase, [])
        if rule not in rules:
            rules.append(rule)

    def ttl(self, seconds: int, where: str) -> int:
        """The nearest that a record may have."""
        fit = min(max(seconds, TTL_SECONDS_MIN), TTL_SECONDS_MAX)
        if fit != seconds:
            self.leave(where, f"a TTL of {seconds} seconds; it becomes {fit}")
        return fit

    def zone_of(self, host: str) -> str:
        """The zone that a host is in: the longest that was asked for, otherwise its last two labels."""
        known = [zone for zone in self.wanted if host == zone or host.endswith("." + zone)]
        return max(known, key=len) if known else ".".join(host.split(".")[-2:])

    def document(self) -> Json:
        document: Json = {"zones": dict(sorted(self.zones.items()))}
        if self.namespaces:
            document["namespaces"] = sorted(self.namespaces)
        if self.rules:
            document["rules"] = self.rules
        if self.rulesets:
            document["rulesets"] = self.rulesets
        return document


def text_of(value: Any) -> str:
    """A member of somebody's JSON that should be text."""
    return value if isinstance(value, str) else ""
