"""The rule set's own regression tests, of the releases that `EDGESTEAD_TEST_CRS` names as folders.

The tests that fail are listed, each with its reason; any other that fails is an error.
"""

from pathlib import Path

import pytest

from edgestead.server import waf_part
from edgestead.waf.engine import Engine
from tests.waf.conftest import DATABASES, engine_of, ids, inspect
from tests.waf.regression import FOLDERS, SETTINGS, VARIABLE, cases

_FRONT = "the server in front refuses such a request itself, with 400, before any rule"
KNOWN = {
    "920181-1": _FRONT,
    "921140-1": _FRONT,
    "920430-5": "the request has no version: in process that is an empty one, and rules pass over it",
    "920620-1": "expects a server in front that joins two headers of one name",
    "920640-5": "is known to its authors not to work as written over HTTP/1.1",
    "934210-13": "wants REQUEST_BODY of JSON, or an array's argument without the place in its name",
}


class InProcess:
    """The engine itself, at the highest level, blocking nothing."""

    def __init__(self, folder: Path) -> None:
        rule_set = engine_of(folder).rule_set
        self._engine = Engine(rule_set, stored=waf_part.database(rule_set, DATABASES), tx=SETTINGS)
        self._policy = self._engine.level_policy(4, None)

    def send(self, request):
        verdict = inspect(self._engine, request, self._policy)
        return ids(verdict), verdict.status if verdict.refused else 200


@pytest.mark.long
def test_a_release_is_named():
    if not FOLDERS:
        pytest.skip(f"NOT TESTED against a release's own tests: {VARIABLE} names no folder that has them")


@pytest.mark.long
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_a_release_passes_its_own_tests(folder):
    pytest.importorskip("yaml")
    target, failures, count = InProcess(folder), [], 0

    for case in cases(folder):
        count += 1
        found, status = target.send(case.request) if case.request is not None else (set(), 400)
        if failure := case.failure(found, status):
            failures.append(f"{case.name}: {failure}, status {status}")

    assert count > 1_000
    assert {failure.partition(":")[0] for failure in failures} <= KNOWN.keys(), failures
