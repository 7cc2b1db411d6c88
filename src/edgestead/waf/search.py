"""Which rules may match the values of one request: every value is looked at once, when it first appears.

Owns  what was searched already; candidates found so far.
Asks  `scan` for candidates of a text, `variants` for the texts, `suspects` where no database helps.
Tells `engine` the candidates before each phase.
Not   running rules (`run`), what is to be searched (`plan`).

Candidates are thinned out here, each time by a test that fails only where the rule cannot match: it looks at
none of these values; its pattern took the line ends between values for its own; its detector finds nothing.
"""

from collections.abc import Iterable, Iterator

from .compile import Link
from .gates import FAMILY_OF, HEAD, Candidates, Source
from .limits import Meter
from .plan import Plan, Scanned
from .run import Run
from .scan import NoScanner, Scanner
from .suspects import any_holds, may_match
from .transaction import Pair
from .variants import Chains, Texts


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

    def places(self, phase: int) -> set[int]:
        """Of the rules of a phase that may match."""
        return {place for of, place in self._candidates if of == phase}

    def look(self, run: Run, groups: Iterable[str], *, early: int = 0) -> Iterator[None]:
        """Search the values that were not there before. Gives way after each group that had any.

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
                self._search(run, unknown, scanned)
                yield

    def _unknown(self, run: Run, scanned: Scanned) -> dict[bytes, list[Source]]:
        """New values and where they stand, without those whose candidates are remembered."""
        unknown: dict[bytes, list[Source]] = {}
        known = scanned.known
        for variable in scanned.variables:
            for key, value in self._fresh(run, variable):
                found = known.get(value)
                if found is None:
                    unknown.setdefault(value, []).append((variable, key))
                elif found:
                    self._candidates |= found & scanned.looking_at(variable, key)
        return unknown

    def _search(self, run: Run, unknown: dict[bytes, list[Source]], scanned: Scanned) -> None:
        texts = Texts(self._chains, list(unknown))
        found = self._of(texts, scanned)
        if found:
            places = {place for places in unknown.values() for place in places}
            looked_for = {rule for place in places for rule in found & scanned.looking_at(*place)}
            if looked_for:
                self._candidates |= looked_for
                run.made.append(texts)
        scanned.learn(unknown, found, lambda value: self._of(Texts(self._chains, [value]), scanned))

    def _fresh(self, run: Run, variable: str) -> Iterable[Pair]:
        """The pairs of a variable that were not searched yet."""
        pairs = run.values.get(variable)
        if not pairs:
            return ()
        before = self._seen.get(variable)
        self._seen[variable] = pairs
        return pairs[len(before) :] if before and pairs[: len(before)] == before else pairs

    def _of(self, texts: Texts, scanned: Scanned) -> Candidates:
        """The candidates of some values of a group."""
        meter, group = self._meter, scanned.group
        text = texts.all_lines(scanned.chains, meter)
        meter.spend(len(text))
        found = self._scanner.candidates(text, FAMILY_OF[group], group) & scanned.rules
        if found and not found.isdisjoint(scanned.of_line_ends):
            found = {
                rule
                for rule in found
                if (link := scanned.of_line_ends.get(rule)) is None or confirmed(link, texts, meter)
            }
        for first, each in scanned.asked:
            if confirmed(first, texts, meter):
                found.update(
                    (soft.phase, soft.place)
                    for soft in each
                    if len(each) == 1 or confirmed(soft.link, texts, meter)
                )
        return found


def confirmed(link: Link, texts: Texts, meter: Meter) -> bool:
    """False only when none of the values matches."""
    for stage in link.stages:
        parts = texts.prepare(stage, meter)
    for part in parts:
        # stages that leave a text as it was need not be asked again
        for stage in part.distinct_stages(link.stages, meter):
            if may_match(link, part, stage, meter):
                return True
    return False
