"""Versions of custom rulesets that rules execute by their number, as documents of the feed.

Owns  which versions have a document of their own, and its key.
Not   the document of a ruleset's current version (`usecases.ruleset.change`).

The feed holds the current version of every ruleset. A rule that executes an older one by its number would
otherwise run other rules than it names, as soon as there is a newer one. A document of a pinned version stays
when a whole zone goes with its rules; no ruleset executes it then.
"""

from typing import Any

import msgspec

from edgestead.model.ruleset_document import KIND_RULESET, RulesetDocument, encode, pinned_key
from edgestead.store.control import Transaction
from edgestead.tables import rulesets
from edgestead.tables.rulesets import RulesetRow
from edgestead.usecases.ruleset.actions import LATEST
from edgestead.usecases.ruleset.phases import EXECUTE
from edgestead.usecases.ruleset.references import pinned

_decode_rules = msgspec.json.Decoder(list[dict[str, Any]]).decode
Pins = frozenset[tuple[str, int]]


def document(row: RulesetRow) -> bytes:
    """A version of a ruleset as the feed tells it."""
    rules = msgspec.Raw(row.rules.encode())
    return encode(RulesetDocument(row.id, row.kind, row.phase, str(row.version), rules))


def pins(row: RulesetRow | None) -> Pins:
    """Rulesets and versions that the ruleset's rules execute by number."""
    found: set[tuple[str, int]] = set()
    if row is None or f'"{EXECUTE}"' not in row.rules:  # most rulesets: nothing to read
        return frozenset()
    for rule in _decode_rules(row.rules):
        parameters = rule.get("action_parameters", {})
        if rule["action"] == EXECUTE and parameters["version"] != LATEST:
            found.add((parameters["id"], int(parameters["version"])))
    return frozenset(found)


def tell(tx: Transaction, before: Pins, after: Pins) -> None:
    """Emit the rulesets that are now executed, and forget those that no longer are.

    Managed rulesets have no documents: every process reads their rules itself. Called when the tables say
    what holds after the change.
    """
    for ruleset_id, version in sorted(after - before):
        row = rulesets.ruleset_version(tx, ruleset_id, version)
        if row is not None:
            tx.emit(row.scope_id, KIND_RULESET, pinned_key(ruleset_id, version), document(row))
    for ruleset_id, version in sorted(before - after):
        row = rulesets.ruleset(tx, ruleset_id)
        if row is not None and version not in pinned(tx, ruleset_id):
            tx.emit(row.scope_id, KIND_RULESET, pinned_key(ruleset_id, version), None)
