"""A process that runs stateful objects.

Owns  putting its parts together, and their order at the start and the end.
Not   anything about objects, HTTP or tokens.

Two threads: the loop with all user code, and the follower of the feed, which user code can slow down. C code
that keeps the interpreter's lock stops both: then the lease ends (`server.objects.access`).
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
from typing import TYPE_CHECKING

import apsw
import uvloop

from edgestead.feed.follower import Follower
from edgestead.feed.follower_thread import ThreadFollower
from edgestead.feed.lease import Lease
from edgestead.http1.connections import Connections
from edgestead.model.budgets.ledger import Ledger
from edgestead.model.counters import Page, slot
from edgestead.objects.runtime import driving, forks
from edgestead.objects.runtime.bindings import Ask
from edgestead.objects.runtime.classes import ClassInfo
from edgestead.objects.runtime.env import Bindings
from edgestead.objects.runtime.loader import LoadError, load
from edgestead.objects.runtime.stage import Stage
from edgestead.objects.runtime.watchdog import Process, Verdict, Watchdog
from edgestead.objects.runtime.wire import Asker
from edgestead.rest.guesses import Guesses
from edgestead.server import process
from edgestead.server.errors import StartError
from edgestead.server.messages import OBJECTS_GROUP, ObjectsStart, WaitingStart
from edgestead.server.objects import layout
from edgestead.server.objects.access import Gatekeeper
from edgestead.server.objects.apart import Apart
from edgestead.server.objects.host import Host, Peers, configure_sqlite
from edgestead.server.objects.shown import Shown
from edgestead.server.supervisor.control_life import ControlLife
from edgestead.store.history.thinning import SECOND_US, Keeping
from edgestead.store.objectlog import LogError
from edgestead.usecases.access.identities import KINDS, FedAccess

if TYPE_CHECKING:
    from edgestead.server.objects.place import ClusterPlace

_log = logging.getLogger("edgestead.server")
REPORT_SECONDS = 2.0  # between two reports of which tokens were used
SWITCH_SECONDS = 0.0005
"""How long the loop may keep the interpreter from the log's thread, which needs it several times for each
group, and would wait up to Python's 5 ms each time."""
OOM_SCORE = 500  # of 1,000, above that of every other process of the server
_LOOK_SECONDS = 0.1  # how often a process that may not serve yet looks whether it shall end
_ANSWERS = slot("edge_objects_requests_total", "1xx") - 1  # plus the first digit of the status
_BLAMED = slot("edge_objects_blamed_total")
_BLOCKED = slot("edge_objects_blocked_total")
_GUESSES = slot("edge_objects_refused_credentials_total")


def main() -> None:
    waiting, messages = process.begin_waiting(WaitingStart)
    sys.setswitchinterval(SWITCH_SECONDS)
    status = process.Status(waiting.status_fd)
    os.nice(waiting.nice)
    classes = _classes(waiting, status)  # until there is something to finish, SIGTERM ends this at once
    _end_before_others()
    process.rest_collector()  # here, where nobody waits for it
    status.waiting()
    start = process.take_place(ObjectsStart, waiting, messages)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    status.doing("opening the objects' storage")
    life = ControlLife(start.control_life_fd)
    fed, lease = FedAccess(), Lease(told=lambda: life.told)
    follower = ThreadFollower(
        start.feed_path, Follower(fed, group=OBJECTS_GROUP, name=start.name, kinds=KINDS, lease=lease)
    )
    threading.Thread(target=_follow, args=(follower,), name="feed", daemon=True).start()
    while not follower.wait_until_may_serve(_LOOK_SECONDS):
        if stop.is_set():
            return
    configure_sqlite()
    try:
        folder, went = _folder(start, status, len(classes))
    except (LogError, OSError, apsw.Error) as error:
        status.failed(f"the objects cannot be dealt out to {start.workers} processes: {error}")
        sys.exit(1)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        driving.run(runner.get_loop(), _live(start, status, folder, classes, went, fed, lease, stop))
    follower.stop()


def _folder(start: ObjectsStart, status: process.Status, classes: int) -> tuple[Path, Apart]:
    """This process's, and which classes went apart; in a cluster none does. Raises LogError, OSError,
    apsw.Error.
    """
    root = Path(start.folder)
    if start.cluster_database is not None:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        return root / str(start.worker), Apart(root, may_begin=False)
    went = Apart(root, start.objects_apart, may_begin=start.objects_contain and classes > 1)
    with contextlib.suppress(OSError):  # on a full disk it has it already, or never will
        went.take_room()
    folder = layout.settle(
        root, start.worker, start.workers, start.objects_apart, went.classes, status.going_on
    )
    return folder, went


def _classes(waiting: WaitingStart, status: process.Status) -> dict[str, ClassInfo]:
    try:
        classes = load(waiting.sources, lambda source: status.doing(f"importing {source}"))
    except LoadError as error:
        status.failed(str(error))
        sys.exit(1)
    if twice := sorted(classes.keys() & set(waiting.bindings)):
        status.failed(f"objects.bindings: {twice[0]} is the name of a class already")
        sys.exit(1)
    if unknown := sorted(set(waiting.objects_apart) - classes.keys()):
        status.failed(f"objects-apart: no class {unknown[0]} was loaded")
        sys.exit(1)
    if waiting.in_cluster:
        _get_ready_for_cluster(status, classes)
    return classes


def _get_ready_for_cluster(status: process.Status, classes: dict[str, ClassInfo]) -> None:
    """What takes its time, here, where nobody waits for it."""
    if own := sorted(info.name for info in classes.values() if info.durability == "sqlite"):
        status.failed(
            f'class {own[0]}: durability = "sqlite" keeps its objects on one machine, and in a cluster any'
            ' machine may have them: leave it out, commits are durable by the "log"'
        )
        sys.exit(1)
    import edgestead.server.objects.place  # noqa: F401 - for no server without a cluster


async def _place(
    start: ObjectsStart, classes: dict[str, ClassInfo], status: process.Status, stop: asyncio.Event
) -> "ClusterPlace | None":
    """This process's place in its cluster, with a row there. None when it shall end before it has one.

    Raises StartError.
    """
    from edgestead.server.objects.place import ClusterPlace

    place = ClusterPlace(start, {name: info.region for name, info in classes.items()})
    registering = asyncio.ensure_future(place.register(status.going_on))
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait((registering, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not registering.done():
        registering.cancel()
        return None
    registering.result()
    return place


def _end_before_others() -> None:
    """When the machine's memory is out, the kernel ends a process of users' code before one of DNS."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(OOM_SCORE))


def _follow(follower: ThreadFollower) -> None:
    try:
        follower.run()
    except BaseException:
        # Without the feed a token that was taken away would open doors for ever: better no answers.
        _log.exception("cannot follow the feed")
        os._exit(1)


async def _live(
    start: ObjectsStart,
    status: process.Status,
    folder: Path,
    classes: dict[str, ClassInfo],
    went: Apart,
    fed: FedAccess,
    lease: Lease,
    stopped: threading.Event,
) -> None:
    """Serve until SIGTERM; returns when everything is durable."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    if stopped.is_set():
        return
    page = process.page(start.counters_fd)
    ledger = Ledger(page)
    place = None
    if start.cluster_database is not None:
        try:
            place = await _place(start, classes, status, stop)
        except StartError as error:
            status.failed(str(error))
            sys.exit(1)
        if place is None:
            return
    try:  # before anybody watches the loop: a long log takes its time, and no class has run yet
        control = Asker(start.kv_path)
        host = Host(
            str(folder),
            classes,
            keeping=Keeping(
                spacing_us=start.objects_thin_seconds * SECOND_US,
                bytes_max=start.objects_history_mib << 20,
            ),
            bindings=Bindings(start.bindings, control.ask),
            alarms=start.alarms,
            ended_itself=start.ended_itself,
            ledger=ledger,
            doing=status.going_on,
            place=place,
        )
    except (LogError, OSError, apsw.Error) as error:
        status.failed(f"the objects' storage cannot be opened: {error}")
        sys.exit(1)
    if host.stage.path is not None:
        status.stage(host.stage.path)
    sockets = [start.socket_fd, start.calls_fd, start.requests_fd]
    # The data folder, and the one that says to the next start whether a process of this server still lives.
    folders = (Path(start.folder).parent, Path(start.feed_path).parent)
    forks.guard(folders, sockets, host.node.break_off_child)
    memory = process.Memory()
    looked_at = Process(
        lambda: host.stage.mark,
        host.stage.who,
        partial(process.waits_of, os.getpid()),
        memory.resident_bytes,
        process.looks_for_work(loop),
    )
    watchdog = Watchdog(
        loop,
        looked_at,
        partial(_end_blamed, page, status, host.stage),
        status.beat,
        block_seconds=start.objects_blocked_seconds,
        memory_bytes_max=start.memory_bytes_max,
    )
    watchdog.start()
    guesses = Guesses(start.api_guesses, partial(page.add, _GUESSES), ledger)
    gatekeeper = Gatekeeper(fed, lease, lambda: time.time_ns() // 1000, guesses)
    is_aside = place is None and start.worker == len(start.calls) - 1
    with socket.socket(fileno=os.dup(start.socket_fd)) as listener:
        # What clients of good classes sent to the process of bad ones would wait, and end, with it.
        await host.open(
            [] if is_aside else [listener],
            gatekeeper,
            lambda code: page.add(_ANSWERS + code // 100),
            connections=Connections(per_address_max=start.api_connections_per_address, ledger=ledger),
            peers=_peers(start, went),
            blamed=partial(_contain, status, went),
        )
        page.add(_BLAMED, host.blamed)
        process.rest_collector()
        status.ready()
        shown = Shown(host, page, fed, went, memory, is_aside=is_aside)
        showing = loop.create_task(shown.look_for_ever())
        reporting = loop.create_task(_report(gatekeeper, control.ask))
        await stop.wait()
        await host.close()
    showing.cancel()
    reporting.cancel()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(REPORT_SECONDS):
            await gatekeeper.report(control.ask)
    watchdog.stop()


def _peers(start: ObjectsStart, went: Apart) -> Peers:
    return Peers(
        start.worker,
        start.calls,
        start.requests,
        socket.socket(fileno=start.calls_fd),
        socket.socket(fileno=start.requests_fd),
        start.objects_apart,
        start.workers,
        went,
    )


def _contain(status: process.Status, went: Apart, class_name: str, is_own: bool) -> None:
    """A class ended this place's last process. On a full disk that may be forgotten."""
    try:
        if went.note_end(class_name, is_own=is_own):
            status.class_went_apart()
    except OSError as error:
        _log.error("that class %s ended a process cannot be written down: %s", class_name, error)


async def _report(gatekeeper: Gatekeeper, ask: Ask) -> None:
    """Have control know when tokens were used."""
    while True:
        await asyncio.sleep(REPORT_SECONDS)
        await gatekeeper.report(ask)


def _end_blamed(page: Page, status: process.Status, stage: Stage, verdict: Verdict) -> None:
    """On the watchdog's thread."""
    stage.blame(verdict.mark)
    page.add(_BLOCKED)
    try:
        status.failed(verdict.words)
    finally:  # also when users' code closed the pipe, or filled it
        os._exit(1)
