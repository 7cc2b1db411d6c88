"""What a followed catalog does to zones: they come, go, change hands and settings (RFC 9432 §5).

Owns  which step a member needs; taking it; zones that left their catalog, and when these are deleted.
Not   reading a catalog (`usecases.zone.catalog_content`); asking for one (`server.control.followed`).

A catalog decides of the zones that it made, and of no other:

    the name is           and its membership                           step
    nobody's              –                                            ADD
    another account's     –                                            refused, in words
    of this account       none: somebody made it here                  refused, in words
    of this account       this catalog, this label, other settings     CHANGE
    of this account       this catalog, this label, it had left        CHANGE: it is back
    of this account       this catalog, another label (§5.4)           RESET
    of this account       other catalog, left it                       RESET
    of this account       other catalog, coo to this one, this label   CHANGE: with all that it has (§4.4.1)
    of this account       other catalog, coo to this one, other label  RESET
    of this account       other catalog, each coo to the other         refused, in words: it would never rest
    of this account       other catalog, no coo                        refused, in words

RESET deletes the zone and makes it anew. A zone that its catalog lists no longer is served and transferred on
for the catalog's grace, and then deleted; `keep` takes it out of the catalog's hands.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from edgestead.model import names
from edgestead.model.call import Call
from edgestead.model.names import InvalidName
from edgestead.model.refusals import EdgeError
from edgestead.model.refusals.secondary import NoMember
from edgestead.model.times import six_digits
from edgestead.store.control import Reader, Transaction
from edgestead.tables import zones
from edgestead.usecases import audit, limits
from edgestead.usecases.change.edit import ZoneEdit
from edgestead.usecases.lookup import account_of, zone_of
from edgestead.usecases.platform import Platform
from edgestead.usecases.serving import facts, followed
from edgestead.usecases.serving.facts import DNSSEC, OVERRIDES
from edgestead.usecases.serving.followed import Followed, GroupSettings, Membership
from edgestead.usecases.zone import secondary
from edgestead.usecases.zone import zones as zone_cases
from edgestead.usecases.zone.catalog_content import Member
from edgestead.usecases.zone.secondary import Unfit

ADD: Final = "add"
CHANGE: Final = "change"
RESET: Final = "reset"
INTERFACE: Final = "catalog"  # of the audit log
_US: Final = 1_000_000


class Refused(Exception):
    """A member that is no zone here; the message says why."""


class Plan(NamedTuple):
    """What leads from the zones to a catalog: members that need a step, ids of zones that left it, and
    members that are refused.
    """

    steps: tuple[Member, ...]
    left: tuple[str, ...]
    refused: Mapping[str, str]


class MemberView(msgspec.Struct, frozen=True):
    """`status` is member, leaving (until `deleted_on`) or refused, for a `problem`."""

    name: str
    zone_id: str | None
    status: str
    groups: tuple[str, ...] = ()
    deleted_on: str | None = None
    problem: str = ""


class KeptView(msgspec.Struct, frozen=True):
    id: str
    name: str


def plan(reader: Reader, platform: Platform, catalog: Followed, members: Mapping[str, Member]) -> Plan:
    """Raises Unfit: the account may not have so many zones, so none of them is taken."""
    steps: list[Member] = []
    refused: dict[str, str] = {}
    added = 0
    for member in members.values():
        try:
            step = _step(reader, catalog, member)
        except Refused as reason:
            if len(refused) < limits.FOLLOWED_REFUSED_MAX:
                refused[member.name] = str(reason)
            continue
        added += step == ADD
        if step:
            steps.append(member)
    most, present = platform.quotas.account_zones, account_of(reader, catalog.account_id).zone_count
    if added and 0 < most < present + added:
        raise Unfit(f"it lists {added} new zones, and the account has {present} of {most} that it may have")
    return Plan(tuple(steps), tuple(_left(reader, catalog, members)), refused)


def _left(reader: Reader, catalog: Followed, members: Collection[str]) -> Iterable[str]:
    for zone_id, membership in followed.memberships(reader).items():
        if membership.catalog_id == catalog.id and not membership.left_us:
            zone = zones.zone(reader, zone_id)
            if zone is not None and zone.name not in members:
                yield zone_id


def _step(reader: Reader, catalog: Followed, member: Member) -> str:
    """ "" where everything is as it should be. Raises Refused."""
    try:
        names.check_zone_name(names.wire_from_text(member.name))
    except InvalidName as error:
        raise Refused(f"its name: {error.reason}") from None
    zone_id = zones.id_by_name(reader, member.name)
    if zone_id is None:
        return ADD
    if zones.account_id(reader, zone_id) != catalog.account_id:
        raise Refused("a zone of another account of this server has its name")
    found = followed.membership(reader, zone_id)
    if found is None or (found.catalog_id != catalog.id and followed.one(reader, found.catalog_id) is None):
        raise Refused("a zone of this account has its name, which no catalog made: delete that zone first")
    if found.catalog_id == catalog.id:
        if found.label != member.label:
            return RESET
        return (
            _change_of(reader, catalog, member, zone_id)
            if _differs(reader, catalog, member, zone_id, found)
            else ""
        )
    if found.left_us:
        return RESET
    other = followed.one(reader, found.catalog_id)
    where = other.name if other else "another catalog"
    if found.coo != catalog.name:
        raise Refused(f"{where} lists it, and does not say that it moves here")
    if member.coo == where:
        raise Refused(f"{where} says that it moves here, and this catalog that it moves there")
    return _change_of(reader, catalog, member, zone_id) if found.label == member.label else RESET


def _change_of(reader: Reader, catalog: Followed, member: Member, zone_id: str) -> str:
    """Raises Refused: what is wanted of it excludes what somebody said at the zone."""
    wanted = catalog.settings_of(member.groups)
    switches = wanted.secondary_overrides, wanted.dnssec_presigned
    if switches == (True, None) and facts.stored_dnssec(reader, zone_id).presigned:
        raise Refused("its group has secondary_overrides, which dnssec_presigned, which is on, excludes")
    if switches == (None, True) and facts.has_overrides(reader, zone_id):
        raise Refused("it is to have dnssec_presigned, which secondary_overrides, which is on, excludes")
    return CHANGE


def _differs(reader: Reader, catalog: Followed, member: Member, zone_id: str, found: Membership) -> bool:
    if found != _membership(catalog, member):
        return True
    wanted = catalog.settings_of(member.groups)
    is_followed_so = secondary.is_followed_so(reader, zone_id, wanted.peers or catalog.peers, wanted.tsig_id)
    return not is_followed_so or _differ(reader, zone_id, wanted) != (False, False)


def _differ(reader: Reader, zone_id: str, wanted: GroupSettings) -> tuple[bool, bool]:
    """Whether a zone's secondary_overrides and dnssec_presigned are others than what is wanted."""
    return (
        wanted.secondary_overrides not in (None, facts.has_overrides(reader, zone_id)),
        wanted.dnssec_presigned not in (None, facts.stored_dnssec(reader, zone_id).presigned),
    )


def _membership(catalog: Followed, member: Member) -> Membership:
    return Membership(catalog.id, member.label, member.groups, member.coo)


def take(call: Call, tx: Transaction, platform: Platform, catalog: Followed, member: Member) -> None:
    """Do what a member needs, as it is now. Raises Refused."""
    step = _step(tx, catalog, member)
    zone_id, is_again = zones.id_by_name(tx, member.name), step == RESET
    if step == RESET and zone_id is not None:
        try:  # before the zone goes: what is refused then would not come back
            zone_cases.check_may_have(call, tx, catalog.account_id, member.name)
        except EdgeError as refusal:
            raise Refused(refusal.message) from None
        _delete(call, tx, platform, zone_id)
        step = ADD
    if step == ADD:
        account = account_of(tx, catalog.account_id)
        try:
            row = zone_cases.add(call, tx, platform, account, member.name, facts.SECONDARY, is_again=is_again)
        except EdgeError as refusal:
            raise Refused(refusal.message) from None
        zone_id = row.id
        audit.note_zone(tx, call.now_us, row, "create", INTERFACE)
    if step and zone_id is not None:
        _change(call, tx, platform, catalog, member, zone_id)


def _change(
    call: Call, tx: Transaction, platform: Platform, catalog: Followed, member: Member, zone_id: str
) -> None:
    zone = zone_of(tx, zone_id)
    wanted = catalog.settings_of(member.groups)
    before = followed.membership(tx, zone_id)
    followed.put_membership(tx, zone_id, _membership(catalog, member), call.now_us)
    secondary.follow(call, tx, platform, zone, wanted.peers or catalog.peers, wanted.tsig_id)
    _apply(call, tx, platform, zone_id, wanted)
    if member.coo and (before is None or before.coo != member.coo):
        _tell_new_owner(call, tx, catalog, member.coo)


def _apply(call: Call, tx: Transaction, platform: Platform, zone_id: str, wanted: GroupSettings) -> None:
    """Both in one change: one may have to end for the other."""
    overrides, presigned = _differ(tx, zone_id, wanted)
    if not (overrides or presigned):
        return
    edit = ZoneEdit(call, tx, platform, zone_id)
    if overrides:
        edit.settings.put(OVERRIDES, wanted.secondary_overrides)
    if presigned:
        stored = facts.stored_dnssec(tx, zone_id)
        edit.settings.put(DNSSEC, msgspec.structs.replace(stored, presigned=wanted.dnssec_presigned))
    edit.finish()
    if presigned:
        secondary.transfer_again(call, tx, zone_id)


def _tell_new_owner(call: Call, tx: Transaction, catalog: Followed, name: str) -> None:
    """The catalog that a zone moves to may list it already, and have been refused."""
    for other in followed.of_account(tx, catalog.account_id):
        if other.name == name:
            followed.ask_soon(tx, other.id, call.now_us, again=True)


def leave(call: Call, tx: Transaction, platform: Platform, catalog: Followed, zone_id: str) -> None:
    """The catalog lists a zone no longer."""
    member = followed.membership(tx, zone_id)
    if member is None or member.catalog_id != catalog.id or member.left_us:
        return
    if catalog.grace_seconds == 0:
        _delete(call, tx, platform, zone_id)
    else:
        left = msgspec.structs.replace(member, left_us=call.now_us)
        followed.put_membership(tx, zone_id, left, call.now_us)


def over(reader: Reader, now_us: int) -> list[str]:
    """Zones whose grace is over, by id."""
    catalogs = {catalog.id: catalog for catalog in followed.every(reader)}
    return [
        zone_id
        for zone_id, member in followed.memberships(reader).items()
        if member.left_us
        and member.catalog_id in catalogs
        and now_us >= _deleted_us(catalogs[member.catalog_id], member)
    ]


def delete_if_over(call: Call, tx: Transaction, platform: Platform, zone_id: str) -> str | None:
    """Returns the name of a zone that was deleted."""
    member = followed.membership(tx, zone_id)
    catalog = followed.one(tx, member.catalog_id) if member else None
    zone = zones.zone(tx, zone_id)
    if member is None or catalog is None or zone is None or not member.left_us:
        return None
    if call.now_us < _deleted_us(catalog, member):
        return None
    _delete(call, tx, platform, zone_id)
    return zone.name


def _delete(call: Call, tx: Transaction, platform: Platform, zone_id: str) -> None:
    audit.note_zone(tx, call.now_us, zone_of(tx, zone_id), "delete", INTERFACE)
    zone_cases.delete(call, tx, platform, zone_id)


def _deleted_us(catalog: Followed, member: Membership) -> int:
    return member.left_us + catalog.grace_seconds * _US


def release(tx: Transaction, catalog_id: str) -> None:
    """A catalog is followed no longer: its zones are secondary zones like others."""
    for zone_id, member in followed.memberships(tx).items():
        if member.catalog_id == catalog_id:
            followed.forget_membership(tx, zone_id)


def keep(tx: Transaction, zone_id: str) -> KeptView:
    """Take a zone out of its catalog's hands, also one that is about to be deleted.

    Raises ZoneNotFound, NoMember.
    """
    zone = zone_of(tx, zone_id)
    if followed.membership(tx, zone_id) is None:
        raise NoMember(name=zone.name)
    followed.forget_membership(tx, zone_id)
    return KeptView(zone.id, zone.name)


def count(reader: Reader, catalog_id: str) -> int:
    return sum(one.catalog_id == catalog_id for one in followed.memberships(reader).values())


def listed(reader: Reader, catalog: Followed) -> list[MemberView]:
    """By name, those that are refused too."""
    found = []
    for zone_id, member in followed.memberships(reader).items():
        zone = zones.zone(reader, zone_id) if member.catalog_id == catalog.id else None
        if zone is not None:
            deleted_on = six_digits(_deleted_us(catalog, member)) if member.left_us else None
            status = "leaving" if member.left_us else "member"
            found.append(MemberView(zone.name, zone_id, status, member.groups, deleted_on))
    for name, problem in followed.state_of(reader, catalog.id).refused.items():
        found.append(MemberView(name, None, "refused", problem=problem))
    return sorted(found, key=lambda one: one.name)
