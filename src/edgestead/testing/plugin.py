"""The pytest plugin: fixtures for stateful objects and for the real server.

Owns  the names and lifetimes of the fixtures for objects, and of `new_server` and `edge_server`.
Not   anything to tests that use none of them. Imports pytest only.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from edgestead.testing.plugin_edge import (
    edge,
    edge_as_of,
    edge_dns,
    edge_flags,
    edge_kv,
    edge_platforms,
    edge_start,
    edge_zone,
    edge_zone_name,
    pytest_addoption,
    pytest_configure,
    pytest_generate_tests,
)

if TYPE_CHECKING:
    from edgestead.testing.node import ObjectNode
    from edgestead.testing.server import EdgeServer
    from edgestead.testing.snapshots import Snapshot

__all__ = [
    "edge",
    "edge_as_of",
    "edge_dns",
    "edge_flags",
    "edge_kv",
    "edge_platforms",
    "edge_server",
    "edge_start",
    "edge_zone",
    "edge_zone_name",
    "new_server",
    "object_classes",
    "objects",
    "objects_start",
    "pytest_addoption",
    "pytest_configure",
    "pytest_generate_tests",
]


@pytest.fixture
def object_classes(request: pytest.FixtureRequest) -> list[Any]:
    """What the fixture `objects` runs: the classes that the test's module has, by definition or import.

    A module or conftest.py may have its own: a list of classes, FILE.py, folders of such files, modules.
    """
    from edgestead.objects.runtime.classes import StatefulObject

    found = vars(request.module).values()
    return [
        value
        for value in dict.fromkeys(value for value in found if isinstance(value, type))
        if issubclass(value, StatefulObject) and value is not StatefulObject
    ]


@pytest.fixture(scope="session")
def objects_start() -> "Snapshot | None":
    """What the fixture `objects` begins with: None is an empty node.

    A module or conftest.py may have its own, which fills a node once and gives its snapshot to every test.
    """
    return None


@pytest.fixture
def object_namespaces() -> list[str]:
    """Key-value namespaces that the objects of the fixture `objects` find in `self.env`, by these names.

    None; a module or conftest.py may have its own.
    """
    return []


@pytest.fixture
def objects(
    object_classes: list[Any], objects_start: "Snapshot | None", object_namespaces: list[str]
) -> "Iterator[ObjectNode]":
    """A node of stateful objects in memory, on invented time; a new one for each test."""
    from edgestead.testing.node import START, ObjectNode

    with ObjectNode(*object_classes, start=objects_start or START, namespaces=object_namespaces) as node:
        yield node


@pytest.fixture
def new_server(tmp_path: Path) -> "Iterator[Callable[..., EdgeServer]]":
    """Call it with flags for a server that is not started yet; all of them are ended after the test."""
    from edgestead.testing.server import EdgeServer

    with ExitStack() as made:  # one that cannot be ended keeps no other from it

        def make(*flags: str, name: str = "data") -> EdgeServer:
            return made.enter_context(closing(EdgeServer(tmp_path / name, *flags)))

        yield make


@pytest.fixture
def edge_server(new_server: "Callable[..., EdgeServer]") -> "EdgeServer":
    """A started server with defaults, on free ports and with a data folder of its own."""
    return new_server().start()
