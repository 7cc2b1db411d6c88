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
SECURE_MIN = 20  # RRsets and denials, of four names
RANDOM_ZONES, LONG_RANDOM_ZONES = 1, 30  # beside the one that is known
CHECKED_MIN = 40  # messages; a run that stops early has a dozen


def namespaces_allowed():
    return shutil.which("unshare") and subprocess.run(["unshare", "--net", "true"]).returncode == 0


DNSVIZ = shutil.which("dnsviz") and shutil.which("ip")


@pytest.fixture(
    scope="module", params=[RANDOM_ZONES, pytest.param(LONG_RANDOM_ZONES, marks=pytest.mark.long)]
)
def said(request, tmp_path_factory):
    """What the lab's judges say, by zone."""
    if not NSD or not namespaces_allowed():
        pytest.skip("NOT TESTED: nsd is not installed, or no network namespace may be made here")
    root = Path(__file__).parents[2]
    path = os.pathsep.join((str(root / "src"), str(root)))
    command = ["unshare", "--net", sys.executable, str(LAB), str(tmp_path_factory.mktemp("lab")), NSD]
    done = subprocess.run(
        [*command, str(request.param)],
        capture_output=True,
        text=True,
        timeout=400 * (request.param + 1),
        env=os.environ | {"PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.skipif(not shutil.which("zonemaster-cli"), reason="NOT TESTED: zonemaster-cli is not installed")
def test_zonemaster_finds_nothing_wrong_with_a_signed_zone(said):
    for apex, judges in said.items():
        found = judges["zonemaster"]
        assert len(found) > CHECKED_MIN, apex
        wrong = [one for one in found if one["level"] not in HARMLESS and one["tag"] not in OF_THE_LAB]
        assert wrong == [], apex
        assert {one["tag"] for one in found} > {"HAS_NAMESERVERS", "ONE_SOA_SERIAL", "ADDRESSES_MATCH"}, apex


@pytest.mark.skipif(not DNSVIZ, reason="NOT TESTED: dnsviz or ip is not installed")
def test_dnsviz_finds_every_answer_and_denial_secure(said):
    for apex, judges in said.items():
        found = list(judged(judges["dnsviz"]))
        assert [one for one in found if one[0] in ("errors", "warnings")] == [], apex
        statuses = {word for kind, word in found if kind == "status" and isinstance(word, str)}
        assert statuses <= {"SECURE", "VALID", "NOERROR", "NXDOMAIN"}, apex
        assert [word for _, word in found].count("SECURE") > SECURE_MIN, apex


def judged(part):
    """Every status, error and warning of a judgement, however deep."""
    if isinstance(part, list):
        part = dict(enumerate(part))
    if isinstance(part, dict):
        for key, value in part.items():
            if key in ("status", "errors", "warnings"):
                yield key, value
            yield from judged(value)
