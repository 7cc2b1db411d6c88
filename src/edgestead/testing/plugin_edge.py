"""The server's side of the pytest plugin: a platform that every test finds empty.

Owns  the fixtures' names and lifetimes, the marker `as_of`, the option --edge-as-of.
Not   stateful objects without a server (`testing.plugin`). Imports pytest only.
"""

from collections.abc import Callable, Iterator
from datetime import date
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from edgestead.testing.edge import Dns, Edge, Namespace, Zone
    from edgestead.testing.platforms import Platforms

_OPTION = "--edge-as-of"
_MARKER = "as_of(*dates): run the test with a platform that answers as of a day, YYYY-MM-DD; once for each"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("edgestead").addoption(
        _OPTION,
        action="append",
        default=[],
        metavar="DATE",
        help="Run tests that use the platform as of this day, YYYY-MM-DD; once for each when repeated.",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One run for each date of the marker, or else of the option."""
    if "edge_as_of" not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker("as_of")
    dates = marker.args if marker else metafunc.config.getoption(_OPTION)
    if dates:
        metafunc.parametrize("edge_as_of", [_day(one) for one in dates], ids=str)


def _day(text: object) -> date:
    """Raises UsageError: no date, or none that the platform has."""
    from edgestead.changes import OLDEST

    try:
        day = text if isinstance(text, date) else date.fromisoformat(str(text))
    except ValueError:
        raise pytest.UsageError(f"as_of takes dates as YYYY-MM-DD, not {text!r}") from None
    if day < OLDEST:
        raise pytest.UsageError(f"as_of takes dates from {OLDEST} on, not {day}")
    return day


@pytest.fixture(scope="session")
def edge_flags() -> list[str]:
    """Options of `edgecli serve` for the platform. A module or conftest.py may have its own."""
    return []


@pytest.fixture(scope="session")
def edge_start() -> "Callable[[Edge], None]":
    """Is called with each platform that starts; what it puts there, every test finds.

    A module or conftest.py may have its own, which returns a function.
    """
    return lambda edge: None


@pytest.fixture
def edge_as_of() -> date | None:
    """The day whose behaviour the platform shows; None is today. The marker `as_of` chooses it."""
    return None


@pytest.fixture(scope="session")
def edge_platforms(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Platforms]":
    """The platforms of this run. Tests ask for `edge`."""
    from edgestead.testing.platforms import Platforms

    made = Platforms(lambda: tmp_path_factory.mktemp("edge"))
    yield made
    made.close()


@pytest.fixture
def edge(
    edge_platforms: "Platforms",
    edge_as_of: date | None,
    edge_flags: list[str],
    edge_start: "Callable[[Edge], None]",
) -> "Edge":
    """A started platform, empty but for what `edge_start` put there."""
    return edge_platforms.get(edge_as_of, edge_flags, edge_start).for_a_test()


@pytest.fixture
def edge_zone_name() -> str:
    """The name of the fixture `edge_zone`. A module or conftest.py may have its own."""
    return "example.test"


@pytest.fixture
def edge_zone(edge: "Edge", edge_zone_name: str) -> "Zone":
    """A zone without records."""
    return edge.make_zone(edge_zone_name)


@pytest.fixture
def edge_kv(edge: "Edge") -> "Namespace":
    """A key-value namespace without keys."""
    return edge.make_namespace("test")


@pytest.fixture
def edge_dns(edge: "Edge") -> "Dns":
    """The platform's name server."""
    return edge.dns
