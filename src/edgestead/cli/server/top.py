"""`edgecli top`: what the running server does now, second by second.

Owns  which counters are shown, rates of them, the lines; processor time and memory of the processes.
Not   counting (`/metrics`). Imports click and the standard library only.
"""

import os
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from edgestead.cli.failure import Failed
from edgestead.cli.folder import data_dir, folder_options
from edgestead.cli.target import JSON, Command, Json

if TYPE_CHECKING:
    from edgestead.cli.http import Api

SECONDS_DEFAULT = 1.0
METRICS_BYTES_MAX = 16 << 20
PROCESSES_MAX = 1_000
_CLEAR = "\x1b[H\x1b[J"  # a terminal's: to the first place, and erase what follows
_TICKS = os.sysconf("SC_CLK_TCK")
_SAMPLE = re.compile(r"^(edge_\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_MIB = 1 << 20


class Rate(NamedTuple):
    """How often a second something is counted; of `label`, each of its values that occurred by itself."""

    group: str
    name: str
    metric: str
    label: str = ""


class Now(NamedTuple):
    """How much of something there is."""

    group: str
    name: str
    metric: str


ROWS: tuple[Rate | Now, ...] = (
    Rate("dns", "queries", "edge_dns_queries_total"),
    Rate("dns", "answers", "edge_dns_answers_total", "rcode"),
    Rate("dns", "limited", "edge_dns_limited_total"),
    Rate("edge", "requests", "edge_http_requests_total"),
    Rate("edge", "answers", "edge_http_requests_total", "status"),
    Rate("edge", "decisions", "edge_events_total", "action"),
    Now("edge", "connections", "edge_http_connections_open"),
    Rate("api", "requests", "edge_api_requests_total"),
    Rate("api", "answers", "edge_api_requests_total", "status"),
    Rate("objects", "calls", "edge_objects_requests_total"),
    Now("objects", "in memory", "edge_objects_live"),
    Now("objects", "in quarantine", "edge_objects_quarantined"),
)

Counts = Mapping[tuple[str, str, str], float]


class Process(NamedTuple):
    pid: int
    name: str
    seconds: float  # of processor time, user and system
    bytes: int  # of memory, resident


class Sample(NamedTuple):
    """All counters and processes at one moment. `counts` by metric, label and its value; "" is the sum."""

    at_s: float
    counts: Counts
    processes: tuple[Process, ...]


@click.command("top", cls=Command)
@click.option(
    "--seconds",
    metavar="N",
    type=click.FloatRange(0.1, 3_600),
    default=SECONDS_DEFAULT,
    help="Between two looks; 1 by default.",
)
@click.option("--once", is_flag=True, help="Look once, for that long, and end.")
@folder_options
@JSON
def top(
    seconds: float, once: bool, data_dir_given: str | None, config_file: Path | None, as_json: bool
) -> None:
    """Show queries, requests, answers, decisions and objects a second, and what the processes take.

    Until Ctrl-C. --json prints a line for each look.

    \b
      edgecli top
      edgecli top --once --json | jq .edge
    """
    from edgestead.cli.http import Api
    from edgestead.cli.source import local_server

    folder = data_dir(data_dir_given, config_file)
    source = local_server(folder)
    if source is None:
        raise Failed(f"No server runs on the data folder {folder}.", "`edgecli serve` starts one.")
    base = source.api_base.removesuffix("/client/v4")
    with Api(source._replace(api_base=base)) as server:
        try:
            _look(server, _pid(folder), seconds, once=once, as_json=as_json)
        except KeyboardInterrupt:
            click.echo()


def _look(server: "Api", pid: int, seconds: float, *, once: bool, as_json: bool) -> None:
    import json
    import sys

    before = _sample(server, pid)
    while True:
        time.sleep(seconds)
        after = _sample(server, pid)
        found = between(before, after)
        if as_json:
            click.echo(json.dumps(found, ensure_ascii=False))
        else:
            clear = "" if once or not sys.stdout.isatty() else _CLEAR
            click.echo(clear + "\n".join(_lines(found)))
        if once:
            return
        before = after


def between(before: Sample, after: Sample) -> Json:
    """What happened from one sample to the next, as JSON: rates a second, and what there is now."""
    seconds = max(after.at_s - before.at_s, 1e-3)

    def rate(metric: str, label: str, value: str) -> float:
        key = (metric, label, value)
        # A process that was started anew counts from 0.
        return round(max(after.counts.get(key, 0.0) - before.counts.get(key, 0.0), 0.0) / seconds, 1)

    found: Json = {}
    for row in ROWS:
        group = found.setdefault(row.group, {})
        if isinstance(row, Now):
            group[row.name] = int(after.counts.get((row.metric, "", ""), 0))
        elif row.label:
            values = sorted({key[2] for key in after.counts if key[:2] == (row.metric, row.label)})
            group[row.name] = {value: rate(row.metric, row.label, value) for value in values}
        else:
            group[row.name] = rate(row.metric, "", "")
    taken = {one.pid: one.seconds for one in before.processes}
    found["processes"] = [
        {
            "name": one.name,
            "pid": one.pid,
            "cpu_percent": round(100 * max(one.seconds - taken.get(one.pid, one.seconds), 0) / seconds, 1),
            "memory_bytes": one.bytes,
        }
        for one in after.processes
    ]
    return found


def _sample(server: "Api", pid: int) -> Sample:
    content = bytearray()
    for chunk in server.chunks(server.request("GET", "/metrics")):
        content += chunk
        if len(content) > METRICS_BYTES_MAX:
            raise Failed(f"/metrics is larger than {METRICS_BYTES_MAX} bytes.")
    return Sample(time.monotonic(), counts_of(content.decode()), tuple(_processes(pid)))


def counts_of(text: str) -> Counts:
    """The samples of /metrics (Prometheus' text format 0.0.4), summed over processes."""
    found: dict[tuple[str, str, str], float] = {}
    for metric, labels, value in _SAMPLE.findall(text):
        number = float(value)
        for label, of in (("", ""), *_LABEL.findall(labels)):
            key = (metric, label, of)
            found[key] = found.get(key, 0.0) + number
    return found


def _pid(folder: Path) -> int:
    from edgestead.server.folder import read_state

    state = read_state(folder)
    return state.pid if state is not None else 0


def _processes(pid: int) -> Iterator[Process]:
    """The supervisor and its children; none where the kernel does not say."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return
    for number in (str(pid), *children[:PROCESSES_MAX]):
        try:
            stat = Path(f"/proc/{number}/stat").read_text()
            arguments = Path(f"/proc/{number}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        except OSError:
            continue  # it has ended meanwhile
        called, fields = stat[stat.index("(") + 1 : stat.rindex(")")], stat[stat.rindex(")") + 2 :].split()
        # Children have their name as their last argument; those that got another one later as their command.
        is_given = called == "control" or called.startswith("objects-")
        name = called if is_given else arguments[-1].decode(errors="replace")
        # proc_pid_stat(5): utime and stime are 14 and 15, rss is 24, counted from 1; the list begins with 3.
        seconds = (int(fields[11]) + int(fields[12])) / _TICKS
        memory = int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
        yield Process(int(number), "supervisor" if int(number) == pid else name, seconds, memory)


def _lines(found: Json) -> Iterator[str]:
    yield time.strftime("%H:%M:%S")
    for group, facts in found.items():
        if group != "processes":
            yield f"{group:<9}" + "   ".join(
                _fact(name, value) for name, value in facts.items() if value != {}
            )
    yield f"{'process':<14} {'pid':>8} {'cpu %':>7} {'MiB':>8}"
    for one in found["processes"]:
        memory = one["memory_bytes"] / _MIB
        yield f"{one['name']:<14} {one['pid']:>8} {one['cpu_percent']:>7.1f} {memory:>8.1f}"


def _fact(name: str, value: object) -> str:
    if isinstance(value, dict):
        happened = " ".join(f"{of} {rate:g}/s" for of, rate in value.items() if rate)
        return f"{name}: {happened or 'none'}"
    return f"{value:g}/s {name}" if isinstance(value, float) else f"{value} {name}"
