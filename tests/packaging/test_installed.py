"""The operator's list, by the commands of an installed wheel in an empty environment, one after another."""

import re
import shlex
import subprocess
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

import pytest

from edgestead.cli.main import COMMANDS
from edgestead.testing.server import EdgeServer
from tests.packaging.conftest import SECONDS_MAX, outside, run

CLIENT = """
def limits(api, zone):
    return api.get(f"/zones/{zone}/rate_limits")
"""
OBJECT = """
from edgestead import StatefulObject


class Visits(StatefulObject):
    async def add(self) -> int:
        count = await self.ctx.storage.get("count") or 0
        await self.ctx.storage.put("count", count + 1)
        return count + 1
"""
TESTS = """
def test_a_zone(edge_zone, edge_dns):
    edge_zone.add("A", "www", "192.0.2.1")
    assert edge_dns.answers("www.example.test") == ["192.0.2.1"]


def test_values(edge_kv):
    edge_kv.put("key", "value")
    assert edge_kv.keys() == ["key"]
"""
RULES = '{"phase": "http_request_firewall_custom", "rules": [{"action": "log", "expression": "true"}]}'

STEPS = (  # a command, and what it prints; what stands in <…> is kept for those that follow
    ("--version", r"^edgecli \d"),
    ("--help", r"backup +Copy everything"),
    ("doctor", "the API answers"),
    ("zone create example.com", "example.com"),
    ("zone list", "example.com"),
    ("record create example.com www A 192.0.2.1", r"Created www\.example\.com"),
    ("record create example.com mail A 127.0.0.1 --proxied", "Created"),
    ("record list example.com", "192.0.2.1"),
    ("record update example.com www --content 192.0.2.9", "192.0.2.9"),
    ("zone export example.com", r"www.*192\.0\.2\.9"),
    ("zone history example.com", r"\+ A www\.example\.com"),
    ("zone undo example.com 3", ""),
    ("dns query www.example.com", "192.0.2.1"),
    ("dns check example.com", ""),
    ("kv namespace create texts", r"id = \"<space>([0-9a-f]{32})\""),
    ("kv key put greeting hello --namespace-id {space}", ""),
    ("kv key get greeting --namespace-id {space}", "^hello$"),
    ("kv key list --namespace-id {space}", "greeting"),
    ("kv:key get greeting --namespace-id {space}", "^hello"),
    ("kv key put greeting here --namespace-id {space} --local --persist-to {folder}/local", ""),
    ("object call Visits home add", "^1$"),
    ("object list Visits", "home"),
    ("object bookmark Visits home", r"^<bookmark>([0-9a-f-]+)$"),
    ("object call Visits home add", "^2$"),
    ("object restore Visits home {bookmark} --yes", "is back"),
    ("object call Visits home add", "^2$"),
    ("objects types {classes}", "Visits"),
    ("ruleset list", ""),
    ("ruleset check {folder}/rules.json", ""),
    ("waf show", "Deployed"),
    ("waf events", ""),
    ("token create robot -p 'DNS Read' --zone example.com", r"^\S{40}$"),
    ("token list", "robot"),
    ("token roll robot", r"^\S{40}$"),
    ("token delete robot --yes", ""),
    ("deprecations list", "2020-04-02"),
    ("deprecations show rate-limits", "http_ratelimit"),
    ("deprecations usage", ""),
    ("tls dev www.example.com --tls-dir {folder}/tls", "ca.pem"),
    ("completion bash", "edgecli"),
    ("credentials rotate", ""),
    ("env", r"EDGE_TOKEN=.*\S{40}"),
    ("backup {folder}/backup", "files"),
    ("verify {folder}/backup", "is whole"),
    ("verify", "is whole"),
    ("restore {folder}/backup --data-dir {folder}/again", "is as"),
)
ELSEWHERE = {  # commands that tests of their own try below
    "serve": "test_the_steps_of_an_operator",
    "import": "test_an_account_moves_in",
}


class Operator(NamedTuple):
    """Somebody with the installed commands and a home of their own, where a server runs."""

    command: Path
    folder: Path
    server: EdgeServer

    def call(self, line, *, secrets=None, **known):
        """Run a command as the shell would, with `{name}` filled in."""
        words = [word.format(**known) for word in shlex.split(line)]
        return subprocess.run(
            [str(self.command), *words],
            cwd=self.folder,
            env=outside(HOME=str(self.folder), COLUMNS="120", **(secrets or {})),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
        )


@pytest.fixture(scope="module")
def new_operator(installed, start, tmp_path_factory):
    """A function that makes one, with flags for the server, whose data is where it is by default."""

    def make(*flags):
        home = tmp_path_factory.mktemp("home")
        data_dir = home / ".local" / "share" / "edgestead"
        data_dir.parent.mkdir(parents=True)
        for name, text in {"client.py": CLIENT, "rules.json": RULES, "visits.py": OBJECT}.items():
            (home / name).write_text(text)
        server = start(data_dir, *(flag.format(home=home) for flag in flags))
        return Operator(installed / "edgecli", home, server)

    return make


@pytest.fixture(scope="module")
def operator(new_operator):
    return new_operator("--objects", "{home}/visits.py")


def test_nothing_of_the_checkout_is_used(installed, tmp_path):
    where = run(
        *(str(installed / "python"), "-P", "-c", "import edgestead; print(edgestead.__file__)"),
        cwd=tmp_path,
        env=outside(),
    )

    assert Path(where.strip()).is_relative_to(installed.parent)


def test_the_steps_of_an_operator(operator):
    known = {"folder": operator.folder, "classes": operator.folder / "visits.py"}
    for line, expected in STEPS:
        done = operator.call(line, **known)

        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
        pattern = re.sub(r"<(\w+)>\(", r"(?P<\1>", expected)
        found = re.search(pattern, done.stdout + done.stderr, re.MULTILINE)
        assert found, f"{line}: {done.stdout}{done.stderr}"
        known |= found.groupdict()
    assert operator.server.dig("www.example.com") == ["192.0.2.1"]


def test_every_command_is_tried():
    tried = {line.split()[0] for line, _ in STEPS}

    assert tried - {"--version", "--help", "kv:key"} == set(COMMANDS) - set(ELSEWHERE)


def test_a_dated_path_in_a_source_fails_a_build(operator):
    done = operator.call("deprecations check client.py")

    assert done.returncode == 1
    assert "client.py:3:" in done.stdout
    assert "rate-limits (2025-06-15)" in done.stdout


def test_the_metrics_are_those_of_all_processes(operator):
    api, _, _ = operator.server.ready["api_base"].partition("/client/")
    with urlopen(f"{api}/metrics", timeout=SECONDS_MAX) as answer:
        told = answer.read().decode()

    for name in ("edge_store_commits_total", "edge_dns_queries_total", "edge_http_requests_total"):
        assert f"\n{name}" in told


def test_an_account_moves_in(operator, new_operator):
    assert operator.call("zone create moved.example").returncode == 0
    token = operator.call("token create mover -p 'Zone Read' -p 'DNS Read' --account").stdout.strip()
    moving = new_operator()

    done = moving.call(
        "import --from {api} --only zones --only records",
        api=operator.server.ready["api_base"],
        secrets={"IMPORT_TOKEN": token},
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "moved.example" in moving.call("zone list").stdout


def test_the_pytest_plugin_is_there_without_a_line(installed, tmp_path):
    (tmp_path / "test_mine.py").write_text(TESTS)

    printed = run(
        *(str(installed / "python"), "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py"),
        cwd=tmp_path,
        env=outside(HOME=str(tmp_path)),
    )

    assert "2 passed" in printed


def test_it_ends_when_it_is_told_to(operator):
    assert operator.server.stop() == 0
