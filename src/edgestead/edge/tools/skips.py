"""What `skip` rules leave out of the rest of a request.

Owns  `Skips`, how a request carries them.
Not   `{"ruleset": "current"}`: that only ends the ruleset it stands in (`edge.rules.rules`).

A skip holds for the level it was decided on: the account's rules skip what the account executes, a zone's
what the zone executes. Source: docs/reference/rulesets.md.
"""

from typing import Any, Literal

from edgestead.edge.exchanges.exchange import Exchange

Level = Literal["account", "zone"]
_KEY = "skips"


class Skips:
    """What one level leaves out. `rules` holds rule ids by ruleset id; `products` counts for both levels."""

    __slots__ = ("phases", "products", "rules", "rulesets")

    def __init__(self) -> None:
        self.phases: set[str] = set()
        self.rulesets: set[str] = set()
        self.rules: dict[str, set[str]] = {}
        self.products: set[str] = set()

    def add(self, parameters: dict[str, Any], phase: str) -> None:
        """The parameters of a `skip` rule in `phase`."""
        self.phases.update(parameters.get("phases", ()))
        if parameters.get("phase") == "current":
            self.phases.add(phase)
        self.rulesets.update(parameters.get("rulesets", ()))
        self.products.update(parameters.get("products", ()))
        for ruleset_id, rule_ids in parameters.get("rules", {}).items():
            self.rules.setdefault(ruleset_id, set()).update(rule_ids)


def skips_of(exchange: Exchange, level: Level) -> Skips | None:
    """What the level's rules have skipped so far; None, as for nearly every request, when nothing."""
    if exchange.keep is None:
        return None
    found: dict[Level, Skips] = exchange.keep.get(_KEY, {})
    return found.get(level)


def add_skips(exchange: Exchange, level: Level, parameters: dict[str, Any], phase: str) -> None:
    if exchange.keep is None:
        exchange.keep = {}
    exchange.keep.setdefault(_KEY, {}).setdefault(level, Skips()).add(parameters, phase)


def skips_product(exchange: Exchange, product: str) -> bool:
    """Whether either level skipped that part of the platform."""
    return any(
        product in skips.products
        for level in ("account", "zone")
        if (skips := skips_of(exchange, level)) is not None
    )
