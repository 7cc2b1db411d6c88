"""What the server's own settings may be besides numbers and choices (`model.checks`), and what they become.

Owns  the parsers of addresses, names, paths and the like.
Not   which settings there are.

A parser takes a flag's text or a TOML value, and raises ValueError with what was expected.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import date
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from edgestead.changes import OLDEST
from edgestead.model import access, names
from edgestead.model.call import Profile
from edgestead.model.checks import Between, Choice
from edgestead.model.ids import is_id
from edgestead.model.limits import NAME_OCTETS_MAX
from edgestead.model.log_text import LogForm
from edgestead.model.web_address import is_safe

WORKERS_MAX = 64  # more cores than one machine gives to one of its parts
SPARES_MAX = 4  # each is 45 MiB, and is there again seconds after it was needed
LIST_ITEMS_MAX = 64  # of one setting: each is looked at for each request or change
UNIX_PATH_OCTETS_MAX = 107  # `sun_path` of Linux, without its end
SHORT_TEXT_MAX = 255  # a name for people, an identifier
DNS_TEXT_MAX = 255  # one character-string (RFC 1035 §3.3)

_LOG_LEVEL = Choice(("debug", "info", "warning", "error"))


class Address(NamedTuple):
    """Where to listen. `port` 0 means any free one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_wildcard(self) -> bool:
        return ip_address(self.host).is_unspecified


class Target(NamedTuple):
    """Where to send; `key` is the name of the TSIG key that signs it, "" for none."""

    host: str
    port: int
    key: str = ""


def text(value: object) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError("expected text")
    return value


def path(value: object) -> Path:
    return Path(text(value)).expanduser().absolute()


def address(value: object) -> Address:
    host, colon, port = text(value).rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    if bare == "localhost":
        bare = "127.0.0.1"
    if not colon or (":" in bare) != host.startswith("["):
        raise ValueError("expected HOST:PORT, with an IPv6 address in brackets")
    try:
        ip_address(bare)
    except ValueError:
        raise ValueError("expected an IP address or localhost before the port") from None
    return Address(bare, whole(0, 65_535)(port))


def ip(value: object) -> IPv4Address | IPv6Address:
    try:
        address = ip_address(text(value))
    except ValueError:
        raise ValueError("expected an IPv4 or IPv6 address") from None
    if address.is_unspecified or address.is_multicast or "%" in str(address):
        raise ValueError("expected the address of one machine")
    return address


def prefix(value: object) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text(value))
    except ValueError:
        raise ValueError("expected an address or a prefix like 192.0.2.0/24, without host bits") from None


def target(value: object) -> Address:
    target = address(value)
    if target.is_wildcard or not target.port:
        raise ValueError("expected the address of one machine, and its port")
    return target


def signed_target(value: object) -> Target:
    key, at, where = text(value).rpartition("@")
    if not at:
        return Target(*target(where))
    try:
        return Target(*target(where), names.text_from_wire(names.wire_from_text(key)))
    except names.InvalidName as error:
        raise ValueError(f"the name of a TSIG key before the @: {error.reason}") from None


class Acme(NamedTuple):
    """Whom authorities write to, and their directories in the order in which they are asked."""

    email: str
    directories: tuple[str, ...]


ACME_DIRECTORIES = {  # by the words that stand for them
    "letsencrypt": "https://acme-v02.api.letsencrypt.org/directory",
    "staging": "https://acme-staging-v02.api.letsencrypt.org/directory",
}
ACME_DIRECTORIES_MAX = 8  # each is asked once before a pause


def acme(value: object) -> Acme:
    email, *given = text(value).split(",")
    local, at, domain = email.partition("@")
    if not (local and at and "." in domain) or set(email) & set(" <>\t\r\n"):
        raise ValueError("expected EMAIL or EMAIL,DIRECTORY")
    found = tuple(dict.fromkeys(_directory(one) for one in given or ("letsencrypt",)))
    if len(found) > ACME_DIRECTORIES_MAX:
        raise ValueError(f"expected at most {ACME_DIRECTORIES_MAX} directories")
    return Acme(email, found)


def _directory(text: str) -> str:
    url = ACME_DIRECTORIES.get(text, text)
    if not url.startswith("https://") or not urlsplit(url).hostname:
        words = " or ".join(ACME_DIRECTORIES)
        raise ValueError(f"expected an authority's directory like https://acme.example/directory, or {words}")
    return url


def web_address(value: object) -> str:
    url = text(value)
    if not is_safe(url) or "?" in url:
        raise ValueError("expected an address like https://login.example.com, or http:// on this machine")
    return url


def bucket(value: object) -> str:
    url = text(value)
    if not is_safe(url) or "?" in url or not urlsplit(url).path.strip("/"):
        raise ValueError(
            "expected a bucket's address like https://s3.example.com/bucket, or http:// on this machine"
        )
    return url


def short_text(value: object) -> str:
    found = text(value)
    if len(found) > SHORT_TEXT_MAX or not found.isprintable():
        raise ValueError(f"expected text of at most {SHORT_TEXT_MAX} characters in one line")
    return found


def log_level(value: object) -> int:
    return logging.getLevelNamesMapping()[_LOG_LEVEL.read(value).upper()]


def log_form(value: object) -> LogForm | None:
    """None for `auto`: whoever opens the log knows whether people see it."""
    match value:
        case "text" | "json":
            return value
        case "auto":
            return None
    raise ValueError("expected one of auto, text, json")


def access_log(value: object) -> str:
    """A file's path, `unix:` and a socket's, or a URL."""
    where = text(value)
    if where.startswith("unix:"):
        if not 0 < len(where.removeprefix("unix:").encode()) <= UNIX_PATH_OCTETS_MAX:
            raise ValueError("expected a socket's path behind unix:, of 107 octets at most")
    elif "://" in where:
        url = urlsplit(where)
        if url.scheme not in ("http", "https") or not url.hostname or url.username is not None:
            raise ValueError("expected a URL like https://logs.example/ingest, without credentials")
        _ = url.port  # raises ValueError where it is no number
    elif where.endswith("/"):
        raise ValueError("expected a file, and not a folder")
    return where


def access_log_form(value: object) -> str:
    return Choice(access.FORMS).read(value)


def access_field(value: object) -> str:
    return Choice(tuple(access.FIELDS)).read(value)


def host_name(value: object) -> str:
    name = text(value).lower().removesuffix(".")
    labels = name.split(".")
    letters = set("abcdefghijklmnopqrstuvwxyz0123456789-")
    for label in labels:
        if not 0 < len(label) <= 63 or not set(label) <= letters or label[0] == "-" or label[-1] == "-":
            raise ValueError("expected a host name like ns1.example.net")
    if len(name) + 2 > NAME_OCTETS_MAX or len(labels) < 2:
        raise ValueError("expected a host name like ns1.example.net")
    return name


def name_or_ip(value: object) -> str:
    try:
        return str(ip_address(text(value)))
    except ValueError:
        return host_name(value)


def whole(lowest: int, highest: int) -> Callable[[object], int]:
    return Between(lowest, highest, takes_fractions=False).read


def seconds(lowest: float, highest: float) -> Callable[[object], float]:
    """Parts of a second, too."""

    def read(value: object) -> float:
        with suppress(ValueError):
            if isinstance(value, int | float | str) and not isinstance(value, bool):
                if lowest <= (number := float(value)) <= highest:
                    return number
        raise ValueError(f"expected a number from {lowest:g} to {highest:g}")

    return read


def spares(value: object) -> int:
    """How many are kept. False and true are none and one."""
    if isinstance(value, bool):
        return int(value)
    try:
        return whole(0, SPARES_MAX)(value)
    except ValueError as error:
        raise ValueError(f"{error}, or true or false") from None


def stale(value: object) -> str:
    return Choice(("serve", "stop")).read(value)


def reads(value: object) -> str:
    return Choice(("current", "stale")).read(value)


def workers(value: object) -> int:
    """0 stands for `auto`: the caller knows the machine, this module does not ask it."""
    if value == "auto":
        return 0
    try:
        return whole(1, WORKERS_MAX)(value)
    except ValueError as error:
        raise ValueError(f"{error}, or auto") from None


def mebibytes(value: object) -> int:
    """0 stands for `auto`, as with `workers`."""
    if value == "auto":
        return 0
    try:
        return whole(64, 1 << 30)(value)
    except ValueError as error:
        raise ValueError(f"{error}, or auto") from None


def identifier(value: object) -> str:
    id_ = text(value)
    if not is_id(id_):
        raise ValueError("expected 32 lower-case hexadecimal digits")
    return id_


def dns_text(value: object) -> str:
    good = isinstance(value, str) and value.isascii() and value.isprintable()
    if not isinstance(value, str) or not good or len(value) > DNS_TEXT_MAX:
        raise ValueError(f"expected at most {DNS_TEXT_MAX} printable ASCII characters")
    return value


def objects_source(value: object) -> str:
    """A file or folder as its absolute path, a module by its dotted name."""
    source = text(value)
    found = Path(source).expanduser()
    if source.endswith(".py") or "/" in source or source[0] in ".~" or found.exists():
        return str(found.absolute())
    if not all(part.isidentifier() for part in source.split(".")):
        raise ValueError("expected FILE.py, a folder, or a module like package.module")
    return source


def bindings(value: object) -> tuple[tuple[str, str], ...]:
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


def profile(value: object) -> Profile:
    try:
        return Profile(text(value))
    except ValueError:
        raise ValueError("expected spec or clients") from None


def day(value: object) -> date:
    """TOML has dates of its own, a flag has text."""
    try:
        day = value if type(value) is date else date.fromisoformat(text(value))
    except ValueError:
        raise ValueError("expected a date as YYYY-MM-DD") from None
    if day < OLDEST:
        raise ValueError(f"expected {OLDEST} or later")
    return day


def switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("expected true or false")
    return value
