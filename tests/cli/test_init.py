"""`edgecli init`: three questions, files that the server takes, and none overwritten."""

import json
import shutil
import subprocess

import pytest

from edgestead import config


def test_three_questions_make_the_files(edgecli_alone, clean_environment):
    done = edgecli_alone("init", stdin="192.0.2.7\nns1.example.net, ns2.example.net\nsystemd\n")
    assert done.code == 0, done.err
    folder = clean_environment / "edgestead"

    settings = config.load({}, folder / "edgestead.toml")
    assert [str(one) for one in settings.edge_addresses] == ["192.0.2.7"]
    assert list(settings.nameserver) == ["ns1.example.net", "ns2.example.net"]
    assert sorted(one.name for one in folder.iterdir()) == [
        *("edgestead-backup.service", "edgestead-backup.timer"),
        *("edgestead.service", "edgestead.socket", "edgestead.toml"),
    ]
    assert "systemctl daemon-reload" in done.out


def test_flags_ask_nothing(edgecli_alone, clean_environment):
    done = edgecli_alone("init", "here", "--address", "2001:db8::7", "--run-by", "compose", "-y", "--json")
    assert json.loads(done.out)["files"] == ["here/edgestead.toml", "here/compose.yaml"]
    assert '"2001:db8::7"' in (clean_environment / "here" / "compose.yaml").read_text()
    assert edgecli_alone("init", "plain", "--run-by", "none", "-y").code == 0
    assert config.load({}, clean_environment / "plain" / "edgestead.toml").backup_hours == 26


def test_nothing_is_overwritten(edgecli_alone, clean_environment):
    (clean_environment / "edgestead").mkdir()
    (clean_environment / "edgestead" / "edgestead.socket").write_text("mine")
    done = edgecli_alone("init", "-y")

    assert done.code == 1
    assert "edgestead.socket is there already" in done.err
    assert [one.name for one in (clean_environment / "edgestead").iterdir()] == ["edgestead.socket"]


def test_a_disk_that_is_full_leaves_none_of_the_files(edgecli_alone, clean_environment, room):
    with room(600):
        done = edgecli_alone("init", "here", "-y")

    assert (done.code, done.err.startswith("Error: ")) == (1, True)
    assert list((clean_environment / "here").iterdir()) == []
    assert edgecli_alone("init", "here", "-y").code == 0
    assert (clean_environment / "here" / "edgestead.toml").stat().st_size < 600


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (("--address", "here"), "'here' is no IP address"),
        (("--nameserver", "a b"), "'a b' is no host name"),
        (("--run-by", "cron"), "'cron' is not one of"),
    ],
)
def test_a_wrong_answer_is_named(edgecli_alone, words, fault):
    done = edgecli_alone("init", *words, "-y")

    assert (done.code, fault in done.err) == (2, True)


def test_every_setting_is_printed_without_a_question(edgecli_alone, clean_environment):
    shown = edgecli_alone("init", "--settings").out.splitlines()
    listed = json.loads(edgecli_alone("init", "--settings", "--json").out)["settings"]

    every = [option.key for option in config.OPTIONS]
    assert [line.split()[1] for line in shown if not line.startswith("#   ")] == every
    assert [row["key"] for row in listed] == every
    assert "127.0.0.1:5300" in [row["default"] for row in listed if row["key"] == "dns"]
    assert not list(clean_environment.glob("edgestead")), "nothing is written"


def test_systemd_takes_the_units(edgecli_alone, clean_environment):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze")
    edgecli_alone("init", "-y")
    units = sorted((clean_environment / "edgestead").glob("edgestead-backup.*"))
    done = subprocess.run(
        ["systemd-analyze", "verify", *units], capture_output=True, text=True, timeout=60, check=False
    )

    assert done.stderr == ""
