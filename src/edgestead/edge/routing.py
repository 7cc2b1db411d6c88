"""From a host to its zone, its rules and its origins: everything that the feed says, ready to be asked.

Owns  the documents of zones, names and rulesets; finding a host; when a zone's pipeline is compiled anew.
Not   connections; DNS.

Applying a change only notes it and forgets what was derived; the next request compiles what it needs. So what
was acknowledged shows in every later answer, and a change of an account costs nothing for zones at rest.

A wildcard stands for any name below its parent that has no proxied records itself.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from edgestead.edge import limits
from edgestead.edge.exchanges.exchange import ZoneFacts
from edgestead.edge.exchanges.origins import Origins, Speaks
from edgestead.edge.managed.rules import PHASE as MANAGED_PHASE
from edgestead.edge.managed.rules import executed_by
from edgestead.edge.phases.pipeline import Pipeline, compile_zone
from edgestead.edge.tools.phase import Tools, ZoneRules
from edgestead.model import names
from edgestead.model.edge import (
    KIND_EDGE_NAME,
    KIND_EDGE_ZONE,
    EdgeZone,
    decode_name,
    decode_zone,
)
from edgestead.model.ruleset_document import KIND_RULESET, RulesetDocument
from edgestead.model.ruleset_document import decode as decode_ruleset
from edgestead.model.settings import SETTINGS
from edgestead.store.changes import Change

TLS_MODES = {"full": "full", "strict": "strict", "origin_pull": "strict"}
MEGABYTE = 1_000_000
_DEFAULTS: dict[str, Any] = {id_: setting.default for id_, setting in SETTINGS.items()}
log = logging.getLogger(__name__)


class Scope:
    """Everything of one zone, or of one account, which has rulesets only."""

    __slots__ = ("facts", "id", "names", "pipeline", "rulesets")

    def __init__(self, id_: str) -> None:
        self.id = id_
        self.facts: ZoneFacts | None = None
        self.names: dict[bytes, Origins] = {}
        self.rulesets: dict[str, RulesetDocument] = {}
        self.pipeline: Pipeline | None = None

    @property
    def is_empty(self) -> bool:
        return self.facts is None and not self.names and not self.rulesets


class Route:
    """Where a host leads, with the settings that every request looks at.

    `tls_mode` is how an origin is asked by those who came over TLS (`origins.Target`), `speaks` in which
    version of HTTP. `compression` is the setting, "" where it is off.
    """

    __slots__ = (
        "body_bytes_max",
        "compression",
        "facts",
        "head_seconds",
        "origins",
        "pipeline",
        "speaks",
        "takes_websockets",
        "tls_mode",
    )

    def __init__(self, facts: ZoneFacts, origins: Origins, pipeline: Pipeline) -> None:
        self.facts = facts
        self.origins = origins
        self.pipeline = pipeline
        self.tls_mode = TLS_MODES.get(facts.settings["ssl"], "")
        said = facts.settings["compression"]
        self.compression = "" if said == "off" or facts.paused else said
        streams = facts.settings["origin_h2_max_streams"]
        self.speaks = Speaks(
            streams if facts.settings["origin_max_http_version"] == "2" else 0,
            streams if facts.settings["origin_h2c"] == "on" else 0,
        )
        self.takes_websockets = facts.settings["websockets"] == "on"
        self.body_bytes_max = facts.settings["max_upload"] * MEGABYTE
        self.head_seconds = float(facts.settings["proxy_read_timeout"])


class Routes:
    """A `feed.follower.Consumer`."""

    def __init__(self, tools: Tools) -> None:
        self.sequence = 0
        self._tools = tools
        self._scopes: dict[str, Scope] = {}
        self._aside: dict[str, Scope] = {}
        self._zones: dict[bytes, Scope] = {}
        self._found: dict[bytes, Route | None] = {}
        self._executed: frozenset[str] | None = None
        self.when_changed: Callable[[], None] = lambda: None  # told after each change of the feed

    # the feed

    def begin(self) -> None:
        self._aside = {}

    def load(self, changes: Sequence[Change]) -> None:
        for change in changes:
            _note(self._aside, change)
        self.sequence = max(self.sequence, *(change.sequence for change in changes))

    def swap(self) -> None:
        self._scopes, self._aside = self._aside, {}
        self._index()
        self.when_changed()

    def apply(self, changes: Sequence[Change]) -> None:
        for change in changes:
            _note(self._scopes, change)
        self.sequence = changes[-1].sequence
        self._index({change.scope for change in changes})
        self.when_changed()

    def _index(self, changed: set[str] | None = None) -> None:
        """Forget what was derived from what has changed; None: everything has."""
        self._found = {}
        self._executed = None
        if changed is None:
            self._zones = {scope.facts.name: scope for scope in self._scopes.values() if scope.facts}
            return
        for id_ in changed:
            scope = self._scopes.get(id_)
            if scope is None:
                self._zones = {name: one for name, one in self._zones.items() if one.id != id_}
            elif scope.facts is not None:
                self._zones[scope.facts.name] = scope
                scope.pipeline = None
        for scope in self._zones.values():
            if scope.facts is not None and scope.facts.account_id in changed:
                scope.pipeline = None

    # asking

    def find(self, host: bytes) -> Route | None:
        """Where a host (lower case, no port, no last dot) leads; None when it is not proxied here."""
        try:
            return self._found[host]
        except KeyError:
            if len(self._found) >= limits.ROUTES_KEPT_MAX:
                self._found.clear()
            route = self._found[host] = self._search(host)
            return route

    def zone_of(self, host: bytes) -> ZoneFacts | None:
        """The zone that a host belongs to, proxied or not."""
        for name in _with_parents(host):
            scope = self._zones.get(name)
            if scope is not None:
                return scope.facts
        return None

    def origins_of(self, host: bytes) -> Origins | None:
        """The origins of a proxied name, for an alias that leads to it."""
        route = self.find(host)
        return route.origins if route else None

    def executed(self) -> frozenset[str]:
        """Ids of the managed rulesets that rules execute: those that are no rulesets of the feed."""
        if self._executed is None:
            documents = [one for scope in self._scopes.values() for one in scope.rulesets.values()]
            here = {one.id for one in documents}
            named = (executed_by(one) for one in documents if one.phase == MANAGED_PHASE)
            self._executed = frozenset(id_ for ids in named for id_ in ids if id_ not in here)
        return self._executed

    @property
    def zones(self) -> int:
        return len(self._zones)

    def _search(self, host: bytes) -> Route | None:
        facts = self.zone_of(host)
        if facts is None:
            return None
        scope = self._zones[facts.name]
        origins = scope.names.get(host)
        if origins is None:
            for parent in _with_parents(host.partition(b".")[2]):
                origins = scope.names.get(b"*." + parent)
                if origins is not None or parent == facts.name:
                    break
        if origins is None:
            return None
        return Route(facts, origins, self._pipeline(scope, facts))

    def _pipeline(self, scope: Scope, facts: ZoneFacts) -> Pipeline:
        if scope.pipeline is None:
            account = self._scopes.get(facts.account_id)
            of_account = account.rulesets if account else {}
            rules = ZoneRules(
                facts,
                account={one.phase: one for one in of_account.values() if one.kind == "root"},
                zone={one.phase: one for one in scope.rulesets.values() if one.kind == "zone"},
                by_id={**of_account, **scope.rulesets},
            )
            scope.pipeline = compile_zone(rules, self._tools)
        return scope.pipeline


def _with_parents(name: bytes) -> Iterator[bytes]:
    while name:
        yield name
        name = name.partition(b".")[2]


def _note(scopes: dict[str, Scope], change: Change) -> None:
    if change.drops_scope:
        scopes.pop(change.scope, None)
        return
    scope = scopes.get(change.scope)
    if scope is None:
        if change.doc is None:
            return
        scope = scopes[change.scope] = Scope(change.scope)
    if change.kind == KIND_EDGE_NAME:
        _note_name(scope, bytes.fromhex(change.key), change.doc)
    elif change.kind == KIND_EDGE_ZONE:
        scope.facts = None if change.doc is None else _facts(change.scope, decode_zone(change.doc))
    elif change.kind == KIND_RULESET:
        if change.doc is None:
            scope.rulesets.pop(change.key, None)
        else:
            scope.rulesets[change.key] = decode_ruleset(change.doc)
    if scope.is_empty:
        del scopes[change.scope]


def _note_name(scope: Scope, owner: bytes, document: bytes | None) -> None:
    host = host_of(owner)
    if document is None:
        scope.names.pop(host, None)
        return
    name = decode_name(document)
    scope.names[host] = Origins(name.addresses, None if name.alias is None else host_of(name.alias))


def host_of(wire: bytes) -> bytes:
    """A name as Host headers spell it. A label that holds a dot can never be asked for."""
    return b".".join(names.labels(wire))


def _facts(zone_id: str, zone: EdgeZone) -> ZoneFacts:
    settings = {**_DEFAULTS, **zone.settings} if zone.settings else _DEFAULTS
    return ZoneFacts(zone_id, zone.name.encode(), zone.account_id, zone.plan, settings, zone.paused)
