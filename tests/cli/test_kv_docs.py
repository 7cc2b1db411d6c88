"""The examples of the how-to page about key-values work as written."""

import os
import stat
import subprocess
import sys
from pathlib import Path

from edgestead.testing.server import environment

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "key-value.md"


def test_the_examples_of_the_page_work_one_after_another(project, edgecli):
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

    assert (done.returncode, done.stderr) == (0, "")
    assert '{"items":3}' in done.stdout
    assert '"user:2": "{}",\n  "nobody": null' in done.stdout
    assert "Success! 3 pairs written.\n" in done.stdout
    assert done.stdout.endswith("local")
