"""The access log: what a line says, where lines go, what happens when nobody takes them."""

import http.client
import json
import os
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from edgestead.edge.access import sinks
from edgestead.edge.access.lines import writer
from edgestead.edge.access.log import AccessLog
from edgestead.edge.access.sinks import FileSink, HttpSink, Partly, SocketSink
from edgestead.edge.exchanges.exchange import Exchange, TlsFacts, ZoneFacts
from edgestead.model.access import FIELDS
from tests.edge.bench import GET, HEAD_200, Bench
from tests.edge.conftest import Site

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "access-log.md"
NOW_US = 1_795_468_935_123_456  # 2026-11-23, 21:22:15.123456 UTC
TRACE = b"00-" + b"a" * 32 + b"-" + b"b" * 16 + b"-01"


def eventually(is_true):
    deadline = time.monotonic() + 180
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def entry(
    *, referer=b"https://example.net/", agent=b"curl/8", trace=TRACE, status=200, sent=1_024, **changed
):
    """What a line is made of."""
    named = {b"referer": referer, b"user-agent": agent, b"traceparent": trace}
    headers = [(name, value) for name, value in named.items() if value]
    given = {
        **{"client": "192.0.2.9", "peer": "192.0.2.9", "scheme": b"https", "port": 443, "version": b"HTTP/2"},
        **{"method": b"GET", "target": b"/a?b=c", "headers": headers, "by_name": dict(headers)},
        **{"host": b"www.example.com", "zone": ZoneFacts("", b"example.com", "", "", {})},
        **{"ray": b"0" * 16, "arrived_us": NOW_US - 12_345},
        "tls": TlsFacts(b"TLSv1.3", b"TLS_AES_256_GCM_SHA384", b""),
    }
    return Exchange(**(given | changed)), status, sent, NOW_US


class Counts:
    def __init__(self):
        self.lines = self.lost = 0

    def written(self, number):
        self.lines += number

    def dropped(self, number):
        self.lost += number


class Sink:
    """Takes what it gets, unless it is told to fail."""

    def __init__(self):
        self.content, self.fails, self.closed = b"", False, False
        self.error = OSError(28, "No space left on device")

    def write(self, content):
        if self.fails:
            raise self.error
        self.content += content

    def close(self):
        self.closed = True


# a line


def test_a_line_of_json_has_the_usual_fields():
    assert json.loads(writer("json")(*entry())) == {
        "time": "2026-11-23T21:22:15.123Z",
        "ray": "0" * 16,
        "client": "192.0.2.9",
        "zone": "example.com",
        "host": "www.example.com",
        "method": "GET",
        "target": "/a?b=c",
        "version": "HTTP/2",
        "scheme": "https",
        "status": 200,
        "bytes": 1_024,
        "milliseconds": 12.345,
        "referer": "https://example.net/",
        "user_agent": "curl/8",
        "trace_id": "a" * 32,
    }


def test_fields_are_chosen_by_name_and_in_order():
    assert writer("json", ("status", "client"))(*entry()) == b'{"status":200,"client":"192.0.2.9"}\n'
    assert writer("json", ("bytes",))(*entry()) == b'{"bytes":1024}\n'


def test_every_field_is_found_and_said_in_the_page():
    said = json.loads(writer("json", tuple(FIELDS))(*entry()))
    assert tuple(said) == tuple(FIELDS)
    page = PAGE.read_text()
    for name, words in FIELDS.items():
        assert f"| `{name}` | {words} |" in page


def test_the_forms_that_tools_read():
    common = b'192.0.2.9 - - [23/Nov/2026:21:22:15 +0000] "GET /a?b=c HTTP/2" 200 1024'
    assert writer("common")(*entry()) == common + b"\n"
    assert writer("combined")(*entry()) == common + b' "https://example.net/" "curl/8"\n'
    assert writer("combined")(*entry(sent=0, referer=b"", agent=b"")).endswith(b' 200 - "-" "-"\n')


HOSTILE = [b'a" 200 1 "', b"a\r\n127.0.0.1 - -", b"\x1b[2J", b"\xff\xfe", b"back\\slash", b"a\x00b"]


@pytest.mark.parametrize("said", HOSTILE)
@pytest.mark.parametrize("form", ["json", "common", "combined"])
def test_nothing_leaves_its_field(said, form):
    line = writer(form)(*entry(agent=said, target=b"/" + said, referer=said, method=said))
    assert line.endswith(b"\n")
    assert line[:-1].decode().isprintable()
    if form == "json":
        assert set(json.loads(line)) == set(json.loads(writer("json")(*entry())))
    else:
        plain = line.replace(b"\\x22", b"")
        assert plain.count(b'"') == {"common": 2, "combined": 6}[form]


@pytest.mark.parametrize("form", ["json", "common", "combined"])
def test_secrets_are_hidden_and_what_is_long_is_cut(form):
    line = writer(form)(*entry(target=b"/a?token=hunter2", referer=b"https://a/?password=hunter2"))
    assert b"hunter2" not in line
    assert len(writer(form)(*entry(target=b"/" + b"x" * 60_000, agent=b"y" * 60_000))) < 8_000


@pytest.mark.parametrize("trace", [b"", b"00-xyz-1-1", b"00-" + b"a" * 31 + b"-1-1", b"\xff" * 60])
def test_what_is_no_trace_is_none(trace):
    assert json.loads(writer("json")(*entry(trace=trace)))["trace_id"] == ""


# where lines go


@pytest.fixture
def folder(tmp_path):
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


def test_a_file_is_rotated_by_its_length(folder, tmp_path):
    sink = FileSink(folder, "access.log", octets_max=100, files_max=2)
    for number in range(10):
        sink.write(b"%060d\n" % number)
    sink.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["access.log", "access.log.1", "access.log.2"]
    kept = b"".join((tmp_path / name).read_bytes() for name in ("access.log.2", "access.log.1", "access.log"))
    assert [int(line) for line in kept.split()] == [4, 5, 6, 7, 8, 9]


def test_who_moves_the_file_away_finds_a_new_one(folder, tmp_path):
    sink = FileSink(folder, "access.log", octets_max=1 << 20, files_max=2)
    sink.write(b"one\n")
    (tmp_path / "access.log").rename(tmp_path / "elsewhere")
    sink.write(b"two\n")
    sink.close()
    assert (tmp_path / "elsewhere").read_bytes() == b"one\n"
    assert (tmp_path / "access.log").read_bytes() == b"two\n"


def test_several_processes_write_and_rotate_one_file(folder, tmp_path):
    """As threads with descriptors of their own, which is what the lock and O_APPEND see of processes."""

    def write(worker):
        sink = FileSink(folder, "access.log", octets_max=4_000, files_max=1_000)
        for number in range(300):
            sink.write(b"%d %d %050d\n" % (worker, number, 0))
        sink.close()

    threads = [threading.Thread(target=write, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    said = b"".join(path.read_bytes() for path in tmp_path.iterdir()).splitlines()
    assert len(said) == 1_200
    assert {tuple(map(int, line.split()[:2])) for line in said} == {
        (worker, number) for worker in range(4) for number in range(300)
    }


def test_a_file_that_is_a_link_is_not_written_through(folder, tmp_path):
    (tmp_path / "access.log").symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match="symbolic links"):
        FileSink(folder, "access.log", octets_max=100, files_max=1).write(b"x\n")


def test_a_socket_gets_the_stream_and_one_that_comes_again_goes_on(tmp_path):
    path = str(tmp_path / "socket")
    sink = SocketSink(path)
    with pytest.raises(FileNotFoundError):
        sink.write(b"nobody\n")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        sink.write(b"one\n")
        taken, _ = listening.accept()
        with taken:
            assert taken.recv(100) == b"one\n"
        with pytest.raises(OSError, match="pipe"):
            sink.write(b"two\n")
        sink.write(b"three\n")
        taken, _ = listening.accept()
        with taken:
            assert taken.recv(100) == b"three\n"
    sink.close()


def test_a_server_gets_batches(http_server):
    server, got = http_server
    sink = HttpSink(f"http://127.0.0.1:{server.server_port}/in?a=b", "application/x-ndjson")
    sink.write(b"one\ntwo\n")
    server.status = 500
    with pytest.raises(OSError, match="answered 500"):
        sink.write(b"three\n")
    server.status = 204
    sink.write(b"three\n")
    sink.close()
    assert got[0] == ("/in?a=b", "application/x-ndjson", b"one\ntwo\n")
    assert [body for _, _, body in got[1:]] == [b"three\n"] * 2


@pytest.fixture
def http_server():
    got = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            got.append((self.path, self.headers["content-type"], body))
            self.send_response(self.server.status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *arguments):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.status = 204
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server, got
    server.shutdown()
    server.server_close()
    thread.join()


def test_lines_that_were_taken_are_not_written_again(tmp_path):
    """A reader that stops amid a batch: what came whole is not sent again when it comes back."""
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        sink = SocketSink(path)
        content = b"".join(b"%09d\n" % number for number in range(200_000))
        thread = threading.Thread(target=hang_up_after, args=(listening, 300_000))
        thread.start()
        with pytest.raises(Partly) as partly:
            sink.write(content)
        thread.join()
        sink.close()
        lines = partly.value.lines
    assert 0 < lines < 200_000


def hang_up_after(listening, octets):
    taken, _ = listening.accept()
    with taken:
        while octets > 0:
            octets -= len(taken.recv(65_536))


def test_what_is_no_file_is_not_written(folder, tmp_path):
    os.mkfifo(tmp_path / "access.log")
    with pytest.raises(OSError, match=r"No such device|is none"):
        FileSink(folder, "access.log", octets_max=100, files_max=1).write(b"x\n")


def test_a_server_that_answers_by_the_octet_is_cut(monkeypatch):
    monkeypatch.setattr(sinks, "POST_SECONDS_MAX", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        ending = threading.Event()
        thread = threading.Thread(target=dribble, args=(listening, ending))
        thread.start()
        sink = HttpSink(f"http://127.0.0.1:{listening.getsockname()[1]}/", "application/x-ndjson")
        with pytest.raises(OSError, match=r"\w"):
            sink.write(b"one\n")
        ending.set()
        thread.join()
        sink.close()


def test_a_server_that_was_late_before_anything_could_be_cut_is_left(monkeypatch):
    """Each address of a name has its time to connect: together they may have more than the batch."""
    monkeypatch.setattr(sinks, "POST_SECONDS_MAX", 0)
    cut, connect, was_cut = HttpSink._cut, http.client.HTTPConnection.connect, threading.Event()
    monkeypatch.setattr(HttpSink, "_cut", lambda sink: (cut(sink), was_cut.set()))
    monkeypatch.setattr(http.client.HTTPConnection, "connect", lambda one: (was_cut.wait(), connect(one)))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        sink = HttpSink(f"http://127.0.0.1:{listening.getsockname()[1]}/", "application/x-ndjson")
        with pytest.raises(OSError, match="too long"):
            sink.write(b"one\n")
        taken, _ = listening.accept()
        with taken:
            assert taken.recv(65_536) == b""


def dribble(listening, ending):
    taken, _ = listening.accept()
    with taken:
        try:
            while not ending.wait(0.05):
                taken.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        except OSError:
            return


# which answers get a line


class Asked:
    """As much of a log's surroundings as a test needs."""

    def __init__(self, **options):
        self.sink, self.counts, self.causes = Sink(), Counts(), []
        self.bench = Bench()
        self.log = AccessLog(
            self.sink,
            writer("json", ("method", "target", "status", "bytes")),
            self.counts,
            failed=self.causes.append,
            **options,
        )
        self.bench.edge.access = self.log

    def said(self):
        self.log.close()
        return [json.loads(line) for line in self.sink.content.splitlines()]


@pytest.fixture
def asked():
    made = Asked()
    yield made
    made.log.close()


def test_an_answer_of_the_origin_has_a_line(asked):
    asked.bench.connection.data_received(GET)
    asked.bench.origin.data_received(HEAD_200 + b"page")
    assert asked.said() == [{"method": "GET", "target": "/", "status": 200, "bytes": 4}]
    assert (asked.counts.lines, asked.counts.lost, asked.sink.closed) == (1, 0, True)


def test_an_answer_of_the_edges_own_has_one(asked):
    asked.bench.connection.data_received(GET.replace(b"www.", b"elsewhere."))
    (line,) = asked.said()
    assert line["status"] == 530


def test_what_cannot_be_read_has_one(asked):
    asked.bench.connection.data_received(b"GET / HTTP/1.1\r\n\r\n")
    assert [line["status"] for line in asked.said()] == [400]


def test_a_client_that_leaves_before_the_answer_has_one(asked):
    asked.bench.connection.data_received(GET)
    asked.bench.connection.connection_lost(None)
    assert [line["status"] for line in asked.said()] == [499]


def test_an_answer_that_breaks_off_has_one_with_what_was_sent(asked):
    asked.bench.connection.data_received(GET)
    asked.bench.origin.data_received(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\npart")
    asked.bench.origin.connection_lost(None)
    assert asked.said() == [{"method": "GET", "target": "/", "status": 200, "bytes": 4}]


def test_what_waits_is_bounded_in_memory_too():
    asked = Asked()
    asked.sink.fails = True
    for _ in range(20_000):
        asked.log.refused("192.0.2.9", b"", 400, b"GET", b"", b"/" + b"x" * 60_000)
    assert asked.counts.lost > 4_000
    asked.log.close()
    assert asked.counts.lost == 20_000


def test_a_page_for_a_head_has_no_bytes(asked):
    asked.bench.connection.data_received(GET.replace(b"GET", b"HEAD").replace(b"www.", b"elsewhere."))
    assert [line["bytes"] for line in asked.said()] == [0]


def test_one_in_so_many_is_a_sample():
    asked = Asked(sample=3)
    for _ in range(7):
        asked.log.refused("192.0.2.9", b"", 400, b"GET", b"", b"/")
    assert len(asked.said()) == 3


def test_only_zones_that_are_named_have_lines():
    asked = Asked(zones=frozenset({b"other.example"}))
    asked.bench.connection.data_received(GET)
    asked.bench.origin.data_received(HEAD_200 + b"page")
    asked.log.refused("192.0.2.9", b"", 400, b"GET", b"", b"/")
    assert asked.said() == []


def test_a_full_disk_holds_nobody_up_and_what_waited_is_written_behind_it():
    asked = Asked(pending_max=5)
    asked.sink.fails = True
    for _ in range(8):
        asked.log.refused("192.0.2.9", b"", 400, b"GET", b"", b"/")
    eventually(lambda: asked.causes == ["No space left on device"])
    assert asked.counts.lost == 3
    asked.sink.fails = False
    eventually(lambda: asked.sink.content.count(b"\n") == 5)
    assert len(asked.said()) == 5


def test_an_error_that_nobody_thought_of_is_not_the_logs_end():
    """To post a batch begins a thread, and there may be no room for one more."""
    asked = Asked()
    asked.sink.error, asked.sink.fails = RuntimeError("can't start new thread"), True
    asked.log.refused("192.0.2.9", b"", 400, b"GET", b"", b"/")
    eventually(lambda: asked.causes == ["can't start new thread"])
    asked.sink.fails = False
    eventually(lambda: asked.sink.content.count(b"\n") == 1)
    assert len(asked.said()) == 1


def test_a_log_that_nobody_takes_ends_all_the_same(asked):
    asked.sink.fails = True
    asked.log.refused("192.0.2.9", b"", 400, b"GET", b"", b"/")
    asked.log.close()
    assert not asked.log._thread.is_alive()


def test_the_server_writes_one(tmp_path):
    log = tmp_path / "access.log"
    site = Site(tmp_path, "--access-log", str(log))
    try:
        host, _ = site.origin()
        assert site.get(host, "/page?token=secret").status == 200
        assert site.get("elsewhere.example").status == 530
        eventually(lambda: log.exists() and log.read_bytes().count(b"\n") == 2)
    finally:
        site.close()
    first, second = sorted(map(json.loads, log.read_text().splitlines()), key=lambda line: line["status"])
    assert (first["host"], first["target"], first["status"]) == (host, "/page?token=***", 200)
    assert (first["zone"], first["bytes"], first["client"]) == ("edge.example", 2, "127.0.0.1")
    assert second["status"] == 530
    assert log.stat().st_mode & 0o777 == 0o640
