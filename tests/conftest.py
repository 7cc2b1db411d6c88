"""What every room's tests share: the switch for long runs, and patience."""

import signal

from hypothesis import HealthCheck, settings

# A shell that starts tests in the background has them, and all that they start, ignore Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# On top of what hypothesis chose (with CI set: the same examples every time): no example is too slow.
settings.register_profile("patient", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="also run what takes minutes to an hour")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--long"):
        return
    long_ones = [item for item in items if item.get_closest_marker("long")]
    config.hook.pytest_deselected(items=long_ones)
    items[:] = [item for item in items if item not in long_ones]
