"""An objects process to be killed while alarms ring: `FOLDER COUNT set|wait AHEAD_MS`.

`set` gives each of COUNT objects an alarm within some seconds from AHEAD_MS on, and says so; `wait` waits
until none is left and prints how often each one rang.
"""

import asyncio
import json
import sys
import time

from edgestead import StatefulObject
from edgestead.objects.runtime.alarms import AlarmInfo
from edgestead.objects.runtime.classes import describe
from edgestead.server.objects.host import Host

SPREAD_MS = 2_000


class Bell(StatefulObject):
    async def set(self, time_ms: int) -> None:
        await self.ctx.storage.set_alarm(time_ms)

    async def alarm(self, info: AlarmInfo) -> None:
        rung = await self.ctx.storage.get("rung", default=0)
        await self.ctx.storage.put("rung", rung + 1)

    async def rung(self) -> int:
        return await self.ctx.storage.get("rung", default=0)


async def is_ringing(host: Host) -> bool:
    await asyncio.sleep(0.05)
    return bool(host.node.alarms.running_count) or host.log.store.alarms.next_us() is not None


async def main(folder: str, count: int, what: str, ahead_ms: int) -> None:
    host = Host(folder, {"Bell": describe(Bell)}, segment_bytes=1 << 20)
    host.start()
    bells = [host.node.env.Bell[str(number)] for number in range(count)]
    if what == "set":
        begin = int(time.time() * 1_000) + ahead_ms
        for first in range(0, count, 500):
            some = enumerate(bells[first : first + 500], first)
            await asyncio.gather(*(bell.set(begin + n * SPREAD_MS // count) for n, bell in some))
        print("set", flush=True)  # noqa: T201 - how the test knows
        await asyncio.Event().wait()
    while await is_ringing(host):
        pass
    print(json.dumps([await bell.rung() for bell in bells]))  # noqa: T201
    await host.close()


asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])))
