"""Random histories of a KvStore against a dict."""

import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from edgestead.sqlite.kv import BLOBS_NAME, SqliteKvStore
from edgestead.store.kv import BLOB_GRACE_SECONDS, INLINE_BYTES_MAX, Entry, Incoming, Pair

NAMESPACES = ("a" * 32, "b" * 32)
START_S = 1_800_000_000

namespaces = st.sampled_from(NAMESPACES)
keys = st.text(st.sampled_from("ab/é～😀"), min_size=1, max_size=3)
contents = st.one_of(
    st.binary(max_size=4), st.integers(0, 255).map(lambda i: bytes([i]) * (INLINE_BYTES_MAX + 1))
)
lifetimes = st.one_of(st.none(), st.integers(1, 20))
metadatas = st.one_of(st.none(), st.just(b'{"m":1}'))
writes = st.tuples(keys, contents, lifetimes, metadatas)


class KvHistory(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.store = SqliteKvStore(self.folder)
        self.now_s = START_S
        self.model = {namespace: {} for namespace in NAMESPACES}

    def teardown(self):
        self.store.close()
        shutil.rmtree(self.folder)

    def pair(self, key, content, lifetime, metadata):
        if len(content) > INLINE_BYTES_MAX:
            incoming = Incoming(self.store.blobs)
            incoming.write(content)
            stored = incoming.finish()
        else:
            stored = content
        return Pair(key, stored, None if lifetime is None else self.now_s + lifetime, metadata)

    def live(self, namespace):
        return {
            key: (content, entry)
            for key, (content, entry) in self.model[namespace].items()
            if entry.expires_at_s is None or entry.expires_at_s > self.now_s
        }

    @rule(namespace=namespaces, batch=st.lists(writes, min_size=1, max_size=4))
    def put(self, namespace, batch):
        pairs = [self.pair(*write) for write in batch]
        self.store.put(namespace, pairs).result(60)
        for pair, (_, content, _, _) in zip(pairs, batch, strict=True):
            self.model[namespace][pair.key] = (content, Entry(pair.key, pair.expires_at_s, pair.metadata))

    @rule(namespace=namespaces, batch=st.lists(writes, max_size=3))
    def put_that_fails(self, namespace, batch):
        def pairs():
            for write in batch:
                yield self.pair(*write)
            raise ValueError

        assert isinstance(self.store.put(namespace, pairs()).exception(5), ValueError)

    @rule(namespace=namespaces, gone=st.lists(keys, max_size=3))
    def delete(self, namespace, gone):
        self.store.delete(namespace, gone).result(60)
        for key in gone:
            self.model[namespace].pop(key, None)

    @rule(namespace=namespaces)
    def drop(self, namespace):
        self.store.drop(namespace).result(60)
        self.model[namespace] = {}

    @rule(seconds=st.integers(1, 15))
    def time_passes(self, seconds):
        self.now_s += seconds

    @rule()
    def sweep(self):
        while self.store.sweep(self.now_s):
            pass
        for namespace in NAMESPACES:
            self.model[namespace] = self.live(namespace)

    @rule()
    def reopen(self):
        self.store.close()
        self.store = SqliteKvStore(self.folder)

    @rule(namespace=namespaces, key=keys)
    def get(self, namespace, key):
        expected = self.live(namespace).get(key)
        found = self.store.get(namespace, key, self.now_s)
        if expected is None:
            assert found is None
            return
        with found:
            assert (found.read(), found.entry) == expected

    @rule(namespace=namespaces, prefix=st.one_of(st.just(""), keys), limit=st.integers(1, 5))
    def list(self, namespace, prefix, limit):
        listed, cursor = [], ""
        while True:
            page = self.store.page(namespace, now_s=self.now_s, limit=limit, prefix=prefix, cursor=cursor)
            listed += page.entries
            cursor = page.cursor
            if not cursor:
                break
        live = self.live(namespace)
        wanted = sorted((key for key in live if key.startswith(prefix)), key=str.encode)
        assert listed == [live[key][1] for key in wanted]

    @invariant()
    def every_blob_has_its_row(self):
        """What the model has outlived may still be there (expired or dropped rows), but never more files."""
        self.store.delete(NAMESPACES[0], []).result(60)  # the store has cleaned up behind its writes
        self.store._sweep_blobs(START_S + 10**9 + BLOB_GRACE_SECONDS)
        rows = self.store.database._db.execute("SELECT blob_id FROM entries WHERE blob_id IS NOT NULL")
        assert {id_ for (id_,) in rows} == {file.name for file in (self.folder / BLOBS_NAME).iterdir()}


KvHistory.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestKvHistory = KvHistory.TestCase
