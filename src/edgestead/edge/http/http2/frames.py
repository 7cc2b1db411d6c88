"""`h2`, as far as its own defaults are not those of a server that strangers talk to.

Owns  what is offered; which settings of clients are kept; what a client's GOAWAY ends.
Not   frames and HPACK, which are `h2`'s and `hpack`'s.
"""

from typing import Any, cast

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ConnectionTerminated, Event
from h2.settings import SettingCodes, Settings
from hyperframe.frame import Frame, GoAwayFrame

from edgestead.edge import limits
from edgestead.edge.http.http2.frame_heads import FRAME_OCTETS_MAX

STREAMS_MAX = 100  # at a time: what browsers and curl go by
STREAM_WINDOW = limits.INSPECTED_BYTES_MAX - 1024  # of a request's body, before its machine has taken any
TABLE_OCTETS_MAX = 4_096  # of what answers have said: every header is looked for in all of it (RFC 7541 §4.2)
CLOSED_REMEMBERED = 1_000  # streams: of which it is known how they ended
NO_RFC7540_PRIORITIES = cast(SettingCodes, 0x9)  # RFC 9218 §2.1.1


class _KnownSettings(Settings):
    """A client's. `h2` would keep 65,536 of them, and walk over all at each frame."""

    def __setitem__(self, key: Any, value: int) -> None:
        if key not in SettingCodes.__members__.values():
            return
        if key == SettingCodes.HEADER_TABLE_SIZE:
            value = min(value, TABLE_OCTETS_MAX)
        super().__setitem__(key, value)


class Frames(H2Connection):
    """A server's side. Headers are looked at by `head`, in our own words; what we say is our own code's."""

    MAX_CLOSED_STREAMS = CLOSED_REMEMBERED

    def __init__(self) -> None:
        super().__init__(
            H2Configuration(
                client_side=False,
                header_encoding=None,
                validate_inbound_headers=False,
                normalize_inbound_headers=False,
                validate_outbound_headers=False,
                normalize_outbound_headers=False,
            )
        )
        self.remote_settings = _KnownSettings(client=True)
        self.local_settings = Settings(
            client=False,
            initial_values={
                SettingCodes.MAX_CONCURRENT_STREAMS: STREAMS_MAX,
                SettingCodes.INITIAL_WINDOW_SIZE: STREAM_WINDOW,
                SettingCodes.MAX_FRAME_SIZE: FRAME_OCTETS_MAX,
                SettingCodes.MAX_HEADER_LIST_SIZE: limits.HEAD_BYTES_MAX,
                SettingCodes.ENABLE_CONNECT_PROTOCOL: 1,
                NO_RFC7540_PRIORITIES: 1,
            },
        )
        self.decoder.max_header_list_size = limits.HEAD_BYTES_MAX

    def _receive_goaway_frame(self, frame: GoAwayFrame) -> tuple[list[Frame], list[Event]]:
        """What the client has asked for is still to be answered (RFC 9113 §6.8); `h2` would say nothing."""
        return [], [ConnectionTerminated()]
