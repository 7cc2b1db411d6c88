"""The alarm's states as the specification and the reference have them, row by row, with the test kit."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from edgestead import StatefulObject
from edgestead.testing import ObjectNode

LATER_MS = 60_000
Act = Callable[["Scene"], None]


class Bell(StatefulObject):
    """Its handler takes ten seconds, and fails when it is told to."""

    async def set(self, time_ms: int) -> None:
        await self.ctx.storage.set_alarm(time_ms)

    async def get(self) -> int | None:
        return await self.ctx.storage.get_alarm()

    async def delete(self) -> None:
        await self.ctx.storage.delete_alarm()

    async def fail(self, fails: bool) -> None:
        await self.ctx.storage.put("fails", fails)

    async def counts(self) -> tuple[int, int]:
        """How often the handler began, and how often it came to its end."""
        return await self.ctx.storage.get("begun", default=0), await self.ctx.storage.get("ended", default=0)

    async def alarm(self) -> None:
        await self.ctx.storage.put("begun", await self.ctx.storage.get("begun", default=0) + 1)
        await asyncio.sleep(10)
        if await self.ctx.storage.get("fails"):
            raise ValueError("as it was told")
        await self.ctx.storage.put("ended", await self.ctx.storage.get("ended", default=0) + 1)


class OwnBell(Bell):
    """The same with a durable database of its own."""

    durability = "sqlite"

    async def set(self, time_ms: int) -> None:
        await super().set(time_ms)

    async def get(self) -> int | None:
        return await super().get()

    async def delete(self) -> None:
        await super().delete()

    async def fail(self, fails: bool) -> None:
        await super().fail(fails)

    async def counts(self) -> tuple[int, int]:
        return await super().counts()


class Scene:
    """One object in one state, and what can be done to it."""

    def __init__(self, objects: ObjectNode, bell: Any) -> None:
        self.objects, self.bell = objects, bell
        self.told: int | None = None  # the time that was set last

    def set(self, after_ms: int) -> None:
        self.told = self.objects.now_ms + after_ms
        self.bell.set(self.told)


def unset(scene: Scene) -> None:
    """Nothing was ever set."""


def waiting(scene: Scene) -> None:
    scene.set(LATER_MS)


def running(scene: Scene) -> None:
    scene.set(0)
    scene.objects.advance(1)


def failed(scene: Scene) -> None:
    """The handler failed once; its retry has not begun."""
    scene.bell.fail(True)
    scene.set(0)
    scene.objects.advance(11)
    scene.bell.fail(False)


def succeeded(scene: Scene) -> None:
    scene.set(0)
    scene.objects.advance(20)


def nothing(scene: Scene) -> None:
    """Only time passes."""


def set_later(scene: Scene) -> None:
    scene.set(LATER_MS)


def set_now(scene: Scene) -> None:
    scene.set(0)


def set_past(scene: Scene) -> None:
    scene.set(-LATER_MS)


def set_zero(scene: Scene) -> None:
    scene.bell.set(0)


def delete(scene: Scene) -> None:
    scene.bell.delete()


def crash(scene: Scene) -> None:
    scene.objects.crash()


def power_cut(scene: Scene) -> None:
    scene.objects.crash(power=True)


# state, what is done, whether get_alarm() tells a time then, how often the handler begins and ends at last
ROWS: list[tuple[Act, Act, bool, tuple[int, int]]] = [
    (unset, nothing, False, (0, 0)),
    (unset, set_later, True, (1, 1)),
    (unset, delete, False, (0, 0)),
    (waiting, nothing, True, (1, 1)),
    (waiting, delete, False, (0, 0)),
    (waiting, set_later, True, (1, 1)),
    (waiting, set_now, False, (1, 1)),
    (waiting, set_past, False, (1, 1)),
    (waiting, set_zero, False, (1, 1)),
    (waiting, crash, True, (1, 1)),
    (waiting, power_cut, True, (1, 1)),
    (running, nothing, False, (1, 1)),
    (running, delete, False, (1, 1)),  # a handler already executing is not cancelled
    (running, set_later, True, (2, 2)),  # it is set again
    (running, set_now, True, (2, 2)),  # and runs soon: when the one that runs has ended
    (running, set_past, True, (2, 2)),
    (running, crash, True, (2, 1)),  # at least once
    (running, power_cut, False, (2, 1)),
    (failed, nothing, True, (2, 1)),  # it counts as set until its retry begins
    (failed, delete, False, (1, 0)),
    (failed, set_later, True, (2, 1)),
    (failed, set_now, False, (2, 1)),
    (failed, crash, True, (2, 1)),
    (succeeded, nothing, False, (1, 1)),
    (succeeded, set_later, True, (2, 2)),
    (succeeded, delete, False, (1, 1)),
]


@pytest.mark.parametrize("kind", ["Bell", "OwnBell"])
@pytest.mark.parametrize(("state", "act", "is_told", "counts"), ROWS)
def test_a_row_of_the_table(
    objects: ObjectNode, kind: str, state: Act, act: Act, is_told: bool, counts: tuple[int, int]
) -> None:
    scene = Scene(objects, objects[kind]["one"])
    state(scene)

    act(scene)
    objects.advance(0.2)
    told = scene.bell.get()
    objects.advance(600)

    assert (told is not None) == is_told
    assert scene.bell.counts() == counts
    assert scene.bell.get() is None


def test_the_time_that_is_told_is_the_one_that_was_set_or_the_retrys(objects: ObjectNode) -> None:
    scene = Scene(objects, objects.Bell["one"])
    waiting(scene)
    assert scene.bell.get() == scene.told

    other = Scene(objects, objects.Bell["two"])
    failed(other)
    assert objects.now_ms < other.bell.get() <= objects.now_ms + 2_500
