"""The operator's list, by the commands of an installed wheel in an empty environment, one after another."""

from pathlib import Path
from urllib.request import urlopen

import pytest

from edgestead.cli.main import COMMANDS
from tests.packaging.conftest import SECONDS_MAX, outside, run
from tests.packaging.steps import ELSEWHERE, STEPS, settle

TESTS = """
def test_a_zone(edge_zone, edge_dns):
    edge_zone.add("A", "www", "192.0.2.1")
    assert edge_dns.answers("www.example.test") == ["192.0.2.1"]


def test_values(edge_kv):
    edge_kv.put("key", "value")
    assert edge_kv.keys() == ["key"]
"""


@pytest.fixture(scope="module")
def new_operator(installed, start, tmp_path_factory):
    """A function that makes one, with flags for the server, whose data is where it is by default."""

    def make(*flags):
        return settle(tmp_path_factory.mktemp("home"), installed, start, *flags)

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
    operator.take_the_steps()


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


def test_a_cluster_needs_its_database(operator, tmp_path):
    """The driver is there; the command with a database is tried by tests/cluster."""
    done = operator.call(
        "cluster init --database postgresql://127.0.0.1:9/none --name ams-1 --advertise 127.0.0.1:8790 "
        f"{tmp_path}/ams-1"
    )

    assert done.returncode == 1
    assert "connection failed" in done.stderr
    assert not (tmp_path / "ams-1").exists()


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
