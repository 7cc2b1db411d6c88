"""`self.ctx`: what an object may ask of the platform.

Owns  its names in both spellings.
Not   other objects (`env`).
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import NoReturn, Protocol, TypeVar

from edgestead.objects import limits
from edgestead.objects.errors import Aborted, ObjectReset, words_of
from edgestead.objects.runtime import outgoing
from edgestead.objects.runtime.gates import InputGate
from edgestead.objects.runtime.outgoing import FetchResponse, Redirect
from edgestead.objects.runtime.patience import at_most
from edgestead.objects.runtime.storage import Storage
from edgestead.store.objectlog import ObjectRef

T = TypeVar("T")


class ObjectId:
    """An object's identity. `name` is None when it was made without one. Equal ids are one object."""

    __slots__ = ("_ref",)

    def __init__(self, ref: ObjectRef) -> None:
        self._ref = ref

    @property
    def name(self) -> str | None:
        return self._ref.name

    def __str__(self) -> str:
        return self._ref.id

    def __repr__(self) -> str:
        return f"<{self._ref.class_name} {self._ref.name or self._ref.id}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectId) and self._ref.id == other._ref.id

    def __hash__(self) -> int:
        return hash(self._ref.id)


class Resettable(Protocol):
    def reset(self, error: ObjectReset) -> None:
        """End this life of the object."""
        ...

    async def confirmed(self) -> None:
        """Wait until every write so far is durable. Raises ObjectReset."""
        ...


class Context:
    """`self.ctx` of one live object."""

    def __init__(self, ref: ObjectRef, storage: Storage, gate: InputGate, instance: Resettable) -> None:
        self.id = ObjectId(ref)
        self.storage = storage
        self._gate = gate
        self._instance = instance

    def abort(self, reason: str | None = None) -> NoReturn:
        """Reset the object at once: writes that were not committed yet are gone, callers get `Aborted`.

        Raises Aborted, so that nothing behind it runs.
        """
        error = Aborted(reason or "Application called abort() to reset the object.")
        self._instance.reset(error)
        raise error

    async def block_concurrency_while(self, closure: Callable[[], Awaitable[T]]) -> T:
        """Run `await closure()` while no other event of the object runs.

        A closure that raises, or takes longer than 30 s, resets the object. Raises ObjectError when nested
        more than 64 deep; what the closure raised.
        """
        try:
            async with self._gate.hold(), at_most(limits.BLOCK_SECONDS_MAX):
                result = closure()
                return await result if inspect.isawaitable(result) else result
        except (GeneratorExit, asyncio.CancelledError):
            raise
        except BaseException as error:
            self._instance.reset(
                ObjectReset(f"A call to block_concurrency_while() failed: {words_of(error)}")
            )
            raise

    async def fetch(
        self,
        url: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: bytes | str | None = None,
        redirect: Redirect = "follow",
    ) -> FetchResponse:
        """Make an HTTP request, when every write so far is durable.

        Follows at most 20 redirects. Raises TypeError, ValueError for what is no request, FetchError.
        """
        return await outgoing.fetch(
            self._instance.confirmed, url, method=method, headers=headers, body=body, redirect=redirect
        )

    blockConcurrencyWhile = block_concurrency_while
