"""The process that answers DNS over TCP.

Owns  its loop, on which answering, following the feed and telling secondaries take turns.
Not   anything about DNS or the feed: it only puts them together.
"""

import asyncio
import os
import signal
import socket
from collections.abc import Sequence
from ipaddress import ip_address, ip_network
from pathlib import Path

import uvloop

from edgestead.dns.journal import Journal, serial_of
from edgestead.dns.keyring import Keyring
from edgestead.dns.notify import Notifier
from edgestead.dns.own import own_names
from edgestead.dns.table import Table
from edgestead.dns.tcp import Private, TransferPolicy, serve_tcp
from edgestead.dns.watch import Watch
from edgestead.feed.follower import Follower
from edgestead.feed.follower_loop import LoopFollower
from edgestead.model import names
from edgestead.model.budgets.ledger import Ledger
from edgestead.model.counters import Page
from edgestead.model.served import KIND_JOURNAL, KIND_ZONE, decode_zone
from edgestead.model.transfers import KIND_ACL, KIND_OUTGOING, decode_outgoing
from edgestead.model.tsig import KIND_OWNER
from edgestead.server import process
from edgestead.server.certificate_memory import CertificateReader
from edgestead.server.dns import warm
from edgestead.server.dns.ask import DnsAsk
from edgestead.server.dns.part import KINDS, PageCounters, TableConsumer, new_keyring
from edgestead.server.dns.shown import Shown
from edgestead.server.dns.updates import Forwarder
from edgestead.server.dns.warm import Keeper
from edgestead.server.messages import DNS_GROUP, DnsStart
from edgestead.store.changes import Change


def main() -> None:
    start = process.begin(DnsStart)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(start))


class _Primary(TableConsumer):
    """The table's consumer, which also keeps the journal and has changed zones announced."""

    def __init__(
        self,
        table: Table,
        keyring: Keyring,
        page: Page,
        newest: int,
        journal: Journal,
        notifier: Notifier,
    ) -> None:
        super().__init__(table, keyring, page, newest)
        self.journal = journal
        self._served = table
        self._notifier = notifier
        self._journal_aside = Journal()

    def begin(self) -> None:
        super().begin()
        self._journal_aside = Journal()

    def load(self, changes: Sequence[Change]) -> None:
        super().load(changes)
        self._journal_aside.take(changes)

    def swap(self) -> None:
        super().swap()
        self.journal.take_over(self._journal_aside)
        self._notifier.changed(list(self._served.view.zones))  # what changed meanwhile, nobody knows

    def apply(self, changes: Sequence[Change]) -> None:
        told = _told_of(changes)
        before = {apex: self._serial(apex) for apex in told}
        super().apply(changes)
        self.journal.take(changes)
        of_peers = {one.scope for one in changes if one.kind == KIND_OUTGOING}
        self._notifier.changed(
            apex for apex, scope in told.items() if scope in of_peers or self._serial(apex) != before[apex]
        )

    def _serial(self, apex: bytes) -> int | None:
        zone = self._served.transferable(apex)
        return serial_of(zone.soa_rdata) if zone is not None and zone.complete else None


_APEX = {
    KIND_ZONE: lambda document: decode_zone(document).apex,
    KIND_OUTGOING: lambda document: decode_outgoing(document).apex,
}


def _told_of(changes: Sequence[Change]) -> dict[bytes, str]:
    """Zones that may have changed, and those whose peers did, with their scopes."""
    return {_APEX[one.kind](one.doc): one.scope for one in changes if one.doc and one.kind in _APEX}


async def _serve(start: DnsStart) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    page = process.page(start.counters_fd)
    table = Table(own_names(start.nameservers, start.nameserver_addresses))
    counters = PageCounters(page)
    keyring = new_keyring(start)
    notifier = _notifier(start, table, counters, keyring)
    transfers = TransferPolicy(
        journal=Journal(),
        networks=tuple(map(ip_network, start.transfer_to)),
        tls_only=start.transfer_tls,
    )
    label = warm.load_table(table, start.warm_fd)
    position = warm.load_keys(keyring, start.warm_fd, warm.position_of(label))
    ours = position if label is not None and label.run == start.run else None
    keeper = Keeper(start.warm_fd, start.run, table, transfers.journal, keyring, ours)
    if position is not None:
        warm.load_journal(transfers.journal, start.warm_fd, position)
    notifier.changed(list(table.view.zones))
    newest = position.sequence if position else 0
    consumer = _Primary(table, keyring, page, newest, transfers.journal, notifier)
    follower = LoopFollower(
        start.feed_path,
        Follower(
            consumer,
            group=DNS_GROUP,
            name=start.name,
            kinds=(*KINDS, KIND_OWNER, KIND_OUTGOING, KIND_ACL, KIND_JOURNAL),
            position=position,
            loading=process.Status(start.status_fd).loading,
        ),
    )
    # An exception of any of them ends the group, and with it the process: without the feed every answer may
    # be wrong from the next change on.
    async with asyncio.TaskGroup() as tasks:
        background = [tasks.create_task(follower.run())]
        background.append(tasks.create_task(notifier.run(_own_address(start.socket_fd))))
        background.append(tasks.create_task(_keep(keeper, follower)))
        answering = tasks.create_task(_answer(start, table, keyring, counters, follower, transfers, stop))
        answering.add_done_callback(lambda _: [task.cancel() for task in background])
    await keeper.write(follower.position)


def _notifier(start: DnsStart, table: Table, counters: PageCounters, keyring: Keyring) -> Notifier:
    seconds = asyncio.get_running_loop().time
    targets = [(host, port) for host, port, _ in start.notify]
    signed_by = {(host, port): names.wire_from_text(key) for host, port, key in start.notify if key}
    return Notifier(table, counters, targets, seconds=seconds, keyring=keyring, signed_by=signed_by)


def _own_address(socket_fd: int) -> str:
    """The address that DNS listens on, by which secondaries know us; "" when that is every address."""
    with socket.socket(fileno=os.dup(socket_fd)) as sock:
        host: str = sock.getsockname()[0]
    return "" if ip_address(host).is_unspecified else host


async def _keep(keeper: Keeper, follower: LoopFollower) -> None:
    await follower.wait_until_may_serve()
    await keeper.run(lambda: follower.position, follower.control_went)


async def _answer(
    start: DnsStart,
    table: Table,
    keyring: Keyring,
    counters: PageCounters,
    follower: LoopFollower,
    transfers: TransferPolicy,
    stop: asyncio.Event,
) -> None:
    may_serve = asyncio.create_task(follower.wait_until_may_serve())
    stopped = asyncio.create_task(stop.wait())
    await asyncio.wait((may_serve, stopped), return_when=asyncio.FIRST_COMPLETED)
    if may_serve.done():
        watch = Watch()
        DnsAsk(socket.socket(fileno=start.ask_fd), table, watch, start.settings).start()
        process.Status(start.status_fd).ready()
        shown = _shown(start)
        following = None if shown is None else asyncio.create_task(shown.follow())
        with socket.socket(fileno=start.socket_fd) as sock:
            await serve_tcp(
                sock,
                table,
                counters,
                stop,
                settings=start.settings,
                transfers=transfers,
                watch=watch,
                ledger=Ledger(counters.page),
                keyring=keyring,
                forward=Forwarder(start.updates_path).start(),
                private=_private(start, shown),
            )
        if following is not None:
            following.cancel()
    may_serve.cancel()
    stopped.cancel()


def _shown(start: DnsStart) -> Shown | None:
    if max(start.dot_fd, start.doh_fd) < 0:
        return None
    kept = CertificateReader(start.certificates_fd)
    return Shown(Path(start.tls_dir) if start.tls_dir else None, start.nameservers, kept.changed)


def _private(start: DnsStart, shown: Shown | None) -> Private | None:
    if shown is None:
        return None
    dot, doh = (socket.socket(fileno=fd) if fd >= 0 else None for fd in (start.dot_fd, start.doh_fd))
    return Private(shown.context, dot, doh)
