"""What every room's tests share: the switch for long runs, patience, and where the time went."""

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
PEAK_MIB_MAX = 600  # of a worker; two of them and the servers under test fit into a small machine
_peaks_mib: dict[str, int | None] = {}
_M_MMAP_THRESHOLD = -3  # <malloc.h>

# A shell that starts tests in the background has them, and all that they start, ignore Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Large blocks go back to the system when they are free. Otherwise the C library keeps ever larger ones, which
# tests with values and disks of many MiB turn into hundreds.
with suppress(AttributeError, OSError):  # another C library
    ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES)

# On top of what hypothesis chose (with CI set: the same examples every time): no example is too slow.
settings.register_profile("patient", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="also run what takes minutes to an hour")


def pytest_collection_modifyitems(config, items):
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


def peak_mib():
    """The most memory that this process had at a time; None where the system does not say."""
    with suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) // 1024
    return None


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    _peaks_mib[node.gateway.id] = getattr(node, "workeroutput", {}).get("peak_mib")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["peak_mib"] = peak_mib()
        return
    if not _peaks_mib:
        _peaks_mib["the one process"] = peak_mib()


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
