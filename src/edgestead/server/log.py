"""How the processes speak to their operator: JSON lines on stderr, like the API's request lines.

Owns  the shape of a line that is not a request's.
Asks  `logging`.
Tells whoever reads stderr.
Not   request lines (`api.log`); secrets: no caller passes one.
"""

import logging

import msgspec


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    time_us: int
    event: str
    process: str
    level: str
    message: str
    fault: str = ""


class _Formatter(logging.Formatter):
    def __init__(self, process: str) -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        fault = self.formatException(record.exc_info) if record.exc_info else ""
        line = Line(
            time_us=int(record.created * 1_000_000),
            event="message",
            process=self._process,
            level=record.levelname.lower(),
            message=record.getMessage(),
            fault=fault,
        )
        return msgspec.json.encode(line).decode()


def configure(process: str) -> None:
    """Send this process's log to stderr, from level INFO on. Call once."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Formatter(process))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
