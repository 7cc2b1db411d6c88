"""Making the database agree with the credentials file.

Owns  which of the two gives way: the file says the secrets, the database who they belong to.
Not   hashing; the admin socket.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec

from edgestead.server import credentials
from edgestead.server.credentials import Credentials
from edgestead.store.control import Reader, Transaction
from edgestead.tables import accounts
from edgestead.usecases import audit
from edgestead.usecases.access import credentials as stored


def owner_of(reader: Reader, kept: Credentials) -> Credentials:
    """The file's secrets for the account that there is: a file made anew must not make a second one."""
    if accounts.account(reader, kept.account_id) is not None:
        return kept
    account, user = accounts.accounts(reader, 1, 0), accounts.users(reader)
    if not account or not user:
        return kept
    return msgspec.structs.replace(kept, account_id=account[0].id, email=user[0].email)


def is_let_in(reader: Reader, kept: Credentials) -> bool:
    """Whether these are the newest: a renewal changes key and token together."""
    return stored.is_key_of(reader, kept.email, kept.api_key)


def install(
    kept: Credentials, now_us: int, new_id: Callable[[], str], command: str = ""
) -> Callable[[Transaction], None]:
    """The write that lets in exactly the file's key and token, and whoever else may stay. A `command` that
    asked for it is audited once, however often the same are let in.
    """

    def write(tx: Transaction) -> None:
        if command and not is_let_in(tx, kept):
            audit.note_command(tx, now_us, command, "credentials", kept.account_id)
        stored.install(
            tx,
            stored.Credentials(
                account_id=kept.account_id, email=kept.email, api_key=kept.api_key, api_token=kept.api_token
            ),
            revoke_others=kept.revoke_others,
            now_us=now_us,
            new_id=new_id,
        )

    return write


def settle_file(data_dir: Path, before: Credentials, installed: Credentials) -> None:
    """After the commit: the file says whose it is, and no longer asks for what is done."""
    settled = msgspec.structs.replace(installed, revoke_others=False)
    if settled != before:
        credentials.write(data_dir, settled)
