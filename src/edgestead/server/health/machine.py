"""Facts of the machine and of the addresses of a server, as its folder names them.

Owns  reading them.
Not   what follows from them (`health.setup`).
"""

import ctypes
import resource
from pathlib import Path
from urllib.parse import urlsplit

from edgestead.health.setup import Listening, Machine, Setup
from edgestead.server.folder import State, read_state

_TIMEX_BYTES = 1_024  # more than struct timex has on any machine
_TIME_ERROR = 5  # adjtimex(2): nobody keeps the clock right


def setup(folder: Path) -> Setup | None:
    """None while the server does not run, or has not told its addresses yet."""
    state = read_state(folder)
    return Setup(machine(), listening(state), state.https is not None) if state else None


def machine() -> Machine:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return Machine(hard, _clock_is_kept())


def _clock_is_kept() -> bool:
    adjtimex = getattr(ctypes.CDLL(None), "adjtimex", None)
    return adjtimex is None or adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES)) != _TIME_ERROR


def listening(state: State) -> Listening:
    return Listening(
        _as_bound(state.api_host, urlsplit(state.api_base).netloc),
        _as_bound(state.dns_host, state.dns),
        state.dns_rate,
        state.dns_identity,
        state.nameserver_addresses,
    )


def _as_bound(host: str, reached: str) -> str:
    """HOST:PORT of the socket: a wildcard hears everybody, though a client here reaches it on loopback."""
    shown = f"[{host}]" if ":" in host else host
    return f"{shown}:{reached.rpartition(':')[2]}" if host else reached
