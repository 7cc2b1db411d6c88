"""How late alarms are, with 10,000 of them pending: `python benchmarks/objects_alarms.py [COUNT] [SECONDS]`.

Each object gets an alarm within so many seconds; its handler notes the time and writes. The peer, in the same
run, is the event loop's own timers with nothing to do: what no alarm can be better than.
"""

import asyncio
import statistics
import sys
import tempfile
import time

import uvloop

from edgestead import StatefulObject
from edgestead.objects.runtime.alarms import AlarmInfo
from edgestead.objects.runtime.classes import describe
from edgestead.server.objects.host import Host, configure_sqlite
from edgestead.server.process import rest_collector

LATE: list[float] = []


class Bell(StatefulObject):
    async def set(self, time_ms: int) -> None:
        await self.ctx.storage.set_alarm(time_ms)

    async def alarm(self, info: AlarmInfo) -> None:
        LATE.append(time.time() * 1_000 - info.scheduled_time)
        await self.ctx.storage.put("rung", info.scheduled_time)


def report(name: str, late: list[float]) -> float:
    ordered = sorted(late)
    p99 = ordered[len(ordered) * 99 // 100]
    print(
        f"{name:8} {len(late):6} rang   median {statistics.median(late):6.2f} ms   "
        f"p99 {p99:6.2f} ms   worst {ordered[-1]:6.2f} ms"
    )
    return p99


async def timers(count: int, seconds: float) -> list[float]:
    loop, late = asyncio.get_running_loop(), []

    def ring(due_ms: float) -> None:
        late.append(time.time() * 1_000 - due_ms)

    begin = time.time() * 1_000 + 500
    for number in range(count):
        due_ms = begin + number * seconds * 1_000 / count
        loop.call_later(due_ms / 1_000 - time.time(), ring, due_ms)
    await asyncio.sleep(seconds + 1)
    return late


async def alarms(folder: str, count: int, seconds: float) -> None:
    host = Host(folder, {"Bell": describe(Bell)})
    host.start()
    begin = int(time.time() * 1_000) + 15_000 + count // 2  # when the objects have left memory again
    for first in range(0, count, 500):
        some = range(first, min(first + 500, count))
        await asyncio.gather(
            *(host.node.env.Bell[str(n)].set(begin + int(n * seconds * 1_000 / count)) for n in some)
        )
    await asyncio.sleep(begin / 1_000 - time.time() + seconds + 5)
    await host.close()


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 20.0
    configure_sqlite()
    rest_collector()  # as the process that serves objects does
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        peer = report("timers", runner.run(timers(count, seconds / 4)))
        with tempfile.TemporaryDirectory() as folder:
            runner.run(alarms(folder, count, seconds))
    p99 = report("alarms", LATE)
    print(f"p99 {p99:.2f} ms: {p99 / max(peer, 0.01):.1f} x the bare timers'; goal 10 ms")


main()
