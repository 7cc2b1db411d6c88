"""The states of a certificate that an authority issues to us, and what leads from one to the next.

Owns  the states, the table of steps, when a step is tried again and when an order is given up, when to renew.
Not   talking to an authority (`server.control`); rows (`usecases.certificate.orders`). Pure.

    state     what is stored           its step                                            then
    wanted    (a served chain)         make a key, order at the authority                  ordered
    ordered   key, the order's URL     learn its proofs, have every DNS process serve them  proving
    proving   proofs, as records or at the edge say that they are there, until the authority saw     ready
    ready     the same                 send the request for the key, fetch the chain       issued
    issued    chain and its key        at the time of renewal                              wanted
    failed    why, and how often       when its pause is over                              wanted

Every step begins from what is stored and may be done twice: a kill at any instant repeats one. What an
authority cannot say now is asked again in the same state, TRIES_MAX times; what it refuses ends the order.
A chain is served until another one takes its place, whatever becomes of the order for that.
"""

import zlib
from typing import Final

import msgspec

WANTED, ORDERED, PROVING, READY = "wanted", "ordered", "proving", "ready"
ISSUED, FAILED = "issued", "failed"
STATES: Final = (WANTED, ORDERED, PROVING, READY, ISSUED, FAILED)
UNDER_WAY: Final = frozenset((WANTED, ORDERED, PROVING, READY))

SECOND_US: Final = 1_000_000
TRIES_MAX: Final = 8  # of one step, in four minutes: longer troubles are the authority's, and end the order
TRY_SECONDS_MAX: Final = 64  # between two tries of one step
BACKOFF_SECONDS: Final = 300  # after the first failure: authorities allow five an hour
BACKOFF_SECONDS_MAX: Final = 12 * 3_600  # between two orders in vain: twice a day is heard of
RETRY_AFTER_SECONDS_MAX: Final = 7 * 86_400  # that an authority may ask for: its longest window
RENEWAL_ASKED_SECONDS: Final = 6 * 3_600  # between two questions for renewal information (RFC 9773 §4.3.3)
_LIFE_PARTS, _LIFE_PARTS_USED = 3, 2  # renewed when two thirds of its life are over
_JITTER_PARTS = 20  # of a life: certificates of one hour are not all renewed in one


class Progress(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of an order, and shown of a chain. Times are Unix microseconds.

    `directory` is the authority of the order under way, or of the chain; `method` how it sees a proof.
    `tries` counts this step in vain, `failures` orders in a row; `error` is of the last one. `since_us` is
    when the state began. `next_hosts` are the names of the order under way, where they are others than the
    chain's.
    """

    directory: str = ""
    method: str = "txt"
    order_url: str = ""
    tries: int = 0
    failures: int = 0
    error: str = ""
    since_us: int = 0
    issuer: str = ""
    signature: str = ""
    next_hosts: tuple[str, ...] = ()


read_progress = msgspec.json.Decoder(Progress).decode


def text_of(progress: Progress) -> str:
    return msgspec.json.encode(progress).decode()


def next_try_us(now_us: int, tries: int) -> int:
    """When a step is tried again that failed so often."""
    return now_us + min(1 << tries, TRY_SECONDS_MAX) * SECOND_US


def next_order_us(now_us: int, failures: int, authorities: int, retry_after_seconds: float) -> int:
    """When to order again after so many failures in a row: at each authority once, then with a pause that
    doubles; never before the authority said, unless another one is next."""
    rounds, turn = divmod(failures - 1, max(1, authorities))
    if turn < authorities - 1:
        return now_us + SECOND_US
    seconds = min(BACKOFF_SECONDS << min(rounds, 16), BACKOFF_SECONDS_MAX)
    return now_us + int(max(seconds, min(retry_after_seconds, RETRY_AFTER_SECONDS_MAX)) * SECOND_US)


def renewal_us(certificate_id: str, starts_us: int, ends_us: int) -> int:
    """When to renew as long as the authority says nothing else."""
    life_us = ends_us - starts_us
    spread_us = life_us // _JITTER_PARTS
    early_us = zlib.crc32(certificate_id.encode()) * spread_us >> 32
    return starts_us + life_us * _LIFE_PARTS_USED // _LIFE_PARTS - early_us
