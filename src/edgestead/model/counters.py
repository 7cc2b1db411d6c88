"""Counters that outlive the process that counts, and their prometheus text.

Owns  the table of metrics, the layout of a counter page, the exposition format.
Not   making or sharing the memory (`server`); deciding what is worth counting.

A page is PAGE_BYTES of unsigned 64-bit cells in the machine's byte order, one page per process name. The
supervisor keeps the pages, so a restarted process counts on. Exactly one thread writes a cell: there is no
lock, and a second writer would lose counts.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from mmap import mmap
from typing import Literal, NamedTuple, final

from edgestead.model.budgets.table import NAMES as BUDGET_NAMES

PAGE_BYTES = 4096  # one page of memory: 512 cells
_CELLS_MAX = PAGE_BYTES // 8
_MICROSECONDS = 1_000_000
ROW_CELLS = 8  # of a value that its process names: the count, and the name
NAME_BYTES_MAX = (ROW_CELLS - 1) * 8  # of such a name; a longer one is cut
ROWS_MAX = 16  # such values of one process: what a metric may cost whoever stores it

Role = Literal["control", "dns", "dns-tcp", "objects", "edge", "alerts"]

_EVERY: tuple[Role, ...] = ("control", "dns", "dns-tcp", "objects", "edge")
_DNS: tuple[Role, ...] = ("dns", "dns-tcp")
_CONTROL: tuple[Role, ...] = ("control",)
_OBJECTS: tuple[Role, ...] = ("objects",)
_EDGE: tuple[Role, ...] = ("edge",)
_ALERTS: tuple[Role, ...] = ("alerts",)


class Metric(NamedTuple):
    """One family of `/metrics`.

    A counter or gauge has one cell, or one for each of `values` of its `label`. A histogram counts
    microseconds: a cell for each bound, one for everything above, and one for the sum. A counter with `rows`
    has so many values of its label, which the process names itself (`Page.name`), and counts microseconds.
    """

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    roles: tuple[Role, ...]
    help: str
    label: str = ""
    values: tuple[str, ...] = ()
    bounds_us: tuple[int, ...] = ()
    rows: int = 0

    @property
    def cells(self) -> int:
        if self.rows:
            return self.rows * ROW_CELLS
        return len(self.bounds_us) + 2 if self.kind == "histogram" else max(1, len(self.values))


HEALTH_CHECKS = (  # in the order of `health.checks`
    "supervisor",
    "control",
    "processes",
    "feed",
    "store",
    "cluster",
    "lost-writes",
    "disk",
    "history",
    "rules",
    "detectors",
    "certificates",
    "secondary-zones",
    "restored-zones",
    "catalogs",
    "clock",
    "targets",
    "quarantine",
    "apart",
    "credentials",
    "sign-in",
    "backups",
    "alerts",
)
_RCODES = ("noerror", "formerr", "servfail", "nxdomain", "notimp", "refused", "other")
_STATUSES = ("1xx", "2xx", "3xx", "4xx", "5xx")
EVENT_ACTIONS = (
    "block",
    "challenge",
    "js_challenge",
    "managed_challenge",
    "challenge_solved",
    "challenge_failed",
    "log",
    "skip",
    "redirect",
    "refuse",
    "fail",
    "other",
)
CHALLENGED = tuple(
    f"{kind} {outcome}"
    for kind in ("js_challenge", "managed_challenge", "challenge")
    for outcome in ("shown", "solved", "failed")
)
VERDICTS = ("pass", "block", "challenge", "js_challenge", "managed_challenge", "log", "refuse")
_BOUNDS_US = (100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000)

METRICS: tuple[Metric, ...] = (
    Metric(
        "edge_health",
        "gauge",
        _CONTROL,
        "The worst row of each check of the server's health: 0 ok, 1 warn, 2 fail.",
        "check",
        HEALTH_CHECKS,
    ),
    Metric("edge_process_starts_total", "counter", _EVERY, "Times the supervisor started this process."),
    Metric(
        "edge_process_silences_total",
        "counter",
        _CONTROL,
        "Times the supervisor ended this process because it gave no sign of life.",
    ),
    Metric(
        "edge_process_stops_total",
        "counter",
        _EVERY,
        "Times somebody stopped this process (SIGSTOP), and the supervisor had it go on.",
    ),
    Metric(
        "edge_process_unstable_seconds",
        "gauge",
        _EVERY,
        "When the last end but two was that nobody asked for, since the epoch; 0 before there were three.",
    ),
    Metric(
        "edge_budget_refused_total",
        "counter",
        _EVERY,
        "What was refused because a peer had spent its budget, by budget.",
        "budget",
        BUDGET_NAMES,
    ),
    Metric("edge_api_requests_total", "counter", _CONTROL, "REST requests answered.", "status", _STATUSES),
    Metric(
        "edge_api_request_seconds",
        "histogram",
        _CONTROL,
        "Time from a REST request's head to its answer's last byte.",
        bounds_us=_BOUNDS_US,
    ),
    Metric(
        "edge_api_refused_credentials_total",
        "counter",
        _CONTROL,
        "REST requests with credentials that nobody has. Missing ones and tokens that are over do not count.",
    ),
    Metric(
        "edge_api_unreadable_total",
        "counter",
        _CONTROL,
        "Connections ended because of what came, did not come or was not read, by reason.",
        "reason",
        ("framing", "head_too_large", "head_too_slow", "no_place", "reader_too_slow"),
    ),
    Metric(
        "edge_alerts_receivers_failing",
        "gauge",
        _ALERTS,
        "Receivers that do not take the alerts sent to them.",
    ),
    Metric(
        "edge_alerts_messages_total",
        "counter",
        _ALERTS,
        "Messages that receivers of alerts took, and attempts that failed.",
        "outcome",
        ("delivered", "failed"),
    ),
    Metric("edge_store_commits_total", "counter", _CONTROL, "Commits of the control database."),
    Metric("edge_store_writes_total", "counter", _CONTROL, "Writes in those commits."),
    Metric("edge_disk_free_bytes", "gauge", _CONTROL, "Free where the data is, beside the reserve."),
    Metric("edge_disk_reserve_bytes", "gauge", _CONTROL, "Kept for deletions and starts on a full disk."),
    Metric("edge_disk_full", "gauge", _CONTROL, "1 while nothing can be added, for want of room."),
    Metric("edge_store_failing", "gauge", _CONTROL, "1 while control.db or kv.db cannot be written."),
    Metric("edge_store_writes_waiting", "gauge", _CONTROL, "Writes that wait for their turn."),
    Metric(
        "edge_kv_operations_total",
        "counter",
        _CONTROL,
        "Operations of the key-value store, by users and by stateful objects; a bulk request is one.",
        "operation",
        ("get", "put", "delete", "list"),
    ),
    Metric(
        "edge_feed_sequence", "gauge", _EVERY, "Newest change committed (control) or applied (the others)."
    ),
    Metric("edge_feed_consumers", "gauge", _CONTROL, "Processes that serve from the change feed."),
    Metric(
        "edge_feed_kills_total", "counter", _CONTROL, "Consumers ended because they stopped making progress."
    ),
    Metric(
        "edge_feed_nodes_behind",
        "gauge",
        _CONTROL,
        "Nodes that writes should wait for and do not, because they are cut off or catch up.",
    ),
    Metric(
        "edge_feed_wait_seconds",
        "histogram",
        _CONTROL,
        "Time from a commit until every serving process had applied it.",
        bounds_us=_BOUNDS_US,
    ),
    Metric(
        "edge_flattening_asked_total",
        "counter",
        _CONTROL,
        "Targets of flattened aliases that the resolver was asked for, by outcome.",
        "outcome",
        ("answered", "failed"),
    ),
    Metric("edge_flattening_targets", "gauge", _CONTROL, "Targets outside our zones that are known."),
    Metric(
        "edge_flattening_targets_unknown",
        "gauge",
        _CONTROL,
        "Of these, targets without a first answer; aliases to them are answered SERVFAIL.",
    ),
    Metric(
        "edge_flattening_zones_waiting",
        "gauge",
        _CONTROL,
        "Zones some of whose names wait to be rendered again.",
    ),
    Metric(
        "edge_certificates",
        "gauge",
        _CONTROL,
        "Certificates of authorities by the state of their order.",
        "state",
        ("wanted", "ordered", "proving", "ready", "issued", "failed"),
    ),
    Metric(
        "edge_certificate_orders_total",
        "counter",
        _CONTROL,
        "Orders of certificates, by outcome.",
        "outcome",
        ("issued", "failed"),
    ),
    Metric("edge_dns_queries_total", "counter", _DNS, "DNS queries read."),
    Metric(
        "edge_dns_answers_total",
        "counter",
        _DNS,
        "DNS answers; those that a rate limit held back afterwards are among them.",
        "rcode",
        _RCODES,
    ),
    Metric("edge_dns_truncated_total", "counter", _DNS, "DNS answers sent with TC because they did not fit."),
    Metric(
        "edge_dns_dropped_total",
        "counter",
        _DNS,
        "DNS messages left without an answer: not a query, or too short to be answered.",
    ),
    Metric(
        "edge_dns_answer_seconds",
        "histogram",
        ("dns",),
        "Time from reading DNS queries by UDP to sending their answers, of one batch in sixteen.",
        bounds_us=(25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 50_000),
    ),
    Metric("edge_dns_unsent_total", "counter", ("dns",), "DNS answers that the system would not send."),
    Metric("edge_dns_cache_hits_total", "counter", _DNS, "DNS answers taken from the exact-bytes cache."),
    Metric("edge_dns_zones", "gauge", _DNS, "Zones that this process can answer."),
    Metric("edge_dns_tcp_connections_total", "counter", ("dns-tcp",), "DNS connections accepted."),
    Metric("edge_dns_tcp_connections_open", "gauge", ("dns-tcp",), "DNS connections open now."),
    Metric(
        "edge_dns_handshakes_total",
        "counter",
        ("dns-tcp",),
        "TLS handshakes of DNS over TLS and over HTTPS, by outcome.",
        "outcome",
        ("done", "failed"),
    ),
    Metric(
        "edge_dns_private_queries_total",
        "counter",
        ("dns-tcp",),
        "Of the DNS queries read, those over an encrypted transport.",
        "transport",
        ("tls", "https"),
    ),
    Metric(
        "edge_dns_transfers_total",
        "counter",
        ("dns-tcp",),
        "Zone transfers asked for over TCP, by what was sent: the whole zone, the changes, the serial alone "
        "because the client has it, or a refusal.",
        "sent",
        ("whole", "changes", "current", "refused"),
    ),
    Metric(
        "edge_dns_transfers_in_total",
        "counter",
        ("control",),
        "Secondary zones asked for at their primaries, by what came of it: a transfer, word that there is "
        "nothing newer, or neither.",
        "outcome",
        ("taken", "current", "failed"),
    ),
    Metric(
        "edge_dns_notifies_total",
        "counter",
        ("dns-tcp",),
        "NOTIFYs that a secondary answered, and those that were given up.",
        "outcome",
        ("answered", "unanswered"),
    ),
    Metric(
        "edge_dns_limited_total",
        "counter",
        ("dns",),
        "DNS answers held back because a network got too many of the kind (dns-rate).",
        "fate",
        ("dropped", "shortened"),
    ),
    Metric(
        "edge_dns_cookies_good_total",
        "counter",
        _DNS,
        "DNS queries with a cookie that proves the client's address.",
    ),
    Metric(
        "edge_objects_refused_credentials_total",
        "counter",
        _OBJECTS,
        "HTTP requests to stateful objects with credentials that nobody has.",
    ),
    Metric(
        "edge_objects_requests_total",
        "counter",
        _OBJECTS,
        "HTTP requests to stateful objects answered.",
        "status",
        _STATUSES,
    ),
    Metric("edge_objects_live", "gauge", _OBJECTS, "Stateful objects in memory."),
    Metric(
        "edge_objects_cpu_seconds_total",
        "counter",
        _OBJECTS,
        "Processor time of stateful objects' code, by class; the first 15 by name, `(others)` together.",
        "class",
        rows=ROWS_MAX,
    ),
    Metric("edge_objects_resident_bytes", "gauge", _OBJECTS, "The memory of the process."),
    Metric(
        "edge_objects_log_groups_total",
        "counter",
        _OBJECTS,
        "Groups of commits that the log of stateful objects wrote, each with one sync of the disk.",
    ),
    Metric(
        "edge_objects_log_records_total",
        "counter",
        _OBJECTS,
        "Commits in those groups, with what else the log holds: names of objects, pins of bookmarks.",
    ),
    Metric("edge_objects_log_waiting", "gauge", _OBJECTS, "Of these, records that wait to be durable."),
    Metric(
        "edge_objects_history_bytes",
        "gauge",
        _OBJECTS,
        "What the past of the stateful objects takes on disk.",
    ),
    Metric(
        "edge_objects_history_damaged",
        "gauge",
        _OBJECTS,
        "1 when a part of the past of the stateful objects could not be read since the process started.",
    ),
    Metric(
        "edge_objects_alarms_running", "gauge", _OBJECTS, "Alarms of stateful objects whose handlers run."
    ),
    Metric(
        "edge_objects_read_only",
        "gauge",
        _OBJECTS,
        "1 while the disk is full: objects can be read, and nothing is written.",
    ),
    Metric(
        "edge_objects_quarantined",
        "gauge",
        _OBJECTS,
        "Objects that are not run because their code ended three processes; `edgecli object list` has them.",
    ),
    Metric(
        "edge_objects_classes_quarantined",
        "gauge",
        _OBJECTS,
        "Classes that are not run because many of their objects ended processes, as this process saw it.",
    ),
    Metric(
        "edge_objects_classes_apart",
        "gauge",
        _OBJECTS,
        "Classes that have a process of their own because they ended one that others share.",
    ),
    Metric(
        "edge_objects_blamed_total",
        "counter",
        _OBJECTS,
        "Ends of the process that an object's code is blamed for.",
    ),
    Metric(
        "edge_objects_blocked_total",
        "counter",
        _OBJECTS,
        "Times the process was ended because it stood still or grew too large.",
    ),
    Metric(
        "edge_http_requests_total",
        "counter",
        _EDGE,
        "Requests that the edge answered, from an origin or itself.",
        "status",
        _STATUSES,
    ),
    Metric(
        "edge_http_request_seconds",
        "histogram",
        _EDGE,
        "Time from a request's head at the edge to the head of its answer.",
        bounds_us=_BOUNDS_US,
    ),
    Metric(
        "edge_events_total",
        "counter",
        _EDGE,
        "Decisions and refusals of the edge, by what was done: all of them, written down or not.",
        "action",
        EVENT_ACTIONS,
    ),
    Metric("edge_events_dropped_total", "counter", _EDGE, "Of these, events that were not written down."),
    Metric("edge_access_lines_total", "counter", _EDGE, "Lines of the access log that were written."),
    Metric(
        "edge_access_dropped_total",
        "counter",
        _EDGE,
        "Lines of the access log that were given up because nobody took those before them.",
    ),
    Metric(
        "edge_rates_evicted_total",
        "counter",
        _EDGE,
        "Clients whose count for a rate limit was given up because more came at once than have a place.",
    ),
    Metric(
        "edge_challenges_total",
        "counter",
        _EDGE,
        "Challenges by kind and by what came of them: shown to a browser, solved, or answered wrongly. Of "
        "those that were shown the others were given up.",
        "challenge",
        CHALLENGED,
    ),
    Metric(
        "edge_waf_verdicts_total",
        "counter",
        _EDGE,
        "Inspections by the managed rules, by what came of them: one a request, further ones for later parts "
        "of a large upload. Refused are requests that cannot be inspected whole.",
        "verdict",
        VERDICTS,
    ),
    Metric("edge_http_connections_open", "gauge", _EDGE, "Connections of clients open now."),
    Metric(
        "edge_http_connections_refused_total",
        "counter",
        _EDGE,
        "Connections of clients closed at once, at a limit of all or of one address.",
    ),
    Metric("edge_http_zones", "gauge", _EDGE, "Zones that this process can serve."),
    Metric(
        "edge_rules_slow",
        "gauge",
        _EDGE,
        "1 when managed rules are used without Hyperscan: each rule looks at each request by itself.",
    ),
    Metric(
        "edge_rules_missing",
        "gauge",
        _EDGE,
        "Managed rulesets that rules execute and that are not ready: requests for those zones get 503.",
    ),
)


def _lay_out() -> dict[str, int]:
    first, next_cell = {}, 0
    for metric in METRICS:
        first[metric.name] = next_cell
        next_cell += metric.cells
    assert next_cell <= _CELLS_MAX, "the metrics need a second page"
    return first


_FIRST = _lay_out()
_BY_NAME = {metric.name: metric for metric in METRICS}


def slot(name: str, value: str = "") -> int:
    """The cell of a metric, or of one value of its label. Ask once, at import.

    Cells of a label's values lie side by side in the table's order. For a histogram: its first cell, which
    `Page.observe` takes. Raises KeyError for a name or value that is not in the table.
    """
    metric = _BY_NAME[name]
    if not value:
        return _FIRST[name]
    if value not in metric.values:
        raise KeyError(f"{name} has no value {value!r}")
    return _FIRST[name] + metric.values.index(value)


_HISTOGRAM_BOUNDS_US = {_FIRST[m.name]: m.bounds_us for m in METRICS if m.kind == "histogram"}


@final
class Page:
    """One process's cells over a writable buffer of PAGE_BYTES.

    `cells` is public for loops that count in bulk: `cells[slot] += n` is one tenth of a microsecond.
    """

    __slots__ = ("cells",)

    def __init__(self, buffer: bytearray | memoryview | mmap) -> None:
        self.cells = memoryview(buffer)[:PAGE_BYTES].cast("B").cast("Q")

    def add(self, slot: int, n: int = 1) -> None:
        self.cells[slot] += n

    def set(self, slot: int, value: int) -> None:
        self.cells[slot] = value

    def name(self, slot: int, name: str) -> None:
        """Name the row of a metric that begins there, which counts in the cell."""
        octets = name.encode()[:NAME_BYTES_MAX].decode(errors="ignore").encode()
        self.cells[slot + 1 : slot + ROW_CELLS] = memoryview(octets.ljust(NAME_BYTES_MAX, b"\0")).cast("Q")

    def observe(self, slot: int, duration_us: int) -> None:
        """Count one duration in a histogram; a clock that stepped back counts as zero."""
        bounds_us = _HISTOGRAM_BOUNDS_US[slot]
        duration_us = max(0, duration_us)
        self.cells[slot + bisect_left(bounds_us, duration_us)] += 1
        self.cells[slot + len(bounds_us) + 1] += duration_us


def private_page() -> Page:
    """A private page of counters: for tests and for programs without a supervisor."""
    return Page(bytearray(PAGE_BYTES))


def render(pages: Mapping[str, Page]) -> str:
    """The pages by process name, in the prometheus text format 0.0.4. A process shows its role's metrics.

    A process's role is its name without the worker's number: `dns-0` is a `dns`.
    """
    lines: list[str] = []
    for metric in METRICS:
        lines.append(f"# HELP {metric.name} {metric.help}")
        lines.append(f"# TYPE {metric.name} {metric.kind}")
        for process, page in pages.items():
            if process.rstrip("0123456789").rstrip("-") in metric.roles:
                lines.extend(_samples(metric, process, page))
    return "\n".join(lines) + "\n"


def _samples(metric: Metric, process: str, page: Page) -> Iterator[str]:
    first = _FIRST[metric.name]
    if metric.kind == "histogram":
        yield from _histogram(metric, process, page, first)
    elif metric.rows:
        for row in range(first, first + metric.cells, ROW_CELLS):
            name = bytes(page.cells[row + 1 : row + ROW_CELLS]).rstrip(b"\0").decode()
            if name:
                labels = f'process="{process}",{metric.label}="{name}"'
                yield f"{metric.name}{{{labels}}} {page.cells[row] / _MICROSECONDS:.6f}"
    elif not metric.values:
        yield f'{metric.name}{{process="{process}"}} {page.cells[first]}'
    else:
        for offset, value in enumerate(metric.values):
            labels = f'process="{process}",{metric.label}="{value}"'
            yield f"{metric.name}{{{labels}}} {page.cells[first + offset]}"


def _histogram(metric: Metric, process: str, page: Page, first: int) -> Iterator[str]:
    total = 0
    bounds = [f"{bound / _MICROSECONDS:g}" for bound in metric.bounds_us] + ["+Inf"]
    for offset, bound in enumerate(bounds):
        total += page.cells[first + offset]
        yield f'{metric.name}_bucket{{process="{process}",le="{bound}"}} {total}'
    sum_us = page.cells[first + len(bounds)]
    yield f'{metric.name}_sum{{process="{process}"}} {sum_us / _MICROSECONDS:.6f}'
    yield f'{metric.name}_count{{process="{process}"}} {total}'
