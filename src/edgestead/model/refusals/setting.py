"""Refusals of settings: of zones, of DNS, of DNSSEC, plans, holds, custom name servers.

Owns  code, status and wording of each.
Not   zones themselves (`model.refusals.zone`).

    BadRequest (400)
    ├── ItemsMissing        1004
    ├── UnknownSetting      1006
    ├── SettingValueRefused 1007
    ├── SettingIsFixed      1057
    ├── DnsSettingRefused   1001
    ├── ZoneModeRefused     1001
    ├── NameserverRefused   1001
    ├── NameserverExists    1001
    ├── TooManyNameservers  1001
    ├── NameserverInUse     1001
    ├── PlanRefused         1001
    ├── VanityRefused       1001
    ├── DnssecIsDisabled    1001
    ├── DnssecStatusRefused 1001
    ├── PresignedRefused    1001
    ├── DnssecKeysRefused   1001
    ├── RollRefused         1001
    ├── CheckedTooSoon      1224
    ├── HoldRefused         1224
    ├── ZoneOnHold          1224
    └── PurgeRefused        1001
    Unavailable (503)
    └── KeysSealed          1503
    NotFound (404)
    ├── NameserverNotFound 1001
    └── PlanNotFound       1001
"""

from edgestead.model.refusals import BadRequest, NotFound, Unavailable


class ItemsMissing(BadRequest):
    code, wording = (
        1004,
        "The body must hold items: an array of 1 to {items_max} settings, each with id and value.",
    )


class UnknownSetting(BadRequest):
    """No such setting, or one that was removed before the date whose behaviour is served."""

    code, wording = 1006, "Unrecognized zone setting name: {id}"


class SettingValueRefused(BadRequest):
    code, wording = 1007, "Invalid value for zone setting {id}: {reason}"


class SettingIsFixed(BadRequest):
    """A read-only setting, or one that the zone's plan does not include."""

    code, wording = 1057, "{id} cannot be modified for this zone: {reason}"


class DnsSettingRefused(BadRequest):
    code, wording = 1001, "DNS setting {field} is invalid: {reason}"


class ZoneModeRefused(BadRequest):
    code, wording = 1001, "Custom zone modes are not available: this zone's plan is not Enterprise."


class NameserverRefused(BadRequest):
    code, wording = 1001, "Custom name server is invalid: {reason}"


class NameserverExists(BadRequest):
    code, wording = 1001, "{ns_name} is a custom name server of this account already."


class TooManyNameservers(BadRequest):
    code, wording = 1001, "An account has at most {nameservers_max} custom name servers."


class NameserverInUse(BadRequest):
    code, wording = 1001, "{ns_name} is the last name server of set {ns_set}, which zones use."


class NameserverNotFound(NotFound):
    code, wording = 1001, "{ns_name} is no custom name server of this account."


class PlanNotFound(NotFound):
    code, wording = 1001, "No such plan."


class PlanRefused(BadRequest):
    code, wording = 1001, "Plan {plan} is not offered. Plans: {plans}."


class VanityRefused(BadRequest):
    code, wording = 1001, "vanity_name_servers is invalid: {reason}"


class KeysSealed(Unavailable):
    """The secret that sealed a zone's keys is not the data folder's, as after a restore without it."""

    wording = "The private keys of this zone cannot be opened: put seal.key back into the data folder."


class DnssecIsDisabled(BadRequest):
    code, wording = 1001, "DNSSEC is already disabled"


class DnssecStatusRefused(BadRequest):
    code, wording = 1001, "DNSSEC status is active or disabled, not {status}."


class PresignedRefused(BadRequest):
    """What is signed elsewhere is served as it is, or not at all."""

    code, wording = (
        1001,
        "{name} is not changed so: dnssec_presigned serves it as its primary signed it, and"
        " secondary_overrides changes what is served. Turn {other} off first.",
    )


class DnssecKeysRefused(BadRequest):
    code, wording = 1001, "DNSSEC setting {field} is invalid: {reason}"


class RollRefused(BadRequest):
    code, wording = 1001, "The keys of this zone cannot be replaced now: {reason}."


class CheckedTooSoon(BadRequest):
    """Once in 5 minutes, on the free plan once an hour."""

    code, wording = 1224, "The activation of this zone was checked less than {seconds} seconds ago."


class HoldRefused(BadRequest):
    code, wording = 1224, "Zone hold is invalid: {reason}"


class ZoneOnHold(BadRequest):
    code, wording = 1224, "{name} belongs to a zone that another account holds."


class PurgeRefused(BadRequest):
    code, wording = 1001, "Purge takes purge_everything, or an array of files, tags, hosts or prefixes."
