"""Changing rulesets: the use cases that write.

Owns  what each of them does, versions, the feed's documents.
Not   HTTP; permissions; what a rule does.

A use case only reads, and returns the `Change` that it would make; `commit` makes it. A dry run is a use case
without its commit, so both refuse the same.
"""

from typing import Any

import msgspec

from edgestead.model.call import Call
from edgestead.model.refusals.ruleset import (
    CurrentVersion,
    RuleChanged,
    RuleNotFound,
    RulesetExists,
    RulesetInUse,
    RulesetTooLarge,
    VersionInUse,
)
from edgestead.model.ruleset_document import KIND_RULESET
from edgestead.model.times import six_digits
from edgestead.store.control import Reader, Transaction
from edgestead.tables import rulesets
from edgestead.tables.rulesets import RulesetRow
from edgestead.usecases.limits import (
    CUSTOM_RULESETS_MAX,
    RULESET_OCTETS_MAX,
    VERSIONS_KEPT_MAX,
    VERSIONS_OCTETS_MAX,
)
from edgestead.usecases.ruleset import body as rulesets_body
from edgestead.usecases.ruleset import merge, view
from edgestead.usecases.ruleset import pinned as rulesets_pinned
from edgestead.usecases.ruleset.body import RuleBody, RulesetBody
from edgestead.usecases.ruleset.gathered import Refusals
from edgestead.usecases.ruleset.managed import Platform
from edgestead.usecases.ruleset.merge import Rule, Stamp
from edgestead.usecases.ruleset.references import References, named, pinned
from edgestead.usecases.ruleset.rule import RuleDraft
from edgestead.usecases.ruleset.scope import Scope, account_of, version_of, writable
from edgestead.usecases.ruleset.shapes import Place

ENTRYPOINT_NAME = "default"
_encode = msgspec.json.Encoder().encode
_decode_rules = msgspec.json.Decoder(list[dict[str, Any]]).decode


class Written(msgspec.Struct, frozen=True):
    """A ruleset's next version; its first one where `is_new`. `named`: whom it executes or skips."""

    row: RulesetRow
    named: frozenset[str]
    is_new: bool = False


class Unchanged(msgspec.Struct, frozen=True):
    """A ruleset of which nothing was sent that could change it: no version, no document."""

    row: RulesetRow


class Removed(msgspec.Struct, frozen=True):
    """A ruleset that goes with all its versions."""

    row: RulesetRow


class VersionRemoved(msgspec.Struct, frozen=True):
    ruleset_id: str
    version: int


Change = Written | Unchanged | Removed | VersionRemoved


def remarks(change: Change, platform: Platform) -> tuple[str, ...]:
    """Remarks about this machine for a client that deploys the managed ruleset."""
    managed = platform.managed
    if managed is None or not isinstance(change, Written) or managed.id not in change.named:
        return ()
    return managed.remarks


def kind_and_phase(reader: Reader, platform: Platform, scope: Scope, ruleset_id: str) -> tuple[str, str]:
    """What never changes of a ruleset that is to be changed. Raises RulesetNotFound, ManagedIsReadOnly."""
    row = writable(reader, platform, scope, ruleset_id)
    return row.kind, row.phase


def create(call: Call, reader: Reader, platform: Platform, scope: Scope, body: RulesetBody) -> Written:
    """A new ruleset. Raises RulesetExists, and what its rules deserve."""
    assert body.kind is not None
    assert body.phase is not None
    account_id = account_of(reader, scope)
    if body.kind == "custom":
        same = [row for row in rulesets.custom_rulesets(reader, account_id) if row.phase == body.phase]
        taken = len(same) >= CUSTOM_RULESETS_MAX
    else:
        taken = rulesets.entrypoint(reader, scope.kind, scope.id, body.phase) is not None
    if taken:
        raise RulesetExists(value=body.kind, phase=body.phase, pointer="/kind")
    return _new(call, reader, platform, scope, body.kind, body.phase, body)


def replace(
    call: Call, reader: Reader, platform: Platform, scope: Scope, ruleset_id: str, body: RulesetBody
) -> Written | Unchanged:
    """Other rules, another description, or both; what was not sent stays. Raises RulesetNotFound …"""
    row = writable(reader, platform, scope, ruleset_id)
    return _replaced(call, reader, platform, row, body)


def replace_entrypoint(
    call: Call, reader: Reader, platform: Platform, scope: Scope, phase: str, body: RulesetBody
) -> Written | Unchanged:
    """As `replace` for the phase's entry point, which is made when there is none."""
    account_of(reader, scope)
    row = rulesets.entrypoint(reader, scope.kind, scope.id, phase)
    if row is None:
        return _new(call, reader, platform, scope, scope.entry_kind, phase, body)
    return _replaced(call, reader, platform, row, body)


def rewrite_entrypoint(
    call: Call,
    reader: Reader,
    platform: Platform,
    scope: Scope,
    phase: str,
    rules: list[Rule],
    drafts: list[RuleDraft],
) -> Written:
    """The entry point's next version with rules that were merged already; `drafts` are those that are new."""
    row = rulesets.entrypoint(reader, scope.kind, scope.id, phase)
    if row is not None:
        return _next(call, reader, platform, row, rules, drafts, Refusals())
    fresh = _fresh(call, platform, scope, scope.entry_kind, phase)
    written = _next(call, reader, platform, fresh, rules, drafts, Refusals())
    return Written(written.row, written.named, is_new=True)


def add_rule(
    call: Call, reader: Reader, platform: Platform, scope: Scope, ruleset_id: str, body: RuleBody
) -> Written:
    """A further rule, at its position or at the end."""
    row = writable(reader, platform, scope, ruleset_id)
    draft = body.draft
    assert draft is not None
    rulesets_body.check_count(len(_rules(row)) + 1, row.phase)
    stored = merge.added(_rules(row), draft, body.position, stamp(call, platform))
    return _next(call, reader, platform, row, stored, [draft], Refusals())


def change_rule(
    call: Call,
    reader: Reader,
    platform: Platform,
    scope: Scope,
    ruleset_id: str,
    rule_id: str,
    body: RuleBody,
    meant: int | None = None,
) -> Written:
    """Replace a rule, move it, or both; where a version is `meant`, only if it still has that, or is so
    already: whoever missed the answer may send it again.

    Raises RuleNotFound, RuleChanged …
    """
    row = writable(reader, platform, scope, ruleset_id)
    before = _rules(row)
    _check_has(before, row, rule_id)
    rules = merge.changed(before, rule_id, body.draft, body.position, stamp(call, platform))
    version = before[merge.index_of(before, rule_id)]["version"]
    if meant not in (None, int(version)) and rules != before:
        raise RuleChanged(rule_id=rule_id, version=version, meant=meant)
    drafts = [body.draft] if body.draft is not None else []
    return _next(call, reader, platform, row, rules, drafts, Refusals())


def remove_rule(
    call: Call, reader: Reader, platform: Platform, scope: Scope, ruleset_id: str, rule_id: str
) -> Written:
    """Raises RulesetNotFound, RuleNotFound, ManagedIsReadOnly."""
    row = writable(reader, platform, scope, ruleset_id)
    rules = _rules(row)
    _check_has(rules, row, rule_id)
    rest = [rule for rule in rules if rule["id"] != rule_id]
    return _next(call, reader, platform, row, rest, [], Refusals())


def remove(reader: Reader, platform: Platform, scope: Scope, ruleset_id: str) -> Removed:
    """Raises RulesetNotFound, ManagedIsReadOnly, RulesetInUse."""
    row = writable(reader, platform, scope, ruleset_id)
    for user_id in rulesets.users_of(reader, ruleset_id):
        raise RulesetInUse(ruleset_id=ruleset_id, by_id=user_id)
    return Removed(row)


def remove_version(
    reader: Reader, platform: Platform, scope: Scope, ruleset_id: str, number: str
) -> VersionRemoved:
    """Raises RulesetNotFound, VersionNotFound, ManagedIsReadOnly, CurrentVersion, VersionInUse."""
    row = writable(reader, platform, scope, ruleset_id)
    found = version_of(reader, row, number)
    if found.version == row.version:
        raise CurrentVersion(version=number)
    user_id = pinned(reader, row.id).get(found.version)
    if user_id is not None:
        raise VersionInUse(version=number, ruleset_id=row.id, by_id=user_id)
    return VersionRemoved(row.id, found.version)


def commit(tx: Transaction, change: Change) -> bytes | None:
    """Make the change; the ruleset as JSON text where there still is one."""
    match change:
        case Written(row, named, is_new):
            pinned = rulesets_pinned.pins(rulesets.ruleset(tx, row.id))
            if is_new:
                rulesets.insert(tx, row)
            else:
                rulesets.add_version(tx, row)
                forget_old_versions(tx, row.id)
            rulesets.set_uses(tx, row.id, named)
            tx.emit(row.scope_id, KIND_RULESET, row.id, rulesets_pinned.document(row))
            rulesets_pinned.tell(tx, pinned, rulesets_pinned.pins(row))
            return view.whole(row)
        case Unchanged(row):
            return view.whole(row)
        case Removed(row):
            rulesets.delete(tx, row.id)
            tx.emit(row.scope_id, KIND_RULESET, row.id, None)
            rulesets_pinned.tell(tx, rulesets_pinned.pins(row), frozenset())
        case VersionRemoved(ruleset_id, number):
            rulesets.delete_version(tx, ruleset_id, number)
    return None


def forget_old_versions(
    tx: Transaction,
    ruleset_id: str,
    versions_max: int = VERSIONS_KEPT_MAX,
    octets_max: int = VERSIONS_OCTETS_MAX,
) -> None:
    """Versions beyond the limits go, unless a rule somewhere executes them by their number."""
    surplus = rulesets.surplus_versions(tx, ruleset_id, versions_max, octets_max)
    spared = pinned(tx, ruleset_id) if surplus else {}
    for version in surplus:
        if version not in spared:
            rulesets.delete_version(tx, ruleset_id, version)


def _rules(row: RulesetRow) -> list[Rule]:
    return _decode_rules(row.rules)


def _check_has(rules: list[Rule], row: RulesetRow, rule_id: str) -> None:
    if all(rule["id"] != rule_id for rule in rules):
        raise RuleNotFound(rule_id=rule_id, ruleset_id=row.id)


def stamp(call: Call, platform: Platform) -> Stamp:
    """What rules get that this call changes."""
    return Stamp(six_digits(call.now_us), platform.new_id)


def _fresh(call: Call, platform: Platform, scope: Scope, kind: str, phase: str) -> RulesetRow:
    """A ruleset before its first version."""
    return RulesetRow(
        id=platform.new_id(),
        scope=scope.kind,
        scope_id=scope.id,
        kind=kind,
        phase=phase,
        name=ENTRYPOINT_NAME,
        version=0,
        description="",
        updated_us=call.now_us,
        rules="[]",
    )


def _new(
    call: Call, reader: Reader, platform: Platform, scope: Scope, kind: str, phase: str, body: RulesetBody
) -> Written:
    row = _fresh(call, platform, scope, kind, phase)
    row = row._replace(name=body.name or ENTRYPOINT_NAME, description=body.description or "")
    drafts, refusals = body.rules or [], Refusals(body.refused)
    rules: list[Rule] = []
    with refusals.gathered():
        rules = merge.replaced([], drafts, stamp(call, platform))
    written = _next(call, reader, platform, row, rules, drafts, refusals)
    return Written(written.row, written.named, is_new=True)


def _replaced(
    call: Call, reader: Reader, platform: Platform, row: RulesetRow, body: RulesetBody
) -> Written | Unchanged:
    refusals = Refusals(body.refused)
    with refusals.gathered():
        rulesets_body.check_same(body.name, row.name, Place(row.phase).at("name"))
    if body.rules is None and body.description in (None, row.description):
        refusals.raise_any()
        return Unchanged(row)
    if body.description is not None:
        row = row._replace(description=body.description)
    rules = _rules(row)
    if body.rules is not None:
        with refusals.gathered():
            rules = merge.replaced(rules, body.rules, stamp(call, platform))
    return _next(call, reader, platform, row, rules, body.rules or [], refusals)


def _next(
    call: Call,
    reader: Reader,
    platform: Platform,
    row: RulesetRow,
    rules: list[Rule],
    drafts: list[RuleDraft],
    refusals: Refusals,
) -> Written:
    """The ruleset's next version with these rules. What the drafts name is checked here, and refused together
    with what was wrong before."""
    account_id = account_of(reader, _scope(row))
    references = References(reader, platform.managed, account_id, row.kind, call.profile, refusals)
    for draft in drafts:
        references.check(draft)
    refusals.raise_any()
    rulesets_body.check_regexes(rules)
    text = _encode(rules).decode()
    octets = len(text.encode())
    if octets > RULESET_OCTETS_MAX:
        raise RulesetTooLarge(octets=octets, octets_max=RULESET_OCTETS_MAX)
    written = row._replace(version=row.version + 1, updated_us=call.now_us, rules=text)
    return Written(written, named(rules))


def _scope(row: RulesetRow) -> Scope:
    return Scope("zone" if row.scope == "zone" else "account", row.scope_id)
