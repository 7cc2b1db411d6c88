"""A process that answers DNS over UDP.

Owns  its two threads: one answers, one follows the feed.
Asks  `dns.udp`, `store.feed.follower_thread`.
Tells the supervisor when it may serve.
Not   anything about DNS or the feed: it only puts them together.
"""

import logging
import mmap
import os
import signal
import socket
import threading

from edgestead.dns import rates
from edgestead.dns.rates import Rates
from edgestead.dns.table import Table
from edgestead.dns.udp import serve_udp
from edgestead.dns.watch import Watch
from edgestead.server import dns_warm, process
from edgestead.server.dns_ask import DnsAsk
from edgestead.server.dns_part import KINDS, PageCounters, TableConsumer
from edgestead.server.messages import DNS_GROUP, DnsStart
from edgestead.store.feed.follower import Follower
from edgestead.store.feed.follower_thread import ThreadFollower

_LOOK_SECONDS = 0.1  # how often a process that may not serve yet looks whether it shall end


def main() -> None:
    start = process.begin(DnsStart)
    status = process.Status(start.status_fd)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    page = process.page(start.counters_fd)
    table = Table()
    position = dns_warm.load_table(table, start.warm_fd)
    consumer = TableConsumer(table, page, position.sequence if position else 0)
    follower = ThreadFollower(
        start.feed_path,
        Follower(consumer, group=DNS_GROUP, name=start.name, kinds=KINDS, position=position),
    )
    threading.Thread(target=_follow, args=(follower,), name="feed", daemon=True).start()
    while not follower.wait_until_may_serve(_LOOK_SECONDS):
        if stop.is_set():
            return
    watch = Watch()
    DnsAsk(socket.socket(fileno=start.ask_fd), table, watch, start.settings).start()
    status.ready()
    with socket.socket(fileno=start.socket_fd) as sock:
        serve_udp(sock, table, PageCounters(page), stop, start.settings, _rates(start), watch)
    follower.stop()


def _rates(start: DnsStart) -> Rates | None:
    if not start.rate:
        return None
    memory = memoryview(mmap.mmap(start.rates_fd, rates.memory_octets(start.workers)))
    return Rates(start.rate, memory, worker=start.worker, workers=start.workers)


def _follow(follower: ThreadFollower) -> None:
    try:
        follower.run()
    except BaseException:
        # Without the feed every answer may be wrong from the next change on: better none at all.
        logging.getLogger("edgestead.server").exception("cannot follow the feed")
        os._exit(1)


if __name__ == "__main__":
    main()
