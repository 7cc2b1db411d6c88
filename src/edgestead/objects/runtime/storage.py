"""`ctx.storage`: the storage API that user code calls.

Owns  names in both spellings, arguments and their checks, transactions as closures and as blocks.
Not   SQL (`sql`), caching and commits (`engine`).

Everything happens at the call; what it gives back can be awaited, and does not really wait. So a write that
is not awaited is a write all the same, and several calls without a wait between them share one commit.

Source: spec "Object storage API (`ctx.storage`)", "Limits", "Errors".
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import partial, wraps
from types import TracebackType
from typing import Any, TypeVar, Unpack, overload

from edgestead.objects import limits
from edgestead.objects.errors import BackendError, LimitError, StorageBroken, TransactionError
from edgestead.objects.runtime import recovery
from edgestead.objects.runtime.alarms import pack_time, unpack_time
from edgestead.objects.runtime.engine import Engine
from edgestead.objects.runtime.gates import InputGate
from edgestead.objects.runtime.options import (
    AlarmOptions,
    AlarmReadOptions,
    ListOptions,
    ReadOptions,
    WriteOptions,
    read_options,
)
from edgestead.objects.runtime.sql import SqlStorage
from edgestead.objects.values.codec import decode, encode
from edgestead.store.objectlog import LogError

_UNSET: Any = object()
DefaultT = TypeVar("DefaultT")
MethodT = TypeVar("MethodT", bound=Callable[..., Any])
Many = list[str] | tuple[str, ...] | set[str] | frozenset[str]  # keys
Options = Mapping[str, Any] | None
_TEXT_MAX = limits.KEY_BYTES_MAX // 4  # a shorter key cannot be too long in UTF-8


class _Done:
    """What a write gives back: awaiting it gives the result at once; not awaiting it is fine too."""

    __slots__ = ("_result",)

    def __init__(self, result: Any) -> None:
        self._result = result

    def __await__(self) -> Generator[None, None, Any]:
        yield from ()
        return self._result


class _Nothing:
    """`_Done(None)`, shared and quicker."""

    __slots__ = ()
    __await__ = partial(iter, ())  # no call of Python code


DONE = _Nothing()


async def _ready(result: Any) -> Any:
    return result


class Keys:
    """get, put, delete and list: what `ctx.storage` and a transaction's `txn` have in common."""

    __slots__ = ("_engine",)

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @overload
    def get(self, key: str, options: Options = None, **named: Unpack[ReadOptions]) -> Awaitable[Any]: ...
    @overload
    def get(
        self, key: str, options: Options = None, *, default: DefaultT, **named: Unpack[ReadOptions]
    ) -> Awaitable[Any | DefaultT]: ...
    @overload
    def get(
        self, key: Many, options: Options = None, **named: Unpack[ReadOptions]
    ) -> Awaitable[dict[str, Any]]: ...
    def get(self, key: Any, options: Any = None, *, default: Any = None, **named: Any) -> Awaitable[Any]:
        """The value of a key, or `default`; of a list of keys, a dict of those that exist, in key order.

        Options: allow_concurrency, no_cache. Limits: 128 keys, 2,048 bytes each.
        Raises TypeError, LimitError.
        """
        if type(key) is str and options is None and not named:
            if len(key) > _TEXT_MAX or not key.isascii():
                check_key(key)
            value = self._engine.get(key)
        else:
            cache = not read_options("get", options, named).get("no_cache", False)
            if not isinstance(key, str):
                if default is not None:
                    raise TypeError("get() of many keys has no default: those that do not exist are left out")
                return _ready(self._get_many(key_list("get", key), cache))
            value = self._engine.get(check_key(key), cache=cache)
        return _ready(default if value is None else decode(value))

    def _get_many(self, keys: list[str], cache: bool) -> dict[str, Any]:
        found = ((key, self._engine.get(key, cache=cache)) for key in sorted(set(keys)))
        return {key: decode(value) for key, value in found if value is not None}

    @overload
    def put(
        self, key: str, value: Any, options: Options = None, **named: Unpack[WriteOptions]
    ) -> Awaitable[None]: ...
    @overload
    def put(
        self, key: Mapping[str, Any], value: Options = None, **named: Unpack[WriteOptions]
    ) -> Awaitable[None]: ...
    def put(self, key: Any, value: Any = _UNSET, options: Any = None, **named: Any) -> Awaitable[None]:
        """Store a value under a key, or each pair of a mapping, atomically.

        `put(key, value, options)` or `put(entries, options)`. Options: no_cache, allow_unconfirmed.
        Limits: 128 pairs; keys 2,048 bytes; values 131,072 bytes encoded.
        Raises TypeError, DataCloneError, LimitError: nothing is stored.
        """
        if type(key) is str and options is None and not named and value is not _UNSET:
            data = encode(value)
            if len(data) > limits.VALUE_BYTES_MAX or len(key) > _TEXT_MAX or not key.isascii():
                check_value(check_key(key), data)
            self._engine.put(key, data)
            return DONE
        self._put(key, value, options, named)
        return DONE

    def _put(self, key: Any, value: Any, options: Any, named: Mapping[str, Any]) -> None:
        if isinstance(key, Mapping):
            if options is not None:
                raise TypeError("put() takes put(key, value, options) or put(entries, options)")
            entries, options = dict(key), None if value is _UNSET else value
        elif value is _UNSET:
            raise TypeError("put() called without a value")
        else:
            entries = {key: value}
        read = read_options("put", options, named)
        check_count(len(entries))
        encoded = {check_key(name): encode(item) for name, item in entries.items()}
        for name, data in encoded.items():
            check_value(name, data)
        for name, data in encoded.items():
            self._write(name, data, read)

    def _write(self, key: str, data: bytes | None, read: Mapping[str, Any]) -> None:
        self._engine.put(key, data, confirmed=not read.get("allow_unconfirmed", False))
        if read.get("no_cache", False):
            self._engine.forget(key)

    @overload
    def delete(self, key: str, options: Options = None, **named: Unpack[WriteOptions]) -> Awaitable[bool]: ...
    @overload
    def delete(self, key: Many, options: Options = None, **named: Unpack[WriteOptions]) -> Awaitable[int]: ...
    def delete(self, key: Any, options: Any = None, **named: Any) -> Awaitable[Any]:
        """Delete a key: whether it existed. Delete a list of keys: how many existed.

        Options: no_cache, allow_unconfirmed. Limit: 128 keys. Raises TypeError, LimitError.
        """
        read = read_options("delete", options, named)
        keys = [check_key(key)] if isinstance(key, str) else key_list("delete", key)
        count = 0
        for name in dict.fromkeys(keys):
            if self._engine.get(name) is not None:
                count += 1
                self._write(name, None, read)
        return _Done(bool(count) if isinstance(key, str) else count)

    def list(self, options: Options = None, **named: Unpack[ListOptions]) -> Awaitable[dict[str, Any]]:
        """The pairs of a range, as a dict in ascending UTF-8 order of keys (descending with `reverse`).

        Options: start (inclusive) or start_after (exclusive), end (exclusive), prefix, reverse, limit,
        allow_concurrency, no_cache. Without options everything is loaded into memory.
        Raises TypeError, for one when start and start_after are combined or limit is not positive.
        """
        read = read_options("list", options, named)
        start, end = _bounds(read)
        limit = read.get("limit")
        if limit is not None and limit <= 0:
            raise TypeError("List limit must be positive.")
        if end is not None and end <= start:
            self._engine.check()
            return _ready({})
        pairs = self._engine.range(start, end, limit, reverse=read.get("reverse", False))
        return _ready({key: decode(value) for key, value in pairs.items()})


class Storage(Keys):
    """`ctx.storage` of one live object.

    `sql_backend` tells whether the class has `storage = "sql"`; `has_alarm` whether it handles alarms.
    `now_ms` is the clock.
    """

    __slots__ = ("_gate", "_has_alarm", "_now_ms", "_sql", "_sql_backend")

    def __init__(
        self,
        engine: Engine,
        gate: InputGate,
        *,
        sql_backend: bool,
        has_alarm: bool,
        now_ms: Callable[[], int],
    ) -> None:
        super().__init__(engine)
        self._gate, self._sql_backend = gate, sql_backend
        self._has_alarm, self._now_ms = has_alarm, now_ms
        self._sql = SqlStorage(engine)

    def delete_all(self, options: Options = None, **named: Unpack[WriteOptions]) -> Awaitable[None]:
        """Delete all keys, and on the SQL backend all tables, atomically. The alarm stays.

        Options: no_cache, allow_unconfirmed (both without effect). Raises TransactionError inside one.
        """
        read_options("delete_all", options, named)
        if self._engine.depth:
            raise TransactionError("Cannot call delete_all() within a transaction")
        self._engine.erase()
        return DONE

    def sync(self) -> Awaitable[None]:
        """Wait until every write so far is durable, unconfirmed ones too. Raises when one failed."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._engine.when_synced(settle(future))
        return future

    # transactions

    def transaction(self, closure: Callable[..., Any] | None = None) -> "TransactionCall":
        """Run `closure(txn)` as one transaction: `await storage.transaction(closure)` gives its result.

        Or `async with storage.transaction() as txn:`. An exception rolls back and is raised again. Other
        events of the object wait meanwhile. Operations on `ctx.storage` itself join the transaction.
        """
        return TransactionCall(self, self._gate, closure)

    def transaction_sync(self, callback: Callable[[], Any] | None = None) -> Any:
        """Run `callback()` as one transaction and give its result, or `with storage.transaction_sync():`.

        SQL backend only. Raises TypeError for an async callback, before it runs; TransactionError at an
        `await` in the block that would really wait.
        """
        self._needs_sql("transaction_sync()")
        if callback is None:
            return self._transaction_block()
        if inspect.iscoroutinefunction(callback):
            raise TypeError("transaction_sync() takes a synchronous callback, not an async one")
        with self._transaction_block():
            result = callback()
            if inspect.isawaitable(result):
                if isinstance(result, Coroutine):
                    result.close()
                raise TypeError("transaction_sync() takes a synchronous callback, and got something to await")
            return result

    @contextmanager
    def _transaction_block(self) -> Iterator[None]:
        self._engine.begin()
        depth = self._engine.depth
        self._gate.unwaiting += 1
        try:
            yield
        except BaseException:
            _end(self._engine, depth, commit=False)
            raise
        else:
            _end(self._engine, depth, commit=True)
        finally:
            self._gate.unwaiting -= 1

    # the alarm

    def get_alarm(self, options: Options = None, **named: Unpack[AlarmReadOptions]) -> Awaitable[int | None]:
        """The alarm's time in milliseconds since the epoch, or None. Option: allow_concurrency.

        None while its handler runs, unless it was set again; after a failure the time of the retry.
        """
        read_options("get_alarm", options, named)
        self._engine.check()
        time_us = self._engine.alarm_us
        return _ready(None if time_us is None else unpack_time(time_us)[0])

    def set_alarm(
        self, time: float | datetime, options: Options = None, **named: Unpack[AlarmOptions]
    ) -> Awaitable[None]:
        """Set the alarm, in milliseconds since the epoch or as an aware datetime; the past means soon.

        Options: allow_concurrency, allow_unconfirmed. Raises TypeError, also when the class has no
        `alarm` method; LimitError beyond the year 275760.
        """
        read = read_options("set_alarm", options, named)
        if not self._has_alarm:
            raise TypeError("set_alarm() needs a class with an alarm() method")
        time_ms = max(recovery.milliseconds(time, "set_alarm"), self._now_ms())
        self._engine.set_alarm(pack_time(time_ms), confirmed=not read.get("allow_unconfirmed", False))
        return DONE

    def delete_alarm(self, options: Options = None, **named: Unpack[AlarmOptions]) -> Awaitable[None]:
        """Delete the alarm, if there is one. Options: allow_concurrency, allow_unconfirmed."""
        read = read_options("delete_alarm", options, named)
        self._engine.set_alarm(None, confirmed=not read.get("allow_unconfirmed", False))
        return DONE

    # the SQL backend

    def _needs_sql(self, name: str) -> None:
        if not self._sql_backend:
            raise BackendError(f"storage.{name}")

    @property
    def sql(self) -> SqlStorage:
        """The SQL API. Raises BackendError on the key-value backend."""
        self._needs_sql("sql")
        return self._sql

    # point-in-time recovery

    def get_current_bookmark(self) -> Awaitable[str]:
        """The bookmark of now, with everything written so far. SQL backend only.

        Raises TransactionError inside a transaction.
        """
        self._needs_sql("get_current_bookmark()")
        return _ready(recovery.current(self._engine))

    def get_bookmark_for_time(self, time: float | datetime) -> Awaitable[str]:
        """The bookmark of what the object was at a time: milliseconds, or an aware datetime.

        SQL backend only. Raises BookmarkError outside the last 30 days, TypeError, LimitError.
        """
        self._needs_sql("get_bookmark_for_time()")
        return self._bookmark_for(recovery.milliseconds(time, "get_bookmark_for_time"))

    async def _bookmark_for(self, time_ms: int) -> str:
        async with self._gate.hold():
            return await recovery.at_time(self._engine, time_ms, self._now_ms())

    def on_next_session_restore_bookmark(self, bookmark: str) -> Awaitable[str]:
        """Be taken back to a bookmark at the next start; gives the bookmark of the moment just before that.

        Durable when it returns: `ctx.abort()` may follow at once. Keys, tables and the alarm are what they
        were. A later call replaces an earlier one. SQL backend only. Raises TypeError, BookmarkError: then
        nothing is scheduled.
        """
        self._needs_sql("on_next_session_restore_bookmark()")
        return self._schedule(bookmark)

    async def _schedule(self, bookmark: str) -> str:
        async with self._gate.hold():
            target = await recovery.find(self._engine.past, self._engine.lease.ref, bookmark)
            undo = recovery.schedule(self._engine, target)
            await self.sync()
            return undo

    deleteAll = delete_all
    transactionSync = transaction_sync
    getAlarm = get_alarm
    setAlarm = set_alarm
    deleteAlarm = delete_alarm
    getCurrentBookmark = get_current_bookmark
    getBookmarkForTime = get_bookmark_for_time
    onNextSessionRestoreBookmark = on_next_session_restore_bookmark


def _unless_over(method: MethodT) -> MethodT:
    """A method of Keys for a transaction, typed as it is: refused once that one is over."""

    @wraps(method)
    def guarded(txn: "Transaction", *args: Any, **named: Any) -> Any:
        txn._check(method.__name__)
        return method(txn, *args, **named)

    return guarded  # type: ignore[return-value]


class Transaction(Keys):
    """`txn`: get, put, delete, list and rollback inside one transaction."""

    __slots__ = ("_depth", "_over")

    def __init__(self, engine: Engine) -> None:
        engine.begin(apart=True)
        super().__init__(engine)
        self._depth = engine.depth
        self._over: str | None = None

    def rollback(self) -> None:
        """Undo everything of this transaction, which is then over. Again is fine.

        Raises TransactionError while a transaction inside this one is still running.
        """
        if self._over == "rolled back":
            return
        self._check("rollback")
        if self._engine.depth > self._depth:
            raise TransactionError(
                "Cannot roll back an outer transaction while a nested transaction is still running."
            )
        self._over = "rolled back"
        self._engine.end(commit=False)

    def finish(self, *, commit: bool) -> None:
        """The closure has ended."""
        if self._over is None:
            self._over = "over"
            _end(self._engine, self._depth, commit=commit)

    def _check(self, operation: str) -> None:
        if self._over == "rolled back":
            raise TransactionError(f"Cannot {operation}() on rolled back transaction")
        if self._over is not None:
            raise TransactionError(
                f"Cannot call {operation}() on transaction that has already committed: "
                "did you move txn outside of the closure?"
            )

    get = _unless_over(Keys.get)
    put = _unless_over(Keys.put)
    delete = _unless_over(Keys.delete)
    list = _unless_over(Keys.list)


class TransactionCall:
    """A transaction to be awaited with its closure, or entered as a block."""

    __slots__ = ("_closure", "_exit", "_gate", "_storage", "_txn")

    def __init__(self, storage: Storage, gate: InputGate, closure: Callable[..., Any] | None) -> None:
        self._storage, self._gate, self._closure = storage, gate, closure

    def __await__(self) -> Generator[Any, None, Any]:
        if self._closure is None:
            raise TypeError("transaction() without a closure is a block: async with storage.transaction()")
        return self._run(self._closure).__await__()

    async def _run(self, closure: Callable[..., Any]) -> Any:
        async with self as txn:
            result = closure(txn)
            return await result if inspect.isawaitable(result) else result

    async def __aenter__(self) -> Transaction:
        self._exit = self._gate.hold()
        await self._exit.__aenter__()
        try:
            self._txn = Transaction(self._storage._engine)
        except BaseException:
            await self._exit.__aexit__(None, None, None)
            raise
        return self._txn

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._txn.finish(commit=kind is None)
        finally:
            await self._exit.__aexit__(kind, error, trace)


def _end(engine: Engine, depth: int, *, commit: bool) -> None:
    """End a transaction, unless the object was reset meanwhile and it went with it."""
    if engine.broken is None:
        while engine.depth > depth:
            engine.end(commit=False)  # an inner one that was left open
        engine.end(commit=commit)
    elif commit:
        raise engine.broken


def settle(future: "asyncio.Future[None]") -> Callable[[Exception | None], None]:
    """A callback that ends a future, unless nobody waits for it any more. What the log says is a reset."""

    def done(error: Exception | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(None)
        elif isinstance(error, LogError):
            future.set_exception(StorageBroken(f"Object storage was reset because a write failed: {error}"))
        else:
            future.set_exception(error)

    return done


def check_key(key: Any) -> str:
    """A key as it is. Raises TypeError, LimitError."""
    if type(key) is not str:
        raise TypeError(f"a key must be str, not {type(key).__name__}")
    try:
        length = len(key.encode())
    except UnicodeEncodeError:
        raise TypeError("a key must be valid Unicode: it holds half a surrogate pair") from None
    if length > limits.KEY_BYTES_MAX:
        maximum = limits.KEY_BYTES_MAX
        raise LimitError(f"Keys cannot be larger than {maximum} bytes. A key of size {length} was provided.")
    return key


def check_value(key: str, data: bytes) -> None:
    """Raises LimitError."""
    if len(data) > limits.VALUE_BYTES_MAX:
        maximum = limits.VALUE_BYTES_MAX
        raise LimitError(
            f"Values cannot be larger than {maximum} bytes. A value of size {len(data)} was provided."
        )


def check_count(count: int) -> None:
    """Raises LimitError."""
    if count > limits.PAIRS_MAX:
        maximum = limits.PAIRS_MAX
        raise LimitError(f"Maximum number of key value pairs is {maximum}. {count} pairs were provided.")


def key_list(method: str, keys: Any) -> list[str]:
    """The keys of a multi-key call. Raises TypeError, LimitError."""
    if not isinstance(keys, list | tuple | set | frozenset):
        raise TypeError(f"{method}() takes a key or a list of keys, not {type(keys).__name__}")
    check_count(len(keys))
    return [check_key(key) for key in keys]


def _bounds(read: Mapping[str, Any]) -> tuple[str, str | None]:
    """(first key, first key behind, or None) of a list call."""
    if "start" in read and "start_after" in read:
        raise TypeError("list() cannot be called with both start and startAfter values.")
    start = read.get("start", "")
    if "start_after" in read:
        start = read["start_after"] + "\0"
    end = read.get("end")
    prefix = read.get("prefix", "")
    for text in (start, end or "", prefix):
        check_text(text)
    if prefix:
        start = max(start, prefix)
        behind = _behind(prefix)
        end = behind if end is None else end if behind is None else min(end, behind)
    return start, end


def key_range(prefix: str, after: str) -> tuple[str, str | None]:
    """(first key, first key behind, or None) of the keys with a prefix that follow `after`, if that is any.

    Raises TypeError.
    """
    for text in (prefix, after):
        check_text(text)
    return max(prefix, after + "\0" if after else ""), _behind(prefix)


def check_text(text: str) -> None:
    """Raises TypeError for text without a UTF-8 form."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise TypeError("a bound must be valid Unicode: it holds half a surrogate pair") from None


def _behind(prefix: str) -> str | None:
    """The first text behind everything that begins with `prefix`; None when there is none."""
    while prefix:
        last = ord(prefix[-1])
        prefix = prefix[:-1]
        if last < 0x10FFFF:
            return prefix + chr(0xE000 if last == 0xD7FF else last + 1)
    return None
