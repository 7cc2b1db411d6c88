"""Large values in an object store: where they lie, what becomes of them, and a store that is in trouble."""

import io
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from edgestead.model.refusals import Unavailable
from edgestead.postgres import blobs
from edgestead.postgres.connection import Link
from edgestead.postgres.kv import PostgresKvStore
from edgestead.postgres.kv_reads import FAR_WAITING_MAX, LARGE_THREADS
from edgestead.s3 import bodies as module
from edgestead.s3.bodies import PUTS_MAX, Bucket, NoLibrary, S3Bodies, StoreAway
from edgestead.s3.breaker import Breaker
from edgestead.store.kv import BLOB_GRACE_SECONDS, INLINE_BYTES_MAX, Incoming, Pair
from edgestead.testing.server import wait_until
from tests.support.s3 import Shared, held

LARGE = b"x" * (INLINE_BYTES_MAX + 1)
NS = "a" * 32
NOW = 1_800_000_000


@pytest.fixture
def dsn(postgres):
    return postgres.emptied()


@contextmanager
def opened(dsn, bucket=None):
    with closing(PostgresKvStore(dsn, bodies=None if bucket is None else Shared(bucket))) as store:
        yield store


def put(store, key, content):
    incoming = Incoming(store.blobs)
    try:
        incoming.write(content)
        store.put(NS, [Pair(key, incoming.finish())]).result(60)
    except BaseException:
        incoming.discard()
        raise


def value(store, key):
    found = store.get(NS, key, NOW)
    with found:
        return found.read()


def test_large_values_lie_in_the_bucket_and_small_ones_in_the_database(dsn, s3):
    bucket = s3.bucket("/edge/values")
    with opened(dsn, bucket) as store:
        put(store, "large", LARGE)
        put(store, "small", b"small")

        assert (value(store, "large"), value(store, "small")) == (LARGE, b"small")
    ((name, content),) = held(bucket).items()
    assert name.startswith("edge/values/s3.")
    assert content == LARGE
    with closing(Link(dsn)) as link:
        assert link.rows("SELECT count(*) FROM kv_parts") == [(0,)]


def test_what_is_replaced_or_deleted_leaves_the_bucket_with_the_next_sweep(dsn, s3):
    bucket = s3.bucket()
    with opened(dsn, bucket) as store:
        put(store, "stays", LARGE)
        put(store, "replaced", LARGE + b"old")
        put(store, "replaced", LARGE + b"new")
        put(store, "deleted", LARGE + b"gone")
        store.delete(NS, ["deleted"]).result(60)

        store.sweep(NOW)

    assert sorted(held(bucket).values()) == [LARGE, LARGE + b"new"]


def test_an_upload_that_no_row_names_leaves_the_bucket_after_its_grace(dsn, s3):
    bucket = s3.bucket()
    with opened(dsn, bucket) as store:
        incoming = Incoming(store.blobs)
        incoming.write(LARGE)
        incoming.finish()  # and then the process dies
        now_s = int(time.time())

        store.sweep(now_s)
        assert len(held(bucket)) == 1
        store.sweep(now_s + BLOB_GRACE_SECONDS + 2)
        store.sweep(now_s + BLOB_GRACE_SECONDS + 2)

    assert held(bucket) == {}


def test_values_of_before_are_read_after_the_bucket_came_and_after_it_went(dsn, s3):
    bucket = s3.bucket()
    with opened(dsn) as store:
        put(store, "first", LARGE)
    with opened(dsn, bucket) as store:
        put(store, "second", LARGE)
        assert (value(store, "first"), value(store, "second")) == (LARGE, LARGE)

    with opened(dsn) as store:
        assert value(store, "first") == LARGE
        with pytest.raises(Unavailable):
            value(store, "second")


class Trouble(BaseHTTPRequestHandler):
    """A store that answers everything with `status` and `body`, or with less than it says."""

    status, body, lacks = 500, b"", 0

    def answer(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        if not self.status:
            return
        self.send_response(self.status)
        self.send_header("content-length", str(len(self.body) + self.lacks))
        self.end_headers()
        self.wfile.write(self.body)

    do_PUT = do_GET = do_DELETE = answer

    def log_message(self, *_):
        pass


@contextmanager
def troubled(tmp_path, **fields):
    handler = type("Handler", (Trouble,), fields)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    credentials = tmp_path / "credentials"
    credentials.write_text("[default]\naws_access_key_id = a\naws_secret_access_key = b\n")
    try:
        yield Bucket(f"http://127.0.0.1:{server.server_port}/values", "us-east-1", str(credentials))
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


REFUSED = b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>"
NO_BUCKET = b"<Error><Code>NoSuchBucket</Code><Message>no</Message></Error>"


@pytest.mark.parametrize(
    "trouble",
    [
        {"status": 500},
        {"status": 403, "body": REFUSED},
        {"status": 404, "body": NO_BUCKET},
        {"status": 503, "body": b"not even XML"},
        {"status": 200, "body": b"<html>"},
        {"status": 0},
    ],
    ids=["fails", "refuses", "has no such bucket", "is overloaded", "is another program", "hangs up"],
)
def test_a_store_in_trouble_refuses_large_values_and_nothing_else(dsn, s3, tmp_path, monkeypatch, trouble):
    monkeypatch.setattr(module, "TRIES_MAX", 1)
    good = s3.bucket()
    with opened(dsn, good) as store:
        put(store, "there", LARGE)

    with troubled(tmp_path, **trouble) as bucket, opened(dsn, bucket) as store:
        if trouble["status"] != 200:
            with pytest.raises(Unavailable):
                put(store, "large", LARGE)
        put(store, "small", b"small")
        assert value(store, "small") == b"small"
        assert store.entry(NS, "large", NOW) is None
        with pytest.raises(Unavailable):
            value(store, "there")
        store.delete(NS, ["there"]).result(60)
        with pytest.raises(Unavailable):
            store.sweep(NOW)

    with opened(dsn, good) as store:
        store.sweep(NOW)
    assert held(good) == {}, "what was deleted meanwhile is removed when the store is back"


class Silent:
    """A store that accepts, reads and never answers, until it is `released`: then it hangs up."""

    def __init__(self, tmp_path):
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._held, self._door = [], threading.Lock()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()
        credentials = tmp_path / "credentials"
        credentials.write_text("[default]\naws_access_key_id = a\naws_secret_access_key = b\n")
        port = self._listener.getsockname()[1]
        self.bucket = Bucket(f"http://127.0.0.1:{port}/values", "us-east-1", str(credentials))

    def _accept(self):
        with suppress(OSError):
            while True:
                connection = self._listener.accept()[0]
                with self._door:
                    self._held.append(connection)

    @property
    def asked(self):
        with self._door:
            return len(self._held)

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        for connection in self._held:
            connection.close()


def test_a_store_that_never_answers_keeps_nobody_else_waiting(dsn, s3, tmp_path, monkeypatch):
    """Those who ask it wait, and are refused in the end; everything that lies in the database goes on."""
    monkeypatch.setattr(module, "TRIES_MAX", 1)
    monkeypatch.setattr(module, "READ_SECONDS_MAX", 600)
    good = s3.bucket()
    with opened(dsn) as store:
        put(store, "near", LARGE)
    with opened(dsn, good) as store:
        put(store, "far", LARGE)

    silent = Silent(tmp_path)
    with closing(PostgresKvStore(dsn, bodies=S3Bodies(silent.bucket))) as store:
        waiting = [store.soon.get(NS, "far", NOW) for _ in range(FAR_WAITING_MAX + 5)]
        wait_until(lambda: silent.asked >= LARGE_THREADS and sum(one.done() for one in waiting) >= 5, 60)
        refused = [one for one in waiting if one.done()]

        for _ in range(8):
            assert value(store, "near") == LARGE
        put(store, "small", b"small")
        assert value(store, "small") == b"small"
        store.delete(NS, ["near"]).result(60)

        assert len(refused) == 5, "so many wait, and no more"
        assert silent.asked == LARGE_THREADS
        silent.close()
        for one in waiting:
            with pytest.raises(Unavailable):
                one.result(60)
        with pytest.raises(StoreAway, match="Small values"):
            value(store, "far")


def test_after_one_silence_nobody_waits_for_that_store(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "TRIES_MAX", 1)
    monkeypatch.setattr(module, "READ_SECONDS_MAX", 0.1)
    with closing(Silent(tmp_path)) as silent, closing(S3Bodies(silent.bucket)) as found:
        found._breaker = Breaker(lambda: 0.0)
        for _ in range(20):
            with pytest.raises(StoreAway):
                list(found.read("s3.x"))
            with pytest.raises(StoreAway):
                found.put("s3.y", io.BytesIO(b"x"), 1, bytes(32))
            with pytest.raises(StoreAway):
                found.remove(["s3.z"])

        wait_until(lambda: silent.asked, 180)  # a thread takes the connection
        assert silent.asked == 1


def test_writers_beyond_a_number_are_refused_while_others_wait(tmp_path, monkeypatch):
    """Each has a thread, of which others need some."""
    monkeypatch.setattr(module, "TRIES_MAX", 1)
    monkeypatch.setattr(module, "READ_SECONDS_MAX", 600)
    silent = Silent(tmp_path)
    with closing(S3Bodies(silent.bucket)) as found, ThreadPoolExecutor(PUTS_MAX) as threads:
        bodies = [io.BytesIO(b"x") for _ in range(PUTS_MAX)]
        writing = [threads.submit(found.put, f"s3.{n}", body, 1, bytes(32)) for n, body in enumerate(bodies)]
        wait_until(lambda: silent.asked >= PUTS_MAX, 180)

        with pytest.raises(StoreAway):
            found.put("s3.more", io.BytesIO(b"x"), 1, bytes(32))

        silent.close()
        assert all(isinstance(one.exception(60), Unavailable) for one in writing)


def test_many_values_leave_the_bucket_in_one_sweep_of_control(dsn, s3, tmp_path, monkeypatch):
    monkeypatch.setattr(blobs, "IDS_PER_SWEEP", 2)
    bucket = s3.bucket()
    with opened(dsn, bucket) as store:
        for number in range(7):
            put(store, f"k{number}", LARGE)
        store.delete(NS, [f"k{number}" for number in range(7)]).result(60)

        store.sweep(NOW)
        assert [store.sweep_elsewhere() for _ in range(4)] == [2, 2, 1, 0]

    assert held(bucket) == {}


def test_an_answer_that_breaks_off_is_no_value(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "TRIES_MAX", 1)
    with troubled(tmp_path, status=200, body=b"abc", lacks=5) as bucket:
        with closing(S3Bodies(bucket)) as found, pytest.raises(Unavailable):
            list(found.read("s3.x"))


def test_credentials_that_are_not_there_are_unavailable_and_not_looked_for_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of another program")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of another program")
    bucket = Bucket("http://127.0.0.1:9/values", "us-east-1", str(tmp_path / "none"))

    with closing(S3Bodies(bucket)) as found, pytest.raises(Unavailable) as refused:
        found.remove(["s3.x"])

    assert "credentials" in str(refused.value.__cause__)


def test_without_its_library_a_bucket_is_refused_in_words(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    with pytest.raises(NoLibrary, match=r"edgestead\[s3\]"):
        S3Bodies(Bucket("https://s3.example.com/values", "us-east-1"))
