"""How the processes speak to their operator: lines on stderr, JSON or, on a terminal, for people.

Owns  the shape of a line that is not a request's; that a reader of stderr who stopped reading stops nobody.
Not   request lines (`rest.log`); the two forms (`model.log_text`); secrets: no caller passes one.
"""

import logging
import threading
from contextlib import suppress
from pathlib import Path
from queue import Full, Queue
from typing import TextIO

import msgspec

from edgestead.model import log_text
from edgestead.model.log_text import LogForm
from edgestead.server.log_outlet import LogOutlet

LINES_WAITING_MAX = 1_000  # further lines are dropped and counted
END_SECONDS_MAX = 1.0  # for the lines that still wait when the process ends
_STDERR = 2


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
        self.process = process


class _TextFormatter(_Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fault = self.formatException(record.exc_info) if record.exc_info else ""
        time_us, level = int(record.created * 1_000_000), record.levelname.lower()
        return log_text.line(time_us, self.process, level, record.getMessage(), fault).decode().rstrip("\n")


class _JsonFormatter(_Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fault = self.formatException(record.exc_info) if record.exc_info else ""
        line = Line(
            time_us=int(record.created * 1_000_000),
            event="message",
            process=self.process,
            level=record.levelname.lower(),
            message=record.getMessage(),
            fault=fault,
        )
        return log_text.json_line(line).decode().rstrip("\n")


class WaitingHandler(logging.Handler):
    """Hands lines to a thread that writes them. A full pipe fills the queue, and then lines are dropped."""

    def __init__(self, descriptor: int, lines_max: int = LINES_WAITING_MAX) -> None:
        super().__init__()
        self._outlet = LogOutlet(descriptor)
        self._lines: Queue[bytes | None] = Queue(lines_max)
        self._dropped = 0
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._lines.put_nowait(self.format(record).encode() + b"\n")
        except Full:
            self._dropped += 1

    def close(self) -> None:
        """Wait a moment for what is left, which a stuck reader loses. `logging` calls it at the end."""
        self._closing = True
        with suppress(Full):  # then the thread sees for itself that nothing follows
            self._lines.put_nowait(None)
        self._thread.join(END_SECONDS_MAX)
        super().close()

    def _run(self) -> None:
        while not (self._closing and self._lines.empty()) and (line := self._lines.get()) is not None:
            dropped, self._dropped = self._dropped, 0
            if dropped:
                line += b'{"event":"log_lines_dropped","count":%d}\n' % dropped
            try:
                if not self._outlet.write(line):
                    self._dropped += 1 + dropped
            except OSError:
                return  # nobody reads us any more: the queue fills, and emit drops


def form_of(stderr: TextIO | None, log_file: Path | None) -> LogForm:
    """For people on a terminal, for programs in a file or a pipe."""
    on_terminal = log_file is None and stderr is not None and stderr.isatty()
    return "text" if on_terminal else "json"


def configure(process: str, level: int, form: LogForm) -> None:
    """Send this process's log to stderr, from a level of `logging` on. Call once."""
    handler = WaitingHandler(_STDERR)
    handler.setFormatter(_TextFormatter(process) if form == "text" else _JsonFormatter(process))
    logging.basicConfig(level=level, handlers=[handler])


def rename(process: str) -> None:
    """From now on lines are of a process of this name."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler.formatter, _Formatter):
            handler.formatter.process = process
