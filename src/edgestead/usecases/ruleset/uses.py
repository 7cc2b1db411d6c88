"""Who names which ruleset: what must not be deleted.

Owns  what counts as naming a ruleset or one of its versions.
Not   whether what is named exists (`usecases.ruleset.references`).

Only current versions count. An old version may name what is gone: sending its rules again is refused then.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from edgestead.store.control import Reader
from edgestead.tables import rulesets
from edgestead.usecases.ruleset.actions import LATEST
from edgestead.usecases.ruleset.phases import EXECUTE, SKIP

Rule = dict[str, Any]
_decode_rules = msgspec.json.Decoder(list[Rule]).decode


def named(rules: Iterable[Rule]) -> frozenset[str]:
    """The rulesets that these rules execute, skip, or skip rules of."""
    return frozenset(_named(rules))


def pinned(reader: Reader, ruleset_id: str) -> dict[int, str]:
    """The versions that other rulesets execute by their number, each with one of those rulesets.

    Reads the users' rules one ruleset at a time: an account has few that execute a custom one, and each may
    be as large as `RULESET_OCTETS_MAX`.
    """
    found: dict[int, str] = {}
    for user_id in rulesets.users_of(reader, ruleset_id):
        row = rulesets.ruleset(reader, user_id)
        for rule in _decode_rules(row.rules) if row is not None else ():
            parameters = rule.get("action_parameters", {})
            if rule["action"] != EXECUTE or parameters["id"] != ruleset_id:
                continue
            if parameters["version"] != LATEST:
                found[int(parameters["version"])] = user_id
    return found


def _named(rules: Iterable[Rule]) -> Iterator[str]:
    for rule in rules:
        parameters = rule.get("action_parameters", {})
        if rule["action"] == EXECUTE:
            yield parameters["id"]
        elif rule["action"] == SKIP:
            yield from parameters.get("rulesets", ())
            yield from parameters.get("rules", ())
