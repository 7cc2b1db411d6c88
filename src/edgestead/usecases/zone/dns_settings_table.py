"""The DNS settings: one row each.

Owns  every field's name, default, values and effect.
Not   merging and storing them.

Defaults and values are the contract's "DNS settings".
"""

from typing import Any, NamedTuple

from edgestead.model.checks import Between, Check, Choice, Flag
from edgestead.usecases.zone.facts import CUSTOM_ACCOUNT, CUSTOM_ZONE, STANDARD

NAMESERVERS = "nameservers"
SOA = "soa"
ZONE_TYPES = (STANDARD, "edge.advanced", CUSTOM_ACCOUNT, "custom.tenant", CUSTOM_ZONE)
ACCOUNT_TYPES = (STANDARD, "edge.standard.random", "edge.advanced", CUSTOM_ACCOUNT, "custom.tenant")
NS_SET = Between(1, 5)
SOA_TIMES: dict[str, Check] = {
    "refresh": Between(600, 86_400),
    "retry": Between(600, 3_600),
    "expire": Between(86_400, 2_419_200),
    "min_ttl": Between(60, 86_400),
    "ttl": Between(300, 86_400),
}


class DnsSetting(NamedTuple):
    """One row. `effect` empty means: stored and answered, nothing more; so are the values of `idle`."""

    default: Any
    check: Check
    effect: str = ""
    idle: tuple[str, ...] = ()

    def is_idle(self, value: Any) -> bool:
        return not self.effect or value in self.idle


FIELDS: dict[str, DnsSetting] = {
    "flatten_all_cnames": DnsSetting(
        False,
        Flag(),
        "every CNAME answers its target's addresses; false flattens the apex, and records that ask for it",
    ),
    "foundation_dns": DnsSetting(False, Flag()),
    "multi_provider": DnsSetting(
        False, Flag(), "NS records at the apex are served beside the zone's own name servers"
    ),
    NAMESERVERS: DnsSetting(
        {"type": STANDARD, "ns_set": 1},
        Choice(ZONE_TYPES),
        "the NS set of the apex, and the first name in the SOA. `edge.*` and `custom.tenant` are the server's"
        " own (`--nameserver`), `custom.account` the account's custom name servers of set `ns_set`,"
        " `custom.zone` the zone's `vanity_name_servers`",
    ),
    "ns_ttl": DnsSetting(86_400, Between(30, 86_400), "the TTL of the apex's NS records"),
    "secondary_overrides": DnsSetting(False, Flag()),
    SOA: DnsSetting(None, Choice(()), "the zone's SOA record; its serial is the server's"),
    "zone_mode": DnsSetting(
        "standard",
        Choice(("standard", "cdn_only", "dns_only")),
        "`dns_only` serves proxied records as they are written; `cdn_only` is stored only",
        idle=("cdn_only",),
    ),
}
