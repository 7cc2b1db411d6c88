"""May this request pass: at its head, after its body, in its write.

Owns  the order of the questions (who, usable now, permitted), and when they are asked again; that every
      write of a caller leaves a row in the audit log.
Not   what a handler does; rights that a use case asks about.

A body may arrive for half a minute or ten, a write may wait for others, and a token may end meanwhile. So a
request looks again when its body is there, when a read that waited is ready, and in its transaction. While
its admission holds (`usecases.access.admission`) that costs a comparison; in a commit that changes tokens
itself the rows are read, so that a write behind a revocation is refused in the same commit too.

Two databases commit apart. Whoever changes who may call is answered when every value that was on its way to
the disk meanwhile is decided: afterwards nothing of a revoked token commits in either.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from edgestead.model.refusals import EdgeError
from edgestead.model.refusals.access import (
    InvalidApiToken,
    MembershipsNeedUser,
    TokenNotUsableNow,
    UserNeeded,
)
from edgestead.model.refusals.request import OverBudget
from edgestead.rest import audited, credentials, kept
from edgestead.store.answered import PASSED
from edgestead.store.control import Reader, Transaction
from edgestead.usecases import audit
from edgestead.usecases.access import authorise as access
from edgestead.usecases.access import identities
from edgestead.usecases.access.admission import Admission
from edgestead.usecases.access.authorise import Identity
from edgestead.usecases.access.table import AccessRows, Known

if TYPE_CHECKING:
    from edgestead.rest.exchange import Exchange

T = TypeVar("T")
ReadOne = Callable[[Callable[[Reader], access.Target]], access.Target]


def authenticate(exchange: "Exchange") -> None:
    api = exchange.api
    exchange.now_us = api.now_us()
    if exchange.route.public:
        return
    epoch = api.access.epoch  # before the table is read
    try:
        known = credentials.identify(exchange.headers, api.access, exchange.route.family)
    except EdgeError as refused:
        raise api.guesses.refusal(refused, exchange.client_address, exchange.now_us) from None
    identity = exchange.identity = _usable(exchange, known, exchange.now_us)
    exchange.admission = Admission(identity, epoch)
    if identity.actor.token_id is not None:
        api.uses.note(identity.actor.token_id, exchange.now_us)


def authorise(exchange: "Exchange") -> None:
    if exchange.route.permission is not None:
        _check_permission(exchange, exchange.identity, exchange.api.barrier.read_one)


def look_again(exchange: "Exchange", tx: Transaction | None = None) -> None:
    """Raises the refusal of whoever may no longer do this; else `exchange.identity` is what holds now.

    `tx` is for the thread of a transaction, which must not read beside it.
    """
    api, route = exchange.api, exchange.route
    if route.public:
        return
    epoch = api.access.epoch
    if tx is None:
        if exchange.admission.holds(epoch, api.now_us):
            return
        identity = _identify(exchange, api.access, api.now_us())
        _check_permission(exchange, identity, api.barrier.read_one)
    else:
        if exchange.admission.holds(epoch, api.now_us) and not identities.changed_in(tx):
            return
        identity = _identify(exchange, AccessRows(tx), api.now_us())
        _check_permission(exchange, identity, lambda fn: fn(tx))
    exchange.admission, exchange.identity = Admission(identity, epoch), identity


async def write(
    exchange: "Exchange", fn: Callable[[Transaction], Any], then: Callable[[Any], Any] | None = None
) -> Any:
    """Commit what `fn` does, unless the caller's right ends before; returns `then` of its result. Raises what
    `fn` raises, OverBudget.
    """
    return await write_as(exchange, lambda tx, _identity: fn(tx), then)


async def write_as(
    exchange: "Exchange",
    fn: Callable[[Transaction, Identity], Any],
    then: Callable[[Any], Any] | None = None,
) -> Any:
    """As `write`, for what depends on who calls: `fn` gets the caller as the transaction sees him, after
    the writes of the same commit, too.
    """

    passed = PASSED.get()

    def permitted(tx: Transaction) -> Any:
        look_again(exchange, tx)
        result = _noted(exchange, tx, lambda: fn(tx, exchange.identity))
        if then is not None:
            result = then(result)
        if passed is not None:
            passed.answer = kept.answer(exchange.route, result)
        return result

    zone_at = exchange.route.zone_at
    if zone_at is None:
        result = await exchange.api.barrier.write(permitted)
    else:
        with exchange.api.draws.zone_writes.drawn(exchange.parameters[zone_at]) as refusal:
            if refusal is not None:
                raise OverBudget(reason=refusal.reason)
            result = await exchange.api.barrier.write(permitted)
    exchange.is_noted = True  # not before: a function that was undone has no row
    if exchange.api.access.epoch != exchange.admission.epoch:
        await exchange.api.kv.settled()
    return result


def _noted(exchange: "Exchange", tx: Transaction, change: Callable[[], T]) -> T:
    """Make the change, and its row of the audit log: one for a request that writes in portions."""
    if exchange.is_noted:
        return change()
    about = audited.about(exchange.route, exchange.parameters)
    before = audit.before(tx, about)
    result = change()
    where = audit.Where(exchange.client_address, exchange.request.interface)
    audit.note(exchange.call, tx, where, about, before, result)
    return result


def _identify(exchange: "Exchange", known: Known, now_us: int) -> Identity:
    """Raises what `credentials.identify` and `_usable` raise."""
    return _usable(exchange, credentials.identify(exchange.headers, known, exchange.route.family), now_us)


def _usable(exchange: "Exchange", identity: Identity, now_us: int) -> Identity:
    """Raises TokenNotUsableNow, TokenNotUsableHere; the route's refusal of an account's token."""
    route = exchange.route
    if identity.actor.token_id is not None:
        if identity.actor.kind == "account" and route.user_only:
            raise _user_needed(exchange)
        try:
            access.check_usable(identity, now_us, exchange.client_address)
        except TokenNotUsableNow:
            if route.family is not access.VERIFY:
                raise
            raise InvalidApiToken from None
    return identity


def _check_permission(exchange: "Exchange", identity: Identity, read_one: ReadOne) -> None:
    """Raises the refusal of the route's family."""
    route = exchange.route
    if route.permission is None or identity.full:
        return
    parameters = exchange.parameters
    if route.zone_at is not None:
        zone_id = parameters[route.zone_at]
        target = read_one(lambda reader: access.zone_target(reader, zone_id))
    elif route.account_at is not None:
        target = access.Target(account_id=parameters[route.account_at])
    elif route.user_only:
        target = access.Target(user_id=identity.actor.id)
    else:
        if not access.permits_somewhere(identity, route.permission):
            raise route.family.denied
        return
    for group in filter(None, (route.permission, route.besides)):
        if not access.permits(identity, group, target):
            raise route.family.denied


def _user_needed(exchange: "Exchange") -> EdgeError:
    if exchange.route.family is access.VERIFY:
        return InvalidApiToken()
    return MembershipsNeedUser() if "/memberships" in exchange.route.path else UserNeeded()
