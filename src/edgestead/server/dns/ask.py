"""What an operator asks of a living DNS process, over a Unix socket that only the server's owner can open.

Owns  the protocol: one JSON line asked, one answered; the thread that answers.
Not   writing anything: nothing here changes an answer.
"""

import logging
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from edgestead.dns import trace, wire
from edgestead.dns.answer import Responder
from edgestead.dns.counters import NoCounters, Tally
from edgestead.dns.settings import DnsSettings
from edgestead.dns.table import Table
from edgestead.dns.watch import Seen, Watch
from edgestead.model.limits import NAME_OCTETS_MAX
from edgestead.model.seldom import Seldom
from edgestead.server.errors import StartError

LINE_BYTES_MAX: Final = 4096  # a question is a name and some options
REPLY_BYTES_MAX: Final = 4 << 20  # as many rows as ROWS_MAX
SECONDS_MAX: Final = 5.0  # that a command waits for one process
PAUSE_SECONDS: Final = 0.5  # when there are no descriptors left
ROWS_MAX: Final = 1000  # of one answer

_log = logging.getLogger("edgestead.server")


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`query` asks for `name` (wire form, hex) and `kind`; `top`, `counts`, `log` for at most `most` rows."""

    command: str
    name: str = ""
    kind: int = 0
    most: int = 20


class Reply(msgspec.Struct, frozen=True):
    """`message` is a whole DNS message; rows are lists. `error` is empty when it was done."""

    error: str = ""
    message: bytes = b""
    steps: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()


class DnsAsk:
    """Answers on `listener` from a thread of its own until the process ends."""

    def __init__(self, listener: socket.socket, table: Table, watch: Watch, settings: DnsSettings) -> None:
        self._listener = listener
        self._table = table
        self._watch = watch
        self._settings = settings
        self._refused = Seldom()
        self._commands: dict[str, Callable[[Question], Reply]] = {
            "query": self._query,
            "top": self._top,
            "counts": self._counts,
            "log": self._recent,
        }

    def start(self) -> None:
        threading.Thread(target=self._run, name="ask", daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError as error:
                if self._listener.fileno() < 0:
                    return
                if times := self._refused.happened():  # no descriptor was left, or the command hung up
                    _log.warning("%d questions about DNS were not taken: %s", times, error)
                time.sleep(PAUSE_SECONDS)
                continue
            try:
                with connection:
                    connection.settimeout(SECONDS_MAX)
                    connection.sendall(msgspec.json.encode(self._answer(_line(connection))) + b"\n")
            except OSError:
                pass  # nobody is left to answer

    def _answer(self, line: bytes) -> Reply:
        try:
            question = msgspec.json.decode(line, type=Question)
            return self._commands[question.command](question)
        except (msgspec.DecodeError, KeyError, ValueError):
            return Reply(error="not a question")
        except Exception:
            _log.exception("a question about DNS was not answered")
            return Reply(error="the question could not be answered; see the server's log")

    def _query(self, question: Question) -> Reply:
        name = bytes.fromhex(question.name).lower()
        if len(name) > NAME_OCTETS_MAX or wire.read_name(name, 0) != len(name):
            raise ValueError("no name")
        if not 0 <= question.kind <= 0xFFFF:
            raise ValueError("no type")
        kind = question.kind.to_bytes(2, "big")
        query = b"\1\0\0\1\0\0\0\0\0\0" + name + kind + wire.IN.to_bytes(2, "big")
        with self._table.lock:
            responder = Responder(self._table, Tally(NoCounters()), self._settings, lambda _: b"", udp=False)
            message = responder.reply(query, 0) or b""
            steps = trace.trace(self._table.view, name, question.kind)
        return Reply(message=b"\0\0" + message, steps=tuple(steps))

    def _top(self, question: Question) -> Reply:
        with self._table.lock:
            names = self._watch.names.top(_most(question))
        return Reply(rows=tuple((trace.text(name), kind, count) for (name, kind), count in names))

    def _counts(self, question: Question) -> Reply:
        with self._table.lock:
            groups = self._watch.groups.top(_most(question))
        return Reply(
            rows=tuple(
                (trace.text(apex) if apex else "", kind, rcode, count)
                for (apex, kind, rcode), count in groups
            )
        )

    def _recent(self, question: Question) -> Reply:
        with self._table.lock:
            seen = list(self._watch.sample)[-_most(question) :]
        return Reply(rows=tuple(map(_row, seen)))


def _most(question: Question) -> int:
    return max(1, min(question.most, ROWS_MAX))


def _row(seen: Seen) -> tuple[Any, ...]:
    name = trace.text(seen.name) if seen.name else ""
    return seen.at, _network(seen.network), name, seen.kind, seen.rcode, seen.truncated, seen.octets


def _network(prefix: bytes) -> str:
    if len(prefix) <= 3:
        return socket.inet_ntop(socket.AF_INET, prefix.ljust(4, b"\0")) + "/24"
    return socket.inet_ntop(socket.AF_INET6, prefix.ljust(16, b"\0")) + "/56"


def _line(connection: socket.socket) -> bytes:
    line = b""
    while not line.endswith(b"\n") and len(line) <= LINE_BYTES_MAX:
        read = connection.recv(LINE_BYTES_MAX)
        if not read:
            break
        line += read
    return line


def ask(path: Path, question: Question) -> Reply:
    """Ask the process that listens at `path`. Raises StartError with words."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(SECONDS_MAX)
        try:
            connection.connect(str(path))
            connection.sendall(msgspec.json.encode(question) + b"\n")
            with connection.makefile("rb") as stream:
                line = stream.readline(REPLY_BYTES_MAX)
            reply = msgspec.json.decode(line, type=Reply)
        except (OSError, msgspec.DecodeError):
            raise StartError("the DNS process does not answer; is the server running?") from None
    if reply.error:
        raise StartError(reply.error)
    return reply
