"""Credentials of a running server: renewed at once, everywhere."""

import json
import subprocess
import sys

import pytest

from edgestead.testing.server import EdgeServer, environment, wait_until


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """A server for all tests that leave it as it is."""
    server = EdgeServer(tmp_path_factory.mktemp("running") / "data").start()
    yield server
    server.close()


def edgecli(server, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "edgestead", *arguments, "--data-dir", str(server.data_dir)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        env=environment(),
    )


def user_status(server, token):
    return server.call("GET", "/user", token=token).status


@pytest.mark.parametrize("command", ["rotate", "reset"])
def test_a_renewal_takes_effect_before_the_command_returns(edge_server, command):
    old = edge_server.ready

    done = edgecli(edge_server, "credentials", command, "--yes")

    new = json.loads((edge_server.data_dir / "credentials.json").read_bytes())
    assert done.returncode == 0, done.stderr
    assert user_status(edge_server, old["api_token"]) == 403
    assert user_status(edge_server, new["api_token"]) == 200
    assert new["account_id"] == old["account_id"]
    assert new["api_token"] not in done.stdout + done.stderr + edge_server.log
    wait_until(lambda: json.loads(edge_server.ready_file.read_bytes())["api_token"] == new["api_token"], 300)


@pytest.mark.parametrize("command", ["rotate", "reset"])
def test_nothing_is_revoked_before_it_is_confirmed(running, command):
    before = (running.data_dir / "credentials.json").read_bytes()

    done = edgecli(running, "credentials", command)

    assert done.returncode == 1
    assert "stop" in done.stdout
    assert "--yes" in done.stderr
    assert (running.data_dir / "credentials.json").read_bytes() == before


def test_a_renewal_of_a_resting_server_takes_effect_at_its_start(edge_server):
    old = edge_server.ready["api_token"]
    edge_server.stop()
    assert edgecli(edge_server, "credentials", "reset", "--yes").returncode == 0

    edge_server.start()

    assert edge_server.ready["api_token"] != old
    assert user_status(edge_server, old) == 403
    assert user_status(edge_server, edge_server.ready["api_token"]) == 200
    assert "revoke_others" not in (edge_server.data_dir / "credentials.json").read_text()


def test_a_lost_file_is_made_anew_for_the_same_account(edge_server):
    before = edge_server.ready
    zone_id = edge_server.make_zone("example.com")
    edge_server.stop()
    (edge_server.data_dir / "credentials.json").unlink()

    edge_server.start()

    assert edge_server.ready["account_id"] == before["account_id"]
    assert edge_server.ready["api_token"] != before["api_token"]
    assert edge_server.call("GET", f"/zones/{zone_id}").result["name"] == "example.com"
    assert user_status(edge_server, before["api_token"]) == 403


def test_env_prints_what_a_shell_can_read(running):
    done = edgecli(running, "env")
    variables = ("EDGE_API_BASE", "EDGE_TOKEN", "EDGE_DNS_ADDR", "EDGE_PID", "CLOUDFLARE_API_TOKEN")
    echo = " ".join(f'"${name}"' for name in variables)

    shown = subprocess.run(
        ["sh", "-euc", f"{done.stdout}\nprintf '%s\\n' {echo}"], capture_output=True, text=True, check=True
    )

    ready = running.ready
    wanted = [ready["api_base"], ready["api_token"], ready["dns"], str(ready["pid"]), ready["api_token"]]
    assert shown.stdout.splitlines() == wanted
    assert f"EDGE_HTTP_ADDR={ready['http']}" in done.stdout.replace("'", "")
    assert "EDGE_OBJECTS_ADDR" not in done.stdout  # no classes: no address


def test_env_of_a_stopped_or_killed_server_says_that_there_is_none(edge_server):
    edge_server.kill()

    done = edgecli(edge_server, "env")

    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith(f"Error: No server is running on the data folder {edge_server.data_dir}.\n")


def test_secrets_show_in_no_argument_and_no_variable_of_any_process(running):
    secrets = [running.ready[name].encode() for name in ("api_token", "api_key")]

    for pid in [running.pid, *running.children().values()]:
        for what in ("cmdline", "environ"):
            with open(f"/proc/{pid}/{what}", "rb") as file:
                content = file.read()
            assert not any(secret in content for secret in secrets)
