"""The health of the server as control sees it: facts gathered, rows given, gauges and status kept.

Owns  the round each second; which facts come from where.
Not   what is a warning (`health.checks`); rows while control is away (`server.health.asking`).

Facts that are in memory are read when rows are asked for, so readiness is never a round late. Those that take
the disk are read by the round, in a thread.
"""

import asyncio
import logging
import shutil
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from edgestead.health import checks
from edgestead.health.facts import (
    Behind,
    Certificate,
    EndingZone,
    Facts,
    FailedOrder,
    Group,
    HeldZone,
    LateZone,
    NodeCertificate,
    Past,
    Sink,
    TroubledCatalog,
)
from edgestead.health.rows import Board, Row, levels, worst
from edgestead.model.counters import Page, slot
from edgestead.server.health import backup_note
from edgestead.server.health.certificates import CertificateDates
from edgestead.server.health.clock import ClockWatch
from edgestead.server.health.lasting import Lasting
from edgestead.server.messages import DNS_GROUP, EDGE_GROUP, OBJECTS_GROUP, ControlStart
from edgestead.server.rounds import Rounds
from edgestead.server.supervisor.child import UNSTABLE_SECONDS
from edgestead.server.supervisor.last_words import LastWords
from edgestead.waf.terms import libinjection

ROUND_SECONDS = 1.0
DISK_ROUNDS = 3  # between two looks at notes and certificates
REFUSED_SECONDS = 300.0

_HEALTH = slot("edge_health", checks.NAMES[0])
_OBJECTS_READ_ONLY = slot("edge_objects_read_only")
_HISTORY_BYTES = slot("edge_objects_history_bytes")
_HISTORY_DAMAGED = slot("edge_objects_history_damaged")
_QUARANTINED = slot("edge_objects_quarantined")
_CLASSES_APART = slot("edge_objects_classes_apart")
_RULES_MISSING = slot("edge_rules_missing")
_RULES_SLOW = slot("edge_rules_slow")
_UNKNOWN = slot("edge_flattening_targets_unknown")
_REFUSED = (slot("edge_api_refused_credentials_total"), slot("edge_objects_refused_credentials_total"))
_SINKS_FAILING = slot("edge_alerts_receivers_failing")
_UNSTABLE = slot("edge_process_unstable_seconds")

_log = logging.getLogger("edgestead.server")


class Feed(Protocol):
    """What the publisher knows of its consumers."""

    def live(self, group: str) -> list[str]: ...

    @property
    def silent(self) -> list[str]: ...

    @property
    def behind(self) -> list[tuple[str, int, float]]: ...


class Kept(NamedTuple):
    """Of the certificates in the database those that end soon, and those that did not come."""

    ending: tuple[Certificate, ...]
    failed: tuple[FailedOrder, ...]


class ClusterState(NamedTuple):
    """Of a node of a cluster; the defaults are those of a server that is none."""

    is_cut_off: bool = False
    reads_go_on: bool = False
    is_leaderless: bool = False
    has_one_copy: bool = False
    misfits: int = 0  # copies in a row that the log did not fit
    clock_apart_seconds: float = 0.0  # this node's clock is so far ahead of the leader's


class Storage(Protocol):
    """What `StorageWatch` knows."""

    @property
    def lost(self) -> str: ...

    @property
    def full(self) -> str: ...

    @property
    def free_bytes(self) -> int: ...

    @property
    def faults(self) -> tuple[tuple[str, str], ...]: ...


class HealthPart:
    """Make, open and close it on control's loop.

    `set_levels` brings gauges up to date that are read from tables; `say` gets the server's state in a line
    when it changes. Callables that say what certificates, zones and catalogs are not well are called on a
    thread.
    """

    def __init__(
        self,
        start: ControlStart,
        *,
        pages: Mapping[str, Page],
        page: Page,
        feed: Feed,
        storage: Storage,
        clock: ClockWatch,
        has_managed_ruleset: bool,
        set_levels: Callable[[], None],
        failing_sinks: Callable[[], tuple[Sink, ...]],
        kept_certificates: Callable[[], Kept],
        node_certificate: Callable[[], NodeCertificate | None],
        late_zones: Callable[[], tuple[LateZone, ...]],
        held_zones: Callable[[], tuple[HeldZone, ...]],
        ending_zones: Callable[[], tuple[EndingZone, ...]],
        troubled_catalogs: Callable[[], tuple[TroubledCatalog, ...]],
        sign_in_trouble: Callable[[], str],
        cluster: Callable[[], ClusterState],
        nodes_away: Callable[[], Iterable[str]],
        say: Callable[[str], None],
        now_us: Callable[[], int],
    ) -> None:
        self._start = start
        self._folder = Path(start.data_dir)
        self._pages = pages
        self._page = page
        self._feed = feed
        self._storage = storage
        self._clock = clock
        self._has_managed_ruleset = has_managed_ruleset
        self._set_levels = set_levels
        self._failing_sinks = failing_sinks
        self._kept_certificates = kept_certificates
        self._node_certificate = node_certificate
        self._kept = Kept((), ())
        self._late_zones = late_zones
        self._zones_late: tuple[LateZone, ...] = ()
        self._held_zones = held_zones
        self._sign_in_trouble = sign_in_trouble
        self._zones_held: tuple[HeldZone, ...] = ()
        self._troubled_catalogs = troubled_catalogs
        self._ending_zones = ending_zones
        self._zones_ending: tuple[EndingZone, ...] = ()
        self._catalogs_troubled: tuple[TroubledCatalog, ...] = ()
        self._cluster = cluster
        self._nodes_away, self._away = nodes_away, Lasting()
        self._say = say
        self._now_us = now_us
        self._words = LastWords(start.last_words_fd)
        self._dates = CertificateDates(Path(start.tls_dir)) if start.tls_dir else None
        self._note = backup_note.BackupNote()
        self._sinks: tuple[Sink, ...] = ()
        self._disk_bytes = 1 << 62
        self._refused: deque[tuple[float, int]] = deque()
        self._board = Board(now_us)
        self._said = ""
        self._looks = 0
        self._rounds = Rounds("a look at the server's health", ROUND_SECONDS, self._look)
        self.close = self._rounds.close

    async def open(self) -> None:
        """Returns when the disk was looked at once: before that, an expired certificate would be no row."""
        try:
            await asyncio.to_thread(self.look_at_disk)
        except Exception:  # also a row that cannot be read: it keeps nobody from starting
            _log.exception("a look at the server's health failed")  # the round repeats it
        self._rounds.open()

    def rows(self) -> tuple[Row, ...]:
        """Every row as it is now. On control's loop; takes about 0.1 ms."""
        return self._board.rows(checks.examine(self._facts()))

    def show(self) -> tuple[Row, ...]:
        """The rows, which the gauges of /metrics then show, too."""
        rows = self.rows()
        for offset, level in enumerate(levels(rows, checks.NAMES).values()):
            self._page.set(_HEALTH + offset, level)
        return rows

    def _facts(self) -> Facts:
        start, storage, dates, feed = self._start, self._storage, self._dates, self._feed
        cluster = self._cluster()
        names = {name: page.cells for name, page in self._pages.items()}
        since = int(time.time() - UNSTABLE_SECONDS)
        return Facts(
            now_us=self._now_us(),
            reasons=tuple(self._words.read().items()),
            groups=(
                Group("DNS", tuple(feed.live(DNS_GROUP)), 1, any_serves=True),
                Group("edge", tuple(feed.live(EDGE_GROUP)), start.edge_workers, any_serves=True),
                Group("objects", tuple(feed.live(OBJECTS_GROUP)), start.objects_workers, any_serves=False),
            ),
            silent=tuple(feed.silent),
            unstable=tuple(name for name, cells in names.items() if cells[_UNSTABLE] > since),
            behind=tuple(Behind(name, changes, ms / 1000) for name, changes, ms in feed.behind),
            nodes_away=self._away.seconds(self._nodes_away(), time.monotonic()),
            disk_full=storage.full,
            disk_free_bytes=storage.free_bytes,
            disk_total_bytes=self._disk_bytes,
            objects_read_only=any(cells[_OBJECTS_READ_ONLY] for cells in names.values()),
            folder_lost=storage.lost,
            store_faults=storage.faults,
            cluster_cut_off=cluster.is_cut_off,
            cluster_reads_go_on=cluster.reads_go_on,
            cluster_leaderless=cluster.is_leaderless,
            cluster_has_one_copy=cluster.has_one_copy,
            cluster_misfits=cluster.misfits,
            cluster_clock_seconds=cluster.clock_apart_seconds,
            pasts=tuple(
                Past(name, cells[_HISTORY_BYTES], start.objects_history_mib << 20)
                for name, cells in names.items()
                if cells[_HISTORY_BYTES]
            ),
            pasts_damaged=tuple(name for name, cells in names.items() if cells[_HISTORY_DAMAGED]),
            certificates_fault=dates.fault if dates else "",
            certificates=(*(dates.found if dates else ()), *self._kept.ending),
            node_certificate=self._node_certificate(),
            orders_failed=self._kept.failed,
            zones_late=self._zones_late,
            zones_held=self._zones_held,
            zones_ending=self._zones_ending,
            catalogs_troubled=self._catalogs_troubled,
            clock_back_seconds=self._clock.back_seconds,
            clock_behind_seconds=self._clock.behind_seconds,
            managed_ruleset=self._has_managed_ruleset,
            rules_missing=any(cells[_RULES_MISSING] for cells in names.values()),
            libinjection_missing=libinjection.state(),
            rules_slow=any(cells[_RULES_SLOW] for cells in names.values()),
            quarantined=sum(cells[_QUARANTINED] for cells in names.values()),
            classes_apart=sum(cells[_CLASSES_APART] for cells in names.values()),
            targets_unknown=self._page.cells[_UNKNOWN],
            refused_credentials=self._refused_lately(),
            sign_in_trouble=self._sign_in_trouble(),
            backup_tried_us=self._note.tried_us,
            backup_error=self._note.error,
            backup_made_us=self._note.made_us,
            backup_hours_max=start.backup_hours,
            sinks_failing=self._sinks,
        )

    def _refused_lately(self) -> int:
        return self._refused[-1][1] - self._refused[0][1] if self._refused else 0

    def _count_refused(self) -> None:
        total = sum(page.cells[cell] for page in self._pages.values() for cell in _REFUSED)
        now = time.monotonic()
        self._refused.append((now, total))
        while now - self._refused[0][0] > REFUSED_SECONDS:
            self._refused.popleft()

    def look_at_disk(self) -> None:
        """Blocks."""
        if self._dates is not None:
            self._dates.look()
        self._kept = self._kept_certificates()
        self._zones_late = self._late_zones()
        self._zones_held = self._held_zones()
        self._catalogs_troubled = self._troubled_catalogs()
        self._zones_ending = self._ending_zones()
        self._note = backup_note.read(self._folder)
        self._disk_bytes = shutil.disk_usage(self._folder).total
        failing = any(page.cells[_SINKS_FAILING] for page in self._pages.values())
        self._sinks = self._failing_sinks() if failing else ()

    async def _look(self) -> None:
        self._looks += 1
        self._clock.look()
        if self._looks % DISK_ROUNDS == 1:
            self._set_levels()
            self._count_refused()
            await asyncio.to_thread(self.look_at_disk)
        self._tell(self.show())

    def _tell(self, rows: tuple[Row, ...]) -> None:
        """The worst of it for `systemctl status`, when it changes."""
        level = worst(rows)
        words = "; ".join(row.message for row in rows if row.state == level != "ok")
        line = f"{level}: {words}" if words else ""
        if line != self._said:
            self._said = line
            self._say(line)
