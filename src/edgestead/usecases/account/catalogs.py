"""Settings of an account's catalog zone, and of what it says of a single zone.

Owns  their JSON shapes and rules.
Not   the catalog's records (`usecases.serving.catalogs`).
"""

import msgspec

from edgestead.model import names
from edgestead.model.call import Call
from edgestead.model.names import InvalidName
from edgestead.model.refusals.secondary import CatalogNotFound, CatalogRefused
from edgestead.store.control import Reader, Transaction
from edgestead.tables import settings, zones
from edgestead.usecases import limits
from edgestead.usecases.lookup import account_of, zone_of
from edgestead.usecases.serving import catalogs


class CatalogBody(msgspec.Struct, frozen=True):
    name: str | None = None


class CatalogView(msgspec.Struct, frozen=True):
    """`version` is the schema's (RFC 9432 §4.2.1), `zones` how many there are in it."""

    name: str
    version: int
    serial: int
    zones: int


class MemberBody(msgspec.Struct, frozen=True):
    groups: list[str] | None = None


class MemberView(msgspec.Struct, frozen=True):
    """`catalog` is the name of the catalog that lists the zone, null where its account has none."""

    catalog: str | None
    groups: tuple[str, ...]


def show(reader: Reader, account_id: str) -> CatalogView:
    """Raises AccountNotSeen, CatalogNotFound."""
    account = account_of(reader, account_id)
    found = catalogs.of_account(reader, account_id)
    if found is None:
        raise CatalogNotFound
    return CatalogView(found.name, int(catalogs.VERSION), found.serial, account.zone_count)


def put(call: Call, tx: Transaction, account_id: str, body: CatalogBody) -> CatalogView:
    """List the account's zones under a name; another name is a new catalog, and the old one ends.

    Raises AccountNotSeen, CatalogRefused.
    """
    account = account_of(tx, account_id)
    name = _name(body.name)
    present = catalogs.of_account(tx, account_id)
    if present is not None and present.name == name:
        return show(tx, account_id)
    if is_in_a_zone(tx, name) or catalogs.is_taken(tx, name):
        reason = f"{name} is the name of a zone or of another catalog, or a name in a zone."
        raise CatalogRefused(reason=reason, pointer="/name")
    if account.zone_count > limits.CATALOG_MEMBERS_MAX:
        reason = f"an account with more than {limits.CATALOG_MEMBERS_MAX} zones can have none."
        raise CatalogRefused(reason=reason, pointer="")
    catalogs.end(tx, account_id, call.now_us)
    catalogs.begin(tx, account_id, name, call.now_us)
    return show(tx, account_id)


def delete(call: Call, tx: Transaction, account_id: str) -> CatalogBody:
    """Returns the name of the catalog that was. Raises AccountNotSeen, CatalogNotFound."""
    found = show(tx, account_id)
    catalogs.end(tx, account_id, call.now_us)
    return CatalogBody(found.name)


def show_member(reader: Reader, zone_id: str) -> MemberView:
    """Raises ZoneNotFound."""
    zone = zone_of(reader, zone_id)
    found = catalogs.of_account(reader, zone.account_id)
    return MemberView(found.name if found else None, catalogs.groups_of(reader, zone_id))


def put_member(call: Call, tx: Transaction, zone_id: str, body: MemberBody) -> MemberView:
    """Set a zone's groups; they stay when its account has no catalog yet.

    Raises ZoneNotFound, CatalogRefused.
    """
    zone = zone_of(tx, zone_id)
    groups = tuple(dict.fromkeys(_group(text, at) for at, text in enumerate(body.groups or ())))
    if len(groups) > limits.CATALOG_GROUPS_MAX:
        reason = f"a zone has at most {limits.CATALOG_GROUPS_MAX} groups."
        raise CatalogRefused(reason=reason, pointer="/groups")
    if groups:
        settings.put(tx, zone_id, catalogs.GROUPS, msgspec.json.encode(groups).decode(), call.now_us)
    else:
        settings.delete(tx, zone_id, catalogs.GROUPS)
    catalogs.member_changed(tx, zone.account_id, zone_id, call.now_us)
    return show_member(tx, zone_id)


def is_in_a_zone(reader: Reader, name: str) -> bool:
    """Whether a zone of this server has this name, or one above it."""
    while name:
        if zones.name_is_taken(reader, name):
            return True
        name = name.partition(".")[2]
    return False


def _name(text: str | None) -> str:
    try:
        name = names.wire_from_text((text or "").strip())
        names.check_zone_name(name)
    except InvalidName as error:
        raise CatalogRefused(reason=f"name: {error.reason}.", pointer="/name") from None
    if len(name) > limits.CATALOG_NAME_OCTETS_MAX:
        reason = f"name: at most {limits.CATALOG_NAME_OCTETS_MAX - 2} characters, for the names below it."
        raise CatalogRefused(reason=reason, pointer="/name")
    return names.text_from_wire(name)


def _group(text: str, at: int) -> str:
    """RFC 9432 §4.4.2 takes any text; these can be named in a configuration."""
    if not (text.isascii() and text.replace("-", "").replace("_", "").replace(".", "").isalnum()):
        reason = "a group is written with letters, digits, dots, hyphens and underscores."
        raise CatalogRefused(reason=reason, pointer=f"/groups/{at}")
    if len(text) > limits.CATALOG_GROUP_CHARACTERS_MAX:
        reason = f"a group has at most {limits.CATALOG_GROUP_CHARACTERS_MAX} characters."
        raise CatalogRefused(reason=reason, pointer=f"/groups/{at}")
    return text
