"""Unmodified third-party clients do their main job against our server."""

import importlib.util
import itertools
import json
import random
import string
import subprocess
import sys
from pathlib import Path

import pytest

from edgestead.model.refusals import CLIENTS_TAKE_IT
from edgestead.testing.server import wait_until
from tests.clients.conformance import BLANK_IN_KEY, LABEL_WITH_DIGIT, SCRIPTS, scripts_refused

HERE = Path(__file__).parent
_spec = importlib.util.spec_from_file_location("clients_install", HERE / "install.py")
assert _spec is not None
assert _spec.loader is not None
installer = importlib.util.module_from_spec(_spec)
sys.modules["clients_install"] = installer
_spec.loader.exec_module(installer)

WORKING = SCRIPTS
# Under `--profile spec` these stop at a refusal that the specification asks for, known by its code: keys
# without blanks, and names of addresses and aliases whose labels begin with a letter. The scripts write under
# a label that they choose at random.
REFUSED_FOR_BLANKS = scripts_refused(BLANK_IN_KEY)
REFUSED_FOR_DIGITS = scripts_refused(LABEL_WITH_DIGIT)
PRINT_THE_STATUS_ALONE = ["lexicon_cli", "node_sdk2_acme"]  # and not the words of a refusal
LABEL_LETTERS = 6


@pytest.mark.parametrize("client", WORKING)
def test_client_does_its_main_job(client, clients_server):
    said = run(client, clients_server, label_begins_with=string.digits)

    assert f"PASS {client}" in said, said[-6000:]


@pytest.mark.parametrize("client", [one for one in WORKING if one not in REFUSED_FOR_BLANKS])
def test_the_profile_spec_refuses_no_more_than_the_specification(client, spec_server):
    """Those that no rule of the profile touches pass whatever their label is."""
    touched = client in REFUSED_FOR_DIGITS
    said = run(client, spec_server, label_begins_with=string.ascii_lowercase if touched else string.digits)

    assert f"PASS {client}" in said, said[-6000:]


@pytest.mark.parametrize(
    ("client", "code"),
    [
        *((client, BLANK_IN_KEY) for client in REFUSED_FOR_BLANKS),
        *((client, LABEL_WITH_DIGIT) for client in REFUSED_FOR_DIGITS),
    ],
)
def test_the_profile_spec_refuses_what_the_specification_refuses(client, code, spec_server):
    before = len(refusals(spec_server))

    said = run(client, spec_server, label_begins_with=string.digits)

    assert f"FAIL {client}" in said, said[-6000:]
    assert (CLIENTS_TAKE_IT in said) is (client not in PRINT_THE_STATUS_ALONE), said[-6000:]
    wait_until(lambda: code in refusals(spec_server)[before:], 180)  # the log is written in batches


def refusals(running):
    """The codes of every refusal in the server's log, in order."""
    lines = [
        json.loads(line) for line in running.server.log.splitlines() if line.startswith('{"event":"request"')
    ]
    return [code for line in lines for code in line.get("errors", ())]


def seed(client, first_letters):
    """A seed with which the script's label begins so (tests/clients/lib/sitecustomize.py)."""
    for number in itertools.count():
        found = f"{client} {number}"
        letters = string.ascii_lowercase + string.digits
        if random.Random(found).choices(letters, k=LABEL_LETTERS)[0] in first_letters:
            return found
    raise AssertionError


def run(client, running, *, label_begins_with):
    why = installer.missing(client)
    if why:
        pytest.skip(f"{client}: {why}")
    installer.install(client)
    seeded = {"EDGE_CLIENT_SEED": seed(client, label_begins_with), "PYTHONPATH": str(HERE / "lib")}
    done = subprocess.run(
        [sys.executable, HERE / "clients" / f"{client}.py"],
        env=installer.environment(client) | running.environment | seeded,
        capture_output=True,
        text=True,
        timeout=800,
    )
    return done.stdout + done.stderr
