"""The test kit: a node in memory whose calls, time and plugin a test decides."""

import asyncio
import datetime as datetime_module
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType

import pytest

import edgestead
import edgestead.testing
from edgestead import StatefulObject
from edgestead.objects.errors import (
    FetchError,
    ObjectReset,
    RemoteError,
    UnknownClass,
    UnknownMethod,
)
from edgestead.testing import Answer, ObjectNode, Stuck
from tests.objects.kit_classes import CLASSES, Counter

SRC = Path(__file__).parents[2] / "src"


@pytest.fixture
def object_classes() -> list[type[StatefulObject]]:
    return CLASSES


@pytest.fixture
def counter(objects: ObjectNode):
    return objects.Counter["a"]


@pytest.mark.parametrize("module", [edgestead, edgestead.testing], ids=lambda module: module.__name__)
def test_what_the_docs_import_is_there(module: ModuleType) -> None:
    assert {name: getattr(module, name) for name in module.__all__}.keys() == set(module.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        module.nothing  # noqa: B018


# calls


def test_methods_are_called_as_they_are(counter) -> None:
    assert counter.add() == 1
    assert counter.add(by=4) == 5
    assert (counter.name, len(str(counter.id))) == ("a", 64)
    assert counter.add_elsewhere("b") == 1


@pytest.mark.parametrize(
    ("call", "raised"),
    [
        (lambda c: c.fail(), ValueError),
        (lambda c: c.fail(own=True), RemoteError),
        (lambda c: c.abort(), ObjectReset),
        (lambda c: c.missing(), UnknownMethod),
        (lambda c: c.add("text"), TypeError),
        (lambda c: c.ask("http://192.0.2.1/"), FetchError),
        (lambda c: c.wait_for_ever(), Stuck),
        (lambda c: c.poll_for_ever(), Stuck),
        (lambda c: c._private(), AttributeError),
    ],
)
def test_what_fails_is_raised_as_a_caller_sees_it_and_the_object_goes_on(counter, call, raised) -> None:
    with pytest.raises(raised):
        call(counter)

    assert counter.add() == 1


def test_a_class_that_was_not_loaded_is_named(objects: ObjectNode) -> None:
    with pytest.raises(UnknownClass, match=r"'Missing'.*loaded are: Cached, Counter, Plain, Table, Timer"):
        objects.Missing["a"]
    with pytest.raises(AttributeError, match="missing"):
        objects.missing  # noqa: B018


def test_objects_without_a_name_are_new_ones(objects: ObjectNode) -> None:
    one, other = objects.Counter.new(), objects["Counter"].new()
    one.add(5)

    assert (one.name, other.add(), objects[Counter].get(str(one.id)).add()) == (None, 1, 6)
    with pytest.raises(TypeError, match="not of class Plain"):
        objects.Plain.get(one.id)


def test_a_script_calls_several_at_once(objects: ObjectNode) -> None:
    async def script(env):
        return await asyncio.gather(*(env.Counter["a"].add() for _ in range(20)), env.Counter["b"].wait(5))

    assert objects.run(script) == [*range(1, 21), "done"]


def test_a_number_repeats_an_order_of_things() -> None:
    def order(seed: int | None) -> list[int]:
        async def script(env):
            return await asyncio.gather(*(env.Counter["a"].add() for _ in range(8)))

        with ObjectNode(Counter, seed=seed) as objects:
            return objects.run(script)

    assert order(None) == [*range(1, 9)]
    assert order(7) == order(7)
    assert len({tuple(order(seed)) for seed in range(5)}) > 1


def test_inside_a_running_loop_it_says_what_to_do(counter) -> None:
    async def main() -> None:
        counter.add()

    with pytest.raises(RuntimeError, match="plain `def`"):
        asyncio.run(main())


def test_fetch_is_asked_without_a_socket(objects: ObjectNode, counter) -> None:
    answer = objects.fetch(counter, "/x?y=1", method="PUT", headers={"X-Sent": "z"}, body="body")

    assert (answer.status, answer.text, answer.headers) == (201, "PUT /x?y=1 body", {"x-seen": "z"})
    with pytest.raises(UnknownMethod):
        objects.fetch(objects.Plain["a"])


def test_the_test_answers_what_objects_ask_of_the_world(objects: ObjectNode, counter) -> None:
    def respond(request):
        if request.url == "http://example.org/old":
            return Answer(status=302, headers={"Location": "/new"})
        return Answer(f"{request.method} {request.url} {request.headers['host']}")

    objects.on_fetch(respond)
    assert counter.ask("http://example.org/old") == "GET http://example.org/new example.org"
    objects.on_fetch(None)
    with pytest.raises(FetchError, match="no network"):
        counter.ask("http://example.org/old")


# time


def test_time_goes_by_only_when_somebody_waits(objects: ObjectNode, counter) -> None:
    began = objects.now
    counter.add()
    assert objects.now == began == datetime(2026, 1, 1, tzinfo=UTC)
    assert counter.wait(3_600) == "done"
    objects.advance(days=1, seconds=1)
    assert objects.now - began == timedelta(days=1, hours=1, seconds=1)
    with pytest.raises(ValueError, match="set_clock"):
        objects.advance(-1)


def test_user_code_sees_the_invented_time(objects: ObjectNode) -> None:
    objects.set_clock(datetime(2031, 2, 3, 4, 5, 6, tzinfo=UTC))

    plain = objects.Plain["a"]
    assert plain.moments() == [datetime(2031, 2, 3, 4, 5, 6, tzinfo=UTC)] * 4
    assert plain.elapsed() == 90
    assert plain.is_still_itself()
    assert objects.now_ms == datetime(2031, 2, 3, 4, 6, 36, tzinfo=UTC).timestamp() * 1_000


def test_the_tests_own_clock_is_the_real_one(objects: ObjectNode) -> None:
    objects.Plain["a"].moments()

    assert abs(time.time() - datetime.now(UTC).timestamp()) < 3_600
    assert datetime is datetime_module.datetime
    assert objects.now.year == 2026


def test_a_naive_time_is_refused(objects: ObjectNode) -> None:
    with pytest.raises(TypeError, match="naive"):
        objects.set_clock(datetime(2031, 2, 3))


# the plugin


def test_a_start_of_pytest_pays_nothing_for_the_plugin() -> None:
    code = "import sys, edgestead.testing.plugin; print([m for m in sys.modules if m.startswith(%r)])"
    heavy = ("edgestead.objects", "edgestead.store", "apsw", "msgspec", "uvloop", "httptools")
    done = subprocess.run(
        [sys.executable, "-c", code % (heavy,)], capture_output=True, text=True, env={"PYTHONPATH": str(SRC)}
    )

    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_a_users_project_needs_no_configuration(tmp_path: Path) -> None:
    """As installed: the entry point names the plugin, and a conftest.py that names it too is no error."""
    metadata = tmp_path / "site" / "edgestead-0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: edgestead\nVersion: 0\n")
    entry = "edgestead.testing.plugin"
    (metadata / "entry_points.txt").write_text(f"[pytest11]\n{entry} = {entry}\n")
    project = tmp_path / "project"
    project.mkdir()
    (project / "conftest.py").write_text(f'pytest_plugins = ["{entry}"]\n')
    (project / "shop.py").write_text(
        "from edgestead import StatefulObject\n"
        "class Shop(StatefulObject):\n"
        "    async def hello(self):\n"
        "        return 'hello'\n"
    )
    (project / "test_shop.py").write_text(
        "from shop import Shop\ndef test_it(objects):\n    assert objects.Shop['a'].hello() == 'hello'\n"
    )
    (project / "test_other.py").write_text("def test_it(): pass\n")

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider"],
        cwd=project,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": f"{SRC}:{tmp_path / 'site'}", "PATH": "/usr/bin:/bin"},
    )

    assert "2 passed" in done.stdout, done.stdout + done.stderr
