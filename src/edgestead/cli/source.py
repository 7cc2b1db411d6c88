"""Where the API is and who we are: both from one source, never mixed.

Owns  the names of the variables, their order, and what is missing when a source is incomplete.
Not   sending anything. Imports the standard library only.

A credential goes to no other host than the one that its own source names. There is no default remote host:
without an address nothing is sent.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from edgestead.cli.failure import Failed

STATE_BYTES_MAX = 1 << 20
DATA_DIR_VARIABLE = "EDGE_DATA_DIR"  # the same as in `config`, which is slow to import


class Source(NamedTuple):
    """`name` says in messages where the address came from."""

    name: str
    api_base: str
    headers: dict[str, str]
    account_id: str | None


class _Variables(NamedTuple):
    """The variables of one source; the first one that is set counts."""

    address: tuple[str, ...]
    token: tuple[str, ...]
    key: tuple[str, ...]
    email: tuple[str, ...]
    account: tuple[str, ...]


OUR_VARIABLES = _Variables(
    ("EDGE_API_BASE", "EDGE_API_BASE_URL"),
    ("EDGE_TOKEN", "EDGE_API_TOKEN"),
    ("EDGE_KEY", "EDGE_API_KEY"),
    ("EDGE_EMAIL",),
    ("EDGE_ACCOUNT_ID",),
)
OBJECTS_VARIABLE = "EDGE_OBJECTS_ADDR"  # HOST:PORT
# What clients of the compatible API read.
THEIR_VARIABLES = _Variables(
    ("CLOUDFLARE_API_BASE_URL", "CLOUDFLARE_BASE_URL"),
    ("CLOUDFLARE_API_TOKEN",),
    ("CLOUDFLARE_API_KEY",),
    ("CLOUDFLARE_EMAIL",),
    ("CLOUDFLARE_ACCOUNT_ID",),
)


def find_source(environ: Mapping[str, str], *otherwise: str) -> Source:
    """The first source that names an address. `otherwise` says what a command can do without a server.

    Raises Failed when EDGE_* is set by halves, when a source has an address without credentials, and when
    nobody names an address.
    """
    ours = _from_variables(OUR_VARIABLES, environ)
    if ours is not None:
        return ours
    if any(environ.get(name) for name in (*OUR_VARIABLES.token, *OUR_VARIABLES.key)):
        raise Failed(
            "There is a token or key in the environment (EDGE_*), but no address for it.",
            "Set EDGE_API_BASE to the server's address, which ends in /client/v4.",
        )
    found = _from_variables(THEIR_VARIABLES, environ) or local_server(default_data_dir(environ))
    if found is None:
        raise Failed(
            "No server is named and none is running on this machine.",
            "Start one with `edgecli serve`, or set EDGE_API_BASE and EDGE_TOKEN.",
            *otherwise,
        )
    return found


def find_objects_source(environ: Mapping[str, str]) -> Source:
    """The address where stateful objects are called, from EDGE_OBJECTS_ADDR or the server on this machine.

    Raises Failed when nobody names one, or when a server is named and its objects are not.
    """
    named = _from_variables(OUR_VARIABLES._replace(address=(OBJECTS_VARIABLE,)), environ)
    if named is not None:
        return named._replace(api_base=f"http://{named.api_base}")
    others = (*OUR_VARIABLES.address, *THEIR_VARIABLES.address)
    variable = next((name for name in others if environ.get(name)), None)
    if variable is not None:
        raise Failed(
            f"{variable} names a server, but {OBJECTS_VARIABLE} does not say where its objects are.",
            'eval "$(edgecli env)" sets both.',
        )
    found = local_server(default_data_dir(environ), "objects")
    if found is None:
        raise Failed(
            "No server that runs objects is named, and none is running on this machine.",
            f"Start one with `edgecli serve --objects FILE.py`, or set {OBJECTS_VARIABLE} and EDGE_TOKEN.",
        )
    return found._replace(api_base=f"http://{found.api_base}")


def _from_variables(names: _Variables, environ: Mapping[str, str]) -> Source | None:
    address = _first(names.address, environ)
    if address is None:
        return None
    token, key, email = (_first(group, environ) for group in (names.token, names.key, names.email))
    variable, value = address
    account = _first(names.account, environ)
    if token is not None:
        headers = {"Authorization": f"Bearer {header_value(*token)}"}
    elif key is not None and email is not None:
        headers = {"X-Auth-Email": header_value(*email), "X-Auth-Key": header_value(*key)}
    else:
        raise Failed(
            f"{variable} names a server, but there are no credentials for it.",
            f"Set {names.token[0]}, or {names.key[0]} and {names.email[0]}.",
        )
    return Source(variable, value, headers, account[1] if account else None)


def _first(names: tuple[str, ...], environ: Mapping[str, str]) -> tuple[str, str] | None:
    return next(((name, environ[name]) for name in names if environ.get(name)), None)


def header_value(variable: str, text: str) -> str:
    """Raises Failed, without the text: it is a secret."""
    if not text.isascii() or not text.isprintable() or " " in text:
        raise Failed(f"{variable} holds a character that cannot be sent in a header.")
    return text


def default_data_dir(environ: Mapping[str, str]) -> Path:
    """The folder that `edgecli serve` uses when nobody names one.

    What platformdirs says, without its import on Linux.
    """
    if sys.platform != "linux":
        from edgestead.config import default_data_dir as ask_platform

        return ask_platform()
    if named := environ.get(DATA_DIR_VARIABLE):
        return Path(named)
    base = environ.get("XDG_DATA_HOME", "").strip()
    return Path(base or os.path.expanduser("~/.local/share"), "edgestead")


def local_server(folder: Path, member: str = "api_base") -> Source | None:
    """A server that runs here: its address from server.json, its first token from credentials.json.

    None also when it does not have the part that `member` is the address of.
    """
    state = _read_object(folder / "server.json")
    kept = _read_object(folder / "credentials.json")
    if state is None or kept is None or state.get(member) is None:
        return None
    try:
        return Source(
            str(folder / "server.json"),
            str(state[member]),
            {"Authorization": f"Bearer {kept['api_token']}"},
            str(kept["account_id"]),
        )
    except KeyError:
        return None


def _read_object(path: Path) -> dict[str, object] | None:
    import json

    try:
        with path.open("rb") as file:
            value = json.loads(file.read(STATE_BYTES_MAX))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise Failed(
            f"{path} cannot be read: {getattr(error, 'strerror', None) or 'it is not JSON'}"
        ) from None
    return value if isinstance(value, dict) else None
