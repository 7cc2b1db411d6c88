"""A server for the commands of `edgecli kv`, and a way to call them as a shell would."""

import os
import resource
from contextlib import contextmanager
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from edgestead.cli.main import cli
from edgestead.testing.server import EdgeServer
from tests.support.patience import new_server, patient

__all__ = ["new_server"]

VARIABLES = ("EDGE_", "CLOUDFLARE_", "XDG_DATA_HOME")


class Done(NamedTuple):
    code: int
    out: str
    err: str
    bytes: bytes


@pytest.fixture(scope="session")
def kv_server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kv")
    server = EdgeServer(folder / "data", *patient(folder)).start()
    yield server
    server.close()


@pytest.fixture
def clean_environment(tmp_path, monkeypatch):
    """No server is known, and the current folder is empty."""
    for name in list(os.environ):
        if name.startswith(VARIABLES):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "no-server"))
    work = tmp_path / "project"
    work.mkdir()
    monkeypatch.chdir(work)
    return work


@pytest.fixture
def project(clean_environment, kv_server, monkeypatch):
    """An empty folder, in an environment that names the server."""
    ready = kv_server.ready
    monkeypatch.setenv("EDGE_API_BASE", ready["api_base"])
    monkeypatch.setenv("EDGE_TOKEN", ready["api_token"])
    monkeypatch.setenv("EDGE_ACCOUNT_ID", ready["account_id"])
    return clean_environment


class _Runner(CliRunner):
    """Empties its streams at the end: Click keeps each stdout that it ever wrote to, with all its octets."""

    @contextmanager
    def isolation(self, *arguments, **named):
        with super().isolation(*arguments, **named) as streams:
            yield streams
            for stream in streams:
                stream.truncate(0)


def call(*arguments, stdin=""):
    """The command in this process."""
    done = _Runner().invoke(cli, arguments, input=stdin, prog_name="edgecli")
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Done(done.exit_code, done.stdout, done.stderr, done.stdout_bytes)


@pytest.fixture
def edgecli(project):
    return call


@pytest.fixture
def narrow_plan(edgecli, monkeypatch):
    """`plan FILE --check` with a token that may read what a zone has, values, and what else is said."""

    def one(path, *more):
        groups = ("Zone Read", "DNS Read", "Zone Settings Read", "Zone WAF Read", "Workers KV Storage Read")
        options = [word for group in (*groups, *more) for word in ("-p", group)]
        secret = edgecli("token", "create", "drift", *options).out.strip()
        with monkeypatch.context() as patched:
            patched.setenv("EDGE_TOKEN", secret)
            looked = edgecli("plan", str(path), "--check")
        edgecli("token", "delete", "drift", "--yes")
        return looked

    return one


@pytest.fixture
def edgecli_alone(clean_environment):
    """The command where no server is known."""
    return call


@pytest.fixture
def room():
    """As on a disk that is full, no file of this process may have more octets meanwhile."""

    @contextmanager
    def limited(file_bytes_max):
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes_max, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return limited


@pytest.fixture
def namespace_id(edgecli, request):
    """A namespace of the test's own."""
    made = edgecli("kv", "namespace", "create", request.node.name[:200])
    return made.out.split('id = "')[1].split('"')[0]
