"""What a zone would do with a request that nobody sends.

Owns  such a request, what each rule does with it, and why a rule is not reached.
Not   where rules come from, inspecting, what rate limits have counted so far, answers of an origin.

Nothing here decides about rules: the zone's pipeline is compiled and asked (`pipeline`), with a watch that
notes each rule whose turn comes. Its counts and keys are its own, and gone with it. An inspection by the
managed rules always passes; what exceptions would leave out of it is noted.
"""

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from ipaddress import ip_address
from typing import Any, Final, Literal, NamedTuple, cast
from urllib.parse import urlsplit

import msgspec

from edgestead.crs import Overrides
from edgestead.edge.exchanges.exchange import Exchange, Response, ZoneFacts
from edgestead.edge.exchanges.later import finish
from edgestead.edge.phases import rate_rules
from edgestead.edge.phases.pipeline import REQUEST_PHASES, compile_zone
from edgestead.edge.rules.fields import view_of
from edgestead.edge.rules.rules import Place, Rule, condition
from edgestead.edge.tools.engines import NOT_LOADED, ManagedRules
from edgestead.edge.tools.phase import Silent, ZoneRules, local_tools
from edgestead.http1.head import by_name
from edgestead.language.phases import PHASES, Direction
from edgestead.model.events import Decision
from edgestead.model.ruleset_document import RulesetDocument, pinned_key
from edgestead.waf.engine import Engine
from edgestead.waf.transaction import Policy, Verdict

_PORTS: Final = {"http": 80, "https": 443}
_PAUSED: Final = "the zone is paused, and none of its rules holds"
LISTED_MAX: Final = 1_000  # rulesets of a zone, or of its account
_ENFORCED: Final = frozenset(phase.name for phase in REQUEST_PHASES)
NO_ZONE: Final = ZoneFacts("", b"", "", "free", {})

Line = tuple[bytes, bytes]
Json = Mapping[str, Any]
_Key = tuple[str, str, str, str, str]  # level, phase, executing rule, ruleset, rule


class Rulesets(NamedTuple):
    """Rulesets as the API shows them, with their rules.

    `zone` and `account` are entry points, `executed` custom rulesets in the versions that rules name,
    `managed` the ids of managed rulesets that the server has.
    """

    zone: Sequence[Json] = ()
    account: Sequence[Json] = ()
    executed: Sequence[Json] = ()
    managed: frozenset[str] = frozenset()


class Gathered(NamedTuple):
    """`unseen` names what the credentials may not read, for people."""

    rulesets: Rulesets
    facts: ZoneFacts
    unseen: list[str]


class Tried(NamedTuple):
    """A rule and what it does. `by` is the rule that executes its ruleset, "" of an entry point.

    `reached`: its turn comes. `does` says what it does then, or why it does nothing.
    """

    level: str
    phase: str
    place: int
    by: str
    rule: Json
    matches: Literal["yes", "no", "off"]
    reached: bool
    acts: bool
    does: str


class Outcome(NamedTuple):
    """`status` is that of the edge's own answer, None where the origin is asked; `why` is for people."""

    rows: list[Tried]
    status: int | None
    why: str


def request_of(
    url: str,
    *,
    method: str = "GET",
    headers: Sequence[Line] = (),
    client: str = "192.0.2.1",
    body: bytes = b"",
    zone: ZoneFacts = NO_ZONE,
) -> Exchange:
    """Raises ValueError, for people."""
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        port, host = parts.port, (parts.hostname or "").encode("idna")
    except (ValueError, UnicodeError):
        parts, port, host = urlsplit(""), None, b""
    if parts.scheme not in _PORTS or not host or any(map(str.isspace, url)):
        raise ValueError(f"{url!r} is not like http://www.example.com/path")
    address = str(ip_address(client))
    lines = [(b"host", host), *headers]
    if body:
        lines.append((b"content-length", b"%d" % len(body)))
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    made = Exchange(
        client=address,
        peer=address,
        scheme=parts.scheme.encode(),
        port=port or _PORTS[parts.scheme],
        version=b"HTTP/1.1",
        method=method.encode(),
        target=target.encode(),
        headers=lines,
        by_name=by_name(lines),
        host=host,
        zone=zone,
        ray=b"0" * 16,
        arrived_us=time.time_ns() // 1_000,
    )
    made.body, made.body_length = body, len(body)
    return made


def header_of(line: str) -> Line:
    """`Name: value`. Raises ValueError."""
    name, colon, value = line.partition(":")
    if not colon or not name.strip():
        raise ValueError(f"{line!r} is not like 'NAME: VALUE'")
    return name.strip().lower().encode(), value.strip().encode()


def _facts(zone: Json, settings: Iterable[Json]) -> ZoneFacts:
    """Of a zone and its settings as the API shows them."""
    return ZoneFacts(
        zone["id"],
        zone["name"].encode(),
        zone["account"]["id"],
        "free",
        {one["id"]: one["value"] for one in settings},
        bool(zone.get("paused")),
    )


def executed_in(rulesets: Iterable[Json]) -> list[tuple[str, str]]:
    """Which rulesets, in which versions, rules of these execute; each once."""
    return list(
        dict.fromkeys(
            (parameters["id"], str(parameters.get("version", "latest")))
            for ruleset in rulesets
            for rule in ruleset.get("rules") or ()
            if rule["action"] == "execute" and "id" in (parameters := rule.get("action_parameters") or {})
        )
    )


def matcher(expression: str, phase: str) -> Callable[[Exchange], bool]:
    """For many requests. Raises FilterError."""
    run = condition(expression, phase).run
    return lambda request: bool(run(view_of(request)))


def matches(expression: str, phase: str, request: Exchange) -> bool:
    """Raises FilterError."""
    return matcher(expression, phase)(request)


def gathering(zone: Json) -> Generator[str, Any, Gathered]:
    """Ends with what a trial needs. Yields paths of the API; wants the result, None where it is refused."""
    unseen = []
    base, account = f"/zones/{zone['id']}", f"/accounts/{zone['account']['id']}"
    listed = (yield f"{base}/rulesets?per_page={LISTED_MAX}") or []
    of_zone = yield from _entries(f"{base}/rulesets", listed, "zone")
    of_account = yield f"{account}/rulesets?per_page={LISTED_MAX}"
    if of_account is None:
        unseen.append("rules of the account")
    roots = yield from _entries(f"{account}/rulesets", of_account or [], "root")
    managed = frozenset(one["id"] for one in listed if one["kind"] == "managed")
    executed = []
    for id_, version in executed_in([*roots, *of_zone]):
        if id_ not in managed:
            found = yield f"{account}/rulesets/{id_}" + (
                "" if version == "latest" else f"/versions/{version}"
            )
            executed += [found] if found else []
    settings = yield f"{base}/settings"
    if settings is None:
        unseen.append("settings of the zone")
    return Gathered(Rulesets(of_zone, roots, executed, managed), _facts(zone, settings or ()), unseen)


def _entries(base: str, listed: Iterable[Json], kind: str) -> Generator[str, Any, list[Json]]:
    wanted = [one for one in listed if one["kind"] == kind]
    found = []
    for id_ in [one["id"] for one in wanted if PHASES.get(one["phase"]) is Direction.REQUEST]:
        entry = yield f"{base}/{id_}"
        found += [entry] if entry else []
    return found


def tried(rulesets: Rulesets, request: Exchange) -> Outcome:
    """Ask the zone's pipeline. Raises FilterError: an expression that the language does not have."""
    managed = _Uninspected(rulesets.managed)
    notes, heard = _Notes(managed), _Heard()
    pipeline = compile_zone(
        ZoneRules(
            request.zone,
            account={one["phase"]: _document(one) for one in rulesets.account},
            zone={one["phase"]: _document(one) for one in rulesets.zone},
            by_id=_by_id(rulesets.executed),
            watch=notes,
        ),
        local_tools(heard)._replace(managed=managed),
    )
    answer: Response | None = finish(pipeline.request(request))
    if notes.ended is not None:
        notes.why = _name(notes.ended)
    elif request.zone.paused:
        notes.why = _PAUSED
    elif answer is not None:
        notes.why = heard.last
    rows = [_row(one, notes, request) for one in _all(rulesets)]
    return Outcome(rows, None if answer is None else answer.status, notes.why)


def _document(ruleset: Json) -> RulesetDocument:
    return RulesetDocument(
        str(ruleset.get("id", "")),
        str(ruleset.get("kind", "zone")),
        ruleset["phase"],
        str(ruleset.get("version", "1")),
        msgspec.Raw(msgspec.json.encode(ruleset.get("rules") or [])),
    )


def _by_id(rulesets: Iterable[Json]) -> dict[str, RulesetDocument]:
    found: dict[str, RulesetDocument] = {}
    for one in rulesets:
        document = _document(one)
        found[pinned_key(document.id, document.version)] = document
        found.setdefault(document.id, document)
    return found


class _Heard(Silent):
    """Keeps what was decided last: of an answer of the edge's own, its reason."""

    last = ""

    def decided(self, exchange: Exchange, decision: Decision) -> None:
        self.last = decision.description or decision.reason or decision.phase


class _Note(NamedTuple):
    matches: bool
    acted: bool = False
    does: str = ""


class _Notes:
    """The rules whose turn came, in this order."""

    def __init__(self, managed: "_Uninspected") -> None:
        self.met_: dict[_Key, _Note] = {}
        self.skips: list[tuple[Rule, Place]] = []
        self.ended: Rule | None = None
        self.why = ""  # what is behind the end was not reached for
        self._managed = managed

    def met(self, rule: Rule, place: Place, exchange: Exchange, matches: bool) -> None:
        self.met_[(place.level, place.phase, place.by, place.ruleset_id, rule.id)] = _Note(matches)

    def acted(self, rule: Rule, place: Place, exchange: Exchange, outcome: object) -> None:
        key = (place.level, place.phase, place.by, place.ruleset_id, rule.id)
        if rule.action == "skip":
            self.skips.append((rule, place))
        if isinstance(outcome, Response) and self.ended is None:
            self.ended = rule
        does = self._does(rule, place, exchange, outcome)
        self.met_[key] = self.met_[key]._replace(acted=True, does=does)

    def _does(self, rule: Rule, place: Place, exchange: Exchange, outcome: object) -> str:
        if place.phase == rate_rules.PHASE and rule.ratelimit:
            return _counts(rate_rules.counting(rule, place, exchange), rule)
        if isinstance(outcome, Response):
            where = dict(outcome.headers).get(b"location")
            return f"answers {outcome.status}" + (f" to {where.decode('ascii', 'replace')}" if where else "")
        if rule.action == "execute":
            return self._managed.told() or self._skipped(rule, place) or "runs the ruleset"
        return _DOES[rule.action](rule) if rule.action in _DOES else ""

    def _skipped(self, rule: Rule, place: Place) -> str:
        for skip, at in self.skips:
            named = skip.action_parameters.get("rulesets", ())
            if at.level == place.level and rule.action_parameters["id"] in named:
                return f"skipped by {_name(skip)}"
        return ""


class _Uninspected(ManagedRules):
    """Inspects nothing, and notes what an inspection would leave out."""

    def __init__(self, known: frozenset[str]) -> None:
        super().__init__()
        self._known, self._left_out = known, frozenset[str]()
        self._asked = False
        self.engine = cast(Engine, _NoEngine())
        self.policy = self._note  # type: ignore[assignment]  # which keeps nothing

    def unusable(self, ruleset_id: str) -> str:
        return "" if ruleset_id in self._known else NOT_LOADED

    def _note(self, overrides: Overrides, skipped: frozenset[str]) -> Policy:
        self._asked, self._left_out = True, skipped
        return Policy(enabled=0, level=1, threshold=None, action="log")

    def told(self) -> str:
        """What the last rule that executed a managed ruleset does; "" where it was another one."""
        asked, self._asked = self._asked, False
        if not asked:
            return ""
        count = len(self._left_out)
        left = f", without {count} rule{'' if count == 1 else 's'} of exceptions" if count else ""
        return f"inspects the request{left}"


class _NoEngine:
    def inspect(self, request: object, policy: Policy) -> "_NoEngine":
        return self

    def request(self) -> Iterator[None]:
        return _passed()


def _passed() -> Iterator[None]:
    yield from ()
    return Verdict()  # type: ignore[return-value]  # of the generator


def _counts(counted: rate_rules.Counting, rule: Rule) -> str:
    key = ", ".join(f"{name} = {value}" for name, value in counted.key)
    if counted.counts is False:
        return f"counts nothing of it; a request of {key} is held back by what others count"
    what = "a sum of scores" if counted.by_score else "requests"
    when = " when its answer comes" if counted.counts is None else ""
    then = f", for {counted.timeout_seconds} s" if counted.timeout_seconds else ""
    return (
        f"counts it{when} for {key}: {rule.action} above {counted.last_allowed} {what}"
        f" in {counted.period_seconds} s{then}"
    )


def _skip_does(rule: Rule) -> str:
    parameters = rule.action_parameters
    said = [f"the rest of this {name}" for name in ("ruleset", "phase") if parameters.get(name) == "current"]
    said += [
        f"{name} {', '.join(named)}"
        for name in ("phases", "products", "rulesets")
        if (named := parameters.get(name))
    ]
    if rules := parameters.get("rules"):
        count = sum(map(len, rules.values()))
        said.append(f"{count} rule{'' if count == 1 else 's'} of {', '.join(rules)}")
    return f"skips {'; '.join(said)}"


_DOES: Mapping[str, Callable[[Rule], str]] = {
    "skip": _skip_does,
    "log": lambda rule: "is logged",
    "rewrite": lambda rule: "rewrites the request",
    "route": lambda rule: "chooses the origin",
    "redirect": lambda rule: "leads nowhere: its target is empty for this request",
}


class _Where(NamedTuple):
    level: str
    ruleset: Json
    place: int
    rule: Json
    by: str
    outer: "_Where | None" = None

    @property
    def key(self) -> _Key:
        return (self.level, self.ruleset["phase"], self.by, self.ruleset.get("id", ""), self.rule["id"])


def _all(rulesets: Rulesets) -> Iterator[_Where]:
    """Every rule in the order of evaluation, an executed ruleset's behind the rule that executes it."""
    executed = {(one["id"], str(one.get("version", "1"))): one for one in rulesets.executed}
    latest = {one["id"]: one for one in reversed(rulesets.executed)}
    levels = (("account", rulesets.account), ("zone", rulesets.zone))
    for phase in PHASES:
        for level, entries in levels:
            for entry in (one for one in entries if one["phase"] == phase):
                for place, rule in enumerate(entry.get("rules") or (), 1):
                    outer = _Where(level, entry, place, rule, "")
                    yield outer
                    parameters = rule.get("action_parameters") or {}
                    id_, version = parameters.get("id", ""), str(parameters.get("version", "latest"))
                    inner = executed.get((id_, version)) or latest.get(id_)
                    if rule["action"] == "execute" and inner is not None:
                        for at, one in enumerate(inner.get("rules") or (), 1):
                            yield _Where(level, inner, at, one, rule["id"], outer)


def _row(where: _Where, notes: _Notes, request: Exchange) -> Tried:
    note = notes.met_.get(where.key)
    phase, rule = where.ruleset["phase"], where.rule
    is_on = rule.get("enabled", True)
    if note is not None:
        is_matched = note.matches
        does = note.does if note.acted else _left_out_by(where, notes) if is_matched else ""
    else:
        is_matched = is_on and matches(rule["expression"], phase, request)
        does = "" if not is_on else _unreached(where, notes)
    return Tried(
        where.level,
        phase,
        where.place,
        where.by,
        rule,
        "off" if not is_on else "yes" if is_matched else "no",
        note is not None,
        note is not None and note.acted,
        does,
    )


def _left_out_by(where: _Where, notes: _Notes) -> str:
    for rule, place in notes.skips:
        if place.level == where.level and _is_named(rule, where):
            return f"skipped by {_name(rule)}"
    return ""


def _unreached(where: _Where, notes: _Notes) -> str:
    if where.ruleset["phase"] not in _ENFORCED:
        return "the edge enforces no rule of this phase"
    if where.outer is not None:
        if not where.outer.rule.get("enabled", True):
            return "the rule that executes it is off"
        outer = notes.met_.get(where.outer.key)
        if outer is None:
            return _unreached(where.outer, notes)
        if not outer.matches:
            return "the rule that executes it does not match"
    for rule, place in notes.skips:
        if _ends(rule, place, where):
            return f"skipped by {_name(rule)}"
    return f"not reached: {notes.why}" if notes.why else "does nothing here"


def _ends(rule: Rule, place: Place, where: _Where) -> bool:
    """Whether a `skip` that acted leaves out what stands there."""
    parameters, phase = rule.action_parameters, where.ruleset["phase"]
    if place.level != where.level:
        return False
    if phase in parameters.get("phases", ()) or (
        parameters.get("phase") == "current" and place.phase == phase
    ):
        return True
    if where.outer is not None and _is_named(rule, where.outer):
        return True
    here = where.ruleset.get("id", "")
    if here in parameters.get("rulesets", ()):
        return True
    is_same = (place.phase, place.ruleset_id, place.by) == (phase, here, where.by)
    return is_same and parameters.get("ruleset") == "current"


def _is_named(rule: Rule, where: _Where) -> bool:
    """Whether a `skip` names the rule that stands there."""
    named = rule.action_parameters.get("rules", {}).get(where.ruleset.get("id", ""), ())
    return where.rule["id"] in named


def _name(rule: Rule) -> str:
    return f"the rule {rule.description or rule.id}"
