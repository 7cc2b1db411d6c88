"""Going back in time: bookmarks of an object, and arranging that it becomes what it was.

Owns  which moments may be named: the window, what is kept; the order of asking, keeping and scheduling.
Not   the text of a bookmark (`bookmarks`); the restore itself, at the object's next start (`node`).

Source: spec "Object storage API", "States and transitions"; "Limits": 30 days.
"""

from datetime import datetime
from typing import Any

from edgestead.objects.errors import BookmarkError, LimitError
from edgestead.objects.runtime.asking import ask
from edgestead.objects.runtime.bookmarks import Bookmark, pack, parse
from edgestead.objects.runtime.engine import Engine
from edgestead.store.objectlog import ObjectRef, Target, Unknown
from edgestead.store.past import END_OF_SESSION, LoggedPosition, Past

WINDOW_MS = 30 * 24 * 3600 * 1_000  # spec "Limits"
TIME_MS_MAX = 8_640_000_000_000_000  # the largest time of an ECMAScript Date


def text_of(ref: ObjectRef, found: LoggedPosition) -> str:
    """The bookmark of a commit."""
    return pack(ref.id, Bookmark(found.generation, found.session, found.position))


def current(engine: Engine) -> str:
    """The bookmark of now, with all that was written so far. It is kept when what comes next is durable.

    Raises TransactionError inside a transaction, ObjectReset.
    """
    position = engine.settle_position()
    lease = engine.lease
    return pack(lease.ref.id, Bookmark(engine.lease.life, lease.session, position))


async def at_time(engine: Engine, time_ms: int, now_ms: int) -> str:
    """The bookmark of the newest commit at or before a time, which is kept from now on.

    Times count in milliseconds: what was committed in that one counts. Before the first commit it is the
    beginning, where nothing was stored. Raises BookmarkError, LogError, ObjectReset.
    """
    check_window(time_ms, now_ms)
    if time_ms == now_ms:  # whatever the clock showed earlier: a log's times never go back
        return current(engine)
    engine.settle_position()
    lease = engine.lease
    if not lease.head:
        return pack(lease.ref.id, Bookmark(engine.lease.life, lease.session, 0))
    found = await locate_time(engine.past, lease.ref, time_ms)
    engine.keep_position(found.position)
    return text_of(lease.ref, found)


def check_window(time_ms: int, now_ms: int) -> None:
    """Raises BookmarkError for a time that no bookmark may have."""
    if time_ms > now_ms:
        raise BookmarkError("that time is in the future")
    if time_ms < now_ms - WINDOW_MS:
        raise BookmarkError("that time is more than 30 days ago")


async def locate_time(past: Past, ref: ObjectRef, time_ms: int) -> LoggedPosition:
    """The last commit in or before a millisecond. Raises BookmarkError, LogError."""
    found: LoggedPosition
    try:
        found = await ask(lambda done: past.position_at(ref, time_ms * 1_000 + 999, done))
        return found
    except Unknown as error:
        raise BookmarkError(f"there is no bookmark for that time: {error}") from None


async def find(past: Past, ref: ObjectRef, bookmark: str) -> Target:
    """The moment that a bookmark names. Raises TypeError, BookmarkError, LogError."""
    said = parse(ref.id, bookmark)
    try:
        found: LoggedPosition = await ask(lambda done: past.locate(ref, said.target, said.generation, done))
    except Unknown as error:
        raise BookmarkError(str(error)) from None
    position = said.position if said.position == END_OF_SESSION else found.position
    return Target(said.session, position)


def schedule(engine: Engine, target: Target) -> str:
    """Have the object taken back at its next start; gives the bookmark of the moment just before that.

    A later one replaces it. Raises TransactionError inside a transaction, ObjectReset.
    """
    engine.plan_restore(target)
    lease = engine.lease
    return pack(lease.ref.id, Bookmark(engine.lease.life, lease.session, END_OF_SESSION))


def milliseconds(time: Any, name: str) -> int:
    """A time as user code gives it. Raises TypeError, LimitError."""
    if isinstance(time, datetime):
        if time.tzinfo is None:
            raise TypeError(f"{name}() needs an aware datetime: a naive one names no moment")
        time = time.timestamp() * 1_000
    if isinstance(time, bool) or not isinstance(time, int | float):
        raise TypeError(f"{name}() takes milliseconds or a datetime, not {type(time).__name__}")
    if time != time or abs(time) > TIME_MS_MAX:
        raise LimitError(f"a time must be within {TIME_MS_MAX} ms of the epoch")
    return int(time)
