"""Reading rulesets: the use cases that change nothing.

Owns  which rulesets a zone or account sees, and their order.
Not   changes (`usecases.ruleset.change`); HTTP; permissions.
"""

from typing import NamedTuple

from msgspec import Raw

from edgestead.model.ids import is_id
from edgestead.model.refusals.ruleset import EntrypointNotFound, RulesetNotFound, TagNotFound
from edgestead.store.control import Reader
from edgestead.tables import rulesets
from edgestead.tables.rulesets import RulesetRow
from edgestead.usecases.ruleset import view
from edgestead.usecases.ruleset.managed import Platform
from edgestead.usecases.ruleset.phases import ORDER
from edgestead.usecases.ruleset.scope import (
    Scope,
    account_of,
    entrypoint_of,
    managed_of,
    managed_version,
    owned,
    version_of,
)

_ID_CHARACTERS = 32
_TAG_SHOWN_CHARACTERS = 64


class Listed(NamedTuple):
    """Summaries as JSON texts, and where the next page begins; None at the end."""

    items: list[Raw]
    after: str | None


def listed(reader: Reader, platform: Platform, scope: Scope, after: str, limit: int) -> Listed:
    """Summaries of the rulesets of an account, or of those that a zone has or may execute.

    The managed one comes first, then the others by their phase's place in the order of execution. `after` is
    the last page's `Listed.after`. Raises ZoneNotFound, AuthenticationError.
    """
    account_id = account_of(reader, scope)
    rows = rulesets.summaries(reader, scope.kind, scope.id)
    if scope.kind == "zone":
        rows += rulesets.custom_rulesets(reader, account_id)
    found = {f"1{ORDER[row.phase]:02}{row.id}": row for row in rows}
    keys = sorted(found)
    items = [Raw(view.summary(found[key])) for key in keys]
    if platform.managed is not None:
        keys.insert(0, f"0{platform.managed.id}")
        items.insert(0, Raw(platform.managed.summary))
    start = sum(key <= after for key in keys)
    end = start + limit
    return Listed(items[start:end], keys[end - 1] if end < len(keys) else None)


def is_cursor(text: str) -> bool:
    """Whether `listed` could have answered this as `after`: a place in the order, and an id."""
    place, ruleset_id = text[:-_ID_CHARACTERS], text[-_ID_CHARACTERS:]
    known = place == "0" or (len(place) == 3 and place[0] == "1" and place.isascii() and place.isdigit())
    return known and is_id(ruleset_id)


def show(reader: Reader, platform: Platform, scope: Scope, ruleset_id: str) -> bytes:
    """One ruleset with its rules. Raises RulesetNotFound."""
    if (managed := managed_of(reader, platform, scope, ruleset_id)) is not None:
        return managed.whole
    return view.whole(owned(reader, scope, ruleset_id))


def show_entrypoint(reader: Reader, scope: Scope, phase: str) -> bytes:
    """Raises PhaseRefused, EntrypointNotFound."""
    return view.whole(entrypoint_of(reader, scope, phase))


def versions(reader: Reader, platform: Platform, scope: Scope, ruleset_id: str) -> list[Raw]:
    """Summaries of every version that is kept, oldest first. Raises RulesetNotFound."""
    if (managed := managed_of(reader, platform, scope, ruleset_id)) is not None:
        return [Raw(managed.summary)]
    return _versions(reader, owned(reader, scope, ruleset_id))


def entrypoint_versions(reader: Reader, scope: Scope, phase: str) -> list[Raw]:
    """Summaries, oldest first; none where there is no entry point. Raises PhaseRefused."""
    try:
        return _versions(reader, entrypoint_of(reader, scope, phase))
    except EntrypointNotFound:
        return []


def version(reader: Reader, platform: Platform, scope: Scope, ruleset_id: str, number: str) -> bytes:
    """One version with its rules. Raises RulesetNotFound, VersionNotFound."""
    if (managed := managed_of(reader, platform, scope, ruleset_id)) is not None:
        return managed_version(managed, number).whole
    return view.whole(version_of(reader, owned(reader, scope, ruleset_id), number))


def entrypoint_version(reader: Reader, scope: Scope, phase: str, number: str) -> bytes:
    """Raises PhaseRefused, EntrypointNotFound, VersionNotFound."""
    return view.whole(version_of(reader, entrypoint_of(reader, scope, phase), number))


def by_tag(reader: Reader, platform: Platform, scope: Scope, ruleset_id: str, number: str, tag: str) -> bytes:
    """A managed ruleset with the rules of one category.

    Raises RulesetNotFound, VersionNotFound; TagNotFound, because a mistyped tag is no ruleset without rules.
    """
    managed = managed_of(reader, platform, scope, ruleset_id)
    if managed is None:
        raise RulesetNotFound(ruleset_id=ruleset_id)
    found = managed_version(managed, number)
    if tag not in found.catalogue.categories:
        raise TagNotFound(tag=tag[:_TAG_SHOWN_CHARACTERS], ruleset_id=ruleset_id)
    return found.by_tag(tag)


def _versions(reader: Reader, row: RulesetRow) -> list[Raw]:
    return [Raw(view.summary(found)) for found in rulesets.versions(reader, row.id)]
