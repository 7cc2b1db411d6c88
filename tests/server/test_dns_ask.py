"""`edgecli dns` with a running server."""

import errno
import os
import socket
import subprocess
import sys
from pathlib import Path

import dns.message
import dns.query
import pytest

from edgestead.dns.settings import DEFAULTS
from edgestead.dns.table import Table
from edgestead.dns.watch import Watch
from edgestead.server.dns import ask as dns_ask
from edgestead.server.dns.ask import Question
from edgestead.server.errors import StartError
from edgestead.server.folder import read_state
from edgestead.testing.server import EdgeServer, environment
from tests.server.conftest import PATIENCE


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A server with a zone, and a function that runs edgecli on it."""
    folder = tmp_path_factory.mktemp("asked")
    (folder / "patient.toml").write_text(PATIENCE)
    server = EdgeServer(folder / "data", "--config", str(folder / "patient.toml"))
    yield world_of(server.start())
    server.close()


@pytest.fixture
def new_world(new_server, patience):
    """The same of a server that no client has asked."""
    return world_of(new_server(*patience).start())


def world_of(edge_server):
    zone_id = edge_server.make_zone("asked.example")
    edge_server.make_record(zone_id, "A", "www", "192.0.2.1", proxied=True)
    edge_server.make_record(zone_id, "CNAME", "alias", "www.asked.example")

    def run(*words):
        env = environment() | {
            "EDGE_API_BASE": edge_server.ready["api_base"],
            "EDGE_TOKEN": edge_server.ready["api_token"],
        }
        folder = () if words[1] == "check" else ("--data-dir", str(edge_server.data_dir))
        command = [sys.executable, "-m", "edgestead", *words, *folder]
        return subprocess.run(command, capture_output=True, text=True, env=env, timeout=300, check=False)

    return edge_server, zone_id, run


class Refusing:
    """A listening socket whose first accept fails."""

    def __init__(self, listener):
        self.listener, self.failed, self.fileno = listener, False, listener.fileno

    def accept(self):
        if not self.failed:
            self.failed = True
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return self.listener.accept()


def test_a_question_that_could_not_be_taken_is_not_the_last_one(tmp_path, monkeypatch):
    monkeypatch.setattr(dns_ask, "PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(dns_ask, "SECONDS_MAX", 300)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "ask.sock"))
        listener.listen()
        dns_ask.DnsAsk(Refusing(listener), Table(), Watch(), DEFAULTS).start()
        assert dns_ask.ask(tmp_path / "ask.sock", Question("log")).rows == ()


def test_query_and_trace_say_what_and_why(world):
    server, _, run = world
    edge = server.ready["http"].rpartition(":")[0]

    query, trace = run("dns", "query", "alias.asked.example"), run("dns", "trace", "WWW.asked.example")

    assert query.stdout.startswith("NOERROR (authoritative)\n  answer     alias.asked.example. ")
    assert f"www.asked.example. 300 IN A {edge}" in query.stdout
    assert "1. zone asked.example. answers for www.asked.example.\n2. 1 record with TTL 300" in trace.stdout
    assert "A      192.0.2.1  (proxied: answered with the edge's addresses)" in trace.stdout


def test_trace_says_why_an_alias_is_answered_with_addresses_and_whose(world):
    server, zone_id, run = world
    made = server.make_record(zone_id, "CNAME", "@", "www.asked.example").result

    assert (
        "(flattened, because it stands at the apex: answered with the addresses of www.asked.example)"
        in run("dns", "trace", "asked.example").stdout
    )
    assert "flattened" not in run("dns", "trace", "alias.asked.example").stdout

    settings = f"/zones/{zone_id}/dns_settings"
    server.call("PATCH", settings, {"flatten_all_cnames": True})
    flat = run("dns", "trace", "alias.asked.example").stdout
    server.call("PATCH", settings, {"flatten_all_cnames": False})
    server.call("DELETE", f"/zones/{zone_id}/dns_records/{made['id']}")
    assert "(flattened, because the zone has flatten_all_cnames: answered with" in flat


def test_what_is_asked_is_seen(new_world):
    """The first of each process is shown at once; what follows at once may stand in for others."""
    server, _, run = new_world
    assert run("dns", "top").stdout == ""
    host, _, port = server.ready["dns"].rpartition(":")
    for ask in (dns.query.udp, dns.query.tcp):  # once: who has no patience asks again, and is counted twice
        assert ask(dns.message.make_query("www.asked.example", "A"), host, 300, int(port)).answer

    top, counts, log = (run("dns", command).stdout for command in ("top", "counts", "log"))

    assert top == "         2  A        www.asked.example.\n"
    assert counts == "         2  A        NOERROR   asked.example.\n"
    assert log.count("127.0.0.0/24       A        NOERROR") == 2


def test_check_exits_with_one_when_something_is_broken(world):
    server, zone_id, run = world
    assert run("dns", "check", "asked.example").returncode == 0

    made = server.make_record(zone_id, "CNAME", "dangling", "gone.asked.example").result
    broken = run("dns", "check", "asked.example")
    server.call("DELETE", f"/zones/{zone_id}/dns_records/{made['id']}")

    assert broken.returncode == 1
    assert (
        "broken  dangling.asked.example: is an alias of gone.asked.example, which does not" in broken.stdout
    )
    assert "Traceback" not in broken.stderr


BAD = {
    "a command that there is not": Question("stop"),
    "no name": Question("query", "03777777", 1),
    "octets behind the name": Question("query", "0000", 1),
    "no hex": Question("query", "zz", 1),
    "a type that is no number": Question("query", "00", 65_536),
}


def test_a_bad_question_gets_words_and_the_process_lives(world):
    server, _, run = world
    sockets = sorted(server_folder(server).glob("dns-*.sock"))
    assert len(sockets) == 2

    for path in sockets:
        for question in BAD.values():
            with pytest.raises(StartError, match="not a question"):
                dns_ask.ask(path, question)
        assert path.stat().st_mode & 0o077 == 0
    for words in (("a..b",), ("www.asked.example", "NOTYPE")):
        asked = run("dns", "query", *words)
        assert (asked.returncode, "Traceback" in asked.stderr) == (2, False)
    assert run("dns", "query", "www.asked.example").returncode == 0


def server_folder(server):

    return Path(read_state(server.data_dir).runtime_dir)


def test_without_a_server_there_is_one_line(tmp_path):
    asked = subprocess.run(
        [sys.executable, "-m", "edgestead", "dns", "query", "x.test", "--data-dir", str(tmp_path)],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=300,
        check=False,
    )

    assert asked.returncode == 1
    assert asked.stderr.startswith("Error: No server is running")
