"""REST face of rulesets, of zones and of accounts alike.

Owns  /zones/{zone_id}/rulesets and /accounts/{account_id}/rulesets; dry runs.
Not   what makes a rule valid.

Every handler is entered twice in the table of routes, once for each scope. A body is read before its
transaction, off the event loop when it is long: that is where expressions are compiled.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeVar

from msgspec import Raw

from edgestead.model import envelope
from edgestead.model.call import Call
from edgestead.model.envelope import REMARK, Message
from edgestead.model.refusals.request import InvalidBody, InvalidQuery
from edgestead.model.refusals.ruleset import InvalidJson
from edgestead.rest import body as json_body
from edgestead.rest.context import AppContext, Write
from edgestead.rest.declared import JSON, NOTHING, Answers, size, text
from edgestead.rest.limits import BODY_OCTETS_READ_INLINE_MAX, PAGE_SIZE_MAX, RULESETS_PAGE_SIZE_DEFAULT
from edgestead.rest.query import Query
from edgestead.rest.routing import Answer, route
from edgestead.rest.ruleset_shapes import (
    DRY_RUN,
    IF_VERSION,
    RULESET,
    RULESETS,
    WRITTEN,
    CursorsInfo,
    EntrypointSent,
    PlacedRule,
    RulesetReplaced,
    RulesetSent,
)
from edgestead.store.control import Reader, Transaction
from edgestead.usecases.ruleset import change as rulesets_change
from edgestead.usecases.ruleset import reading
from edgestead.usecases.ruleset.body import (
    check_phase,
    read_create,
    read_entrypoint,
    read_replace,
    read_rule_body,
)
from edgestead.usecases.ruleset.change import Change
from edgestead.usecases.ruleset.scope import Scope
from edgestead.usecases.ruleset.view import RulesetView

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
    found = api.barrier.read(lambda reader: reading.listed(reader, api.platform, scope, after, limit))
    if found.after is None:
        return Answer(envelope.success(found.items))
    return Answer(envelope.success_with_info(found.items, {"cursors": {"after": found.after}}))


@_scoped("POST", _RULESETS, query=DRY_RUN, takes={JSON: RulesetSent}, answers=WRITTEN)
async def create_ruleset(
    scope: Scope, api: AppContext, call: Call, query: Query, body: bytes, write: Write
) -> Any:
    """Create a ruleset: an entry point, or in an account a custom ruleset."""
    sent = await _read(query, body, lambda value: read_create(value, scope.kind))
    return await _write(
        api, write, query, lambda reader: rulesets_change.create(call, reader, api.platform, scope, sent)
    )


@_scoped("GET", _RULESET, answers=RULESET)
async def show_ruleset(scope: Scope, ruleset_id: str, api: AppContext) -> bytes:
    """One ruleset with its rules."""
    return api.barrier.read(lambda reader: reading.show(reader, api.platform, scope, ruleset_id))


@_scoped("PUT", _RULESET, query=DRY_RUN, takes={JSON: RulesetReplaced}, answers=WRITTEN)
async def replace_ruleset(
    scope: Scope, ruleset_id: str, api: AppContext, call: Call, query: Query, body: bytes, write: Write
) -> Any:
    """Replace rules or description. A rule that is named by `id` or `ref` stays the same rule."""
    kind, phase = _kind_and_phase(api, scope, ruleset_id)
    sent = await _read(query, body, lambda value: read_replace(value, kind, phase))
    return await _write(
        api,
        write,
        query,
        lambda reader: rulesets_change.replace(call, reader, api.platform, scope, ruleset_id, sent),
    )


@_scoped("DELETE", _RULESET, query=DRY_RUN, answers=NOTHING)
async def delete_ruleset(
    scope: Scope, ruleset_id: str, api: AppContext, query: Query, write: Write
) -> Answer:
    """Delete a ruleset with all its versions."""
    await _write(
        api, write, query, lambda reader: rulesets_change.remove(reader, api.platform, scope, ruleset_id)
    )
    return Answer(b"", status=204)


@_scoped("GET", _RULESET + "/versions", answers=RULESETS)
async def list_versions(scope: Scope, ruleset_id: str, api: AppContext) -> list[Raw]:
    """Summaries of a ruleset's versions, oldest first."""
    return api.barrier.read(lambda reader: reading.versions(reader, api.platform, scope, ruleset_id))


@_scoped("GET", _RULESET + "/versions/{version}", answers=RULESET)
async def show_version(scope: Scope, ruleset_id: str, version: str, api: AppContext) -> bytes:
    """One version with its rules."""
    return api.barrier.read(lambda reader: reading.version(reader, api.platform, scope, ruleset_id, version))


@_scoped("DELETE", _RULESET + "/versions/{version}", query=DRY_RUN, answers=NOTHING)
async def delete_version(
    scope: Scope, ruleset_id: str, version: str, api: AppContext, query: Query, write: Write
) -> Answer:
    """Delete an old version."""
    await _write(
        api,
        write,
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
        lambda reader: reading.by_tag(reader, api.platform, scope, ruleset_id, version, tag)
    )


@_scoped("POST", _RULESET + "/rules", query=DRY_RUN, takes={JSON: PlacedRule}, answers=WRITTEN)
async def create_rule(
    scope: Scope, ruleset_id: str, api: AppContext, call: Call, query: Query, body: bytes, write: Write
) -> Any:
    """Add a rule at its `position`, or at the end. Answers the ruleset."""
    kind, phase = _kind_and_phase(api, scope, ruleset_id)
    sent = await _read(query, body, lambda value: read_rule_body(value, kind, phase))
    return await _write(
        api,
        write,
        query,
        lambda reader: rulesets_change.add_rule(call, reader, api.platform, scope, ruleset_id, sent),
    )


@_scoped("PATCH", _RULE, query=DRY_RUN + IF_VERSION, takes={JSON: PlacedRule}, answers=WRITTEN)
async def change_rule(
    scope: Scope,
    ruleset_id: str,
    rule_id: str,
    api: AppContext,
    call: Call,
    query: Query,
    body: bytes,
    write: Write,
) -> Any:
    """Define a rule anew, or move it by `position` alone. Answers the ruleset."""
    meant = query.whole("if_version")
    kind, phase = _kind_and_phase(api, scope, ruleset_id)
    sent = await _read(query, body, lambda value: read_rule_body(value, kind, phase, may_only_move=True))
    return await _write(
        api,
        write,
        query,
        lambda reader: rulesets_change.change_rule(
            call, reader, api.platform, scope, ruleset_id, rule_id, sent, meant
        ),
    )


@_scoped("DELETE", _RULE, query=DRY_RUN, answers=WRITTEN)
async def delete_rule(
    scope: Scope, ruleset_id: str, rule_id: str, api: AppContext, call: Call, query: Query, write: Write
) -> Any:
    """Delete a rule. Answers the ruleset."""
    return await _write(
        api,
        write,
        query,
        lambda reader: rulesets_change.remove_rule(call, reader, api.platform, scope, ruleset_id, rule_id),
    )


@_scoped("GET", _ENTRYPOINT, answers=RULESET)
async def show_entrypoint(scope: Scope, phase: str, api: AppContext) -> bytes:
    """A phase's entry point with its rules."""
    return api.barrier.read(lambda reader: reading.show_entrypoint(reader, scope, phase))


@_scoped("PUT", _ENTRYPOINT, query=DRY_RUN, takes={JSON: EntrypointSent}, answers=WRITTEN)
async def replace_entrypoint(
    scope: Scope, phase: str, api: AppContext, call: Call, query: Query, body: bytes, write: Write
) -> Any:
    """Replace a phase's entry point, or make it."""
    check_phase(phase, scope.entry_kind)
    sent = await _read(query, body, lambda value: read_entrypoint(value, scope.entry_kind, phase))
    return await _write(
        api,
        write,
        query,
        lambda reader: rulesets_change.replace_entrypoint(call, reader, api.platform, scope, phase, sent),
    )


@_scoped("GET", _ENTRYPOINT + "/versions", answers=RULESETS)
async def list_entrypoint_versions(scope: Scope, phase: str, api: AppContext) -> list[Raw]:
    """Summaries of an entry point's versions, oldest first; none without an entry point."""
    return api.barrier.read(lambda reader: reading.entrypoint_versions(reader, scope, phase))


@_scoped("GET", _ENTRYPOINT + "/versions/{version}", answers=RULESET)
async def show_entrypoint_version(scope: Scope, phase: str, version: str, api: AppContext) -> bytes:
    """One version of an entry point with its rules."""
    return api.barrier.read(lambda reader: reading.entrypoint_version(reader, scope, phase, version))


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
    if after and not reading.is_cursor(after):
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


async def _write(api: AppContext, write: Write, query: Query, use_case: Callable[[Reader], Change]) -> Answer:
    """Make the change, or with `dry_run=true` only see whether it could be made."""

    def answer(change: Change, result: bytes | None) -> Answer:
        messages = [Message(REMARK, text) for text in rulesets_change.remarks(change, api.platform)]
        return Answer(envelope.success(result or b"null", messages))

    if query.flag("dry_run"):
        return answer(await api.barrier.read_long(use_case), None)
    return await write(lambda tx: _commit(tx, use_case(tx)), lambda done: answer(*done))


def _commit(tx: Transaction, change: Change) -> tuple[Change, bytes | None]:
    return change, rulesets_change.commit(tx, change)
