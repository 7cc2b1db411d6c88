"""The process that answers DNS over TCP.

Owns  its loop, on which answering and following the feed take turns.
Asks  `dns.tcp`, `store.feed.follower_loop`.
Tells the supervisor when it may serve.
Not   anything about DNS or the feed: it only puts them together.
"""

import asyncio
import signal
import socket

import uvloop

from edgestead.dns.table import Table
from edgestead.dns.tcp import serve_tcp
from edgestead.model.counters import Page
from edgestead.server import process
from edgestead.server.dns_part import KINDS, PageCounters, TableConsumer
from edgestead.server.messages import DNS_GROUP, DnsStart
from edgestead.store.feed.follower import Follower
from edgestead.store.feed.follower_loop import LoopFollower


def main() -> None:
    start = process.begin(DnsStart)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(start))


async def _serve(start: DnsStart) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    page = process.page(start.counters_fd)
    table = Table()
    consumer = TableConsumer(table, page)
    follower = LoopFollower(
        start.feed_path, Follower(consumer, group=DNS_GROUP, name=start.name, kinds=KINDS)
    )
    # An exception of either ends the group, and with it the process: without the feed every answer may be
    # wrong from the next change on.
    async with asyncio.TaskGroup() as tasks:
        following = tasks.create_task(follower.run())
        tasks.create_task(_answer(start, table, page, follower, stop)).add_done_callback(
            lambda _: following.cancel()
        )


async def _answer(
    start: DnsStart, table: Table, page: Page, follower: LoopFollower, stop: asyncio.Event
) -> None:
    may_serve = asyncio.create_task(follower.wait_until_may_serve())
    stopped = asyncio.create_task(stop.wait())
    await asyncio.wait((may_serve, stopped), return_when=asyncio.FIRST_COMPLETED)
    if may_serve.done():
        process.Status(start.status_fd).ready()
        with socket.socket(fileno=start.socket_fd) as sock:
            await serve_tcp(sock, table, PageCounters(page), stop, settings=start.settings)
    may_serve.cancel()
    stopped.cancel()


if __name__ == "__main__":
    main()
