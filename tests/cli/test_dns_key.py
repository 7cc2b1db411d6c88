"""`edgecli dns key`: a key is made, printed for other programs, listed without its secret, and removed."""

import base64
import json

import pytest
from click.testing import CliRunner

from edgestead.cli.main import cli
from edgestead.cli.zone import dns_key

NAME = "xfr.example.com"
PEERS_NAME = "xfr.example.net"  # stays
SECRET = base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()


@pytest.fixture
def run(clean_environment, kv_server, monkeypatch):
    monkeypatch.setenv("EDGE_API_BASE", kv_server.ready["api_base"])
    monkeypatch.setenv("EDGE_TOKEN", kv_server.ready["api_token"])
    return lambda *words, given="": CliRunner().invoke(cli, ["dns", "key", *words], input=given)


def test_a_key_from_its_making_to_its_end(run):
    made = run("add", NAME)

    assert (made.exit_code, made.stderr) == (0, "")
    assert 'name: "xfr.example.com"\n  algorithm: hmac-sha256' in made.stdout
    assert "- id: xfr.example.com\n    algorithm: hmac-sha256" in made.stdout
    assert 'key "xfr.example.com" {\n  algorithm hmac-sha256;' in made.stdout
    assert run("show", NAME.upper()).stdout == made.stdout
    listed = run("list").stdout
    secret = json.loads(run("show", NAME, "--json").stdout)["secret"]
    assert made.stdout.count(secret) == 3
    assert f"{NAME}." in listed
    assert secret not in listed
    assert run("remove", NAME, "-y").stdout == f"{NAME}. is removed.\n"
    assert run("remove", NAME, "-y").exit_code == 1


def test_a_zone_is_transferred_in_with_a_key_which_then_stays(run):
    secondary = ("dns", "secondary", "add", "keyed.example", "127.0.0.1@9", "--key")
    unknown = CliRunner().invoke(cli, [*secondary, PEERS_NAME])
    assert (unknown.exit_code, f"There is no TSIG key {PEERS_NAME}." in unknown.stderr) == (1, True)
    run("add", PEERS_NAME)

    assert CliRunner().invoke(cli, [*secondary, PEERS_NAME]).exit_code == 0

    kept = run("remove", PEERS_NAME, "-y")
    assert kept.exit_code == 1
    assert "Transfers from 127.0.0.1@9 are signed with this key" in kept.stderr


def test_a_key_for_updates_says_what_it_may_change(run):
    done = run(
        *("add", NAME, "--update", "--name", "*.example.com", "--name", "example.com", "--type", "txt"),
        *("--no-transfer", "--json"),
    )
    run("remove", NAME, "-y")

    update = json.loads(done.stdout)["update"]
    assert (update["names"], update["types"]) == (["*.example.com", "example.com"], ["TXT"])
    assert len(update["token_id"]) == 32
    assert run("add", NAME, "--type", "TXT").exit_code == 2


def test_a_secret_comes_from_a_file_and_not_from_the_arguments(run):
    done = run(
        *("add", NAME, "--algorithm", "hmac-sha512", "--secret-file", "-", "--no-transfer", "--json"),
        given=SECRET + "\n",
    )
    made = json.loads(done.stdout)
    run("remove", made["id"], "-y")

    assert (made["secret"], made["algo"], made["transfer"]) == (SECRET, "hmac-sha512.", False)


def test_a_key_that_cannot_be_opened_is_listed_and_not_printed(run, monkeypatch):
    """As after a restore without the seal's file."""
    run("add", NAME)
    all_of = dns_key._all
    monkeypatch.setattr(
        dns_key, "_all", lambda account: [one | {"secret": "", "sealed": True} for one in all_of(account)]
    )

    listed, shown = run("list"), run("show", NAME)
    assert f"{NAME}." in listed.stdout
    assert f"{NAME}. cannot be opened" in listed.stderr
    assert (shown.exit_code, shown.stdout) == (1, "")
    assert "add it anew" in shown.stderr
    assert run("remove", NAME, "-y").exit_code == 0
