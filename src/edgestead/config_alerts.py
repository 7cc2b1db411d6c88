"""The tables `[[alert]]` of the configuration: who receives alerts, and of what.

Owns  the keys of such a table, their checks and defaults.
Not   sending; the secrets themselves, which stay in files or the environment.
"""

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from edgestead import config_values as values
from edgestead.model.checks import Choice
from edgestead.model.counters import HEALTH_CHECKS

RECIPIENTS_MAX = 20  # of one receiver's mail: more is what a mailing list is for
TEXT_MAX = 500  # characters of an address or a path
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
_MAIL = re.compile(r"[^@\s<>,\x00-\x1f]{1,64}@[^@\s<>,\x00-\x1f]{1,253}")


class Receiver(msgspec.Struct, frozen=True, kw_only=True):
    """Who is sent alerts: `webhook` is a URL, or else `email_to` are addresses."""

    name: str
    webhook: str = ""
    secret_file: str = ""
    secret_env: str = ""
    ca_file: str = ""
    email_to: tuple[str, ...] = ()
    email_from: str = ""
    smtp_host: str = ""
    smtp_port: int = 0
    smtp_security: str = "starttls"
    smtp_user: str = ""
    smtp_password_file: str = ""
    smtp_password_env: str = ""
    checks: tuple[str, ...] = ()
    level: str = "warn"
    hold_seconds: int = 60
    repeat_hours: int = 24


class Key(NamedTuple):
    """One key of the table. `default` is what the page says of it."""

    name: str
    metavar: str
    parse: Callable[[object], Any]
    default: str
    help: str


def _name(value: object) -> str:
    name = values.text(value)
    if not _NAME.fullmatch(name):
        raise ValueError("expected at most 32 lower-case letters, digits and dashes")
    return name


def _short(value: object) -> str:
    found = values.text(value)
    if len(found) > TEXT_MAX or not found.isprintable():
        raise ValueError(f"expected at most {TEXT_MAX} printable characters")
    return found


def _file(value: object) -> str:
    return str(values.path(_short(value)))


def _url(value: object) -> str:
    url = urlsplit(_short(value))
    try:
        port_is_good = url.port is None or url.port > 0
    except ValueError:
        port_is_good = False
    if url.scheme not in ("http", "https") or not url.hostname or url.username or not port_is_good:
        raise ValueError("expected a URL like https://hooks.example.com/edge, without credentials")
    return url.geturl()


def _mail(value: object) -> str:
    address = values.text(value)
    if not _MAIL.fullmatch(address) or not address.isascii():
        raise ValueError("expected an address like ops@example.com")
    return address


def _mails(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not 0 < len(value) <= RECIPIENTS_MAX:
        raise ValueError(f"expected a list of at most {RECIPIENTS_MAX} addresses")
    return tuple(map(_mail, value))


def _smtp(value: object) -> tuple[str, int]:
    host, _, port = _short(value).rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host:
        raise ValueError("expected HOST:PORT")
    return host, values.whole(1, 65_535)(port)


def _checks(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or len(value) > len(HEALTH_CHECKS):
        raise ValueError("expected a list of checks")
    for one in value:
        if one not in HEALTH_CHECKS:
            raise ValueError(f"there is no check {one!r}; there are {', '.join(HEALTH_CHECKS)}")
    return tuple(value)


KEYS: Final[tuple[Key, ...]] = (
    Key("name", "NAME", _name, "none: it has to be given", "What `edgecli alert` and the log call it."),
    Key("webhook", "URL", _url, "none", "Gets a POST with JSON for each message; `http` or `https`."),
    Key("secret-file", "FILE", _file, "none", "Its first line signs each POST (`Edge-Signature`)."),
    Key("secret-env", "VARIABLE", _short, "none", "The same, from the server's environment."),
    Key("ca-file", "FILE", _file, "the system's", "Certificates (PEM) that vouch for the receiver."),
    Key("email-to", "ADDRESSES", _mails, "none", "Who gets a mail for each message, instead of `webhook`."),
    Key("email-from", "ADDRESS", _mail, "the first of `email-to`", "The sender of the mails."),
    Key("smtp", "HOST:PORT", _smtp, "none", "The server that takes the mails."),
    Key(
        "smtp-security",
        "starttls|tls|none",
        Choice(("starttls", "tls", "none")).read,
        "`starttls`",
        "How the connection to it is protected. Without protection no password is sent.",
    ),
    Key("smtp-user", "NAME", _short, "none", "Who logs in there."),
    Key("smtp-password-file", "FILE", _file, "none", "Its first line is the password; read for each mail."),
    Key("smtp-password-env", "VARIABLE", _short, "none", "The same, from the server's environment."),
    Key("checks", "CHECKS", _checks, "all of them", "The checks that this receiver gets alerts of."),
    Key("level", "warn|fail", Choice(("warn", "fail")).read, "`warn`", "From which state of a row on."),
    Key(
        "hold-seconds",
        "N",
        values.whole(0, 86_400),
        "`60`",
        "How long a row has to be not well, or well again, before that is sent.",
    ),
    Key(
        "repeat-hours",
        "N",
        values.whole(0, 8_760),
        "`24`",
        "After how long a message is repeated while nothing has changed; 0 never.",
    ),
)
_BY_NAME = {key.name: key for key in KEYS}


def receiver(value: object) -> Receiver:
    """One table. Raises ValueError with what is wrong."""
    if not isinstance(value, dict):
        raise ValueError("expected a table [[alert]]")
    given: dict[str, Any] = {}
    for name, one in value.items():
        if name not in _BY_NAME:
            raise ValueError(f"unknown key {name}; there are {', '.join(_BY_NAME)}")
        try:
            given[name.replace("-", "_")] = _BY_NAME[name].parse(one)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    if "smtp" in given:
        given["smtp_host"], given["smtp_port"] = given.pop("smtp")
    if "name" not in given:
        raise ValueError("it needs a name")
    made = Receiver(**given)
    _check_whole(made)
    return made


def _check_whole(made: Receiver) -> None:
    if bool(made.webhook) is bool(made.email_to):
        raise ValueError("it needs either webhook or email-to")
    if made.email_to and not made.smtp_host:
        raise ValueError("email-to needs smtp")
    if made.smtp_user and not (made.smtp_password_file or made.smtp_password_env):
        raise ValueError("smtp-user needs smtp-password-file or smtp-password-env")
    if made.smtp_user and made.smtp_security == "none":
        raise ValueError("a password is not sent without protection: smtp-security has to be starttls or tls")
