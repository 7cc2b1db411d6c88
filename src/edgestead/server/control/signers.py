"""TSIG keys of the database, opened in control for what is signed or judged there.

Owns  a row as a key that signs.
Not   how secrets are sealed (`usecases.account.tsig_keys`); signatures (`dns.tsig`).
"""

from edgestead.dns.tsig import Key
from edgestead.model import names
from edgestead.tables.tsig_keys import TsigRow
from edgestead.usecases.account.tsig_keys import secret_of
from edgestead.usecases.platform import Platform


def signer(platform: Platform, row: TsigRow) -> Key:
    """Raises TsigSealed."""
    algorithm = bytes((len(row.algorithm),)) + row.algorithm.encode() + b"\0"
    return Key(names.wire_from_text(row.name), algorithm, secret_of(platform, row))
