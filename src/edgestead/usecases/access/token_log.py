"""Who made, changed, rolled and deleted tokens.

Owns  what is written down of a change, and its JSON shape.
Not   what a token allows: neither secrets nor policies are written down.
"""

import msgspec

from edgestead.model.call import Actor, Call
from edgestead.model.envelope import Listed
from edgestead.model.times import six_digits
from edgestead.store.control import Reader, Transaction
from edgestead.tables import token_log
from edgestead.tables.token_log import LogRow
from edgestead.tables.tokens import TokenRow
from edgestead.usecases.access.token_draft import Owner
from edgestead.usecases.platform import Platform

FORGOTTEN_ROWS_MAX = 500  # deleted in one transaction

_actor = msgspec.json.Decoder(Actor).decode


class NamedToken(msgspec.Struct, frozen=True):
    id: str
    name: str


class LogView(msgspec.Struct, frozen=True):
    """`action` is create, update, roll or delete."""

    id: str
    made_on: str
    made_by: Actor
    request_id: str
    action: str
    token: NamedToken


def note(call: Call, tx: Transaction, platform: Platform, action: str, row: TokenRow) -> None:
    """Write one change down, in its transaction."""
    token_log.insert(
        tx,
        LogRow(
            platform.new_id(),
            row.owner_kind,
            row.owner_id,
            call.now_us,
            action,
            row.id,
            row.name,
            call.actor.text,
            call.request_id,
        ),
    )


def listed(reader: Reader, owner: Owner, *, limit: int, offset: int) -> Listed:
    """Changes of an owner's tokens, newest first."""
    rows = token_log.listed(reader, *owner, limit, offset)
    return Listed([_view(row) for row in rows], token_log.count(reader, *owner))


def forget(tx: Transaction, rows_max: int, older_than_us: int) -> bool:
    """Forget some of what is too old or too much; True when there may be more."""
    return token_log.delete_some(tx, older_than_us, rows_max, FORGOTTEN_ROWS_MAX) > 0


def _view(row: LogRow) -> LogView:
    return LogView(
        row.id,
        six_digits(row.made_us),
        _actor(row.actor),
        row.request_id,
        row.action,
        NamedToken(row.token_id, row.token_name),
    )
