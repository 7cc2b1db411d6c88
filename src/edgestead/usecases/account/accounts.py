"""The use cases of accounts and of the calling user.

Owns  their JSON shapes.
Not   the first account and its user (`usecases.access.credentials`); who belongs where
      (`usecases.account.members`).
"""

from typing import Annotated, Any

import msgspec

from edgestead.model.call import Call
from edgestead.model.envelope import Listed
from edgestead.model.refusals import Forbidden
from edgestead.model.refusals.account import (
    AccountCreationForbidden,
    AccountFieldRefused,
    AccountNotSeen,
    AccountQuota,
    AccountTypeIsFixed,
)
from edgestead.model.refusals.request import MissingField
from edgestead.model.settings import CUSTOM_ACCOUNT, STANDARD
from edgestead.model.times import six_digits
from edgestead.store.control import Reader, Transaction
from edgestead.tables import accounts, settings
from edgestead.tables.accounts import AccountRow
from edgestead.usecases.access.authorise import Identity, sees_account
from edgestead.usecases.access.credentials import EVERY_ROLE
from edgestead.usecases.limits import ACCOUNT_NAME_CHARACTERS_MAX, ACCOUNTS_MAX, PROFILE_CHARACTERS_MAX
from edgestead.usecases.lookup import account_of
from edgestead.usecases.platform import Platform
from edgestead.usecases.zone import dns_settings

_DATED = msgspec.Meta(extra_json_schema={"deprecated": True})


class AccountSettings(msgspec.Struct, frozen=True):
    """`default_nameservers` and `use_account_custom_ns_by_default` are views of the DNS setting
    `zone_defaults.nameservers.type` (dated change of 2025-03-14); the other two are stored only.
    """

    enforce_twofactor: bool
    abuse_contact_email: str | None
    default_nameservers: Annotated[str, _DATED]
    use_account_custom_ns_by_default: Annotated[bool, _DATED]


class SettingsBody(msgspec.Struct, frozen=True):
    enforce_twofactor: bool | None = None
    abuse_contact_email: str | msgspec.UnsetType | None = msgspec.UNSET
    default_nameservers: Annotated[str | None, _DATED] = None
    use_account_custom_ns_by_default: Annotated[bool | None, _DATED] = None


class AccountBody(msgspec.Struct, frozen=True):
    """What create and PUT take. The type of an account never changes."""

    name: str | None = None
    type: str | None = None
    settings: SettingsBody | None = None


class UserBody(msgspec.Struct, frozen=True):
    """What PATCH of the user takes; null empties a field."""

    first_name: str | msgspec.UnsetType | None = msgspec.UNSET
    last_name: str | msgspec.UnsetType | None = msgspec.UNSET
    telephone: str | msgspec.UnsetType | None = msgspec.UNSET
    country: str | msgspec.UnsetType | None = msgspec.UNSET
    zipcode: str | msgspec.UnsetType | None = msgspec.UNSET


class AccountView(msgspec.Struct, frozen=True):
    id: str
    name: str
    type: str
    settings: AccountSettings
    created_on: str


class UserView(msgspec.Struct, frozen=True):
    """Contract "`/user`, `/accounts`, `/memberships`". What this server does not keep is null or empty."""

    id: str
    email: str
    first_name: str | None = None
    last_name: str | None = None
    telephone: str | None = None
    country: str | None = None
    zipcode: str | None = None
    two_factor_authentication_enabled: bool = False
    two_factor_authentication_locked: bool = False
    suspended: bool = False
    betas: tuple[str, ...] = ()
    organizations: tuple[str, ...] = ()
    has_pro_zones: bool = False
    has_business_zones: bool = False
    has_enterprise_zones: bool = False


class Profile(msgspec.Struct, frozen=True):
    """What a user says of themself."""

    first_name: str | None = None
    last_name: str | None = None
    telephone: str | None = None
    country: str | None = None
    zipcode: str | None = None


_PROFILE = "user.profile"
TYPE = "standard"
_STORED = {"enforce_twofactor": "account.enforce_twofactor", "abuse_contact_email": "account.abuse_email"}
_read_profile = msgspec.json.Decoder(Profile).decode
_encode = msgspec.json.Encoder().encode


def create(
    call: Call, tx: Transaction, platform: Platform, identity: Identity, body: AccountBody
) -> AccountView:
    """Another account: only for credentials that may do everything, whose user is its first member.

    Raises MissingField, AccountCreationForbidden, AccountQuota, AccountTypeIsFixed, AccountFieldRefused.
    """
    if not body.name:
        raise MissingField(field="name", pointer="/name")
    if not identity.full:
        raise AccountCreationForbidden
    if len(accounts.all_accounts(tx)) >= ACCOUNTS_MAX:
        raise AccountQuota(limit=ACCOUNTS_MAX)
    if body.type not in (None, TYPE):
        raise AccountTypeIsFixed(pointer="/type")
    name = _short("name", body.name, ACCOUNT_NAME_CHARACTERS_MAX, "/name")
    row = AccountRow(platform.new_id(), name, TYPE, 0, call.now_us)
    accounts.insert_account(tx, row)
    accounts.insert_membership(
        tx, platform.new_id(), row.id, identity.actor.id, "accepted", call.now_us, EVERY_ROLE
    )
    if body.settings is not None:
        _put_settings(call, tx, row.id, body.settings)
    return _view(call, tx, row)


def show(call: Call, reader: Reader, identity: Identity, account_id: str) -> AccountView:
    """Raises AccountNotSeen."""
    row = accounts.account(reader, account_id)
    if row is None or not sees_account(identity, account_id):
        raise AccountNotSeen
    return _view(call, reader, row)


def put(call: Call, tx: Transaction, account_id: str, body: AccountBody) -> AccountView:
    """Rename an account, change its settings. Raises AccountNotSeen, MissingField, AccountTypeIsFixed,
    AccountFieldRefused, DnsSettingRefused.
    """
    row = account_of(tx, account_id)
    if body.type is not None and body.type != row.type:
        raise AccountTypeIsFixed(pointer="/type")
    if not body.name:
        raise MissingField(field="name", pointer="/name")
    accounts.set_name(tx, account_id, _short("name", body.name, ACCOUNT_NAME_CHARACTERS_MAX, "/name"))
    if body.settings is not None:
        _put_settings(call, tx, account_id, body.settings)
    return _view(call, tx, account_of(tx, account_id))


def listed(
    call: Call,
    reader: Reader,
    identity: Identity,
    name: str | None,
    *,
    descending: bool,
    limit: int,
    offset: int,
) -> Listed:
    """The accounts that the caller sees, oldest first. There are few: all of them are read."""
    rows = [
        row
        for row in accounts.all_accounts(reader)
        if sees_account(identity, row.id) and (name is None or row.name.casefold() == name.casefold())
    ]
    if descending:
        rows.reverse()
    return Listed([_view(call, reader, row) for row in rows[offset : offset + limit]], len(rows))


def user(reader: Reader, identity: Identity) -> UserView:
    """Raises Forbidden: the user is gone."""
    row = accounts.user(reader, identity.actor.id)
    if row is None:
        raise Forbidden
    return UserView(row.id, row.email, **msgspec.structs.asdict(profile_of(reader, row.id)))


def patch_user(call: Call, tx: Transaction, identity: Identity, body: UserBody) -> UserView:
    """Raises Forbidden, AccountFieldRefused."""
    user_id = user(tx, identity).id
    sent = {
        name: value and _short(name, value, PROFILE_CHARACTERS_MAX, f"/{name}")
        for name, value in msgspec.structs.asdict(body).items()
        if value is not msgspec.UNSET
    }
    set_profile(call, tx, user_id, msgspec.structs.replace(profile_of(tx, user_id), **sent))
    return user(tx, identity)


def set_profile(call: Call, tx: Transaction, user_id: str, profile: Profile) -> None:
    settings.put(tx, user_id, _PROFILE, _encode(profile).decode(), call.now_us)


def profile_of(reader: Reader, user_id: str) -> Profile:
    stored = settings.one(reader, user_id, _PROFILE)
    return _read_profile(stored.value) if stored else Profile()


def _put_settings(call: Call, tx: Transaction, account_id: str, body: SettingsBody) -> None:
    if body.enforce_twofactor is not None:
        _put_one(call, tx, account_id, "enforce_twofactor", body.enforce_twofactor)
    if body.abuse_contact_email is not msgspec.UNSET:
        email, at = body.abuse_contact_email, "/settings/abuse_contact_email"
        email = email and _short("abuse_contact_email", email, PROFILE_CHARACTERS_MAX, at)
        _put_one(call, tx, account_id, "abuse_contact_email", email)
    wanted = _wanted_nameservers(tx, account_id, body)
    if wanted is not None:
        dns_settings.set_default_nameservers(call, tx, account_id, wanted, "/settings/default_nameservers")


def _wanted_nameservers(reader: Reader, account_id: str, body: SettingsBody) -> str | None:
    """What the older two members ask for; where both are sent, the name wins."""
    if body.default_nameservers is not None:
        return body.default_nameservers
    if body.use_account_custom_ns_by_default is None:
        return None
    if body.use_account_custom_ns_by_default:
        return CUSTOM_ACCOUNT
    present = dns_settings.default_nameservers(reader, account_id)
    return STANDARD if present == CUSTOM_ACCOUNT else None


def _put_one(call: Call, tx: Transaction, account_id: str, name: str, value: Any) -> None:
    settings.put(tx, account_id, _STORED[name], _encode(value).decode(), call.now_us)


def _short(field: str, text: str, characters_max: int, pointer: str) -> str:
    if len(text) > characters_max or not text.isprintable():
        reason = f"it has at most {characters_max} printable characters."
        raise AccountFieldRefused(field=field, reason=reason, pointer=pointer)
    return text


def _view(call: Call, reader: Reader, row: AccountRow) -> AccountView:
    stored = {name: settings.one(reader, row.id, id_) for name, id_ in _STORED.items()}
    values = {name: msgspec.json.decode(one.value) for name, one in stored.items() if one}
    default = dns_settings.default_nameservers(reader, row.id)
    shown = AccountSettings(
        enforce_twofactor=values.get("enforce_twofactor", False),
        abuse_contact_email=values.get("abuse_contact_email"),
        default_nameservers=dns_settings.spelled(call, default),
        use_account_custom_ns_by_default=default == CUSTOM_ACCOUNT,
    )
    return AccountView(row.id, row.name, row.type, shown, six_digits(row.created_us))
