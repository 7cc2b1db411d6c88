"""The server's settings: defaults, then the TOML file, then the command line.

Owns  the frozen `Config`, and joining the three sources.
Not   binding a port or making a folder: a `Config` is only words.

A flag and its key in the file have one spelling: `--dns-workers 2` is `dns-workers = 2`. Flags that may be
repeated are arrays in the file; a flag on the command line replaces the file's whole array.
"""

import difflib
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Any

from edgestead.config_alerts import Receiver
from edgestead.config_options import OPTIONS, Option
from edgestead.config_values import LIST_ITEMS_MAX, WORKERS_MAX, Acme, Address, Target
from edgestead.model.call import Profile
from edgestead.model.log_text import LogForm
from edgestead.model.quotas import Quotas

__all__ = [
    "OPTIONS",
    "WORKERS_MAX",
    "Address",
    "Config",
    "ConfigError",
    "default_data_dir",
    "default_words",
    "load",
]

CLUSTER_FILE = "cluster.toml"  # of a node, in its folder
CONFIG_BYTES_MAX = 1 << 20  # every setting, written many times over
DATA_DIR_VARIABLE = "EDGE_DATA_DIR"  # `cli.source` reads it, too


class ConfigError(ValueError):
    """A setting that cannot be used; the message says which one and why, in one line."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """What the server was asked to be. A field is its option's key with `_` for `-`."""

    data_dir: Path
    api: Address
    dns: Address
    http: Address
    https: Address | None
    tls_dir: Path | None
    acme: Acme | None
    acme_ca: Path | None
    dot: Address | None
    doh: Address | None
    edge_workers: int
    origin_port: int | None
    origin_allow: tuple[IPv4Network | IPv6Network, ...]
    origin_ca: Path | None
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...]
    proxy_protocol: bool
    http_connections_per_address: int
    edge_address: tuple[IPv4Address | IPv6Address, ...]
    nameserver: tuple[str, ...]
    nameserver_address: tuple[IPv4Address | IPv6Address, ...]
    profile: Profile
    as_of: date | None
    allow_as_of: bool
    dns_workers: int
    dns_rate: int
    dns_identity: str
    dns_version: str
    transfer_to: tuple[IPv4Network | IPv6Network, ...]
    transfer_tls: bool
    notify: tuple[Target, ...]
    objects: tuple[str, ...]
    objects_http: Address
    objects_workers: int
    no_alarms: bool
    no_dashboard: bool
    dashboard_name: tuple[str, ...]
    openid_issuer: str | None
    openid_client_id: str | None
    openid_secret_file: Path | None
    openid_name: str
    openid_claim: str
    openid_ca: Path | None
    objects_bindings: tuple[tuple[str, str], ...]
    objects_blocked_seconds: float
    objects_memory_mib: int
    objects_spare: bool
    objects_apart: tuple[str, ...]
    objects_contain: bool
    objects_apart_nice: int
    objects_thin_seconds: int
    objects_history_mib: int
    resolver: Address | None
    ready_file: Path | None
    crs: Path | None
    managed_ruleset_id: str | None
    anomaly_rule_id: str | None
    managed_response_bytes: int
    api_quota: int
    api_connections_per_address: int
    api_guesses: int
    metrics_open: bool
    disk_reserve_mib: int
    quota_zones: int
    quota_zone_records: int
    quota_account_kv_mib: int
    quota_namespace_kv_mib: int
    barrier_ms: int
    silence_seconds: int
    control_spare: int
    drain_seconds: int
    log_level: int
    log_form: LogForm | None
    log_file: Path | None
    log_file_bytes: int
    log_files: int
    access_log: str | None
    access_log_form: str
    access_log_field: tuple[str, ...]
    access_log_sample: int
    access_log_zone: tuple[str, ...]
    access_log_bytes: int
    access_log_files: int
    history_days: int
    history_rows: int
    audit_days: int
    audit_mib: int
    backup_hours: int
    alert: tuple[Receiver, ...]
    cluster: Path | None
    join: str | None
    cluster_database: str | None
    cluster_listen: Address | None
    cluster_advertise: Address | None
    cluster_region: str | None
    cluster_lease_ms: int | None
    cluster_stale: str
    cluster_reads: str
    cluster_stale_hours: int
    cluster_s3: str | None
    cluster_s3_region: str
    cluster_s3_credentials: Path | None

    @property
    def edge_addresses(self) -> tuple[IPv4Address | IPv6Address, ...]:
        """What proxied names answer: those given, else the host of `http` unless it is a wildcard."""
        if self.edge_address or self.http.is_wildcard:
            return self.edge_address
        return (ip_address(self.http.host),)

    @property
    def nameserver_addresses(self) -> tuple[IPv4Address | IPv6Address, ...]:
        """Where the name servers are: those given, else the host of `dns` unless it is a wildcard."""
        if self.nameserver_address or self.dns.is_wildcard:
            return self.nameserver_address
        return (ip_address(self.dns.host),)

    @property
    def origins_allowed(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """Loopback and private addresses that may be origins: on a developer's machine all of them."""
        listening = (self.api, self.http, *([self.https] if self.https else []))
        if self.origin_allow or not all(ip_address(one.host).is_loopback for one in listening):
            return self.origin_allow
        return (ip_network("0.0.0.0/0"), ip_network("::/0"))

    @property
    def quotas(self) -> Quotas:
        return Quotas(
            account_zones=self.quota_zones,
            zone_records=self.quota_zone_records,
            account_value_bytes=self.quota_account_kv_mib << 20,
            namespace_value_bytes=self.quota_namespace_kv_mib << 20,
        )

    @property
    def own_addresses(self) -> tuple[IPv4Address | IPv6Address, ...]:
        """What no record may point at: addresses that the operator named as the edge's own."""
        host = ip_address(self.http.host)
        return self.edge_address if host.is_loopback or host.is_unspecified else (*self.edge_address, host)


_BY_KEY = {option.key: option for option in OPTIONS}
_GONE = {
    "cluster.wait": "it changed nothing; whether writes wait for a node is said when it is invited"
    " (`edgecli cluster invite --no-wait`)",
}


def default_data_dir() -> Path:
    """The folder that is used when neither a flag nor the file names one."""
    if named := os.environ.get(DATA_DIR_VARIABLE):
        return Path(named)
    import platformdirs

    return Path(platformdirs.user_data_dir("edgestead", appauthor=False))


def load(flags: Mapping[str, Any], file: Path | None) -> Config:
    """Join defaults, file and flags (by key; absent, None or () when not given).

    Raises ConfigError for an unknown key, a value of the wrong form, or certificates without TLS.
    """
    given = _flat(_read(file)) if file else {}
    given.update((key, value) for key, value in flags.items() if value is not None and value != ())
    if given.get("cluster") is not None:
        given = _of_node(given)
    for key in given:
        _refuse_unknown(key)
    values: dict[str, Any] = {option.field: _value(option, given.get(option.key)) for option in OPTIONS}
    values["data_dir"] = values["data_dir"] or default_data_dir()
    _check_tls(values)
    if values["cluster"] is not None and values["objects_apart"]:
        raise ConfigError(
            "objects-apart: in a cluster an object lives in whichever process has its slot; leave it out"
        )
    if (values["openid_issuer"] is None) != (values["openid_client_id"] is None):
        raise ConfigError("openid-issuer and openid-client-id need one another")
    names = [one.name for one in values["alert"]]
    if len(set(names)) < len(names):
        raise ConfigError("alert: each receiver needs a name of its own")
    if values["proxy_protocol"] and not values["trusted_proxies"]:
        raise ConfigError("proxy-protocol needs trusted-proxies: nobody else's header is believed")
    return Config(**values)


def _of_node(given: dict[str, object]) -> dict[str, object]:
    """With what the node's own file says where the settings say nothing. Raises ConfigError."""
    folder = Path(str(given["cluster"])).expanduser().absolute()
    if Path(str(given.setdefault("data-dir", str(folder)))).expanduser().absolute() != folder:
        raise ConfigError("cluster and data-dir are the same folder: give one of them")
    own = _flat(_read(folder / CLUSTER_FILE))
    for key in own:
        if not key.startswith("cluster."):
            raise ConfigError(f"{folder / CLUSTER_FILE}: {key} is not a setting of a node")
    return own | given


def _check_tls(values: Mapping[str, Any]) -> None:
    """Raises ConfigError: certificates that nobody serves, or what needs TLS without it."""
    listening = [key for key in ("https", "dot", "doh") if values[key] is not None]
    if values["tls_dir"] is not None and not listening:
        raise ConfigError("tls-dir needs https, dot or doh: where its certificates are served")
    if values["acme"] is not None and values["https"] is None:
        raise ConfigError("acme needs https: where the edge serves with the certificates")
    if values["transfer_tls"] and values["dot"] is None:
        raise ConfigError("transfer-tls needs dot: there is no other way for them")


def _read(file: Path) -> dict[str, object]:
    try:
        with file.open("rb") as stream:
            content = stream.read(CONFIG_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}") from None
    if len(content) > CONFIG_BYTES_MAX:
        raise ConfigError(f"{file} is larger than {CONFIG_BYTES_MAX} bytes")
    try:
        return tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} is not TOML: {error}") from None


def _flat(given: dict[str, object]) -> dict[str, object]:
    """The table `[objects]` as the settings `objects` (its `paths`) and `objects.runtime.bindings`, and
    `[cluster]` as those of its keys.
    """
    flat = dict(given)
    for name in ("objects", "cluster"):
        if isinstance(table := given.get(name), dict):
            del flat[name]
            for key, value in table.items():
                flat["objects" if (name, key) == ("objects", "paths") else f"{name}.{key}"] = value
    return flat


def _refuse_unknown(key: str) -> None:
    if key in _GONE:
        raise ConfigError(f"{key} is no setting any more: {_GONE[key]}")
    if key not in _BY_KEY:
        near = difflib.get_close_matches(key.replace("_", "-"), _BY_KEY, n=1)
        raise ConfigError(f"unknown setting {key}" + (f"; did you mean {near[0]}?" if near else ""))


def _value(option: Option, given: object) -> object:
    if given is None:
        given = option.default
        if given is None:
            return None
    try:
        if not option.many:
            return option.parse(given)
        if not isinstance(given, (list, tuple)) or len(given) > LIST_ITEMS_MAX:
            raise ValueError(f"expected a list of at most {LIST_ITEMS_MAX}")
        return tuple(dict.fromkeys(option.parse(item) for item in given))
    except ValueError as error:
        raise ConfigError(f"{option.key} {_shown(given)}: {error}") from None


def _shown(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= 80 else text[:77] + "..."


def default_words(option: Option) -> str:
    """What holds where nobody chose, as a reader wants it told."""
    if option.fallback:
        return option.fallback
    values = option.default if isinstance(option.default, tuple) else (option.default,)
    return ", ".join(f"`{value}`" for value in values)
