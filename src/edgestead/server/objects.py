"""A process that runs stateful objects.

Owns  putting its parts together, and their order at the start and the end.
Asks  `objects.host` to run classes, `services.identities` over the feed for who may call.
Tells the supervisor when it answers, and why it ends.
Not   anything about objects, HTTP or tokens.

Two threads: the loop with all user code, and the follower of the feed, which user code that computes can
slow down but not stop.
"""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import threading
import time
from functools import partial
from pathlib import Path

import apsw
import uvloop

from edgestead.model.counters import Page, slot
from edgestead.objects import layout
from edgestead.objects.bindings import Ask
from edgestead.objects.classes import ClassInfo
from edgestead.objects.env import Bindings
from edgestead.objects.host import Host, Peers, configure_sqlite
from edgestead.objects.loader import LoadError, load
from edgestead.objects.watchdog import Watchdog
from edgestead.objects.wire import Asker
from edgestead.server import process
from edgestead.server.messages import OBJECTS_GROUP, ObjectsStart
from edgestead.server.objects_access import Gatekeeper
from edgestead.services.identities import KINDS, FedAccess
from edgestead.store.feed.follower import Follower
from edgestead.store.feed.follower_thread import ThreadFollower
from edgestead.store.objectlog import LogError, Progress
from edgestead.store.sqlite.objectlog.thinning import SECOND_US, Keeping

SHOW_SECONDS = 0.5  # between two looks at what is shown as metrics
REPORT_SECONDS = 2.0  # between two reports of which tokens were used
SWITCH_SECONDS = 0.0005
"""How long the loop may keep the interpreter from the log's thread, which needs it four times for each group:
with Python's 5 ms a busy loop would delay commits more than the disk does."""
_LOOK_SECONDS = 0.1  # how often a process that may not serve yet looks whether it shall end
_ANSWERS = slot("edge_objects_requests_total", "1xx") - 1  # plus the first digit of the status
_LIVE = slot("edge_objects_live")
_HISTORY_BYTES = slot("edge_objects_history_bytes")
_LOG_GROUPS = slot("edge_objects_log_groups_total")
_LOG_RECORDS = slot("edge_objects_log_records_total")
_LOG_WAITING = slot("edge_objects_log_waiting")
_ALARMS = slot("edge_objects_alarms_running")
_READ_ONLY = slot("edge_objects_read_only")
_BLOCKED = slot("edge_objects_blocked_total")
_SEQUENCE = slot("edge_feed_sequence")


def main() -> None:
    start = process.begin(ObjectsStart)
    sys.setswitchinterval(SWITCH_SECONDS)
    status = process.Status(start.status_fd)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    try:
        classes = load(start.sources)
    except LoadError as error:
        status.failed(str(error))
        sys.exit(1)
    if twice := sorted(classes.keys() & start.bindings.keys()):
        status.failed(f"objects.bindings: {twice[0]} is the name of a class already")
        sys.exit(1)
    fed = FedAccess()
    follower = ThreadFollower(
        start.feed_path, Follower(fed, group=OBJECTS_GROUP, name=start.name, kinds=KINDS)
    )
    threading.Thread(target=_follow, args=(follower,), name="feed", daemon=True).start()
    while not follower.wait_until_may_serve(_LOOK_SECONDS):
        if stop.is_set():
            return
    configure_sqlite()
    try:
        folder = layout.settle(Path(start.folder), start.worker, start.workers)
    except (LogError, OSError, apsw.Error) as error:
        status.failed(f"the objects cannot be dealt out to {start.workers} processes: {error}")
        sys.exit(1)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_live(start, status, folder, classes, fed, stop))
    follower.stop()


def _follow(follower: ThreadFollower) -> None:
    try:
        follower.run()
    except BaseException:
        # Without the feed a token that was taken away would open doors for ever: better no answers.
        logging.getLogger("edgestead.server").exception("cannot follow the feed")
        os._exit(1)


async def _live(
    start: ObjectsStart,
    status: process.Status,
    folder: Path,
    classes: dict[str, ClassInfo],
    fed: FedAccess,
    stopped: threading.Event,
) -> None:
    """Serve until SIGTERM; returns when everything is durable."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    if stopped.is_set():
        return
    page = process.page(start.counters_fd)
    try:  # before anybody watches the loop: a long log takes its time, and no class has run yet
        control = Asker(start.kv_path)
        host = Host(
            str(folder),
            classes,
            keeping=Keeping(
                spacing_us=start.thin_seconds * SECOND_US, bytes_max=start.history_mib * 1024 * 1024
            ),
            bindings=Bindings(start.bindings, control.ask),
        )
    except (LogError, OSError) as error:
        status.failed(f"the objects' storage cannot be opened: {error}")
        sys.exit(1)
    watchdog = Watchdog(loop, start.blocked_seconds, partial(_end_blocked, page, status))
    watchdog.start()
    gatekeeper = Gatekeeper(fed, lambda: time.time_ns() // 1000)
    with socket.socket(fileno=os.dup(start.socket_fd)) as listener:
        await host.open(
            [listener], gatekeeper, lambda code: page.add(_ANSWERS + code // 100), peers=_peers(start)
        )
        process.rest_collector()
        status.ready()
        showing = loop.create_task(_show(host, page, fed))
        reporting = loop.create_task(_report(gatekeeper, control.ask))
        await stop.wait()
        await host.close()
    showing.cancel()
    reporting.cancel()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(REPORT_SECONDS):
            await gatekeeper.report(control.ask)
    watchdog.stop()


def _peers(start: ObjectsStart) -> Peers | None:
    if start.workers == 1:
        return None
    return Peers(
        start.worker,
        start.calls,
        start.requests,
        socket.socket(fileno=start.calls_fd),
        socket.socket(fileno=start.requests_fd),
    )


async def _show(host: Host, page: Page, fed: FedAccess) -> None:
    """Keep the metrics that are levels up to date. Readiness reads one of them."""
    shown = Progress(0, 0, 0)
    while True:
        progress = host.log.progress
        page.add(_LOG_GROUPS, progress.groups - shown.groups)
        page.add(_LOG_RECORDS, progress.records - shown.records)
        page.set(_LOG_WAITING, progress.waiting)
        shown = progress
        page.set(_LIVE, host.live)
        page.set(_HISTORY_BYTES, host.log.history_bytes)
        page.set(_ALARMS, host.node.alarms.running_count)
        page.set(_READ_ONLY, not host.is_ready)
        page.set(_SEQUENCE, fed.sequence)
        await asyncio.sleep(SHOW_SECONDS)


async def _report(gatekeeper: Gatekeeper, ask: Ask) -> None:
    """Have control know when tokens were used."""
    while True:
        await asyncio.sleep(REPORT_SECONDS)
        await gatekeeper.report(ask)


def _end_blocked(page: Page, status: process.Status, words: str) -> None:
    """On the watchdog's thread."""
    page.add(_BLOCKED)
    status.failed(words)
    os._exit(1)


if __name__ == "__main__":
    main()
