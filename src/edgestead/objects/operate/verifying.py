"""Looking at many objects in one pass: their databases as they are, their past, and once the log itself.

Owns  what of an object is looked at without a copy on disk, how many at once.
Not   one object by itself, or a large one: these are copied first (`operate`).

A database that nobody has open is read as a file, one that is open as SQLite serialises it: 0.2 ms instead of
the 7 of a copy that is written, synced and read again. Its object waits only while the bytes are read.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

import apsw

from edgestead.objects.errors import ObjectError
from edgestead.objects.operate import checks
from edgestead.objects.operate.shapes import ObjectVerdict, Verdict
from edgestead.objects.runtime.asking import ask
from edgestead.store.objectlog import CatalogueEntry, LogError

if TYPE_CHECKING:
    from edgestead.objects.operate.operator import Offload
    from edgestead.objects.runtime.engine import Engine
    from edgestead.objects.runtime.node import Node

IMAGE_BYTES_MAX = 4 * 1024 * 1024  # of a database that is looked at in memory
IMAGES_BYTES_MAX = 16 * 1024 * 1024  # of those that are looked at together


Examine = Callable[[CatalogueEntry], Awaitable[Verdict]]


async def look_at(
    node: "Node", entries: list[CatalogueEntry], offload: "Offload", large: Examine
) -> list[ObjectVerdict]:
    """A verdict on each object, in order. `large` looks at one that does not fit into memory."""
    verdicts: dict[int, Verdict] = {}
    images: dict[int, checks.Image] = {}
    for number, entry in enumerate(entries):
        try:
            image = await node.visit(entry.ref, _image_of)
            if image is None:
                verdicts[number] = await large(entry)
                continue
        except (ObjectError, LogError, OSError, apsw.Error) as error:
            verdicts[number] = Verdict(0, 0, [f"not checked: {error}"])
            continue
        images[number] = image
        if sum(len(one.pages) for one in images.values()) > IMAGES_BYTES_MAX:
            verdicts |= await offload(partial(_judge, images))
            images = {}
    verdicts |= await offload(partial(_judge, images))
    pasts = await _pasts(node, entries)
    return [
        ObjectVerdict(
            entry.ref.class_name,
            entry.ref.id,
            entry.ref.name,
            verdicts[number].pages,
            verdicts[number].keys,
            verdicts[number].problems + pasts[number],
        )
        for number, entry in enumerate(entries)
    ]


async def log_problems(node: "Node") -> list[str]:
    """What is wrong with the log's segments and with history as a whole."""
    try:
        found: list[str] = await ask(node.past.check_all)
        return found
    except LogError as error:
        return [str(error)]


async def _image_of(engine: "Engine") -> checks.Image | None:
    """What is stored, as it is committed; None when the database is larger."""
    await asyncio.sleep(0)  # thousands in a row: calls come in between
    engine.commit()
    engine.check()
    if engine.database is not None:
        pages = None if engine.database.size_bytes() > IMAGE_BYTES_MAX else engine.database.image()
    elif engine.has_file:
        pages = _read(engine.lease.path)
    else:
        pages = b""
    return None if pages is None else checks.Image(pages, dict(engine.unflushed))


def _read(path: str) -> bytes | None:
    with open(path, "rb") as file:
        pages = file.read(IMAGE_BYTES_MAX + 1)
    return None if len(pages) > IMAGE_BYTES_MAX else pages


def _judge(images: dict[int, checks.Image]) -> dict[int, Verdict]:
    return {number: checks.check_image(image) for number, image in images.items()}


async def _pasts(node: "Node", entries: list[CatalogueEntry]) -> list[list[str]]:
    refs = [entry.ref for entry in entries]
    try:
        found: list[list[str]] = await ask(lambda done: node.past.check(refs, done))
        return found
    except LogError as error:
        return [[str(error)] for _ in entries]
