"""Following the files of security events, so that pages need not read them.

Owns  when it happens.
Not   what is known of them (`usecases.event_index`).
"""

import asyncio
import logging
from typing import Final

from edgestead.rest.context import AppContext

PAUSE_SECONDS: Final = 0.02  # between two slices of about half of that, while there is more to look at
LOOK_SECONDS: Final = 2.0  # between two looks for what is new
FAILED_SECONDS: Final = 60.0

log = logging.getLogger(__name__)


async def follow_events(context: AppContext) -> None:
    """Until it is cancelled. A search waits for one slice at most."""
    while True:
        try:
            async with context.events_turn:
                follow = context.event_index.follow
                is_complete = await asyncio.to_thread(follow, context.events_folder, context.now_us())
        except Exception:
            log.exception("the files of security events cannot be followed")
            await asyncio.sleep(FAILED_SECONDS)
        else:
            await asyncio.sleep(LOOK_SECONDS if is_complete else PAUSE_SECONDS)
