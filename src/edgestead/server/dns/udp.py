"""A process that answers DNS over UDP.

Owns  its two threads: one answers, one follows the feed.
Not   anything about DNS or the feed: it only puts them together.
"""

import logging
import mmap
import os
import signal
import socket
import threading

from edgestead.dns import rates
from edgestead.dns.own import own_names
from edgestead.dns.rates import Rates
from edgestead.dns.table import Table
from edgestead.dns.udp import serve_udp
from edgestead.dns.watch import Watch
from edgestead.feed.follower import Follower
from edgestead.feed.follower_thread import ThreadFollower
from edgestead.server import process
from edgestead.server.dns import notices, warm
from edgestead.server.dns.alone import Alone
from edgestead.server.dns.ask import DnsAsk
from edgestead.server.dns.part import KINDS, PageCounters, TableConsumer, new_keyring
from edgestead.server.dns.updates import Forwarder
from edgestead.server.messages import DNS_GROUP, DnsStart

_log = logging.getLogger("edgestead.server")
_LOOK_SECONDS = 0.1  # how often a process that may not serve yet looks whether it shall end


class Turning:
    """Whether to stop, as the thread that answers asks before each turn; so it is known whether that turns.

    It turns several times between two questions of control, busy or not (`dns.udp.LOOK_MS`).
    """

    def __init__(self) -> None:
        self._stops = False
        self._turns = 0
        self._seen = -1

    def set(self) -> None:
        self._stops = True

    def is_set(self) -> bool:
        self._turns += 1
        return self._stops

    def goes_on(self) -> bool:
        """Whether it turned since this was asked last. For the other thread."""
        seen, self._seen = self._seen, self._turns
        return self._seen != seen


def main() -> None:
    start = process.begin(DnsStart)
    status = process.Status(start.status_fd)
    stop = Turning()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    page = process.page(start.counters_fd)
    table = Table(own_names(start.nameservers, start.nameserver_addresses))
    keyring = new_keyring(start)
    label = warm.load_table(table, start.warm_fd)
    position = warm.load_keys(keyring, start.warm_fd, warm.position_of(label))
    alone = Alone(label, start.run, start.control_life_fd, start.witness_fd)
    consumer = TableConsumer(table, keyring, page, position.sequence if position else 0)
    follower = ThreadFollower(
        start.feed_path,
        Follower(
            consumer,
            group=DNS_GROUP,
            name=start.name,
            kinds=KINDS,
            position=position,
            goes_on=stop.goes_on,
            loading=status.loading,
        ),
    )
    threading.Thread(target=_follow, args=(follower,), name="feed", daemon=True).start()
    while not follower.wait_until_may_serve(_LOOK_SECONDS):
        if stop.is_set():
            return
        if alone.may_serve() and follower.serve_alone(alone.may_serve):
            _log.warning("control is away: answering from the file dns/served")
    watch = Watch()
    DnsAsk(socket.socket(fileno=start.ask_fd), table, watch, start.settings).start()
    status.ready()
    with socket.socket(fileno=start.socket_fd) as sock:
        siblings = [socket.socket(fileno=fd) for fd in start.sibling_fds]
        counters, rates = PageCounters(page), _rates(start)
        forward = Forwarder(start.updates_path).start()
        serve_udp(
            *(sock, table, counters, stop, start.settings, rates, watch, keyring, forward),
            siblings=siblings,
            notified=notices.sender(start.feed_path),
        )
    follower.stop()


def _rates(start: DnsStart) -> Rates | None:
    if not start.dns_rate:
        return None
    memory = memoryview(mmap.mmap(start.rates_fd, rates.memory_octets(start.workers)))
    return Rates(start.dns_rate, memory, worker=start.worker, workers=start.workers)


def _follow(follower: ThreadFollower) -> None:
    try:
        follower.run()
    except BaseException:
        # Without the feed every answer may be wrong from the next change on: better none at all.
        _log.exception("cannot follow the feed")
        os._exit(1)
