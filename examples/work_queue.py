"""A work queue: a job is handed to one worker at a time, and to another one if the first does not finish it.

    POST /objects/WorkQueue/mail/add     {"args": [{"to": "ann@example.org"}]}
    POST /objects/WorkQueue/mail/claim   {"args": ["worker-1"]}
    POST /objects/WorkQueue/mail/done    {"args": [1, "worker-1"]}

Whoever was told that a job is in the queue can forget it: the answer left after the job was on disk.
"""

import time

from edgestead import StatefulObject

LEASE_SECONDS = 30


class WorkQueue(StatefulObject):
    storage = "sql"

    async def on_start(self) -> None:
        self.sql = self.ctx.storage.sql
        self.sql.exec(
            """
            CREATE TABLE IF NOT EXISTS jobs (
              id INTEGER PRIMARY KEY AUTOINCREMENT, worker TEXT,
              until REAL NOT NULL DEFAULT 0, tries INTEGER NOT NULL DEFAULT 0
            );
            CREATE INDEX IF NOT EXISTS free ON jobs (until, id)
            """
        )

    async def add(self, payload) -> int:
        """Put a job in; gives its number. Row and payload are stored together or not at all."""
        with self.ctx.storage.transaction_sync():
            number = self.sql.exec("INSERT INTO jobs DEFAULT VALUES RETURNING id").one()["id"]
            self.ctx.storage.put(f"job-{number}", payload)
        return number

    async def claim(self, worker: str) -> dict | None:
        """The next job that nobody works on, for the next 30 seconds; None when there is none."""
        now = time.time()
        found = self.sql.exec(
            """
            UPDATE jobs SET worker = ?, until = ?, tries = tries + 1
            WHERE id = (SELECT id FROM jobs WHERE until <= ? ORDER BY until, id LIMIT 1) RETURNING id, tries
            """,
            worker,
            now + LEASE_SECONDS,
            now,
        ).to_list()
        if not found:
            return None
        return {**found[0], "payload": await self.ctx.storage.get(f"job-{found[0]['id']}")}

    async def done(self, number: int, worker: str) -> bool:
        """Take a finished job out; False when it belongs to somebody else by now."""
        with self.ctx.storage.transaction_sync():
            mine = self.sql.exec("DELETE FROM jobs WHERE id = ? AND worker = ?", number, worker).rows_written
            if mine:
                self.ctx.storage.delete(f"job-{number}")
        return bool(mine)

    async def count(self) -> int:
        """How many jobs are not done."""
        return self.sql.exec("SELECT count(*) AS jobs FROM jobs").one()["jobs"]
