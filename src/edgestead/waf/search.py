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
from .gates import FAMILY_OF, HEAD, Candidates, Places
from .limits import Meter
from .plan import Plan, Scanned
from .run import Run
from .scan import NoScanner, Scanner
from .suspects import any_holds, may_match
from .transaction import Pair
from .variants import Chains, Texts

_ALL_HEADERS = ("REQUEST_HEADERS", b"")


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
        self._seen: dict[tuple[str, str], list[Pair]] = {}

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
            if early and not any(run.values.get(name) for name in scanned.variables.get(early, ())):
                continue
            work = self._head(run, scanned) if group == HEAD else self._values(run, scanned, group)
            if work:
                yield

    def _values(self, run: Run, scanned: Scanned, group: str) -> bool:
        """Search a group; whether there was anything new."""
        fresh: dict[bytes, None] = {}
        present = []
        for source in scanned.sources:
            if pairs := self._fresh(run, group, *source):
                present.append(source)
                for _, value in pairs:
                    fresh[value] = None
        if not fresh:
            return False
        found = self._of(list(fresh), scanned, group)
        if found:
            self._candidates |= found & scanned.looking_at(tuple(present))
        return True

    def _head(self, run: Run, scanned: Scanned) -> bool:
        """Search names and values of headers: most were met with requests before, and are remembered."""
        origins = self._origins(run, scanned)
        self._head_known = True
        memory = scanned.memory
        unknown = [value for value in origins if memory.known(value) is None]
        again = memory.repeated(unknown)
        for value in again:
            memory.remember(value, self._of([value], scanned, HEAD))
        for value, places in origins.items():
            if known := memory.known(value):
                for looking in places:
                    self._candidates |= known & looking
        new = {value: origins[value] for value in unknown if value not in again}
        if new:
            if found := self._of(list(new), scanned, HEAD, keyed=False):
                self._candidates |= found & _all(new.values())
            self._keyed(new, scanned)
        return bool(unknown)

    def _origins(self, run: Run, scanned: Scanned) -> dict[bytes, list[Places]]:
        """Each value of the head, with the rules that look where it stands."""
        origins: dict[bytes, list[Places]] = {}
        for source in scanned.sources:
            if source == _ALL_HEADERS:
                for name, values in run.headers.items():
                    looking = scanned.looking_at((("REQUEST_HEADERS", name),))
                    for value in values:
                        origins.setdefault(value, []).append(looking)
            elif pairs := self._fresh(run, HEAD, *source):
                looking = scanned.looking_at((source,))
                for _, value in pairs:
                    origins.setdefault(value, []).append(looking)
        return origins

    def _keyed(self, new: dict[bytes, list[Places]], scanned: Scanned) -> None:
        """Ask the links on single headers of their own headers' values."""
        for soft in scanned.keyed:
            rule = soft.phase, soft.place
            own = [value for value, places in new.items() if any(rule in looking for looking in places)]
            if own and any_holds(soft.link, own, self._meter):
                self._candidates.add(rule)

    def _fresh(self, run: Run, group: str, variable: str, key: bytes) -> Iterable[Pair]:
        """The pairs of a variable that were not searched yet."""
        if key:
            if variable == "REQUEST_HEADERS":
                return [(key, value) for value in run.headers.get(key, ())]
            return [pair for pair in run.values.get(variable, ()) if pair[0].lower() == key]
        pairs = run.values.get(variable, [])
        before = self._seen.get((group, variable))
        self._seen[group, variable] = pairs
        return pairs[len(before) :] if before and pairs[: len(before)] == before else pairs

    def _of(self, values: list[bytes], scanned: Scanned, group: str, *, keyed: bool = True) -> Candidates:
        """The candidates of some values of a group; `keyed`: also of links on single headers."""
        meter = self._meter
        texts = Texts(self._chains, values)
        text = texts.all_lines(scanned.chains, meter)
        meter.spend(len(text))
        found = self._scanner.candidates(text, FAMILY_OF[group], group)
        if not found.isdisjoint(scanned.of_line_ends):
            found = {
                rule
                for rule in found
                if (link := scanned.of_line_ends.get(rule)) is None or confirmed(link, texts, meter)
            }
        for soft in (*scanned.soft, *scanned.keyed) if keyed else scanned.soft:
            if confirmed(soft.link, texts, meter):
                found.add((soft.phase, soft.place))
        return found


def confirmed(link: Link, texts: Texts, meter: Meter) -> bool:
    """False only when none of the values matches."""
    asked: set[bytes] = set()  # stages that leave a text as it was need not be asked again
    for stage in link.stages:
        for part in texts.prepare(stage, meter):
            text = part.text(stage, meter)
            if text not in asked:
                if may_match(link, part, stage, meter):
                    return True
                asked.add(text)
    return False


def _all(origins: Iterable[list[Places]]) -> Places:
    return frozenset(rule for places in origins for looking in places for rule in looking)
