"""The WAF how-to does what it says, word for word: every step succeeds, and the dry run is refused."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from edgestead.crs.loader import SYSTEM_RULES
from tests.docs.conftest import PAGE_SECONDS_MAX
from tests.support.patterns import share_patterns

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "waf-configuration.md").read_text()


def answers(text):
    """The JSON values that stand one after another in a text."""
    decoder, at = json.JSONDecoder(), 0
    while at < len(text.rstrip()):
        value, at = decoder.raw_decode(text, at)
        yield value


def test_the_steps_of_the_waf_page(edge_server, tmp_path):
    if not shutil.which("curl") or not SYSTEM_RULES.is_dir():
        pytest.skip("curl or the package modsecurity-crs is missing")
    share_patterns(edge_server.data_dir)
    command = tmp_path / ".venv" / "bin" / "edgecli"
    command.parent.mkdir(parents=True)
    command.write_text(
        f"#!/bin/sh\nPYTHONPATH={ROOT / 'src'} exec {sys.executable} -P -m edgestead"
        f' "$@" --data-dir {edge_server.data_dir}\n'
    )
    command.chmod(0o755)
    script = "\n".join(part.partition("```")[0] for part in PAGE.split("```sh\n")[1:])

    done = subprocess.run(
        ["sh", "-euc", script], cwd=tmp_path, capture_output=True, text=True, timeout=PAGE_SECONDS_MAX
    )

    assert done.returncode == 0, done.stderr
    *_, custom, dry, back = given = list(answers(done.stdout))
    assert [one["success"] for one in given] == [True, True, True, True, True, False, True]
    assert [rule["ref"] for rule in custom["result"]["rules"]] == ["admin", "robots", "types"]
    assert [error["code"] for error in dry["errors"]] == [20127]
    assert (
        given[2]["result"]["rules"][0]["action_parameters"]["overrides"]["rules"][0]["score_threshold"] == 25
    )
    assert [rule["action"] for rule in given[3]["result"]["rules"]] == ["skip", "execute"]
    assert [rule["action"] for rule in back["result"]["rules"]] == ["execute"]
    assert "overrides" not in back["result"]["rules"][0]["action_parameters"]
    assert back["result"]["version"] == "5"
