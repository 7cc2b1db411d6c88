"""Invented time for user code that asks Python what time it is.

Owns  what `time.time`, `time.monotonic` and `datetime.now` say while a simulated node runs.
Not   the test's own code: outside of a call the real clock is back; threads that run meanwhile see this one.

Names that a module took with `from time import time` are exchanged in the modules that it is told of.
"""

import datetime as datetime_module
import time as time_module
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import date, datetime, tzinfo
from types import ModuleType
from typing import Any

_EPOCH = datetime(1970, 1, 1, tzinfo=datetime_module.UTC)


class _AskedClass(type):
    """Makes every datetime an instance of the class that stands in for it."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, datetime)

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, datetime)


class _AskedDate(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, date)

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, date)


class UserClock:
    """`now_us` is the wall clock, in microseconds since the epoch."""

    def __init__(self, now_us: Callable[[], int], modules: Iterable[ModuleType]) -> None:
        self._now_us = now_us
        replaced: dict[int, Any] = {}
        self._places: list[tuple[ModuleType, str, Any, Any]] = []
        for module, name, value in self._stand_ins():
            original = getattr(module, name)
            replaced[id(original)] = value
            self._places.append((module, name, original, value))
        for module in modules:
            for name, original in list(vars(module).items()):
                if id(original) in replaced:
                    self._places.append((module, name, original, replaced[id(original)]))

    def _stand_ins(self) -> Iterator[tuple[ModuleType, str, Any]]:
        now_us = self._now_us
        yield time_module, "time", lambda: now_us() / 1_000_000
        yield time_module, "time_ns", lambda: now_us() * 1_000
        yield time_module, "monotonic", lambda: now_us() / 1_000_000
        yield time_module, "monotonic_ns", lambda: now_us() * 1_000
        yield datetime_module, "datetime", _datetime_of(now_us)
        yield datetime_module, "date", _date_of(now_us)

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Invented time, until the block ends."""
        for module, name, _, value in self._places:
            setattr(module, name, value)
        try:
            yield
        finally:
            for module, name, original, _ in self._places:
                setattr(module, name, original)


def _at(now_us: int, zone: tzinfo | None) -> datetime:
    moment = _EPOCH + datetime_module.timedelta(microseconds=now_us)
    return moment.astimezone(zone) if zone is not None else moment.astimezone().replace(tzinfo=None)


def _datetime_of(now_us: Callable[[], int]) -> type:
    """A class that stands in for `datetime`; what it makes are real datetimes."""

    class Datetime(datetime, metaclass=_AskedClass):
        def __new__(cls, *arguments: Any, **named: Any) -> Any:
            return datetime(*arguments, **named)

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Any:
            return _at(now_us(), tz)

        @classmethod
        def utcnow(cls) -> Any:
            return _at(now_us(), datetime_module.UTC).replace(tzinfo=None)

        @classmethod
        def today(cls) -> Any:
            return _at(now_us(), None)

    return Datetime


def _date_of(now_us: Callable[[], int]) -> type:
    class Date(date, metaclass=_AskedDate):
        def __new__(cls, *arguments: Any, **named: Any) -> Any:
            return date(*arguments, **named)

        @classmethod
        def today(cls) -> Any:
            return _at(now_us(), None).date()

    return Date
