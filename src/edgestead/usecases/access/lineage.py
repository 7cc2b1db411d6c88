"""Which token made which, and what follows for their rights.

Owns  the tokens above and below one, and the bounds that those above are to it.
Not   who may make, change or end a token (`tokens`, `grants`).

    T ── made ──► S ── made ──► R        `parent_id` of S is T, of R is S

S is never wider than T, nor good for longer or from more places: checked when S is made or changed, and with
each request, because T may have been narrowed since. What T loses, S and R lose with the same commit; what T
gets back, they have again.

    T is            S and R are
    changed         what both allow: rules, addresses, the later `not_before`, the earlier `expires_on`
    disabled, over  the same, for as long
    rolled          as before: a secret is no right
    deleted         one level up (S is T's parent's), and disabled if T held S back at that moment: a deletion
                    never gives anybody more
    deleted with    deleted
    its successors

A token that was made with the key pair, or by a version without lineages, has no parent.
"""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from edgestead.store.control import Reader
from edgestead.tables import tokens
from edgestead.tables.tokens import TokenRow
from edgestead.usecases.access.authorise import Identity
from edgestead.usecases.limits import TOKEN_LINEAGE_MAX


def above(row: TokenRow, by_id: Callable[[str], TokenRow | None]) -> Iterator[TokenRow]:
    """The tokens that a token comes from, nearest first."""
    for _ in range(TOKEN_LINEAGE_MAX):
        parent = None if row.parent_id is None else by_id(row.parent_id)
        if parent is None:
            return
        yield parent
        row = parent


def rows_above(reader: Reader, row: TokenRow) -> list[TokenRow]:
    return list(above(row, lambda token_id: tokens.by_id(reader, token_id)))


def rows_below(reader: Reader, row: TokenRow) -> list[TokenRow]:
    """Every token that comes from this one, the nearest first."""
    found = tokens.of_parent(reader, row.id)
    for one in found:  # it grows meanwhile
        found += tokens.of_parent(reader, one.id)
    return found


def bounded(alone: Identity, above: Sequence[Identity]) -> Identity:
    """What is left of a token's rights below these."""
    if not above:
        return alone
    levels = (alone, *above)
    return msgspec.structs.replace(
        alone,
        full=all(level.full for level in levels),
        status=next((level.status for level in levels if level.status != "active"), "active"),
        not_before_us=max((at for level in levels if (at := level.not_before_us) is not None), default=None),
        expires_us=min((at for level in levels if (at := level.expires_us) is not None), default=None),
        above=tuple(one for one in above if not one.full or one.addresses or one.addresses_refused),
    )
