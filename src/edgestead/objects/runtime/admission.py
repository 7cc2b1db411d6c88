"""Letting a caller in: at the head, with each portion of a late body, and when its call's turn has come.

Owns  the moments at which it is asked, and how long a request waits until somebody can say.
Not   the answer (`authorise`, a parameter of whoever serves); tokens, leases.

A right may end while a request waits, for its body or its object, and whoever ended it relies on that. So
what was said at the head holds for as long as nothing is waited for, and is asked again after that.

A process that stood still cannot tell for a moment, and a restart of control takes a second: for callers that
is a pause, not a failure.
"""

import asyncio
from collections.abc import Awaitable, Callable

from edgestead.http1.messages import BodyTooLarge, Request
from edgestead.model.refusals import EdgeError
from edgestead.model.refusals import object as refusals

INVOKE = "Objects Invoke"  # the permission group of callers

Authorise = Callable[[Request, str], EdgeError | None]
"""The refusal of a request that needs a permission, None when it may pass."""

AskAgain = Callable[[], Awaitable[None]]
"""Raises the refusal of a caller that was let in before, if there is one now. When it returns, the answer is
of this turn of the loop."""

CREDENTIAL_HEADERS = frozenset({b"authorization", b"x-auth-email", b"x-auth-key"})

LOOK_SECONDS = 0.05  # between two looks whether it can be told now
LOOKS_MAX = 100  # 5 s: longer than control's next life takes to begin, shorter than clients wait


async def let_in(authorise: Authorise, request: Request, permission: str) -> None:
    """Raises the refusal: EdgeError, `Unsure` after the longest wait."""
    refusal = authorise(request, permission)
    for _ in range(LOOKS_MAX):
        if not isinstance(refusal, refusals.Unsure):
            break
        await asyncio.sleep(LOOK_SECONDS)
        refusal = authorise(request, permission)
    if refusal is not None:
        raise refusal


async def let_in_whole(authorise: Authorise, request: Request, permission: str, bytes_max: int) -> None:
    """The same, and the body is here afterwards: what a caller may is asked when it is, not when it began.

    Raises CallTooLarge, BodyBroken too.
    """
    await let_in(authorise, request, permission)
    if request.body.ended and request.body.waiting_bytes <= bytes_max:
        return
    try:
        await request.body.arrived(bytes_max)
    except BodyTooLarge:
        raise refusals.CallTooLarge(limit=bytes_max) from None
    await let_in(authorise, request, permission)


class Guard:
    """Stands before a body that is still to come. Raises the refusal, from the first one on; keeps it."""

    __slots__ = ("_ask_again", "refusal")

    def __init__(self, ask_again: AskAgain) -> None:
        self._ask_again = ask_again
        self.refusal: EdgeError | None = None

    async def __call__(self) -> None:
        if self.refusal is not None:
            raise self.refusal
        try:
            await self._ask_again()
        except EdgeError as refusal:
            self.refusal = refusal
            raise


def guard(request: Request, ask_again: AskAgain) -> None:
    """From here on whoever reads what is not there yet asks again."""
    if not request.body.ended:
        request.body.guard = Guard(ask_again)


def refusal_of(request: Request) -> EdgeError | None:
    """What ended the reading of the body, whatever its reader made of it."""
    return request.body.guard.refusal if isinstance(request.body.guard, Guard) else None
