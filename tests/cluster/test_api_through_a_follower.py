"""The tests of the API, and programs of others, ask a node that follows: a part here, and all with --long."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import follower

ROOT = Path(__file__).parents[2]
PART = (
    *(f"tests/rest/test_{name}.py" for name in ("credentials", "records", "rulesets", "tokens", "zones")),
    "tests/kv/test_api_values.py",
)
EVERY = 8  # of their tests, some hundred
CLIENTS = ("py_sdk_dns", "lexicon_cli", "octodns_newzone", "wrangler_kv")
SECONDS_MAX = 1_700
LONG_SECONDS_MAX = 7_000


@pytest.fixture(autouse=True)
def there(postgres_binaries):
    """Skipped here, and not there, where PostgreSQL is missing."""


def passes(*arguments, every, seconds_max):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    words = ["-q", "-rfE", "-p", "no:cacheprovider", "-p", "no:xdist", f"{follower.OPTION}={every}"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=seconds_max,
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
    assert " passed" in done.stdout


@pytest.mark.timeout(1_800)
def test_a_part_of_the_tests_of_the_api_passes(there):
    passes(*PART, every=EVERY, seconds_max=SECONDS_MAX)


@pytest.mark.long
def test_all_tests_of_the_api_pass(there):
    passes("tests/rest", "tests/kv", every=1, seconds_max=LONG_SECONDS_MAX)


@pytest.mark.long
def test_programs_of_others_do_their_main_job(there):
    chosen = " or ".join(CLIENTS)
    passes(
        "tests/clients/test_clients.py",
        "-k",
        f"main_job and ({chosen})",
        every=1,
        seconds_max=LONG_SECONDS_MAX,
    )
