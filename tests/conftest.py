"""What every room's tests share: the switch for long runs, patience, and where time and memory went."""

import ctypes
import gc
import signal
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

LONG_SECONDS_MAX = 2 * 3_600  # of a long test that names no time of its own
LARGE_BLOCK_BYTES = 1 << 18
PEAK_MIB_MAX = 600  # of a worker; three of them and the servers under test fit into a small machine
RISES_SHOWN = 6  # modules by worker
# Folders whose files are few and long: they start real programs and wait for them. They come first, so that
# no worker has one of them left for itself at the end, and what only computes fills the waits of others.
LONG_FOLDERS = (
    "clients",
    "packaging",
    "server",
    "crash",
    "cluster",
    "cli",
    "objects",
    "docs",
    "web",
    "edge",
    "dns",
)
_peaks_mib: dict[str, int | None] = {}
_rises_mib: Counter[str] = Counter()  # of this process's peak, by what ran: collecting, or a module
_rises_by_worker: dict[str, dict[str, int]] = {}
_M_MMAP_THRESHOLD = -3  # <malloc.h>

# A shell that starts tests in the background has them, and all that they start, ignore Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Large blocks go back to the system when they are free. Otherwise the C library keeps ever larger ones, which
# tests with values and disks of many MiB turn into hundreds.
with suppress(AttributeError, OSError):  # another C library
    ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES)

# Until everything is collected: nearly all of it stays (`pytest_collection_finish`). The process that hands
# tests to workers collects nothing; it goes on at `pytest_runtestloop`, too.
gc.disable()

# On top of what hypothesis chose (with CI set: the same examples every time): no example is too slow.
settings.register_profile("patient", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="also run what takes minutes to an hour")
    parser.addoption("--seeds", metavar="FIRST:END", help="of tests by seed only these, without END")


def _place(item):
    folder = item.nodeid.split("/")[1:2]
    return LONG_FOLDERS.index(folder[0]) if folder and folder[0] in LONG_FOLDERS else len(LONG_FOLDERS)


def _take_seeds(config, items):
    """A thousand seeds are run in pieces, over days if need be."""
    if config.getoption("--seeds") is None:
        return
    wanted = range(*map(int, config.getoption("--seeds").split(":")))
    chosen = [item for item in items if _seed(item) in wanted]
    config.hook.pytest_deselected(items=[item for item in items if _seed(item) not in wanted])
    items[:] = chosen


def _seed(item):
    return item.callspec.params.get("seed") if hasattr(item, "callspec") else None


def pytest_collection_modifyitems(config, items):
    items.sort(key=_place)
    _take_seeds(config, items)
    long_ones = [item for item in items if item.get_closest_marker("long")]
    if config.getoption("--long"):
        for item in long_ones:
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(LONG_SECONDS_MAX))
        return
    config.hook.pytest_deselected(items=long_ones)
    items[:] = [item for item in items if item not in long_ones]


def pytest_collection_finish():
    """What was collected stays for the whole run: half a million objects that are not looked through again.

    Otherwise full collections are so rare, and so slow, that what tests leave in cycles stays for minutes.
    """
    gc.collect()
    gc.freeze()
    note_rise("collecting")


@pytest.hookimpl(tryfirst=True)  # of two the first one that answers is the last one that is asked
def pytest_runtestloop():
    gc.enable()


def peak_mib():
    """The most memory that this process had at a time; None where the system does not say."""
    with suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) // 1024
    return None


def note_rise(name):
    """Count to it by how much the peak has grown since the last time."""
    if (risen := (peak_mib() or 0) - _rises_mib.total()) > 0:
        _rises_mib[name] += risen


def pytest_runtest_teardown(item, nextitem):
    if nextitem is None or nextitem.path != item.path:
        note_rise(item.nodeid.partition("::")[0])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    said = getattr(node, "workeroutput", {})
    _peaks_mib[node.gateway.id] = said.get("peak_mib")
    _rises_by_worker[node.gateway.id] = said.get("rises_mib", {})


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["peak_mib"] = peak_mib()
        session.config.workeroutput["rises_mib"] = dict(_rises_mib)
        return
    if not _peaks_mib:
        _peaks_mib["the one process"] = peak_mib()
        _rises_by_worker["the one process"] = dict(_rises_mib)


def pytest_terminal_summary(terminalreporter):
    """Seconds by folder, over all workers, and memory by worker: a run that got slow or large says where."""
    seconds, cases = Counter(), Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) in ("setup", "call", "teardown"):
                folder = "/".join(report.nodeid.split("/")[:2]).partition("::")[0]
                seconds[folder] += report.duration
                cases[folder] += report.when == "call"
    if len(seconds) > 1:
        terminalreporter.section("seconds by folder")
        for folder, spent in seconds.most_common():
            terminalreporter.line(f"{spent:8.1f} s {cases[folder]:6d} cases  {folder}")
        for worker, peak in sorted(_peaks_mib.items()):
            too_much = f", which is more than {PEAK_MIB_MAX}" if (peak or 0) > PEAK_MIB_MAX else ""
            terminalreporter.line(f"{peak or 0:8d} MiB at most in {worker}{too_much}")
            for name, risen in Counter(_rises_by_worker.get(worker, {})).most_common(RISES_SHOWN):
                terminalreporter.line(f"{risen:12d} of them in {name}")
