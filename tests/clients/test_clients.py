"""Unmodified third-party clients do their main job against our server."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
_spec = importlib.util.spec_from_file_location("clients_install", HERE / "install.py")
assert _spec is not None
assert _spec.loader is not None
installer = importlib.util.module_from_spec(_spec)
sys.modules["clients_install"] = installer
_spec.loader.exec_module(installer)

WORKING = [
    "certbot_dns01",
    "ddclient_ddns",
    "kv_pylibs",
    "lexicon_cli",
    "node_sdk_rulesets",
    "py_sdk_kv",
    "py_sdk_rulesets",
    "wrangler_kv",
]


# Under `--profile spec` these stop at a refusal that the specification asks for: keys without blanks.
REFUSED_BY_SPEC = {"py_sdk_kv": "The key may not hold blanks", "wrangler_kv": "The key may not hold blanks"}
TAKEN_BY_SPEC = ["kv_pylibs"]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("client", WORKING)
def test_client_does_its_main_job(client, clients_server):
    said = run(client, clients_server)

    assert f"PASS {client}" in said, said[-6000:]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("client", [*TAKEN_BY_SPEC, *REFUSED_BY_SPEC])
def test_the_profile_spec_refuses_what_the_specification_refuses_and_no_more(client, spec_server):
    said = run(client, spec_server)

    if client in TAKEN_BY_SPEC:
        assert f"PASS {client}" in said, said[-6000:]
    else:
        assert f"FAIL {client}" in said, said[-6000:]
        assert REFUSED_BY_SPEC[client] in said, said[-6000:]


def run(client, server):
    why = installer.missing(client)
    if why:
        pytest.skip(f"{client}: {why}")
    installer.install(client)
    done = subprocess.run(
        [sys.executable, HERE / "clients" / f"{client}.py"],
        env=installer.environment(client) | server,
        capture_output=True,
        text=True,
        timeout=300,
    )
    return done.stdout + done.stderr
