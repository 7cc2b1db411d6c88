"""How far a long command is, on stderr.

Owns  a bar with rate and remaining time on a terminal; a line every ten seconds elsewhere.
Not   what is counted beyond bytes and items.
"""

import sys
import time
from collections.abc import Callable
from typing import Self

import click

LINE_SECONDS = 10


class Progress:
    """`total_bytes` of work, 0 when that is unknown; advance() says what is done of it and of the items."""

    def __init__(
        self, label: str, unit: str, total_bytes: int, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._label, self._unit, self._total_bytes = label, unit, total_bytes
        self._monotonic = monotonic
        self._began_s = self._said_s = monotonic()
        self._bytes = self._items = 0
        self._bar = None
        if sys.stderr.isatty() and total_bytes:
            self._bar = click.progressbar(
                length=total_bytes, label=label, file=sys.stderr, show_eta=True, item_show_func=self._rate
            )

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.__exit__(None, None, None)

    def advance(self, bytes_: int, items: int) -> None:
        self._bytes += bytes_
        self._items += items
        if self._bar is not None:
            self._bar.update(bytes_, self._items)
        elif self._monotonic() - self._said_s >= LINE_SECONDS:
            self._said_s = self._monotonic()
            click.echo(self._line(), err=True)

    def _line(self) -> str:
        if not self._total_bytes:  # a pipe: nobody knows how much is to come
            return f"{self._label}: {self._rate(self._items)}"
        percent = 100 * self._bytes // self._total_bytes
        seconds = self._monotonic() - self._began_s
        left = round(seconds * (self._total_bytes - self._bytes) / self._bytes) if self._bytes else 0
        return f"{self._label}: {percent} %, {self._rate(self._items)}, {left} s left"

    def _rate(self, items: int | None) -> str:
        seconds = max(self._monotonic() - self._began_s, 0.001)
        return f"{items or 0} {self._unit}, {round((items or 0) / seconds)}/s"
