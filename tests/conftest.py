"""What every room's tests share: the real server, and the switch for long runs."""

from edgestead.testing.fixtures import edge_server, new_server

__all__ = ["edge_server", "new_server"]


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="also run what takes minutes to an hour")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--long"):
        return
    long_ones = [item for item in items if item.get_closest_marker("long")]
    config.hook.pytest_deselected(items=long_ones)
    items[:] = [item for item in items if item not in long_ones]
