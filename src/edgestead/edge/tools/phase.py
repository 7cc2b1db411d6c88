"""What a phase of the pipeline is, and what it is given.

Owns  `Phase`, `ZoneRules`, `Tools`, `Watch`.
Not   the order of phases.
"""

import mmap
import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from edgestead.edge.exchanges.exchange import Exchange, Response, ZoneFacts
from edgestead.edge.exchanges.later import Later
from edgestead.edge.tools.acme import Pages
from edgestead.edge.tools.clearance import KEY_OCTETS, Clearances, Key
from edgestead.edge.tools.engines import NO_RULES, ManagedRules
from edgestead.edge.tools.pressure import Pressure
from edgestead.edge.tools.rates import Rates, memory_octets
from edgestead.model.budgets.ledger import Ledger
from edgestead.model.events import Decision
from edgestead.model.ruleset_document import RulesetDocument

Step = Callable[[Exchange], Response | Later | None]


class Observer(Protocol):
    """Who hears of what becomes of requests (`edge.events`). Called on the loop: never waits."""

    def refused(
        self, client: str, ray: bytes, status: int, reason: str, method: bytes, host: bytes, target: bytes
    ) -> None:
        """What could not be read, or names no zone of ours; `method`, `host`, `target` as far as known."""

    def failed(self, exchange: Exchange, status: int, reason: str) -> None:
        """The origin did not answer: the client gets an error page of the edge."""

    def decided(self, exchange: Exchange, decision: Decision) -> None:
        """A phase decided about a request, whether or not that ended it."""


class Silent:
    """An observer that keeps nothing."""

    def refused(
        self, client: str, ray: bytes, status: int, reason: str, method: bytes, host: bytes, target: bytes
    ) -> None:
        pass

    def failed(self, exchange: Exchange, status: int, reason: str) -> None:
        pass

    def decided(self, exchange: Exchange, decision: Decision) -> None:
        pass


class Tools(NamedTuple):
    """What a worker has, once, for all zones: what phases need beside their rules."""

    clearances: Clearances
    rates: Rates
    pressure: Pressure
    worker: int = 0
    workers: int = 1
    observer: Observer = Silent()
    https_port: int = 443  # where this server's own TLS is, for who came by a port
    managed: ManagedRules = NO_RULES
    acme: Pages = Pages()
    ledger: Ledger | None = None  # where refusals over budgets are counted and told


def local_tools(observer: Observer | None = None) -> Tools:
    """Tools of a worker that is alone and whose clearances end with it."""
    keys = [Key("00000001", os.urandom(KEY_OCTETS))]
    rates = Rates(memoryview(mmap.mmap(-1, memory_octets(1))), os.urandom(KEY_OCTETS))
    return Tools(Clearances(lambda: keys), rates, Pressure(), observer=observer or Silent())


class Watch(Protocol):
    """Who follows an evaluation rule by rule, as a trial does. What clients ask has none.

    `rule` and `place` are those of `edge.rules.rules`.
    """

    def met(self, rule: Any, place: Any, exchange: Exchange, matches: bool) -> None:
        """A rule's turn has come."""

    def acted(self, rule: Any, place: Any, exchange: Exchange, outcome: Any) -> None:
        """It was called for the request, and this came of it."""


class ZoneRules(NamedTuple):
    """What a zone's pipeline is compiled from. Account rulesets act before the zone's own.

    `account` and `zone` are entry points by phase; `by_id` are all rulesets that `execute` may name.
    """

    facts: ZoneFacts
    account: Mapping[str, RulesetDocument] = {}
    zone: Mapping[str, RulesetDocument] = {}
    by_id: Mapping[str, RulesetDocument] = {}
    watch: Watch | None = None


class Phase(NamedTuple):
    """A row of the list. `body_octets` says how much of a body the compiled step wants to see."""

    name: str
    compile: Callable[[ZoneRules, Tools], Step | None]
    body_octets: Callable[[ZoneRules], int] = lambda rules: 0
