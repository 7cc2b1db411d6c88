"""The serials of a zone: what it begins with, and what follows.

Owns  counting; which serials of deleted zones are remembered, and for how long.
Not   which change makes a new one (`usecases.change.edit`).

A zone begins with the time, or with one more than its last serial when that was ahead: one that changes more
often than once a second has a serial ahead of the clock. Created again with the time, it would look older
than what its secondaries hold, and they would not fetch it (RFC 1982 §3.2).
"""

from edgestead.store.control import Reader, Transaction
from edgestead.tables import settings

SERIAL_END = 1 << 32
_SCOPE = "serials"  # of settings; no zone, account or user has this id
_SECOND_US = 1_000_000


def next_serial(serial: int) -> int:
    """RFC 1982 §3.1: the number after the last is 0."""
    return (serial + 1) % SERIAL_END


def of_soa(soa_rdata: bytes) -> int:
    """RFC 1035 §3.3.13: five numbers end an SOA's RDATA, the serial is the first."""
    return int.from_bytes(soa_rdata[-20:-16], "big")


def at_birth(reader: Reader, name: str, now_us: int) -> int:
    """The serial of a zone that is made now."""
    stored = settings.one(reader, _SCOPE, name)
    return _of_time(now_us) if stored is None else later(int(stored.value), now_us)


def later(serial: int, now_us: int) -> int:
    """The time as a serial, or what follows one that is ahead of it."""
    now = _of_time(now_us)
    return next_serial(serial) if _is_ahead(serial, now) else now


def remember(tx: Transaction, name: str, serial: int, now_us: int) -> None:
    """A zone goes. Forgets the serials of others that time has caught up with."""
    now = _of_time(now_us)
    for other, stored in settings.all_of(tx, _SCOPE).items():
        if not _is_ahead(int(stored.value), now):
            settings.delete(tx, _SCOPE, other)
    if _is_ahead(serial, now):
        settings.put(tx, _SCOPE, name, str(serial), now_us)


def _of_time(now_us: int) -> int:
    return now_us // _SECOND_US % SERIAL_END


def _is_ahead(serial: int, now: int) -> bool:
    """Whether a serial is the time's or later, in the circle of RFC 1982."""
    return (serial - now) % SERIAL_END < SERIAL_END // 2
