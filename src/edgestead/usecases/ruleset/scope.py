"""The zone or account whose rulesets are meant, and what of it is found there.

Owns  `Scope`; the owners of rulesets; which of them are read-only.
Not   permissions (`usecases.access.authorise`).
"""

from typing import Literal, NamedTuple

from edgestead.model.refusals.access import AuthenticationError
from edgestead.model.refusals.ruleset import (
    EntrypointNotFound,
    ManagedIsReadOnly,
    RulesetNotFound,
    VersionNotFound,
)
from edgestead.model.refusals.zone import ZoneNotFound
from edgestead.store.control import Reader
from edgestead.tables import accounts, rulesets, zones
from edgestead.tables.rulesets import RulesetRow
from edgestead.usecases.ruleset import body
from edgestead.usecases.ruleset.managed import ManagedRuleset, Platform

_VERSION_DIGITS_MAX = 18


class Scope(NamedTuple):
    """The zone or the account whose rulesets are meant."""

    kind: Literal["zone", "account"]
    id: str

    @property
    def entry_kind(self) -> str:
        """The kind of its entry points."""
        return "zone" if self.kind == "zone" else "root"


def account_of(reader: Reader, scope: Scope) -> str:
    """The account itself, or the one of the zone. Raises ZoneNotFound, AuthenticationError."""
    if scope.kind == "account":
        if accounts.account(reader, scope.id) is None:
            raise AuthenticationError
        return scope.id
    account_id = zones.account_id(reader, scope.id)
    if account_id is None:
        raise ZoneNotFound
    return account_id


def managed_of(reader: Reader, platform: Platform, scope: Scope, ruleset_id: str) -> ManagedRuleset | None:
    """The managed ruleset if that is the one meant; zones read it too. Raises ZoneNotFound,
    AuthenticationError."""
    account_of(reader, scope)
    managed = platform.managed
    return managed if managed is not None and managed.id == ruleset_id else None


def managed_version(managed: ManagedRuleset, number: str) -> ManagedRuleset:
    if not managed.is_version(number):
        raise VersionNotFound(version=number, ruleset_id=managed.id)
    return managed


def owned(reader: Reader, scope: Scope, ruleset_id: str) -> RulesetRow:
    account_of(reader, scope)
    row = rulesets.ruleset(reader, ruleset_id)
    if row is None or (row.scope, row.scope_id) != scope:
        raise RulesetNotFound(ruleset_id=ruleset_id)
    return row


def writable(reader: Reader, platform: Platform, scope: Scope, ruleset_id: str) -> RulesetRow:
    if managed_of(reader, platform, scope, ruleset_id) is not None:
        raise ManagedIsReadOnly(ruleset_id=ruleset_id)
    return owned(reader, scope, ruleset_id)


def entrypoint_of(reader: Reader, scope: Scope, phase: str) -> RulesetRow:
    account_of(reader, scope)
    body.check_phase(phase, scope.entry_kind)
    row = rulesets.entrypoint(reader, scope.kind, scope.id, phase)
    if row is None:
        raise EntrypointNotFound(phase=phase)
    return row


def version_of(reader: Reader, row: RulesetRow, number: str) -> RulesetRow:
    found = None
    if number.isascii() and number.isdigit() and len(number) <= _VERSION_DIGITS_MAX:
        found = rulesets.ruleset_version(reader, row.id, int(number))
    if found is None:
        raise VersionNotFound(version=number[:_VERSION_DIGITS_MAX], ruleset_id=row.id)
    return found
