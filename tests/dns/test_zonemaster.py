"""A registry's checks of a delegated zone: ours with a stock NSD as its secondary (zonemaster_lab.py)."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

LAB = Path(__file__).with_name("zonemaster_lab.py")
NSD = shutil.which("nsd", path="/usr/sbin:/usr/bin:/usr/local/sbin")
# What is so only because the lab lives on loopback.
OF_THE_LAB = {"NAMESERVER_IP_PRIVATE_NETWORK", "NAMESERVER_IP_WITHOUT_REVERSE"}
HARMLESS = {"DEBUG", "DEBUG2", "DEBUG3", "INFO", "NOTICE"}
CHECKED_MIN = 40  # messages; a run that stops early has a dozen


def namespaces_allowed():
    return shutil.which("unshare") and subprocess.run(["unshare", "--net", "true"]).returncode == 0


@pytest.mark.skipif(
    not (NSD and shutil.which("zonemaster-cli")), reason="NOT TESTED: nsd or zonemaster-cli is not installed"
)
@pytest.mark.skipif(not namespaces_allowed(), reason="NOT TESTED: no network namespace may be made here")
def test_zonemaster_finds_nothing_wrong(tmp_path):
    root = Path(__file__).parents[2]
    path = os.pathsep.join((str(root / "src"), str(root)))
    command = ["unshare", "--net", sys.executable, str(LAB), str(tmp_path), NSD]

    done = subprocess.run(
        command, capture_output=True, text=True, timeout=150, env=os.environ | {"PYTHONPATH": path}
    )

    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert len(said) > CHECKED_MIN
    wrong = [one for one in said if one["level"] not in HARMLESS and one["tag"] not in OF_THE_LAB]
    assert wrong == []
    assert {one["tag"] for one in said} > {"HAS_NAMESERVERS", "ONE_SOA_SERIAL", "ADDRESSES_MATCH"}
