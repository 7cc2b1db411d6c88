"""A rate limiter: at most so many requests per client and window, however many servers ask.

    POST /objects/RateLimiter/client-7/take   {"kwargs": {"limit": 100, "window_seconds": 60}}

One object per client. It keeps one counter per window, so a restart forgets nothing, and it answers before
the next caller is counted: two servers never share the last token.
"""

import time

from edgestead import StatefulObject


class RateLimiter(StatefulObject):
    async def take(self, limit: int, window_seconds: int = 60) -> dict:
        """Count one request: whether it may pass, how many are left, and when the window ends."""
        window = int(time.time()) // window_seconds
        name = f"window-{window_seconds}"
        current, used = await self.ctx.storage.get(name, default=(window, 0))
        if current != window:
            used = 0
        allowed = used < limit
        if allowed:
            used += 1
            await self.ctx.storage.put(name, (window, used))
        return {
            "allowed": allowed,
            "left": max(0, limit - used),
            "resets_in_seconds": (window + 1) * window_seconds - int(time.time()),
        }

    async def used(self, window_seconds: int = 60) -> int:
        """How many requests passed in the current window."""
        window, used = await self.ctx.storage.get(f"window-{window_seconds}", default=(0, 0))
        return used if window == int(time.time()) // window_seconds else 0

    async def forget(self) -> None:
        """Start over."""
        await self.ctx.storage.delete_all()
