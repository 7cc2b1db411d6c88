"""Connections that several threads take in turns, for reads.

Owns  how many stay open, and trying a read again on a new connection.
Not   writes: their outcome may be unknown.
"""

import threading
from collections.abc import Callable
from typing import TypeVar

from edgestead.model.refusals import Unavailable
from edgestead.postgres.connection import Link, Misconfigured, Parameters, Row, Trouble

T = TypeVar("T")

IDLE_MAX = 8  # as many as threads read at a time


class Pool:
    """`name` is shown by the database beside each connection."""

    def __init__(self, dsn: str, name: str) -> None:
        self._dsn, self._name = dsn, name
        self._idle: list[Link] = []
        self._door = threading.Lock()
        self._closed = False

    def read(self, fn: Callable[[Link], T]) -> T:
        """Run `fn`, which reads only, a second time when the connection was lost. Raises Unavailable."""
        link = self.take()
        try:
            try:
                return fn(link)
            except Trouble:
                return fn(link)  # the link opens another connection, to the primary of now
        except (Trouble, Misconfigured) as error:
            raise Unavailable() from error
        finally:
            self.give_back(link)

    def rows(self, statement: str, parameters: Parameters = ()) -> list[Row]:
        """Of one statement. Raises Unavailable."""
        return self.read(lambda link: link.rows(statement, parameters))

    def close(self) -> None:
        """Idempotent. Later reads raise Unavailable."""
        with self._door:
            self._closed = True
            idle, self._idle = self._idle, []
        for link in idle:
            link.close()

    def take(self) -> Link:
        with self._door:
            if self._closed:
                raise Unavailable()
            return self._idle.pop() if self._idle else Link(self._dsn, name=self._name)

    def give_back(self, link: Link) -> None:
        with self._door:
            if not self._closed and len(self._idle) < IDLE_MAX:
                self._idle.append(link)
                return
        link.close()
