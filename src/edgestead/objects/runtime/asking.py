"""Questions to the objects' storage, awaited.

Owns  turning an answer that comes by a callback into one that is awaited; walking the catalogue by pages.
Not   what is asked.

An answer that comes at once costs no turn of the loop.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import TypeVar

from edgestead.store.objectlog import CatalogueEntry, Log, LogError, ObjectRef, Told

T = TypeVar("T")
PAGE_ENTRIES = 256  # of the catalogue in memory at a time


def tell(future: "asyncio.Future[T]", result: T | None, error: LogError | None) -> None:
    """Answer a future, if anybody still waits for it."""
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)  # type: ignore[arg-type]


async def ask(begin: Callable[[Told[T]], None]) -> T:
    """Wait for a question to the log. Raises LogError."""
    future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    begin(partial(tell, future))
    return await future


async def find(log: Log, ref: ObjectRef) -> CatalogueEntry | None:
    """What the log has of an object; None when it was never written. Raises LogError."""
    found: CatalogueEntry | None = await ask(partial(log.find, ref))
    return found


async def entries_of(
    log: Log, after: tuple[str, str] = ("", ""), *, page_entries: int = PAGE_ENTRIES
) -> AsyncIterator[CatalogueEntry]:
    """Every object after that class and id, in this order. Raises LogError."""
    while True:
        page: list[CatalogueEntry] = await ask(partial(log.catalogue, after, page_entries))
        for entry in page:
            yield entry
        if len(page) < page_entries:
            return
        after = (page[-1].ref.class_name, page[-1].ref.id)
