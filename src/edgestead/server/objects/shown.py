"""What an objects process shows of itself: its levels, as metrics, and how much it did since the last look.

Owns  the looks, of which none is the last: code of users shares the process, and may have broken anything.
Not   what is looked at; when it is too much (`objects.runtime.watchdog`).

Readiness reads one of them. Each look also sees which classes others have put apart.
"""

import logging
from typing import Final

from edgestead.model.counters import ROW_CELLS, ROWS_MAX, Page, slot
from edgestead.objects.runtime.gates import Account
from edgestead.server.objects.apart import Apart
from edgestead.server.objects.host import Host
from edgestead.server.process import Memory
from edgestead.server.rounds import Rounds
from edgestead.store.objectlog import Progress
from edgestead.usecases.access.identities import FedAccess

LOOK_SECONDS: Final = 0.5
_LIVE = slot("edge_objects_live")
_CPU = slot("edge_objects_cpu_seconds_total")
_RESIDENT = slot("edge_objects_resident_bytes")
_HISTORY_BYTES = slot("edge_objects_history_bytes")
_HISTORY_DAMAGED = slot("edge_objects_history_damaged")
_LOG_GROUPS = slot("edge_objects_log_groups_total")
_LOG_RECORDS = slot("edge_objects_log_records_total")
_LOG_WAITING = slot("edge_objects_log_waiting")
_ALARMS = slot("edge_objects_alarms_running")
_QUARANTINED = slot("edge_objects_quarantined")
_CLASSES_QUARANTINED = slot("edge_objects_classes_quarantined")
_CLASSES_APART = slot("edge_objects_classes_apart")
_READ_ONLY = slot("edge_objects_read_only")
_SEQUENCE = slot("edge_feed_sequence")

_log = logging.getLogger("edgestead.server")


class Shown:
    """Used by one event loop."""

    def __init__(
        self, host: Host, page: Page, fed: FedAccess, went: Apart, memory: Memory, *, is_aside: bool
    ) -> None:
        self._host, self._page, self._fed, self._went = host, page, fed, went
        self._memory, self._is_aside = memory, is_aside
        self._progress = Progress(0, 0, 0)
        self._accounts = _name_accounts(page, host)

    async def look_for_ever(self) -> None:
        await Rounds("a look at what is shown", LOOK_SECONDS, self._look).go_on()

    async def _look(self) -> None:
        host, page, before, after = self._host, self._page, self._progress, self._host.log.progress
        page.add(_LOG_GROUPS, after.groups - before.groups)
        page.add(_LOG_RECORDS, after.records - before.records)
        page.set(_LOG_WAITING, after.waiting)
        self._progress = after
        for row, account, before_us in self._accounts:
            page.add(row, account.cpu_ns // 1_000 - before_us[0])
            before_us[0] = account.cpu_ns // 1_000
        page.set(_RESIDENT, self._memory.resident_bytes())
        page.set(_LIVE, host.live)
        page.set(_HISTORY_BYTES, host.log.history_bytes)
        page.set(_HISTORY_DAMAGED, host.log.is_history_damaged)
        page.set(_ALARMS, host.node.alarms.running_count)
        page.set(_QUARANTINED, len(host.node.held()))
        page.set(_CLASSES_QUARANTINED, len(host.node.held_classes()))
        page.set(_READ_ONLY, not host.is_ready)
        self._look_apart()
        page.set(_CLASSES_APART, len(self._went.classes) if self._is_aside else 0)
        page.set(_SEQUENCE, self._fed.sequence)

    def _look_apart(self) -> None:
        try:
            self._went.look()
            if self._is_aside:
                self._went.tend(self._host.node.has_any)
        except OSError as error:
            _log.error("which classes are apart is unknown: %s", error)


def _name_accounts(page: Page, host: Host) -> list[tuple[int, Account, list[int]]]:
    """The row that shows each class, and how much of it is shown. Classes beyond the last row share that."""
    found = []
    for number, (name, account) in enumerate(sorted(host.node.accounts.items())):
        row = _CPU + min(number, ROWS_MAX - 1) * ROW_CELLS
        page.name(row, name if number < ROWS_MAX - 1 else "(others)")
        found.append((row, account, [0]))
    return found
