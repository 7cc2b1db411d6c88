"""The how-to of rules at the edge does what it says, word for word."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.conftest import PAGE_SECONDS_MAX
from tests.edge.origin import HTTP_200, Origin

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "edge-rules.md").read_text()


@pytest.fixture
def origin():
    listening = Origin("127.0.0.1", 0, HTTP_200)
    yield listening
    listening.close()


def test_the_steps_of_the_page(new_server, origin, tmp_path):
    if not shutil.which("curl"):
        pytest.skip("curl is missing")
    server = new_server("--origin-port", str(origin.port), "--origin-allow", "127.0.0.0/8").start()
    command = tmp_path / ".venv" / "bin" / "edgecli"
    command.parent.mkdir(parents=True)
    command.write_text(
        f'#!/bin/sh\n[ "$1" = env ] && set -- env --data-dir {server.data_dir}\n'
        f'PYTHONPATH={ROOT / "src"} exec {sys.executable} -P -m edgestead "$@"\n'
    )
    command.chmod(0o755)
    script = "\n".join(part.partition("```")[0] for part in PAGE.split("```sh\n")[1:])

    done = subprocess.run(
        ["sh", "-euc", script], cwd=tmp_path, capture_output=True, text=True, timeout=PAGE_SECONDS_MAX
    )

    assert done.returncode == 0, done.stderr
    statuses = [line for line in done.stdout.splitlines() if re.fullmatch(r"\d{3}", line)]
    assert statuses == expected()
    assert "no way in" in done.stdout
    assert "GET www.shop.example/login" in done.stdout


def expected():
    """The statuses in the comments behind the visits."""
    found = []
    for line in PAGE.splitlines():
        if line.startswith("visit /"):
            comment = line.partition("#")[2]
            found += [re.search(r"\d{3}", comment).group()] * line.count("visit /")
    return found
