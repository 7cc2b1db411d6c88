"""Which rules may match the values of one request: every value is looked at once, when it first appears.

Owns  what was searched already; candidates found so far.
Not   running rules (`run`), what is to be searched (`plan`).

Candidates are thinned out here, each time by a test that fails only where the rule cannot match: it looks at
none of these values; its pattern took the line ends between values for its own; its detector finds nothing.
"""

from collections.abc import Generator, Iterable, Iterator
from itertools import chain

from edgestead.waf.limits import CALL_UNITS, SLICE_BYTES, Meter, at_once
from edgestead.waf.load.compile import Link
from edgestead.waf.plan.gates import FAMILY_OF, HEAD, Candidates, Source
from edgestead.waf.plan.policies import Plan, Scanned
from edgestead.waf.plan.scan import UNITS_PER_BYTE, NoScanner, Scanner
from edgestead.waf.run.interpreter import Run
from edgestead.waf.run.suspects import any_holds, may_match
from edgestead.waf.terms.variants import Chains, Joined, Texts
from edgestead.waf.transaction import Pair


class Search:
    """The candidates of one request."""

    __slots__ = ("_candidates", "_chains", "_head_known", "_meter", "_plan", "_scanner", "_seen")

    def __init__(self, chains: Chains, scanner: Scanner | NoScanner, plan: Plan, meter: Meter) -> None:
        self._chains = chains
        self._scanner = scanner
        self._plan = plan
        self._meter = meter
        self._candidates: Candidates = set()
        self._head_known = False
        self._seen: dict[str, list[Pair]] = {}

    def phase(self, run: Run, phase: int) -> Iterator[None]:
        """Run the rules of a phase, with those of the candidates that are among them."""
        places = {place for of, place in self._candidates if of == phase}
        return run.phase(self._plan.phases[phase], places)

    def look(self, run: Run, groups: Iterable[str], *, early: int = 0) -> Iterator[None]:
        """Search the values that were not there before. Gives way where that is long.

        `early` is a phase with another search of the groups after it: one can wait when its rules have
        nothing to look at there. Headers are searched once: they do not change.
        """
        for group in groups:
            scanned = self._plan.scanned.get(group)
            if scanned is None or (group == HEAD and self._head_known):
                continue
            if early and not any(run.values.get(name) for name in scanned.by_phase.get(early, ())):
                continue
            for keyed in scanned.keyed:
                if any(any_holds(keyed.link, values(run), self._meter) for values in keyed.values):
                    self._candidates.add(keyed.rule)
            self._head_known |= group == HEAD
            if unknown := self._unknown(run, scanned):
                yield from self._search(run, unknown, scanned)

    def _unknown(self, run: Run, scanned: Scanned) -> dict[bytes, list[Source]]:
        """New values and where they stand, without those whose candidates are remembered."""
        unknown: dict[bytes, list[Source]] = {}
        known, by_key = scanned.known, scanned.group == HEAD
        looked_at = 0
        for variable in scanned.variables:
            pairs = self._fresh(run, variable)
            looked_at += len(pairs)
            source = variable, b""
            for key, value in pairs:
                if by_key:
                    source = variable, key.lower()
                found = known.get(value)
                if found is None:
                    unknown.setdefault(value, []).append(source)
                elif found:
                    self._candidates |= found & scanned.looking_at(*source)
        self._meter.toil(CALL_UNITS // 2 * looked_at)
        return unknown

    def _search(self, run: Run, unknown: dict[bytes, list[Source]], scanned: Scanned) -> Iterator[None]:
        texts = Texts(self._chains, list(unknown))
        found = yield from self._of(texts, scanned)
        if found:
            places = set(chain.from_iterable(unknown.values()))
            looked_for = {rule for place in places for rule in found & scanned.looking_at(*place)}
            if looked_for:
                self._candidates |= looked_for
                run.made.append(texts)
        scanned.learn(unknown, found, lambda value: self._of_one(value, scanned))

    def _fresh(self, run: Run, variable: str) -> list[Pair]:
        """The pairs of a variable that were not searched yet."""
        pairs = run.values.get(variable)
        if not pairs:
            return []
        before = self._seen.get(variable)
        self._seen[variable] = pairs
        return pairs[len(before) :] if before and pairs[: len(before)] == before else pairs

    def _of_one(self, value: bytes, scanned: Scanned) -> Candidates:
        """As `_of`, of a value that is short enough to be looked at at once."""
        return at_once(self._of(Texts(self._chains, [value]), scanned))

    def _of(self, texts: Texts, scanned: Scanned) -> Generator[None, None, Candidates]:
        """The candidates of some values of a group."""
        meter, group = self._meter, scanned.group
        family = FAMILY_OF[group]
        found: Candidates = set()
        for text in texts.scannable(scanned.chains, meter):
            if text is None:
                yield
                continue
            meter.spend(len(text))
            if len(text) > SLICE_BYTES:  # one value
                found |= yield from meter.toiling(self._scanner.in_portions(text, family, group))
            else:
                meter.toil(len(text) * UNITS_PER_BYTE[family])
                found |= self._scanner.candidates(text, family, group)
            if meter.is_due():
                yield
        found &= scanned.rules
        for rule in found & scanned.of_line_ends.keys():
            if not (yield from self._confirmed(scanned.of_line_ends[rule], texts)):
                found.discard(rule)
        for first, each in scanned.asked:
            if texts.is_small:
                met = confirmed(first, texts, meter)
            else:
                met = yield from self._confirmed(first, texts)
            for soft in each if met else ():
                if len(each) == 1 or (yield from self._confirmed(soft.link, texts)):
                    found.add((soft.phase, soft.place))
        return found

    def _confirmed(self, link: Link, texts: Texts) -> Generator[None, None, bool]:
        """As `confirmed`; gives way where that is long."""
        for part in texts.making(link.stages, self._meter):
            met = part is not None and _met(link, part, self._meter)
            if self._meter.is_due() or part is None:
                yield
            if met:
                return True
        return False


def confirmed(link: Link, texts: Texts, meter: Meter) -> bool:
    """False only when none of the values matches."""
    for stage in link.stages:
        parts = texts.prepare(stage, meter)
    for part in parts:
        if _met(link, part, meter):
            return True
    return False


def _met(link: Link, part: Joined, meter: Meter) -> bool:
    # stages that leave a text as it was need not be asked again
    for stage in part.distinct_stages(link.stages, meter):
        if may_match(link, part, stage, meter):
            return True
    return False
