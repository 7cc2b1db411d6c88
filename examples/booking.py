"""Seats that are held for a while, and free again when nobody pays: the alarm sees to that.

    POST /objects/Booking/friday/hold    {"args": ["1A", "ann"]}
    POST /objects/Booking/friday/pay     {"args": ["1A", "ann"]}
    POST /objects/Booking/friday/seats

One object per show. It has one alarm, at the end of the earliest hold; set and seat are stored in the same
commit, so a crash never leaves a seat that nobody frees.
"""

import time

from edgestead import StatefulObject

HOLD_SECONDS = 600


class Booking(StatefulObject):
    storage = "sql"

    async def on_start(self) -> None:
        self.sql = self.ctx.storage.sql
        self.sql.exec("CREATE TABLE IF NOT EXISTS seats (seat TEXT PRIMARY KEY, name TEXT, until INTEGER)")

    async def hold(self, seat: str, name: str, seconds: int = HOLD_SECONDS) -> bool:
        """Hold a seat for somebody; False when it is held or sold."""
        until = int((time.time() + seconds) * 1_000)
        held = self.sql.exec(
            "INSERT INTO seats VALUES (?, ?, ?) ON CONFLICT DO NOTHING", seat, name, until
        ).rows_written
        await self._wake()
        return held > 0

    async def pay(self, seat: str, name: str) -> bool:
        """Sell a seat to whoever holds it; False when nobody of that name does."""
        sold = self.sql.exec(
            "UPDATE seats SET until = NULL WHERE seat = ? AND name = ? AND until IS NOT NULL", seat, name
        ).rows_written
        await self._wake()
        return sold > 0

    async def seats(self) -> dict:
        """Who has which seat, and whether it is sold."""
        rows = self.sql.exec("SELECT seat, name, until IS NULL AS sold FROM seats ORDER BY seat")
        return {row["seat"]: {"name": row["name"], "sold": bool(row["sold"])} for row in rows}

    async def cancel_show(self) -> int:
        """Give every seat back; how many there were."""
        count = self.sql.exec("DELETE FROM seats").rows_written
        await self._wake()
        return count

    async def alarm(self) -> None:
        self.sql.exec("DELETE FROM seats WHERE until <= ?", int(time.time() * 1_000))
        await self._wake()

    async def _wake(self) -> None:
        """Set the alarm for the end of the earliest hold."""
        until = self.sql.exec("SELECT min(until) AS first FROM seats").one()["first"]
        if until is None:
            await self.ctx.storage.delete_alarm()
        else:
            await self.ctx.storage.set_alarm(until)
