"""What follows from a process that ended in the middle of users' code.

Owns  counting the alarms that it did not bring to their end.
Not   orderly ends, which leave nothing behind.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol, TypeVar

import apsw

from edgestead.objects.errors import ObjectError
from edgestead.objects.runtime.alarms import RETRIES_MAX, pack_time, retry_time, unpack_time
from edgestead.objects.runtime.engine import Engine
from edgestead.objects.runtime.quarantine import Quarantine, counted
from edgestead.objects.runtime.stage import Stage
from edgestead.store.objectlog import LogError, ObjectRef

log = logging.getLogger(__name__)
T = TypeVar("T")


class Visited(Protocol):
    """What is asked of a node."""

    async def with_storage(self, ref: ObjectRef, use: Callable[[Engine], T]) -> T: ...

    def now_ms(self) -> int: ...

    def chance(self) -> float: ...


async def settle(
    node: Visited,
    stage: Stage,
    quarantine: Quarantine,
    blamed: Callable[[str, bool], None] = lambda class_name, is_own: None,
    *,
    ended_itself: bool = False,
) -> bool:
    """Blame and count, durably; before any code of users runs. Repeating it changes nothing but the blame.

    True when an object was blamed; then `blamed` is told its class, and whether the end was its own.
    `ended_itself`: the last process is known to have ended by an exit or a fault, not by somebody's signal.
    """
    record = None
    left = stage.left
    try:
        record = quarantine.blame(left, pack_time(node.now_ms()), ended_itself=ended_itself)
    except OSError as error:
        log.error("which object ended its process cannot be written down: %s", error)
    else:
        if record is not None:
            held = ", and is in quarantine" if record.is_held else ""
            name = record.name or record.id
            log.warning(
                "%s ended while %s/%s ran%s",
                counted(len(record.ends)),
                record.class_name,
                name,
                held,
            )
            blamed(record.class_name, ended_itself and left.running is not None)
    await asyncio.gather(*(_count(node, ref, fired_us) for ref, fired_us in left.alarms))
    stage.begin()
    return record is not None


async def _count(node: Visited, ref: ObjectRef, fired_us: int) -> None:
    """A failure that backs off. Never the last one: another object may have ended the process."""

    def fail(engine: Engine) -> None:
        if engine.alarm_us == fired_us:
            failures = min(unpack_time(fired_us)[1] + 1, RETRIES_MAX)
            engine.set_alarm(retry_time(node.now_ms(), failures, node.chance()))

    try:
        await node.with_storage(ref, fail)
    except (ObjectError, LogError, OSError, apsw.Error) as error:
        log.error("the alarm of %s/%s is not counted: %s", ref.class_name, ref.name or ref.id, error)
