"""The first account's credentials, as the data folder keeps them.

Owns  `DIR/credentials.json`: making it, renewing it, reading it.
Not   hashing and storing them (`usecases`), permissions of other tokens.

The file is the truth of the first token: at each start, and at each renewal, control makes its database
agree with it. So a renewal that dies half-way is finished by the next start.
"""

import secrets
from pathlib import Path

import msgspec

from edgestead.model.ids import new_token_text
from edgestead.server import files
from edgestead.server.errors import StartError

FILE_NAME = "credentials.json"
_EMAIL = "admin@edge.internal"
_GENERATION_OCTETS = 4


class Credentials(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`api_token` is 40 characters of [A-Za-z0-9_-], `api_key` 37 hexadecimal digits, `account_id` 32.

    `revoke_others` asks control to revoke every other token when it first meets this `api_token`.
    `generation` names the renewal: each has another.
    """

    account_id: str
    email: str
    api_key: str
    api_token: str
    revoke_others: bool = False
    generation: str = ""

    def __repr__(self) -> str:
        return (
            f"Credentials(account_id={self.account_id!r}, ...)"  # never the secrets, not even in a traceback
        )


def load_or_make(data_dir: Path) -> Credentials:
    """The folder's credentials; the first start makes them. Raises StartError when the file is unreadable."""
    found = read(data_dir)
    if found is not None:
        return found
    nobody = Credentials(account_id=secrets.token_hex(16), email=_EMAIL, api_key="", api_token="")
    made = renewed(nobody, revoke_others=False)
    write(data_dir, made)
    return made


def renewed(old: Credentials, *, revoke_others: bool) -> Credentials:
    """The same account and user with a new key and token."""
    return msgspec.structs.replace(
        old,
        api_key=secrets.token_hex(19)[:37],
        api_token=new_token_text(),
        revoke_others=revoke_others,
        generation=secrets.token_hex(_GENERATION_OCTETS),
    )


def generation(data_dir: Path) -> str:
    """Which renewal the folder's credentials are of; empty where there are none. Raises StartError."""
    found = read(data_dir)
    return "" if found is None else found.generation


def read(data_dir: Path) -> Credentials | None:
    path = data_dir / FILE_NAME
    try:
        content = files.read_private(path)
        return msgspec.json.decode(content, type=Credentials) if content is not None else None
    except OSError as error:
        raise StartError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        # The decoder's words may quote the content: they stay here.
        raise StartError(
            f"{path} is not a credentials file; restore it, or move it away for new ones"
        ) from None


def write(data_dir: Path, credentials: Credentials) -> None:
    path = data_dir / FILE_NAME
    try:
        files.replace_private(path, msgspec.json.format(msgspec.json.encode(credentials)) + b"\n")
    except OSError as error:
        raise StartError(f"{path} cannot be written: {error.strerror}") from None
