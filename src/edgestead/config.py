"""The server's settings: defaults, then the TOML file, then the command line.

Owns  the table of options, their parsers and defaults, and the frozen `Config`.
Asks  nobody.
Tells `cli.serve` which flags exist and `server` what was asked for.
Not   binding a port or making a folder: a `Config` is only words.

A flag and its key in the file have one spelling: `--dns-workers 2` is `dns-workers = 2`. Flags that may be
repeated are arrays in the file; a flag on the command line replaces the file's whole array.
"""

import difflib
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Any, NamedTuple

from edgestead.changes import OLDEST
from edgestead.model.call import Profile
from edgestead.model.ids import is_id
from edgestead.model.limits import NAME_OCTETS_MAX

CONFIG_BYTES_MAX = 1 << 20
WORKERS_MAX = 64
LIST_ITEMS_MAX = 64
_DNS_TEXT_MAX = 255  # one character-string (RFC 1035 §3.3)


class ConfigError(ValueError):
    """A setting that cannot be used; the message says which one and why, in one line."""


class Address(NamedTuple):
    """Where to listen. `port` 0 means any free one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_wildcard(self) -> bool:
        return ip_address(self.host).is_unspecified


@dataclass(frozen=True, kw_only=True)
class Config:
    """What the server was asked to be. A field is its option's key with `_` for `-`."""

    data_dir: Path
    api: Address
    dns: Address
    http: Address
    edge_address: tuple[IPv4Address | IPv6Address, ...]
    nameserver: tuple[str, ...]
    profile: Profile
    as_of: date | None
    allow_as_of: bool
    dns_workers: int
    dns_rate: int
    dns_identity: str
    dns_version: str
    transfer_to: tuple[IPv4Network | IPv6Network, ...]
    notify: tuple[Address, ...]
    objects: tuple[str, ...]
    objects_http: Address
    objects_workers: int
    objects_bindings: tuple[tuple[str, str], ...]
    objects_blocked_seconds: int
    resolver: Address | None
    ready_file: Path | None
    crs: Path | None
    managed_ruleset_id: str | None
    anomaly_rule_id: str | None
    api_quota: int
    api_connections_per_address: int
    barrier_ms: int
    drain_seconds: int
    history_days: int
    history_rows: int

    @property
    def edge_addresses(self) -> tuple[IPv4Address | IPv6Address, ...]:
        """What proxied names answer: those given, else the host of `http` unless it is a wildcard."""
        if self.edge_address or self.http.is_wildcard:
            return self.edge_address
        return (ip_address(self.http.host),)

    @property
    def own_addresses(self) -> tuple[IPv4Address | IPv6Address, ...]:
        """What no record may point at: addresses that the operator named as the edge's own."""
        host = ip_address(self.http.host)
        return self.edge_address if host.is_loopback or host.is_unspecified else (*self.edge_address, host)


# Parsers take what the flag's text or the TOML value is, and raise ValueError with what was expected.


def _text(value: object) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError("expected text")
    return value


def _path(value: object) -> Path:
    return Path(_text(value)).expanduser().absolute()


def _address(value: object) -> Address:
    host, colon, port = _text(value).rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    if bare == "localhost":
        bare = "127.0.0.1"
    if not colon or (":" in bare) != host.startswith("["):
        raise ValueError("expected HOST:PORT, with an IPv6 address in brackets")
    try:
        ip_address(bare)
    except ValueError:
        raise ValueError("expected an IP address or localhost before the port") from None
    return Address(bare, _whole(0, 65_535)(port))


def _ip(value: object) -> IPv4Address | IPv6Address:
    try:
        address = ip_address(_text(value))
    except ValueError:
        raise ValueError("expected an IPv4 or IPv6 address") from None
    if address.is_unspecified or address.is_multicast or "%" in str(address):
        raise ValueError("expected the address of one machine")
    return address


def _prefix(value: object) -> IPv4Network | IPv6Network:
    try:
        return ip_network(_text(value))
    except ValueError:
        raise ValueError("expected an address or a prefix like 192.0.2.0/24, without host bits") from None


def _target(value: object) -> Address:
    target = _address(value)
    if target.is_wildcard or not target.port:
        raise ValueError("expected the address of one machine, and its port")
    return target


def _host_name(value: object) -> str:
    name = _text(value).lower().removesuffix(".")
    labels = name.split(".")
    letters = set("abcdefghijklmnopqrstuvwxyz0123456789-")
    for label in labels:
        if not 0 < len(label) <= 63 or not set(label) <= letters or label[0] == "-" or label[-1] == "-":
            raise ValueError("expected a host name like ns1.example.net")
    if len(name) + 2 > NAME_OCTETS_MAX or len(labels) < 2:
        raise ValueError("expected a host name like ns1.example.net")
    return name


def _whole(lowest: int, highest: int) -> Callable[[object], int]:
    def parse(value: object) -> int:
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
            raise ValueError(f"expected a whole number from {lowest} to {highest}")
        return value

    return parse


def _workers(value: object) -> int:
    """0 stands for `auto`: the caller knows the machine, this module does not ask it."""
    if value == "auto":
        return 0
    try:
        return _whole(1, WORKERS_MAX)(value)
    except ValueError as error:
        raise ValueError(f"{error}, or auto") from None


def _identifier(value: object) -> str:
    text = _text(value)
    if not is_id(text):
        raise ValueError("expected 32 lower-case hexadecimal digits")
    return text


def _dns_text(value: object) -> str:
    good = isinstance(value, str) and value.isascii() and value.isprintable()
    if not isinstance(value, str) or not good or len(value) > _DNS_TEXT_MAX:
        raise ValueError(f"expected at most {_DNS_TEXT_MAX} printable ASCII characters")
    return value


def _objects_source(value: object) -> str:
    """A file or folder as its absolute path, a module by its dotted name."""
    text = _text(value)
    path = Path(text).expanduser()
    if text.endswith(".py") or "/" in text or text[0] in ".~" or path.exists():
        return str(path.absolute())
    if not all(part.isidentifier() for part in text.split(".")):
        raise ValueError("expected FILE.py, a folder, or a module like package.module")
    return text


def _bindings(value: object) -> tuple[tuple[str, str], ...]:
    """`NAME = "namespace id"` pairs, in the order of the names."""
    if value == ():
        return ()
    if not isinstance(value, dict):
        raise ValueError('expected lines like NAME = "namespace id"')
    if len(value) > LIST_ITEMS_MAX:
        raise ValueError(f"expected at most {LIST_ITEMS_MAX} bindings")
    for name, id_ in value.items():
        if not name.isidentifier() or name.startswith("_"):
            raise ValueError(f"{name} cannot be an attribute of `env`")
        if not isinstance(id_, str) or not is_id(id_):
            raise ValueError(f"{name} needs the id of a namespace: 32 lower-case hexadecimal digits")
    return tuple(sorted(value.items()))


def _profile(value: object) -> Profile:
    try:
        return Profile(_text(value))
    except ValueError:
        raise ValueError("expected spec or clients") from None


def _date(value: object) -> date:
    """TOML has dates of its own, a flag has text."""
    try:
        day = value if type(value) is date else date.fromisoformat(_text(value))
    except ValueError:
        raise ValueError("expected a date as YYYY-MM-DD") from None
    if day < OLDEST:
        raise ValueError(f"expected {OLDEST} or later")
    return day


def _switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("expected true or false")
    return value


class Option(NamedTuple):
    """One setting. `default` is text as on the command line; None means that there is no value.

    `flag` False is a key of the file alone. `many` may be repeated. `fallback` words a default that is no
    text. A `switch` is a flag without a value, and true or false in the file.
    """

    key: str
    metavar: str
    parse: Callable[[object], Any]
    default: str | tuple[str, ...] | bool | None
    help: str
    flag: bool = True
    many: bool = False
    fallback: str = ""
    switch: bool = False

    @property
    def field(self) -> str:
        return self.key.replace("-", "_").replace(".", "_")


OPTIONS: tuple[Option, ...] = (
    Option(
        "data-dir",
        "DIR",
        _path,
        None,
        "Folder that holds everything the server keeps. One server at a time uses it.",
        fallback="`edgestead` in the platform's folder for user data",
    ),
    Option("api", "HOST:PORT", _address, "127.0.0.1:8787", "Where the REST API listens (TCP)."),
    Option("dns", "HOST:PORT", _address, "127.0.0.1:5300", "Where DNS listens (UDP and TCP)."),
    Option("http", "HOST:PORT", _address, "127.0.0.1:8080", "Where the edge proxy listens."),
    Option(
        "edge-address",
        "IP",
        _ip,
        (),
        "Address that proxied names answer, IPv4 or IPv6.",
        many=True,
        fallback="the host of `http` (127.0.0.1), unless that is a wildcard",
    ),
    Option(
        "nameserver",
        "HOST",
        _host_name,
        ("ns1.edge.internal", "ns2.edge.internal"),
        "Name server that new zones name as theirs.",
        many=True,
    ),
    Option(
        "profile",
        "spec|clients",
        _profile,
        "spec",
        "`spec` follows the specification to the letter; `clients` bends where real clients need it.",
    ),
    Option(
        "as-of",
        "YYYY-MM-DD",
        _date,
        None,
        "Day whose behaviour the API shows: shapes of data as they were then.",
        fallback="today",
    ),
    Option(
        "allow-as-of",
        "true|false",
        _switch,
        False,
        "Let each request choose that day with its header `Edge-As-Of`.",
        fallback="`false`",
        switch=True,
    ),
    Option(
        "dns-workers", "N|auto", _workers, "1", "Processes that answer DNS over UDP; auto is one per core."
    ),
    Option(
        "dns-rate",
        "N",
        _whole(0, 1_000_000),
        "0",
        "Answers of one kind that one network (/24, /56) gets over UDP in a second, loopback excepted; 0 is"
        " no limit.",
    ),
    Option(
        "transfer-to",
        "CIDR",
        _prefix,
        (),
        "Addresses that may fetch whole zones (AXFR) and their changes (IXFR).",
        many=True,
        fallback="nobody",
    ),
    Option(
        "notify",
        "HOST:PORT",
        _target,
        (),
        "Secondary that is told of each change of a zone (NOTIFY).",
        many=True,
        fallback="nobody",
    ),
    Option(
        "objects",
        "PATH",
        _objects_source,
        (),
        "Classes of stateful objects: FILE.py, a folder of such files, or a module.",
        many=True,
        fallback="none: there are no stateful objects",
    ),
    Option("objects-http", "HOST:PORT", _address, "127.0.0.1:8788", "Where stateful objects are called."),
    Option(
        "objects-workers",
        "N|auto",
        _workers,
        "1",
        "Processes that run stateful objects; auto is one per core.",
    ),
    Option(
        "objects.bindings",
        "TABLE",
        _bindings,
        (),
        "Key-value namespaces that objects reach as `self.env.NAME`: the table `[objects.bindings]` with"
        ' lines `NAME = "namespace id"`. `objects` is then the key `paths` of the table `[objects]`.',
        flag=False,
        fallback="none",
    ),
    Option(
        "objects-blocked-seconds",
        "N",
        _whole(1, 600),
        "15",
        "How long a class may keep its process from everything else before that process is ended.",
        flag=False,
    ),
    Option(
        "resolver",
        "HOST:PORT",
        _target,
        None,
        "Recursive resolver that is asked for the targets of flattened aliases.",
        fallback="those of the system (/etc/resolv.conf)",
    ),
    Option(
        "ready-file",
        "FILE",
        _path,
        None,
        "Written (0600, JSON) when everything answers, removed at the end.",
        fallback="none is written",
    ),
    Option(
        "crs",
        "PATH",
        _path,
        None,
        "OWASP Core Rule Set that is the managed ruleset: a folder, or a release archive.",
        fallback="the system's package modsecurity-crs; without it there is no managed ruleset",
    ),
    Option(
        "managed-ruleset-id",
        "ID",
        _identifier,
        None,
        "Identifier of the managed ruleset.",
        flag=False,
        fallback="the well-known one, so that existing configurations apply",
    ),
    Option(
        "anomaly-rule-id",
        "ID",
        _identifier,
        None,
        "Identifier of the managed ruleset's last rule, whose overrides set threshold and action.",
        flag=False,
        fallback="the well-known one",
    ),
    Option(
        "api-quota",
        "N",
        _whole(0, 999_999_999),
        "0",
        "Requests to the API that one user may make in five minutes; 0 is no limit.",
    ),
    Option(
        "api-connections-per-address",
        "N",
        _whole(1, 2_048),
        "1024",
        "Connections to the API from one address, or one IPv6 network of 64 bits.",
        flag=False,
    ),
    Option(
        "dns-identity",
        "TEXT",
        _dns_text,
        "",
        "What the server calls itself to those who ask by NSID (RFC 5001) or `id.server` (RFC 4892).",
        flag=False,
        fallback="none: NSID is left out, `id.server` is refused",
    ),
    Option(
        "dns-version",
        "TEXT",
        _dns_text,
        "edgestead",
        "What `version.server` and `version.bind` answer; empty refuses them.",
        flag=False,
    ),
    Option(
        "barrier-ms",
        "N",
        _whole(10, 60_000),
        "250",
        "Time without progress on a change after which a serving process is ended so that the write goes on.",
        flag=False,
    ),
    Option(
        "drain-seconds",
        "N",
        _whole(1, 600),
        "10",
        "How long each step of a shutdown may take before what is left of it is killed.",
        flag=False,
    ),
    Option(
        "history-days",
        "N",
        _whole(1, 36_500),
        "90",
        "How long a zone's history is kept.",
        flag=False,
    ),
    Option(
        "history-rows",
        "N",
        _whole(1, 10_000_000),
        "10000",
        "How many changes of single records a zone's history keeps; the newest change is always kept whole.",
        flag=False,
    ),
)

# Options of parts that are not built yet. They are refused rather than ignored; a part that gets built
# moves its rows to OPTIONS.
NOT_BUILT: dict[str, str] = {
    **dict.fromkeys(
        ("https", "tls-dir", "origin-port", "origin-allow", "trusted-proxies", "edge-workers"),
        "the edge proxy",
    ),
}
# Known to the configuration because something built leans on its default, refused when set.
NOT_BUILT_BUT_KNOWN: dict[str, str] = {"http": "the edge proxy"}

_BY_KEY = {option.key: option for option in OPTIONS}


def default_data_dir() -> Path:
    """The folder that is used when nobody names one."""
    import platformdirs

    return Path(platformdirs.user_data_dir("edgestead", appauthor=False))


def load(flags: Mapping[str, Any], file: Path | None) -> Config:
    """Join defaults, file and flags (by key; absent, None or () when not given).

    Raises ConfigError for an unknown key, a value of the wrong form or a part that is not built.
    """
    given = _flat(_read(file)) if file else {}
    given.update((key, value) for key, value in flags.items() if value is not None and value != ())
    for key in given:
        _refuse_unknown(key)
    values: dict[str, Any] = {option.field: _value(option, given.get(option.key)) for option in OPTIONS}
    values["data_dir"] = values["data_dir"] or default_data_dir()
    return Config(**values)


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
    """The table `[objects]` as the settings `objects` (its `paths`) and `objects.bindings`."""
    table = given.get("objects")
    if not isinstance(table, dict):
        return given
    flat = {key: value for key, value in given.items() if key != "objects"}
    for key, value in table.items():
        flat["objects" if key == "paths" else f"objects.{key}"] = value
    return flat


def _refuse_unknown(key: str) -> None:
    part = NOT_BUILT.get(key) or NOT_BUILT_BUT_KNOWN.get(key)
    if part:
        raise ConfigError(f"{key} cannot be set: {part} is not built yet")
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


def reference_page() -> str:
    """docs/reference/configuration.md."""
    lines = [
        "# Configuration",
        "",
        "`edgecli serve --config FILE` reads its settings from a TOML file. A key that is also a flag of",
        "`edgecli serve` is spelled like the flag without the dashes in front; a flag wins over the file. A",
        "flag that may be repeated is an array. Paths are relative to the folder the server is started in.",
        "Unknown keys, and settings of parts that are not built yet, are refused.",
        "",
        "```toml",
        'api = "127.0.0.1:8787"',
        "dns-workers = 2",
        'nameserver = ["ns1.example.net", "ns2.example.net"]',
        "```",
    ]
    for option in OPTIONS:
        if option.key in NOT_BUILT_BUT_KNOWN:
            continue
        spelled = f"flag `--{option.key}`" if option.flag else "only in the file"
        lines += ["", f"## {option.key}", "", option.help, ""]
        lines.append(f"- value: `{option.metavar}`{', an array of them' if option.many else ''} ({spelled})")
        lines.append(f"- default: {default_words(option)}")
    lines += ["", "## Not built yet", ""]
    refused = NOT_BUILT | NOT_BUILT_BUT_KNOWN
    lines += [f"- `{key}`: {refused[key]}" for key in sorted(refused)]
    return "\n".join(lines) + "\n"


def default_words(option: Option) -> str:
    """What holds where nobody chose, as a reader wants it told."""
    if option.fallback:
        return option.fallback
    values = option.default if isinstance(option.default, tuple) else (option.default,)
    return ", ".join(f"`{value}`" for value in values)
