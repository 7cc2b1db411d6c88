"""The examples of the how-to page about zones and records work as written."""

import os
import stat
import subprocess
import sys
from pathlib import Path

from edgestead.testing.server import environment

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "dns.md"


def test_the_examples_of_the_page_work_one_after_another(project, kv_server):
    command = project / "bin" / "edgecli"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m edgestead "$@"\n')
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    script = "\n".join(part.partition("```")[0] for part in PAGE.read_text().split("```sh\n")[1:])
    environ = os.environ | environment()

    done = subprocess.run(
        ["sh", "-euc", script],
        env=environ | {"PATH": f"{command.parent}:{environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=200,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("\n2\n")
    assert "Took back change 7 of shop.example." in done.stdout
    assert "shop.test: 4 of 4 records are added." in done.stdout
    assert kv_server.dig("www.shop.test") == ["192.0.2.20"]
