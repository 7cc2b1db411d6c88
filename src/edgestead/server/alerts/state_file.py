"""What a restart must not forget: the alerts of each receiver, who does not take them, what was sent.

Owns  `DIR/alerts.json`.
Not   what follows from it (`health.alerting`).
"""

from pathlib import Path
from typing import Final, Literal

import msgspec

from edgestead.health.alerting import Alert
from edgestead.health.facts import Sink
from edgestead.server import files

FILE_NAME: Final = "alerts.json"
FILE_BYTES_MAX: Final = 16 << 20  # of what is remembered: a larger file is not ours
HISTORY_MAX: Final = 200  # messages that are remembered


class Sent(msgspec.Struct, frozen=True):
    """One message: its headline, and what became of it. A receiver that fails has one until it succeeds."""

    time_us: int
    receiver: str
    outcome: Literal["delivered", "failed"]
    words: str
    error: str = ""


class ReceiverState(msgspec.Struct):
    """`error` is why the last message was not taken, empty when it was; since `failing_since_us`."""

    alerts: list[Alert] = []
    error: str = ""
    failing_since_us: int = 0


class AlertsState(msgspec.Struct):
    receivers: dict[str, ReceiverState] = {}
    history: list[Sent] = []

    def note(self, sent: Sent) -> None:
        self.history.append(sent)
        del self.history[:-HISTORY_MAX]

    @property
    def failing(self) -> tuple[Sink, ...]:
        found = self.receivers.items()
        return tuple(Sink(name, one.error, one.failing_since_us) for name, one in found if one.error)


def read(folder: Path) -> AlertsState:
    """What is stored; nothing where there is no file, or none that can be read."""
    try:
        with (folder / FILE_NAME).open("rb") as stream:
            return msgspec.json.decode(stream.read(FILE_BYTES_MAX + 1), type=AlertsState)
    except (OSError, msgspec.DecodeError):
        return AlertsState()


encode = msgspec.json.Encoder().encode


def write(folder: Path, content: bytes) -> None:
    """Raises OSError, and leaves what was there."""
    files.replace_private(folder / FILE_NAME, content)
