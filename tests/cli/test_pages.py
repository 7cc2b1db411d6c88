"""The examples of the how-to pages about zones, records and key-values work as written."""

import os
import subprocess
import sys

import pytest

from edgestead.testing.server import environment
from tests.docs.conftest import shell_of


@pytest.fixture
def run_page(project):
    """A function that runs the examples of a page in order; returns what they printed and warned of."""
    command = project / "bin" / "edgecli"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m edgestead "$@"\n')
    command.chmod(0o755)
    environ = os.environ | environment()

    def run(page):
        done = subprocess.run(
            ["sh", "-euc", shell_of(page)],
            env=environ | {"PATH": f"{command.parent}:{environ['PATH']}"},
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout, done.stderr

    return run


def test_zones_and_records(run_page, kv_server):
    printed, _ = run_page("docs/how-to/dns.md")

    assert printed.endswith("\n2\n")
    assert "Took back change 7 of shop.example." in printed
    assert "shop.test: 4 of 4 records are added." in printed
    assert kv_server.dig("www.shop.test") == ["192.0.2.20"]


def test_key_values(run_page):
    printed, warnings = run_page("docs/how-to/key-value.md")

    assert warnings == ""
    assert '{"items":3}' in printed
    assert '"user:2": "{}",\n  "nobody": null' in printed
    assert "Success! 3 pairs written.\n" in printed
    assert printed.endswith("local")
