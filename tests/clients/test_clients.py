"""Unmodified third-party clients do their main job against our server."""

import importlib.util
import os
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

WORKING = ["certbot_dns01", "ddclient_ddns", "lexicon_cli", "py_sdk_rulesets"]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("client", WORKING)
def test_client_does_its_main_job(client, clients_server):
    why = installer.missing(client)
    if why:
        pytest.skip(f"{client}: {why}")
    installer.install(client)

    done = subprocess.run(
        [sys.executable, HERE / "clients" / f"{client}.py"],
        env=os.environ | clients_server,
        capture_output=True,
        text=True,
        timeout=300,
    )

    assert f"PASS {client}" in done.stdout, done.stdout[-3000:] + done.stderr[-3000:]
