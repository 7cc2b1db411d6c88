"""A JSON file of any size, sent in batches, two at a time.

Owns  cutting the file into batches, the two that are in flight, which share no key, and counting what is
      done.
Not   what a batch is for; repeating a request (`cli.http`).
"""

import os
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple, Protocol

from edgestead.cli.failure import Failed
from edgestead.cli.kv.namespace_target import ItemRefused, Namespace
from edgestead.model.jsonarray import ArrayItems, ItemTooLong, NotAnArray
from edgestead.model.kv import BULK_BYTES_MAX

BATCH_BYTES_MAX = 8_000_000
BATCH_ITEMS_MAX = 1_000
IN_FLIGHT = 2
READ_BYTES = 1 << 20

Check = Callable[[bytes], bytes]
KeyOf = Callable[[bytes], str | None]


class Sent(NamedTuple):
    """What became of a batch: keys that the server could not do, and how many items were not sent at all."""

    failed_keys: Sequence[str]
    left_out: int = 0


Send = Callable[[Namespace, list[bytes]], Sent]


class Batch(NamedTuple):
    """`first` is the number of its first item in the file; `file_bytes` reach from the batch before to it."""

    first: int
    items: list[bytes]
    file_bytes: int


class Advance(Protocol):
    def advance(self, bytes_: int, items: int) -> None: ...


class Outcome:
    """What became of the items. `done` counts all, `leading` those before the first batch that is not."""

    def __init__(self, skipped: int) -> None:
        self.done = 0
        self.left_out = 0
        self.leading = skipped
        self.failed_keys: list[str] = []
        self.error: Failed | None = None
        self.interrupted = False
        self._ahead: dict[int, int] = {}

    def add(self, batch: Batch, sent: Sent) -> None:
        self.done += len(batch.items) - len(sent.failed_keys) - sent.left_out
        self.left_out += sent.left_out
        self.failed_keys += sent.failed_keys
        if not sent.failed_keys:
            self._ahead[batch.first] = len(batch.items)
        while self.leading in self._ahead:
            self.leading += self._ahead.pop(self.leading)


def batches(path: Path, check: Check, *, skip: int = 0) -> Iterator[Batch]:
    """The file's items in batches; `check` sees each one and gives what is sent. Raises Failed."""
    scanner = ArrayItems(item_bytes_max=BULK_BYTES_MAX)
    batch: list[bytes] = []
    bytes_ = begin = end = 0
    try:
        for item in _items(path, scanner):
            number = scanner.count - 1
            if number < skip:
                continue
            item = _checked(check, item, number)
            if batch and (len(batch) == BATCH_ITEMS_MAX or bytes_ + len(item) + 1 > BATCH_BYTES_MAX):
                yield Batch(number - len(batch), batch, end - begin)
                batch, bytes_, begin = [], 0, end
            batch.append(item)
            bytes_ += len(item) + 1
            end = scanner.position
    except (NotAnArray, ItemTooLong) as error:
        raise Failed(f"{path}: {error}.") from None
    except OSError as error:
        raise _unreadable(path, error) from None
    if batch:
        yield Batch(scanner.count - len(batch), batch, end - begin)


def _items(path: Path, scanner: ArrayItems) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(READ_BYTES):
            yield from scanner.feed(chunk)
    scanner.end()


def _checked(check: Check, item: bytes, number: int) -> bytes:
    try:
        return check(item)
    except ValueError as error:
        raise Failed(f"Item {number}: {error}.") from None


def send_all(
    path: Path,
    check: Check,
    send: Send,
    another: Callable[[], AbstractContextManager[Namespace]],
    progress: Advance,
    *,
    skip: int = 0,
    key_of: KeyOf = lambda item: None,
) -> Outcome:
    """Send every batch. What was begun is finished even after a failure or Ctrl-C. Never raises Failed.

    Where the order matters, `key_of` says of what: an item is sent when what came before it with its key is
    done.
    """
    return _Sending(send, another, progress, Outcome(skip), key_of).run(batches(path, check, skip=skip))


class _Sending:
    def __init__(
        self,
        send: Send,
        another: Callable[[], AbstractContextManager[Namespace]],
        progress: Advance,
        outcome: Outcome,
        key_of: KeyOf,
    ) -> None:
        self._send = send
        self._another = another
        self._progress = progress
        self._outcome = outcome
        self._key_of = key_of
        self._queue: SimpleQueue[Batch | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._ended = threading.Condition(self._lock)
        self._in_flight: dict[int, set[str]] = {}  # the keys of each, by its first item

    def run(self, source: Iterator[Batch]) -> Outcome:
        threads = [threading.Thread(target=self._work, daemon=True) for _ in range(IN_FLIGHT)]
        for thread in threads:
            thread.start()
        try:
            self._feed(source)
        except KeyboardInterrupt:
            self._outcome.interrupted = True
        except Failed as error:
            self._fail(error)
        try:
            self._finish(threads)
        except KeyboardInterrupt:  # a second one: what is in flight now is not counted
            self._outcome.interrupted = True
        return self._outcome

    def _feed(self, source: Iterator[Batch]) -> None:
        while True:
            with self._ended:  # a batch is read only when a thread is free for it
                while len(self._in_flight) == IN_FLIGHT:
                    self._ended.wait()
            batch = next(source, None)
            if batch is None or self._outcome.error is not None:
                return
            keys = set(filter(None, map(self._key_of, batch.items)))
            with self._ended:  # one in flight may be sent again, behind this one
                while not all(map(keys.isdisjoint, self._in_flight.values())):
                    self._ended.wait()
                self._in_flight[batch.first] = keys
            self._queue.put(batch)

    def _finish(self, threads: list[threading.Thread]) -> None:
        for _ in threads:
            self._queue.put(None)
        for thread in threads:
            thread.join()

    def _work(self) -> None:
        with self._another() as namespace:
            while (batch := self._queue.get()) is not None:
                try:
                    if self._outcome.error is None:
                        self._send_one(namespace, batch)
                except Exception as error:  # a thread that died would never be waited for
                    self._fail(told(error, batch.first))
                finally:
                    with self._ended:
                        del self._in_flight[batch.first]
                        self._ended.notify()

    def _send_one(self, namespace: Namespace, batch: Batch) -> None:
        sent = self._send(namespace, batch.items)
        with self._lock:
            self._outcome.add(batch, sent)
            self._progress.advance(batch.file_bytes, len(batch.items))

    def _fail(self, error: Failed) -> None:
        with self._lock:
            self._outcome.error = self._outcome.error or error


def told(error: Exception, first: int) -> Failed:
    """An item is told by its number in the file, not in the batch, whose first item `first` is."""
    if isinstance(error, ItemRefused):
        return Failed(f"Item {first + error.index} is refused.", *error.messages)
    if isinstance(error, Failed):
        return error
    return Failed(f"{type(error).__name__}: {error}")


def file_bytes(path: Path) -> int:
    """Zero for a pipe, whose length nobody knows. Raises Failed when it cannot be read."""
    try:
        if stat.S_ISFIFO(os.stat(path).st_mode):
            return 0  # opened once only: whoever writes into it would see its reader leave
        with path.open("rb") as file:
            return os.fstat(file.fileno()).st_size
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError) -> Failed:
    return Failed(f"{path} cannot be read: {error.strerror}")
