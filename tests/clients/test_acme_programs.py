"""Debian's programs of ACME, unmodified, where DNS is ours at port 53, with checks of propagation on."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.acme_machine import PROGRAMS

BINARIES = {"acme_tiny": "acme-tiny", "certbot_rfc2136": "certbot"}
BOTH = ["*.shop.example", "shop.example"]
NAMES = dict.fromkeys(PROGRAMS, BOTH) | {"acme_tiny": ["www.shop.example"]}
NEEDED = ("pebble", "unshare", "dig", "curl", "jq", "ip", *(BINARIES.get(one, one) for one in PROGRAMS))
MISSING = [one for one in NEEDED if shutil.which(one) is None]

pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"NOT TESTED: {', '.join(MISSING)} not installed"),
    pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: only root has network namespaces of its own"),
]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("machine")
    command = ["unshare", "--net", "--mount", sys.executable, "-m", "tests.clients.acme_machine", str(folder)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=1_500, cwd=Path(__file__).parents[2], check=False
    )
    assert done.returncode == 0, done.stderr[-4_000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.timeout(1_600)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_gets_its_certificate_and_leaves_nothing_behind(found, program):
    assert found[program] == {"names": NAMES[program], "left": []}
