"""REST face of rulesets, of zones and of accounts alike.

Owns  /zones/{zone_id}/rulesets and /accounts/{account_id}/rulesets; dry runs.
Asks  `services.rulesets` and `services.rulesets_change`; `services.rulesets_body` for what was sent.
Tells clients.
Not   what makes a rule valid.

Every handler is entered twice in the table of routes, once for each scope. A body is read before its
transaction, off the event loop when it is long: that is where expressions are compiled.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeVar

from msgspec import Raw

from edgestead.api import body as json_body
from edgestead.api.context import AppContext
from edgestead.api.declared import JSON, NOTHING, Answers, size, text
from edgestead.api.limits import BODY_OCTETS_READ_INLINE_MAX, PAGE_SIZE_MAX, RULESETS_PAGE_SIZE_DEFAULT
from edgestead.api.query import Query
from edgestead.api.routing import Answer, route
from edgestead.api.ruleset_shapes import (
    DRY_RUN,
    RULESET,
    RULESETS,
    WRITTEN,
    CursorsInfo,
    EntrypointSent,
    PlacedRule,
    RulesetReplaced,
    RulesetSent,
)
from edgestead.model import envelope
from edgestead.model.call import Call
from edgestead.model.request_errors import InvalidBody, InvalidQuery
from edgestead.model.ruleset_errors import InvalidJson
from edgestead.services import rulesets, rulesets_change
from edgestead.services.rulesets_body import (
    check_phase,
    read_create,
    read_entrypoint,
    read_replace,
    read_rule_body,
)
from edgestead.services.rulesets_change import Change
from edgestead.services.rulesets_scope import Scope
from edgestead.services.rulesets_view import RulesetView
from edgestead.store.control import Reader

T = TypeVar("T")
_SAID_ALREADY = ("it is not JSON: ", "JSON is malformed: ")  # the refusal begins with "invalid JSON"
Handler = Callable[..., Awaitable[Any]]
_RULESETS = "/rulesets"
_RULESET = _RULESETS + "/{ruleset_id}"
_RULE = _RULESET + "/rules/{rule_id}"
_ENTRYPOINT = _RULESETS + "/phases/{phase}/entrypoint"
_SCOPES: tuple[tuple[Literal["zone", "account"], str, str], ...] = (
    ("zone", "/zones/{zone_id}", "Zone WAF"),
    ("account", "/accounts/{account_id}", "Account Rulesets"),
)


_LIST_QUERY = (
    text("cursor", "Where the page before ended."),
    size("per_page", RULESETS_PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX),
)


def _scoped(method: str, path: str, **declared: Any) -> Callable[[Handler], Handler]:
    """Enter a handler for both scopes. Its first parameter is the Scope, the others as `route` has them."""

    def enter(handler: Handler) -> Handler:
        for kind, prefix, area in _SCOPES:
            permission = f"{area} {'Read' if method == 'GET' else 'Write'}"
            route(method, prefix + path, permission=permission, **declared)(_bound(handler, kind))
        return handler

    return enter


def _bound(handler: Handler, kind: Literal["zone", "account"]) -> Handler:
    """The handler as the table of routes wants it: the id of its zone or account stands for the scope."""

    async def bound(scope_id: str, *arguments: Any) -> Any:
        return await handler(Scope(kind, scope_id), *arguments)

    signature = inspect.signature(handler)
    scope, *others = signature.parameters.values()
    bound.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[scope.replace(name=f"{kind}_id", annotation=str), *others]
    )
    bound.__name__, bound.__doc__ = f"{handler.__name__}_of_{kind}", handler.__doc__
    bound.__annotations__ = {**handler.__annotations__, "scope": str}
    return bound


@_scoped("GET", _RULESETS, query=_LIST_QUERY, answers=Answers(list[RulesetView], CursorsInfo | None))
async def list_rulesets(scope: Scope, api: AppContext, query: Query) -> Answer:
    """Summaries, the managed ruleset first. A zone also lists what it may execute. `cursor`, `per_page`."""
    limit, after = _paging(query)
    found = api.barrier.read(lambda reader: rulesets.listed(reader, api.platform, scope, after, limit))
    if found.after is None:
        return Answer(envelope.success(found.items))
    return Answer(envelope.success_with_info(found.items, {"cursors": {"after": found.after}}))


@_scoped("POST", _RULESETS, query=DRY_RUN, takes={JSON: RulesetSent}, answers=WRITTEN)
async def create_ruleset(scope: Scope, api: AppContext, call: Call, query: Query, body: bytes) -> Any:
    """Create a ruleset: an entry point, or in an account a custom ruleset."""
    sent = await _read(query, body, lambda value: read_create(value, scope.kind))
    return await _write(
        api, query, lambda reader: rulesets_change.create(call, reader, api.platform, scope, sent)
    )


@_scoped("GET", _RULESET, answers=RULESET)
async def show_ruleset(scope: Scope, ruleset_id: str, api: AppContext) -> bytes:
    """One ruleset with its rules."""
    return api.barrier.read(lambda reader: rulesets.show(reader, api.platform, scope, ruleset_id))


@_scoped("PUT", _RULESET, query=DRY_RUN, takes={JSON: RulesetReplaced}, answers=WRITTEN)
async def replace_ruleset(
    scope: Scope, ruleset_id: str, api: AppContext, call: Call, query: Query, body: bytes
) -> Any:
    """Replace rules or description. A rule that is named by `id` or `ref` stays the same rule."""
    kind, phase = _kind_and_phase(api, scope, ruleset_id)
    sent = await _read(query, body, lambda value: read_replace(value, kind, phase))
    return await _write(
        api,
        query,
        lambda reader: rulesets_change.replace(call, reader, api.platform, scope, ruleset_id, sent),
    )


@_scoped("DELETE", _RULESET, query=DRY_RUN, answers=NOTHING)
async def delete_ruleset(scope: Scope, ruleset_id: str, api: AppContext, query: Query) -> Answer:
    """Delete a ruleset with all its versions."""
    await _write(api, query, lambda reader: rulesets_change.remove(reader, api.platform, scope, ruleset_id))
    return Answer(b"", status=204)


@_scoped("GET", _RULESET + "/versions", answers=RULESETS)
async def list_versions(scope: Scope, ruleset_id: str, api: AppContext) -> list[Raw]:
    """Summaries of a ruleset's versions, oldest first."""
    return api.barrier.read(lambda reader: rulesets.versions(reader, api.platform, scope, ruleset_id))


@_scoped("GET", _RULESET + "/versions/{version}", answers=RULESET)
async def show_version(scope: Scope, ruleset_id: str, version: str, api: AppContext) -> bytes:
    """One version with its rules."""
    return api.barrier.read(lambda reader: rulesets.version(reader, api.platform, scope, ruleset_id, version))


@_scoped("DELETE", _RULESET + "/versions/{version}", query=DRY_RUN, answers=NOTHING)
async def delete_version(
    scope: Scope, ruleset_id: str, version: str, api: AppContext, query: Query
) -> Answer:
    """Delete an old version."""
    await _write(
        api,
        query,
        lambda reader: rulesets_change.remove_version(reader, api.platform, scope, ruleset_id, version),
    )
    return Answer(b"", status=204)


@route(
    "GET",
    "/accounts/{account_id}" + _RULESET + "/versions/{version}/by_tag/{tag}",
    permission="Account Rulesets Read",
    answers=RULESET,
)
def show_tag(account_id: str, ruleset_id: str, version: str, tag: str, api: AppContext) -> bytes:
    """A managed ruleset with the rules that have a tag."""
    scope = Scope("account", account_id)
    return api.barrier.read(
        lambda reader: rulesets.by_tag(reader, api.platform, scope, ruleset_id, version, tag)
    )


@_scoped("POST", _RULESET + "/rules", query=DRY_RUN, takes={JSON: PlacedRule}, answers=WRITTEN)
async def create_rule(
    scope: Scope, ruleset_id: str, api: AppContext, call: Call, query: Query, body: bytes
) -> Any:
    """Add a rule at its `position`, or at the end. Answers the ruleset."""
    kind, phase = _kind_and_phase(api, scope, ruleset_id)
    sent = await _read(query, body, lambda value: read_rule_body(value, kind, phase))
    return await _write(
        api,
        query,
        lambda reader: rulesets_change.add_rule(call, reader, api.platform, scope, ruleset_id, sent),
    )


@_scoped("PATCH", _RULE, query=DRY_RUN, takes={JSON: PlacedRule}, answers=WRITTEN)
async def change_rule(
    scope: Scope, ruleset_id: str, rule_id: str, api: AppContext, call: Call, query: Query, body: bytes
) -> Any:
    """Define a rule anew, or move it by `position` alone. Answers the ruleset."""
    kind, phase = _kind_and_phase(api, scope, ruleset_id)
    sent = await _read(query, body, lambda value: read_rule_body(value, kind, phase, may_only_move=True))
    return await _write(
        api,
        query,
        lambda reader: rulesets_change.change_rule(
            call, reader, api.platform, scope, ruleset_id, rule_id, sent
        ),
    )


@_scoped("DELETE", _RULE, query=DRY_RUN, answers=WRITTEN)
async def delete_rule(
    scope: Scope, ruleset_id: str, rule_id: str, api: AppContext, call: Call, query: Query
) -> Any:
    """Delete a rule. Answers the ruleset."""
    return await _write(
        api,
        query,
        lambda reader: rulesets_change.remove_rule(call, reader, api.platform, scope, ruleset_id, rule_id),
    )


@_scoped("GET", _ENTRYPOINT, answers=RULESET)
async def show_entrypoint(scope: Scope, phase: str, api: AppContext) -> bytes:
    """A phase's entry point with its rules."""
    return api.barrier.read(lambda reader: rulesets.show_entrypoint(reader, scope, phase))


@_scoped("PUT", _ENTRYPOINT, query=DRY_RUN, takes={JSON: EntrypointSent}, answers=WRITTEN)
async def replace_entrypoint(
    scope: Scope, phase: str, api: AppContext, call: Call, query: Query, body: bytes
) -> Any:
    """Replace a phase's entry point, or make it."""
    check_phase(phase, scope.entry_kind)
    sent = await _read(query, body, lambda value: read_entrypoint(value, scope.entry_kind, phase))
    return await _write(
        api,
        query,
        lambda reader: rulesets_change.replace_entrypoint(call, reader, api.platform, scope, phase, sent),
    )


@_scoped("GET", _ENTRYPOINT + "/versions", answers=RULESETS)
async def list_entrypoint_versions(scope: Scope, phase: str, api: AppContext) -> list[Raw]:
    """Summaries of an entry point's versions, oldest first; none without an entry point."""
    return api.barrier.read(lambda reader: rulesets.entrypoint_versions(reader, scope, phase))


@_scoped("GET", _ENTRYPOINT + "/versions/{version}", answers=RULESET)
async def show_entrypoint_version(scope: Scope, phase: str, version: str, api: AppContext) -> bytes:
    """One version of an entry point with its rules."""
    return api.barrier.read(lambda reader: rulesets.entrypoint_version(reader, scope, phase, version))


def _kind_and_phase(api: AppContext, scope: Scope, ruleset_id: str) -> tuple[str, str]:
    return api.barrier.read(
        lambda reader: rulesets_change.kind_and_phase(reader, api.platform, scope, ruleset_id)
    )


def _paging(query: Query) -> tuple[int, str]:
    """How many, clamped, and after what. Raises InvalidQuery."""
    limit = query.whole("per_page")
    if limit is None:
        limit = RULESETS_PAGE_SIZE_DEFAULT
    if limit < 1:
        raise InvalidQuery(parameter="per_page", reason="the smallest page has 1")
    after = query.text("cursor") or ""
    if after and not rulesets.is_cursor(after):
        raise InvalidQuery(parameter="cursor", reason="no list has answered it")
    return min(limit, PAGE_SIZE_MAX), after


async def _read(query: Query, body: bytes, read: Callable[[Any], T]) -> T:
    """The checked body. Raises InvalidQuery, InvalidJson, and what `read` raises."""
    query.flag("dry_run")  # a mistyped one is refused first: the body was meant for a dry run, or was not

    def work() -> T:
        try:
            value = json_body.decode(body, Any)
        except InvalidBody as error:
            reason = error.facts["reason"].removesuffix(".")
            for said in _SAID_ALREADY:
                reason = reason.removeprefix(said)
            raise InvalidJson(reason=reason[:1].lower() + reason[1:]) from None
        return read(value)

    return await asyncio.to_thread(work) if len(body) > BODY_OCTETS_READ_INLINE_MAX else work()


async def _write(api: AppContext, query: Query, use_case: Callable[[Reader], Change]) -> bytes | None:
    """Make the change, or with `dry_run=true` only see whether it could be made."""
    if query.flag("dry_run"):
        await api.barrier.read_long(use_case)
        return None
    return await api.barrier.write(lambda tx: rulesets_change.commit(tx, use_case(tx)))
