"""What if: scores at every level from one inspection, and how to let good requests pass.

Owns  `Outcome` of a request at all levels, the table of counts, proposals of exceptions and overrides.
Not   reading files (`samples`), the API's JSON (`cli.waf.suggest`).

A rule adds its increment once and belongs to one paranoia level. So an inspection at level 4 holds the score
of every level, and a threshold is only a comparison.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from edgestead.crs import Catalogue
from edgestead.waf.bodies.body import content_type_of
from edgestead.waf.bodies.late_parts import LateParts
from edgestead.waf.bodies.media_types import processor_of
from edgestead.waf.engine import Engine, finish
from edgestead.waf.limits import BODY_BYTES_MAX
from edgestead.waf.transaction import PARANOIA_LEVELS, Hit, Policy, Refused, Request, Verdict

EVIDENCE_MAX = 3  # requests shown for a proposal
PATHS_LISTED_MAX = 8  # in one exception; a rule that is in the way on more paths is turned off
Scores = tuple[int, int, int, int]


class Outcome(NamedTuple):
    """What became of a request: `scores` at each level, the rules that scored, the limit that refused it."""

    scores: Scores
    hits: tuple[Hit, ...]
    refused: str = ""
    status: int = 403


class Judge:
    """Inspects with all rules of all levels."""

    def __init__(self, engine: Engine, *, without: frozenset[int] = frozenset()) -> None:
        """`without` are numbers of rules that are off."""
        self._engine = engine
        whole = engine.level_policy(PARANOIA_LEVELS[-1], None, "log")
        off = sum(1 << bit for bit, rule in engine.rule_set.bits.items() if rule.rule.id in without)
        self._policy = Policy(enabled=whole.enabled & ~off, level=whole.level, threshold=None, action="log")

    def outcome(self, request: Request) -> Outcome:
        """As the edge inspects it: of a large upload a start, then its later parts."""
        is_upload = (
            processor_of(content_type_of(request)) == "MULTIPART" and len(request.body) > BODY_BYTES_MAX
        )
        verdict = self._of_upload(request) if is_upload else self._of_whole(request)
        first, second, third, fourth = verdict.level_scores
        scores = (first, first + second, first + second + third, first + second + third + fourth)
        hits = tuple(hit for hit in verdict.hits if hit.score)
        return Outcome(scores, hits, verdict.refused, verdict.status)

    def _of_whole(self, request: Request) -> Verdict:
        verdict: Verdict = finish(self._engine.inspect(request, self._policy).request())
        return verdict

    def _of_upload(self, request: Request) -> Verdict:
        start, rest = request.body[: BODY_BYTES_MAX + 1], request.body[BODY_BYTES_MAX + 1 :]
        known = msgspec.structs.replace(request, body=start, body_complete=not rest, rest_follows=bool(rest))
        inspection = self._engine.inspect(known, self._policy)
        verdict: Verdict = finish(inspection.request())
        if verdict.refused or not rest:
            return verdict
        try:
            parts = LateParts(content_type_of(request), start)
            for at in range(0, len(rest), BODY_BYTES_MAX):
                _, late = parts.feed(rest[at : at + BODY_BYTES_MAX])
                verdict = finish(inspection.late(late)) if late else verdict
                if verdict.refused:
                    return verdict
            parts.end()
        except Refused as refused:
            return msgspec.structs.replace(verdict, refused=refused.reason, status=refused.status)
        return verdict


class Table:
    """Counts of requests that would be stopped, by level and threshold."""

    def __init__(self, thresholds: Sequence[int]) -> None:
        self.thresholds = tuple(sorted(set(thresholds)))
        self.requests = self.refused = 0
        self.stopped = {(level, t): 0 for level in PARANOIA_LEVELS for t in self.thresholds}
        self.rules: Counter[int] = Counter()
        self.refusals: Counter[str] = Counter()

    def add(self, outcome: Outcome) -> None:
        self.requests += 1
        if outcome.refused:
            self.refused += 1
            self.refusals[outcome.refused] += 1
        for level, score in zip(PARANOIA_LEVELS, outcome.scores, strict=True):
            for threshold in self.thresholds:
                if score >= threshold:
                    self.stopped[level, threshold] += 1
        self.rules.update(hit.rule_id for hit in outcome.hits)


class Evidence(NamedTuple):
    """One good request that a proposal lets pass: where it stood, and what the rule saw in it."""

    source: str
    request: str
    variable: str
    matched: str


class Proposal(NamedTuple):
    """Rules to leave out: on `paths`, or everywhere when there are none. `requests` is how many it helps."""

    rules: tuple[int, ...]
    paths: tuple[str, ...]
    requests: int
    evidence: tuple[Evidence, ...]


class Stopped(NamedTuple):
    """A good request that would be stopped: its path, its scoring rules at the level, and its score."""

    source: str
    line: str
    path: str
    hits: tuple[Hit, ...]
    score: int


class Suggester:
    """Gathers good requests that would be stopped, then says what lets all of them pass."""

    def __init__(self, level: int, threshold: int) -> None:
        self.level = level
        self.threshold = threshold
        self.requests = 0
        self.refused: Counter[str] = Counter()
        self.stopped: list[Stopped] = []

    def add(self, source: str, request: Request, path: str, outcome: Outcome) -> None:
        """`path` as expressions see it."""
        self.requests += 1
        if outcome.refused:
            self.refused[outcome.refused] += 1
        hits = tuple(hit for hit in outcome.hits if hit.paranoia_level <= self.level)
        score = sum(hit.score for hit in hits)
        if score >= self.threshold:
            line = f"{request.method.decode('latin-1')} {request.target[:200].decode('latin-1')}"
            self.stopped.append(Stopped(source, line, path, hits, score))

    def proposals(self) -> list[Proposal]:
        """As few rules as let every gathered request pass, those first that help most.

        A rule that is in the way on few paths is left out there; on many, everywhere.
        """
        chosen = self._chosen()
        by_paths: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for rule_id in chosen:
            paths = sorted({one.path for one in self.stopped if _has(one, rule_id)})
            by_paths[tuple(paths) if len(paths) <= PATHS_LISTED_MAX else ()].append(rule_id)
        made = [self._proposal(tuple(rules), paths) for paths, rules in by_paths.items()]
        return sorted(made, key=lambda proposal: -proposal.requests)

    def _chosen(self) -> list[int]:
        """Greedily: the rule that takes most off scores that are too high, until none is."""
        over = {number: one.score - self.threshold + 1 for number, one in enumerate(self.stopped)}
        chosen: list[int] = []
        while over:
            gains: Counter[int] = Counter()
            for number, surplus in over.items():
                for hit in self.stopped[number].hits:
                    if hit.rule_id not in chosen:
                        gains[hit.rule_id] += min(hit.score, surplus)
            best = min(gains, key=lambda rule_id: (-gains[rule_id], rule_id))
            chosen.append(best)
            for number in list(over):
                over[number] -= sum(hit.score for hit in self.stopped[number].hits if hit.rule_id == best)
                if over[number] <= 0:
                    del over[number]
        return chosen

    def _proposal(self, rules: tuple[int, ...], paths: tuple[str, ...]) -> Proposal:
        helped = [one for one in self.stopped if any(_has(one, rule_id) for rule_id in rules)]
        evidence = [
            Evidence(one.source, one.line, hit.variable, hit.matched.decode("utf-8", "backslashreplace"))
            for one in helped
            for hit in one.hits
            if hit.rule_id in rules
        ]
        return Proposal(rules, paths, len(helped), tuple(evidence[:EVIDENCE_MAX]))

    def left(self, proposals: Iterable[Proposal]) -> int:
        """How many of the gathered requests would still be stopped with these proposals."""
        found = list(proposals)
        return sum(score_with(found, one) >= self.threshold for one in self.stopped)


def _has(one: Stopped, rule_id: int) -> bool:
    return any(hit.rule_id == rule_id for hit in one.hits)


def score_with(proposals: list[Proposal], one: Stopped) -> int:
    return sum(hit.score for hit in one.hits if not _left_out(proposals, one.path, hit.rule_id))


def _left_out(proposals: list[Proposal], path: str, rule_id: int) -> bool:
    return any(rule_id in one.rules and (not one.paths or path in one.paths) for one in proposals)


def titles(catalogue: Catalogue) -> dict[int, str]:
    """What each scoring rule is called, by its number."""
    return {entry.crs_id: entry.description.partition(": ")[2] for entry in catalogue.entries}
