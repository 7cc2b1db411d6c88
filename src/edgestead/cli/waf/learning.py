"""What a shadow's events say: how many requests each configuration would stop, and which one to take.

Owns  gathering events by what they scored, the table of shares, which exceptions go with it.
Not   asking a server (`cli.waf.learn`), choosing as few rules as help (`cli.waf.tuning`). Pure.

A shadow scores all rules of all levels and logs whatever scored, so a level and a threshold are a sum and a
comparison. Nobody says which requests were good: those that several clients sent and that the same rules met
on the same path are taken for it. What few clients sent is left to be stopped, and counted.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from edgestead.cli.waf.tuning import Proposal, Stopped, Suggester, score_with
from edgestead.model.budgets.networks import network_of
from edgestead.waf.transaction import PARANOIA_LEVELS, Hit

THRESHOLDS: Final = (5, 10, 15, 25, 40, 60)
CHOSEN_FROM: Final = (25, 40, 60)  # those that the API has names for, the strictest first
CLIENTS_MIN: Final = 3  # that sent the like, each from a network of its own: fewer may be one attacker
KINDS_MAX: Final = 50_000  # different paths and rules that are kept apart; what comes beyond is counted alone
Json = Mapping[str, Any]


class Kind(NamedTuple):
    """Requests to one path that met the same rules. `clients` are some of their networks."""

    source: str
    line: str
    path: str
    hits: tuple[Hit, ...]
    clients: set[str]


class Choice(NamedTuple):
    """A configuration: `stopped` of the requests seen would be, `before` without its exceptions."""

    level: int
    threshold: int
    before: int
    stopped: int
    proposals: tuple[Proposal, ...]


class Learned:
    """Add events, oldest first or not. `levels` are paranoia levels by the ids of managed rules."""

    def __init__(self, levels: Mapping[str, int]) -> None:
        self._levels = levels
        self._kinds: dict[tuple[str, tuple[str, ...]], Kind] = {}
        self._counts: dict[tuple[str, tuple[str, ...]], int] = {}
        self.inspected = self.scored = self.dropped = self.beyond = 0
        self.refused: dict[str, int] = {}
        self.first = self.last = ""

    def add(self, event: Json) -> None:
        self.inspected += max(1, event.get("inspected", 0))
        self.dropped += event["dropped"]
        when = event["occurred_on"]
        self.first, self.last = min(self.first or when, when), max(self.last, when)
        if event["reason"]:
            self.refused[event["reason"]] = self.refused.get(event["reason"], 0) + 1
            return
        self.scored += 1
        scoring = [one for one in event["contributions"] if one["score"] > 0]
        key = (event["path"], tuple(sorted(one["rule_id"] for one in scoring)))
        kind = self._kinds.get(key)
        if kind is None:
            if len(self._kinds) >= KINDS_MAX:
                self.beyond += 1
                return
            line = f"{event['method']} {event['path']}"
            kind = self._kinds[key] = Kind(event["ray_id"], line, event["path"], self._hits(scoring), set())
        if len(kind.clients) < CLIENTS_MIN:
            kind.clients.add(network_of(event["client"]))
        self._counts[key] = self._counts.get(key, 0) + 1

    def _hits(self, scoring: Sequence[Json]) -> tuple[Hit, ...]:
        return tuple(
            Hit(
                rule_id=int(one["description"].partition(":")[0]),
                phase=2,
                score=one["score"],
                paranoia_level=self._levels.get(one["rule_id"], PARANOIA_LEVELS[-1]),
                variable=one["variable"],
                matched=one["matched"].encode(),
                message="",
            )
            for one in scoring
        )

    def stopped(self, level: int, threshold: int, proposals: Iterable[Proposal] = ()) -> int:
        """How many requests would be stopped, without those that cannot be inspected."""
        found = list(proposals)
        return sum(
            count
            for key, count in self._counts.items()
            if _score(self._kinds[key], level, found) >= threshold
        )

    def choices(self) -> list[Choice]:
        """Every configuration with its exceptions, the strictest first."""
        return [
            self.choice(level, threshold) for level in reversed(PARANOIA_LEVELS) for threshold in CHOSEN_FROM
        ]

    def choice(self, level: int, threshold: int) -> Choice:
        suggester = Suggester(level, threshold)
        for kind in self._kinds.values():
            hits = _at(kind, level)
            score = sum(hit.score for hit in hits)
            if score >= threshold and len(kind.clients) >= CLIENTS_MIN:
                suggester.stopped.append(Stopped(kind.source, kind.line, kind.path, hits, score))
        proposals = tuple(suggester.proposals())
        before, after = self.stopped(level, threshold), self.stopped(level, threshold, proposals)
        return Choice(level, threshold, before, after, proposals)

    def proposal(self, share_max: float) -> Choice:
        """The strictest that stops no larger share of what was inspected; the mildest where none does."""
        choices = self.choices()
        return next((one for one in choices if one.stopped <= share_max * self.inspected), choices[-1])


def _at(kind: Kind, level: int) -> tuple[Hit, ...]:
    return tuple(hit for hit in kind.hits if hit.paranoia_level <= level)


def _score(kind: Kind, level: int, proposals: list[Proposal]) -> int:
    return score_with(proposals, Stopped(kind.source, kind.line, kind.path, _at(kind, level), 0))
