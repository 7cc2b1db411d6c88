"""What the phases of an edge process get from the supervisor: keys, counts, events.

Owns  making them from the start message; counting events in the process's page.
Not   what phases do with them.
"""

import logging
import mmap
from pathlib import Path

from edgestead.edge.access import lines, sinks
from edgestead.edge.access.log import AccessLog
from edgestead.edge.events import EventFiles, EventLog
from edgestead.edge.tools import rates
from edgestead.edge.tools.acme import Pages
from edgestead.edge.tools.clearance import Clearances
from edgestead.edge.tools.engines import ManagedRules
from edgestead.edge.tools.phase import Tools
from edgestead.edge.tools.pressure import Pressure
from edgestead.edge.tools.rates import Rates
from edgestead.model.counters import EVENT_ACTIONS, Page, slot
from edgestead.server.edge.challenge_key_memory import KeyReader
from edgestead.server.messages import EdgeStart

_EVENTS = {action: slot("edge_events_total", action) for action in EVENT_ACTIONS}
_OTHER = slot("edge_events_total", "other")
_DROPPED = slot("edge_events_dropped_total")
_LINES, _LINES_DROPPED = slot("edge_access_lines_total"), slot("edge_access_dropped_total")
_EVICTED = slot("edge_rates_evicted_total")
_log = logging.getLogger("edgestead.server")


class PageCounts:
    """Events in the process's page: `edge.events.Counts`. Each cell has one writer."""

    def __init__(self, page: Page) -> None:
        self._page = page

    def event(self, action: str) -> None:
        self._page.add(_EVENTS.get(action, _OTHER))

    def dropped(self) -> None:
        self._page.add(_DROPPED)


def events_of(start: EdgeStart, page: Page) -> EventLog:
    """Close it at the end: it has a thread."""
    return EventLog(
        EventFiles(start.events_fd, start.worker),
        worker=start.worker,
        counts=PageCounts(page),
        failed=lambda words: _log.error("security events cannot be written: %s", words),
    )


class AccessCounts:
    """Lines of the access log in the process's page."""

    def __init__(self, page: Page) -> None:
        self._page = page

    def written(self, lines: int) -> None:
        self._page.add(_LINES, lines)

    def dropped(self, lines: int) -> None:
        self._page.add(_LINES_DROPPED, lines)


def access_of(start: EdgeStart, page: Page) -> AccessLog | None:
    """Close it at the end: it has a thread."""
    if not start.access_log:
        return None
    return AccessLog(
        _access_sink(start, start.access_log),
        lines.writer(start.access_log_form, start.access_log_field),
        AccessCounts(page),
        sample=start.access_log_sample,
        zones=frozenset(name.encode() for name in start.access_log_zone),
        failed=lambda words: _log.error("the access log cannot be written: %s", words),
    )


def _access_sink(start: EdgeStart, where: str) -> sinks.Sink:
    if where.startswith("unix:"):
        return sinks.SocketSink(where.removeprefix("unix:"))
    if "://" in where:
        is_json = start.access_log_form == "json"
        return sinks.HttpSink(where, "application/x-ndjson" if is_json else "text/plain; charset=utf-8")
    octets, files = start.access_log_bytes, start.access_log_files
    return sinks.FileSink(start.access_fd, Path(where).name, octets_max=octets, files_max=files)


def tools_of(start: EdgeStart, page: Page, events: EventLog, managed: ManagedRules) -> Tools:
    memory = memoryview(mmap.mmap(start.rates_fd, rates.memory_octets(start.workers)))
    return Tools(
        clearances=Clearances(KeyReader(start.challenge_keys_fd).changed),
        rates=Rates(
            memory,
            start.rates_secret,
            worker=start.worker,
            workers=start.workers,
            evicted=lambda: page.add(_EVICTED),
        ),
        pressure=Pressure(),
        worker=start.worker,
        workers=start.workers,
        observer=events,
        managed=managed,
        acme=Pages(),
    )
