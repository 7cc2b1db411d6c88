"""Objects processes of a cluster on one loop over a real PostgreSQL: made, killed, stopped, asked.

Owns  putting together what a process has, with Unix sockets in place of the nodes' port.
Not   histories (`list_checker`).
"""

import asyncio
import secrets
import socket
import threading
import time

from edgestead import StatefulObject
from edgestead.cluster.forms import FORMS
from edgestead.objects import ids
from edgestead.objects.runtime.calls import error_of, pack_arguments
from edgestead.objects.runtime.classes import describe
from edgestead.objects.runtime.node import Node
from edgestead.objects.runtime.spread import Reach, Spread
from edgestead.objects.values.codec import decode
from edgestead.postgres.objectlog.log import PostgresObjectLog
from edgestead.postgres.slots import SlotClerk
from edgestead.server.objects.clustered import Clustered
from edgestead.sqlite.objectlog.files import LocalFiles
from edgestead.store.runner import ThreadRunner
from tests.cluster.list_checker import NEVER, Append, Read

TEND_SECONDS = 0.2


def now_ms():
    return time.clock_gettime(time.CLOCK_BOOTTIME) * 1000


class Numbers(StatefulObject):
    async def append(self, number):
        numbers = await self.ctx.storage.get("numbers", default=[])
        await self.ctx.storage.put("numbers", [*numbers, number])

    async def read(self):
        return await self.ctx.storage.get("numbers", default=[])


class Bell(StatefulObject):
    async def ring_at(self, ms):
        """Whoever got no answer asks again: it rings once for all of them."""
        if not await self.rung() and await self.ctx.storage.get_alarm() is None:
            await self.ctx.storage.set_alarm(ms)
        return True

    async def alarm(self):
        await self.ctx.storage.put("rung", await self.ctx.storage.get("rung", default=0) + 1)

    async def rung(self):
        return await self.ctx.storage.get("rung", default=0)


class Process:
    def __init__(self, world, node, place=0, ahead_s=0, forms=FORMS):
        """Its clock of the day is so many seconds ahead. `forms` are of another release."""
        self._forms = forms
        self.world, self.name, self.fatal, self._ahead_s = world, node, [], ahead_s
        self.is_alive = self.is_still = False
        self.clustered = Clustered(
            SlotClerk(world.dsn, node, place, "", form=forms.newest),
            SlotClerk(world.dsn, node, place, ""),
            now_ms=now_ms,
            fatal=self._fatal,
        )

    def _fatal(self, reason):
        """On whatever thread: a real process would be gone."""
        self.fatal.append(reason)
        self.world.loop.call_soon_threadsafe(self.end)

    async def open(self):
        loop, world = self.world.loop, self.world
        await self.clustered.register()
        self.number = self.clustered.number
        folder = world.folder / str(self.number)
        folder.mkdir()
        files = LocalFiles()
        self.log = PostgresObjectLog(
            world.dsn,
            str(folder),
            owner=self.clustered.slots,
            files=files,
            writer=ThreadRunner(loop.call_soon_threadsafe, "log"),
            reader=ThreadRunner(loop.call_soon_threadsafe, "reader"),
            upkeep=ThreadRunner(loop.call_soon_threadsafe, "upkeep"),
            now_us=lambda: time.time_ns() // 1_000 + self._ahead_s * 1_000_000,
            fatal=self._fatal,
        )
        self.node = Node(
            {kind.__name__: describe(kind) for kind in (Numbers, Bell)},
            self.log.store,
            files,
            now_ms=lambda: time.time_ns() // 1_000_000 + self._ahead_s * 1_000,
            random=secrets.token_bytes,
        )
        self.spread = Spread(
            self.node, lambda request, permission: None, self.clustered, world.reach, forms=self._forms
        )
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(folder / "calls"))
        listener.listen()
        await self.spread.open(listener)
        await self.clustered.open(self.log, self.node)
        self.node.start()
        self.is_alive = True
        self._tend()
        return self

    def _tend(self):
        """As the real process does: a log that met a full disk finds out here that there is room again."""
        if self.is_alive:
            self.log.tend()
            self.world.loop.call_later(TEND_SECONDS, self._tend)

    def kill(self):
        """As a kill does: nothing of it is sent any more, and nobody is told."""
        self.world.killed += 1
        self.end()

    def end(self):
        """By itself, or by its supervisor."""
        if not self.is_alive:
            return
        self.is_alive = False
        ownership = self.clustered.ownership
        ownership._closing.set()
        ownership._rounds.cancel()
        self.spread._server.close()
        self.clustered.slots.lost()
        self._hang_up()

    def _hang_up(self):
        """On all connections, each on the thread that uses it: hundreds of processes end in one test."""
        log, ownership = self.log, self.clustered.ownership
        for link, runner in zip((log._writing, log._reading, log._tending), log._runners, strict=True):
            link.dsn = "host=/nowhere"
            link.cut()
            runner.run(link.close, lambda result, error: None)
        ownership._statements.submit(ownership._clerk.close)
        threading.Thread(target=self._hang_up_renewing, args=(ownership,), daemon=True).start()

    def _hang_up_renewing(self, ownership):
        ownership._renewals.join()
        ownership._renewing.close()

    def stand_still(self):
        """Renew and look no more, but go on answering: a zombie."""
        self.world.stopped += 1
        self.is_still = True
        self.clustered.ownership._closing.set()
        self.clustered.ownership._rounds.cancel()

    async def close(self):
        if self.is_alive:
            self.is_alive = False
            await self.node.close()
            await self.clustered.close()
        else:
            await asyncio.to_thread(self.clustered.ownership._statements.shutdown)
        await self.spread.finish(1)
        await self.spread.close()


class Processes:
    def __init__(self, dsn, folder):
        self.dsn, self.folder, self.loop = dsn, folder, asyncio.get_running_loop()
        self.all, self._values = [], 0
        self.killed = self.stopped = self.handed_over = 0  # the last are slots
        self.appends, self.reads = {}, {}

    async def start(self, node, ahead_s=0, forms=FORMS):
        made = await Process(self, node, ahead_s=ahead_s, forms=forms).open()
        self.all.append(made)
        return made

    @property
    def acknowledged(self):
        return sum(append.ended < NEVER for one in self.appends.values() for append in one)

    @property
    def living(self):
        """Those that clients ask."""
        return [process for process in self.all if process.is_alive and not process.is_still]

    def reach(self, owner):
        async def open_(make):
            path = str(self.folder / str(owner.number) / "calls")
            await self.loop.create_unix_connection(make, path)

        return Reach(open_, open_)

    async def append(self, process, name):
        self._values += 1
        number, began = self._values, time.monotonic()
        reply = await process.spread.call(
            ids.from_name("Numbers", name), "append", pack_arguments((number,), {})
        )
        ended = time.monotonic() if reply.ok and process.is_alive else NEVER
        self.appends.setdefault(name, []).append(Append(number, began, ended))
        return None if reply.ok else error_of(reply)

    async def read(self, process, name):
        began = time.monotonic()
        reply = await process.spread.call(ids.from_name("Numbers", name), "read", pack_arguments((), {}))
        if reply.ok and process.is_alive:
            self.reads.setdefault(name, []).append(Read(began, time.monotonic(), decode(reply.data)))
        return reply.ok

    async def ask(self, process, bell, method, *arguments):
        """The reply's value; None when it is an error."""
        ref = ids.from_name("Bell", bell)
        reply = await process.spread.call(ref, method, pack_arguments(arguments, {}))
        return decode(reply.data) if reply.ok and process.is_alive else None

    async def close(self):
        for process in reversed(self.all):
            await process.close()
