"""Catalogs of other name servers that an account follows: saying which, from where, and with which settings.

Owns  their JSON shape and rules; when each is asked for, and what becomes of an answer.
Not   what a catalog does to zones (`usecases.account.membership`); asking (`server.control.followed`).
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from edgestead.model import names
from edgestead.model.call import Call
from edgestead.model.names import InvalidName
from edgestead.model.refusals import Forbidden
from edgestead.model.refusals.secondary import FollowedNotFound, FollowedRefused
from edgestead.model.times import six_digits
from edgestead.store.control import Reader, Transaction
from edgestead.tables import tsig_keys
from edgestead.tables.tsig_keys import TsigRow
from edgestead.usecases import limits
from edgestead.usecases.access.authorise import Identity, Target, permits
from edgestead.usecases.account import catalogs as own
from edgestead.usecases.account import membership
from edgestead.usecases.lookup import account_of
from edgestead.usecases.serving import catalogs, followed
from edgestead.usecases.serving.followed import Followed, GroupSettings, State
from edgestead.usecases.zone import secondary
from edgestead.usecases.zone.secondary import Content, Notice, Peer

GRACE_SECONDS: Final = 7 * 86_400  # of a zone that its catalog lists no longer, unless something else is said
NOTICE_PAUSE_SECONDS: Final = 2  # between two fetches of a catalog for notices
_DAY_SECONDS: Final = 86_400
_US: Final = 1_000_000


class GroupBody(msgspec.Struct, frozen=True):
    """`peers` in place of the catalog's, `tsig_id` of the key that signs transfers in place of the peers'."""

    peers: list[str] | None = None
    tsig_id: str | None = None
    secondary_overrides: bool | None = None
    dnssec_presigned: bool | None = None


class FollowedBody(msgspec.Struct, frozen=True):
    """What is not sent has its default. The name is not changed."""

    name: str | None = None
    peers: list[str] | None = None
    groups: dict[str, GroupBody] | None = None
    grace_seconds: int | None = None
    dnssec_presigned: bool | None = None


class FollowedView(msgspec.Struct, frozen=True, kw_only=True):
    """`problem` is why the catalog is not taken, "" if it is; `refused` how many of its members are not."""

    id: str
    name: str
    peers: tuple[str, ...]
    groups: Mapping[str, GroupSettings]
    grace_seconds: int
    dnssec_presigned: bool | None
    serial: int | None
    zones: int
    refused: int
    problem: str
    checked_time: str | None
    created_time: str
    modified_time: str


class Waiting(NamedTuple):
    """One catalog whose time has come."""

    catalog_id: str
    account_id: str
    state: State


class Task(NamedTuple):
    """One catalog to be asked for; `keys` are those of its peers, by id."""

    catalog: Followed
    peers: Sequence[Peer]
    state: State
    keys: Mapping[str, TsigRow]


class Trouble(NamedTuple):
    """A catalog that is not taken, or not all of it."""

    name: str
    problem: str
    refused: int
    example: str


def listed(reader: Reader, account_id: str) -> list[FollowedView]:
    """By name. Raises AccountNotSeen."""
    account_of(reader, account_id)
    return [_view(reader, catalog) for catalog in followed.of_account(reader, account_id)]


def show(reader: Reader, account_id: str, catalog_id: str) -> FollowedView:
    """Raises AccountNotSeen, FollowedNotFound."""
    return _view(reader, _one(reader, account_id, catalog_id))


def members(reader: Reader, account_id: str, catalog_id: str) -> list[membership.MemberView]:
    """Raises AccountNotSeen, FollowedNotFound."""
    return membership.listed(reader, _one(reader, account_id, catalog_id))


def create(
    call: Call,
    tx: Transaction,
    new_id: Callable[[], str],
    identity: Identity,
    account_id: str,
    body: FollowedBody,
) -> FollowedView:
    """Follow a catalog; it is asked for at once. Raises AccountNotSeen, FollowedRefused, Forbidden."""
    account_of(tx, account_id)
    _check_may_add_zones(identity, account_id)
    if len(followed.of_account(tx, account_id)) >= limits.FOLLOWED_MAX:
        reason = f"an account follows at most {limits.FOLLOWED_MAX} catalogs."
        raise FollowedRefused(reason=reason, pointer="")
    name = _name(body.name)
    if own.is_in_a_zone(tx, name) or catalogs.is_taken(tx, name):
        reason = f"{name} is the name of a zone or of another catalog, or a name in a zone."
        raise FollowedRefused(reason=reason, pointer="/name")
    catalog = _checked(call, tx, account_id, new_id(), name, call.now_us, body)
    followed.begin(tx, catalog, call.now_us)
    followed.ask_soon(tx, catalog.id, call.now_us, again=True)
    return _view(tx, catalog)


def put(
    call: Call, tx: Transaction, identity: Identity, account_id: str, catalog_id: str, body: FollowedBody
) -> FollowedView:
    """Change where a catalog comes from and what its groups mean; its zones follow with its next answer.

    Raises AccountNotSeen, FollowedNotFound, FollowedRefused, Forbidden.
    """
    _check_may_add_zones(identity, account_id)
    before = _one(tx, account_id, catalog_id)
    if body.name is not None and _name(body.name) != before.name:
        raise FollowedRefused(reason="its name stays: follow the other one, too.", pointer="/name")
    catalog = _checked(call, tx, account_id, catalog_id, before.name, before.created_us, body)
    followed.put(tx, catalog, call.now_us)
    followed.ask_soon(tx, catalog_id, call.now_us, again=True)
    return _view(tx, catalog)


def refresh(call: Call, tx: Transaction, account_id: str, catalog_id: str) -> FollowedView:
    """Have it asked for, and all of it looked at again. Raises AccountNotSeen, FollowedNotFound."""
    catalog = _one(tx, account_id, catalog_id)
    followed.ask_soon(tx, catalog_id, call.now_us, again=True)
    return _view(tx, catalog)


def delete(tx: Transaction, account_id: str, catalog_id: str) -> FollowedView:
    """Follow it no longer; its zones stay. Raises AccountNotSeen, FollowedNotFound."""
    view = show(tx, account_id, catalog_id)
    membership.release(tx, catalog_id)
    followed.end(tx, catalog_id)
    return view


def due(
    reader: Reader,
    now_us: int,
    seen: Collection[str],
    paused: Collection[tuple[str, int]],
    accounts: Collection[str],
) -> Waiting | None:
    """The catalog whose time has come, and that waits longest: none that was seen, or pauses since that time;
    none of these accounts.
    """
    states = followed.states(reader)
    waiting = sorted((state.due_us, id_) for id_, state in states.items() if state.due_us <= now_us)
    for due_us, catalog_id in waiting:
        if catalog_id in seen or (catalog_id, due_us) in paused:
            continue
        catalog = followed.one(reader, catalog_id)
        if catalog is not None and catalog.account_id not in accounts:
            return Waiting(catalog_id, catalog.account_id, states[catalog_id])
    return None


def task_of(reader: Reader, due: Waiting) -> Task | None:
    """None of one that is followed no longer."""
    catalog = followed.one(reader, due.catalog_id)
    if catalog is None:
        return None
    known = secondary.peers_of(reader, catalog.account_id)
    peers = [known[id_] for id_ in catalog.peers if id_ in known]
    return Task(catalog, peers, due.state, secondary.keys_of(reader, catalog.account_id, peers))


def told(reader: Reader, notices: Iterable[Notice]) -> list[str]:
    """Which catalogs a primary of theirs says to have changed, by id."""
    by_name = {catalog.name: catalog for catalog in followed.every(reader)}
    found = []
    for address, name in notices:
        catalog = by_name.get(name)
        if catalog is not None:
            known = secondary.peers_of(reader, catalog.account_id)
            if secondary.is_from(address, (known[id_] for id_ in catalog.peers if id_ in known)):
                found.append(catalog.id)
    return found


def wake(call: Call, tx: Transaction, catalog_ids: Iterable[str]) -> None:
    """They are due now, or NOTICE_PAUSE_SECONDS after they were asked for last: each time all of a catalog is
    fetched. Their failures still count: a notice proves nothing.
    """
    for catalog_id in catalog_ids:
        if followed.one(tx, catalog_id) is not None:
            state = followed.state_of(tx, catalog_id)
            due_us = max(call.now_us, state.checked_us + NOTICE_PAUSE_SECONDS * _US)
            state = msgspec.structs.replace(state, due_us=min(due_us, state.due_us or due_us))
            followed.put_state(tx, catalog_id, state, call.now_us)


def is_same(reader: Reader, task: Task) -> bool:
    """Whether the catalog is still followed, and as it was when the task began."""
    return followed.one(reader, task.catalog.id) == task.catalog


def took(call: Call, tx: Transaction, task: Task, content: Content, refused: Mapping[str, str]) -> None:
    """All of a catalog was looked at. Members that are refused are tried again with each answer."""
    if followed.one(tx, task.catalog.id) is None:
        return
    _, (refresh_seconds, retry_seconds, _) = secondary.soa_of(content)
    before = followed.state_of(tx, task.catalog.id)
    state = State(
        content.serial,
        refresh_seconds,
        retry_seconds,
        call.now_us,
        call.now_us + secondary.jittered_us(refresh_seconds),
        again=before != task.state,  # somebody asked meanwhile
        refused=dict(refused),
    )
    if state.again:
        state = msgspec.structs.replace(state, due_us=call.now_us)
    followed.put_state(tx, task.catalog.id, state, call.now_us)


def current(call: Call, tx: Transaction, task: Task) -> None:
    """A primary has nothing newer. Who has asked since this began has it asked for again."""
    state = followed.state_of(tx, task.catalog.id)
    if followed.one(tx, task.catalog.id) is not None and state == task.state:
        due_us = call.now_us + secondary.jittered_us(state.refresh)
        state = msgspec.structs.replace(state, checked_us=call.now_us, due_us=due_us, tries=0, problem="")
        followed.put_state(tx, task.catalog.id, state, call.now_us)


def failed(call: Call, tx: Transaction, task: Task, problem: str) -> None:
    """No primary gave anything that is taken: everything stays as it is, and it is asked for again later."""
    state = followed.state_of(tx, task.catalog.id)
    if followed.one(tx, task.catalog.id) is None or state != task.state:
        return  # who has asked since this began has it asked for again
    first = secondary.FIRST_RETRY_SECONDS if state.serial is None else state.retry
    pause = min(first << min(state.tries, 16), secondary.RETRY_SECONDS_MAX)
    state = msgspec.structs.replace(
        state,
        tries=state.tries + 1,
        problem=problem[: limits.PROBLEM_CHARACTERS_MAX],
        due_us=call.now_us + secondary.jittered_us(pause),
    )
    followed.put_state(tx, task.catalog.id, state, call.now_us)


def troubles(reader: Reader, most: int) -> list[Trouble]:
    """Catalogs that are not taken, or not all of them, by name."""
    found = []
    for catalog in sorted(followed.every(reader), key=lambda one: one.name):
        state = followed.state_of(reader, catalog.id)
        if state.problem or state.refused:
            example = next((f"{name}: {why}" for name, why in state.refused.items()), "")
            found.append(Trouble(catalog.name, state.problem, len(state.refused), example))
    return found[:most]


def _check_may_add_zones(identity: Identity, account_id: str) -> None:
    """What a catalog lists becomes zones. Raises Forbidden."""
    if not permits(identity, "Zone Write", Target(account_id=account_id, zone_id="")):
        raise Forbidden


def _one(reader: Reader, account_id: str, catalog_id: str) -> Followed:
    account_of(reader, account_id)
    found = followed.one(reader, catalog_id)
    if found is None or found.account_id != account_id:
        raise FollowedNotFound
    return found


def _view(reader: Reader, catalog: Followed) -> FollowedView:
    state = followed.state_of(reader, catalog.id)
    return FollowedView(
        id=catalog.id,
        name=catalog.name,
        peers=catalog.peers,
        groups=catalog.groups,
        grace_seconds=catalog.grace_seconds,
        dnssec_presigned=catalog.dnssec_presigned,
        serial=state.serial,
        zones=membership.count(reader, catalog.id),
        refused=len(state.refused),
        problem=state.problem,
        checked_time=six_digits(state.checked_us) if state.checked_us else None,
        created_time=six_digits(catalog.created_us),
        modified_time=six_digits(catalog.modified_us),
    )


def _checked(
    call: Call,
    reader: Reader,
    account_id: str,
    catalog_id: str,
    name: str,
    created_us: int,
    body: FollowedBody,
) -> Followed:
    """Raises FollowedRefused."""
    peers = _peers(reader, account_id, body.peers or (), "/peers")
    if not peers:
        raise FollowedRefused(reason="peers are one id of a peer, or several.", pointer="/peers")
    groups = body.groups or {}
    if len(groups) > limits.FOLLOWED_GROUPS_MAX:
        reason = f"at most {limits.FOLLOWED_GROUPS_MAX} groups have settings."
        raise FollowedRefused(reason=reason, pointer="/groups")
    grace = GRACE_SECONDS if body.grace_seconds is None else body.grace_seconds
    if not 0 <= grace <= limits.FOLLOWED_GRACE_DAYS_MAX * _DAY_SECONDS:
        reason = f"grace_seconds is 0 to {limits.FOLLOWED_GRACE_DAYS_MAX * _DAY_SECONDS}."
        raise FollowedRefused(reason=reason, pointer="/grace_seconds")
    found = {group: _group(reader, account_id, group, one) for group, one in groups.items()}
    return Followed(
        catalog_id,
        account_id,
        name,
        peers,
        found,
        grace,
        created_us,
        call.now_us,
        body.dnssec_presigned,
    )


def _group(reader: Reader, account_id: str, name: str, body: GroupBody) -> GroupSettings:
    pointer = f"/groups/{name.replace('~', '~0').replace('/', '~1')}"
    if not name or len(name) > limits.CATALOG_GROUP_CHARACTERS_MAX:
        reason = f"a group has 1 to {limits.CATALOG_GROUP_CHARACTERS_MAX} characters."
        raise FollowedRefused(reason=reason, pointer="/groups")
    if body.tsig_id and tsig_keys.one(reader, account_id, body.tsig_id) is None:
        reason = "the account has no TSIG key of this id."
        raise FollowedRefused(reason=reason, pointer=f"{pointer}/tsig_id")
    if body.secondary_overrides and body.dnssec_presigned:
        reason = "a group has secondary_overrides or dnssec_presigned, not both."
        raise FollowedRefused(reason=reason, pointer=f"{pointer}/dnssec_presigned")
    peers = _peers(reader, account_id, body.peers or (), f"{pointer}/peers")
    return GroupSettings(peers, body.tsig_id or None, body.secondary_overrides, body.dnssec_presigned)


def _peers(reader: Reader, account_id: str, wanted: Sequence[str], pointer: str) -> tuple[str, ...]:
    if len(wanted) > limits.PEERS_PER_ZONE_MAX:
        reason = f"peers are at most {limits.PEERS_PER_ZONE_MAX} ids of peers."
        raise FollowedRefused(reason=reason, pointer=pointer)
    known = secondary.peers_of(reader, account_id)
    for at, peer_id in enumerate(wanted):
        if peer_id not in known or not known[peer_id].ip:
            reason = "the account has no such peer, or it has no ip."
            raise FollowedRefused(reason=reason, pointer=f"{pointer}/{at}")
    return tuple(dict.fromkeys(wanted))


def _name(text: str | None) -> str:
    try:
        name = names.wire_from_text((text or "").strip())
        names.check_zone_name(name)
    except InvalidName as error:
        raise FollowedRefused(reason=f"name: {error.reason}.", pointer="/name") from None
    return names.text_from_wire(name)
