"""Which name servers a zone has, and choosing them in the ways older than DNS settings.

Owns  the names that a zone shows; its own (vanity) name servers; the zone's side of custom name servers.
Not   the name servers of an account (`usecases.account.custom_nameservers`).
"""

from collections.abc import Sequence

import msgspec

from edgestead.model import names
from edgestead.model.call import Call
from edgestead.model.names import InvalidName
from edgestead.model.refusals.setting import DnsSettingRefused, VanityRefused
from edgestead.model.settings import CUSTOM_ACCOUNT, CUSTOM_ZONE, NAMESERVERS, NS_SET, STANDARD
from edgestead.store.control import Reader, Transaction
from edgestead.tables import settings
from edgestead.tables.zones import ZoneRow
from edgestead.usecases.change.edit import ZoneEdit
from edgestead.usecases.limits import VANITY_NAMESERVERS_MAX
from edgestead.usecases.lookup import zone_of
from edgestead.usecases.platform import Platform
from edgestead.usecases.serving import facts
from edgestead.usecases.serving.facts import FAMILY, VANITY, Nameservers
from edgestead.usecases.zone import dns_settings


class ZoneCustomBody(msgspec.Struct, frozen=True):
    """What PUT takes. `enabled` chooses the account's own name servers."""

    enabled: bool | None = None
    ns_set: int | None = None


class ZoneCustomView(msgspec.Struct, frozen=True):
    enabled: bool
    ns_set: int


def shown(reader: Reader, platform: Platform, zone: ZoneRow) -> tuple[str, ...]:
    """The names that a registrar is given, sorted."""
    return tuple(sorted(facts.server_names(reader, zone, chosen(reader, zone)) or platform.nameservers))


def chosen(reader: Reader, zone: ZoneRow) -> Nameservers:
    stored = settings.one(reader, zone.id, f"{FAMILY}.{NAMESERVERS}")
    return facts.read_nameservers(stored.value) if stored else Nameservers()


def set_vanity(reader: Reader, edit: ZoneEdit, zone: ZoneRow, texts: Sequence[str]) -> None:
    """Give a zone its own name servers and serve them, as part of a change of it; none returns to the
    server's. Raises VanityRefused.
    """
    wanted = sorted({_host(text, f"/vanity_name_servers/{at}") for at, text in enumerate(texts)})
    if len(wanted) > VANITY_NAMESERVERS_MAX:
        reason = f"a zone has at most {VANITY_NAMESERVERS_MAX} name servers of its own."
        raise VanityRefused(reason=reason, pointer="/vanity_name_servers")
    edit.settings.put(VANITY, wanted)
    present = chosen(reader, zone)
    if wanted or present.type == CUSTOM_ZONE:
        type_ = CUSTOM_ZONE if wanted else STANDARD
        dns_settings.put_fields(edit, {NAMESERVERS: Nameservers(type_, present.ns_set)})


def show_custom(reader: Reader, zone_id: str) -> ZoneCustomView:
    """Raises ZoneNotFound."""
    present = chosen(reader, zone_of(reader, zone_id))
    return ZoneCustomView(present.type == CUSTOM_ACCOUNT, present.ns_set)


def put_custom(call: Call, tx: Transaction, platform: Platform, zone_id: str, body: ZoneCustomBody) -> None:
    """The older view of `nameservers`. Raises ZoneNotFound, DnsSettingRefused, ZoneIsSecondary."""
    zone = zone_of(tx, zone_id)
    present = chosen(tx, zone)
    type_ = present.type
    if body.enabled is True:
        type_ = CUSTOM_ACCOUNT
    elif body.enabled is False and type_ == CUSTOM_ACCOUNT:
        type_ = STANDARD
    ns_set = present.ns_set if body.ns_set is None else body.ns_set
    if not NS_SET.lowest <= ns_set <= NS_SET.highest:
        raise DnsSettingRefused(field="ns_set", reason=f"expected {NS_SET.wording}.", pointer="/ns_set")
    wanted = Nameservers(type_, ns_set)
    dns_settings.check_set(tx, zone, wanted, "/ns_set")
    edit = ZoneEdit(call, tx, platform, zone.id)
    dns_settings.put_fields(edit, {NAMESERVERS: wanted})
    edit.finish()


def _host(text: str, pointer: str) -> str:
    try:
        name = names.wire_from_text(text.strip())
        names.check_zone_name(name)
    except InvalidName as error:
        raise VanityRefused(reason=f"{error.reason}.", pointer=pointer) from None
    return names.text_from_wire(name)
