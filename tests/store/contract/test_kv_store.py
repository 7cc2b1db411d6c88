"""What every KvStore promises."""

import random
import threading
import time
from itertools import accumulate, count, islice
from urllib.parse import quote

import pytest

from edgestead.model.refusals import Unavailable
from edgestead.model.refusals.kv import BadCursor, SpaceQuota
from edgestead.store.kv import BLOB_GRACE_SECONDS, INLINE_BYTES_MAX, Allowance, Damaged, Entry, Incoming, Pair
from tests.descriptors import left_open, open_now

NS, OTHER = "a" * 32, "b" * 32
NOW = 1_800_000_000
LARGE = b"x" * (INLINE_BYTES_MAX + 1)

# In the order of their UTF-8 bytes; UTF-16 would put the emoji before U+FF5E.
KEYS_IN_ORDER = ("", "A", "a", "a b", "a/", "a/b", "aa", "b", "é", "～", "😀")

BAD_CURSORS = ("x", "!!!!", "MQ=", "é", "Mf8", "A" * 8)


@pytest.fixture
def stores(kv_folder):
    return kv_folder


@pytest.fixture
def store(stores):
    return stores.open()


def put(store, key, content=b"v", *, ns=NS, expires_at_s=None, metadata=None):
    if len(content) > INLINE_BYTES_MAX:
        incoming = Incoming(store.blobs)
        incoming.write(content)
        content = incoming.finish()
    return store.put(ns, [Pair(key, content, expires_at_s, metadata)]).result(60)


def value_of(store, key, *, ns=NS, now_s=NOW):
    found = store.get(ns, key, now_s)
    if found is None:
        return None
    with found:
        return b"".join(found)


def keys(store, *, ns=NS, now_s=NOW, limit=1000, **kwargs):
    return [entry.key for page in pages(store, ns=ns, now_s=now_s, limit=limit, **kwargs) for entry in page]


def pages(store, *, ns=NS, now_s=NOW, limit, prefix=""):
    cursor = ""
    while True:
        page = store.page(ns, now_s=now_s, limit=limit, prefix=prefix, cursor=cursor)
        yield page.entries
        cursor = page.cursor
        if not cursor:
            return


def content_of(store, value):
    incoming = Incoming(store.blobs)
    incoming.write(value)
    return incoming.finish()


def blob_ids(store, blobs):
    """The blobs that are left once the store has cleaned up behind its writes."""
    store.delete(NS, []).result(60)  # waits for the turn after them
    return set(blobs.idle_ids(float("inf")))


# One value


@pytest.mark.parametrize("length", [0, 1, INLINE_BYTES_MAX, INLINE_BYTES_MAX + 1, 3 * INLINE_BYTES_MAX])
def test_a_value_of_any_length_comes_back_and_survives_reopening(stores, length):
    store, content = stores.open(), bytes(i % 251 for i in range(length))

    put(store, "k", content)
    store.close()

    assert value_of(stores.open(), "k") == content


@pytest.mark.parametrize(
    "chunks",
    [(), (b"a", b"b"), (b"a" * (INLINE_BYTES_MAX - 1), b"b"), (b"a" * INLINE_BYTES_MAX, b"b", b"c" * 9)],
)
def test_a_value_comes_back_whole_however_it_came(store, chunks):
    incoming = Incoming(store.blobs)
    for chunk in chunks:
        incoming.write(chunk)

    store.put(NS, [Pair("k", incoming.finish())]).result(60)

    assert value_of(store, "k") == b"".join(chunks)
    with store.get(NS, "k", NOW) as value:
        assert value.is_inline is (sum(map(len, chunks)) <= INLINE_BYTES_MAX)


def test_an_absent_key_has_no_value_and_no_entry(store):
    put(store, "k")

    assert store.get(NS, "nope", NOW) is None
    assert store.entry(NS, "nope", NOW) is None
    assert store.get(OTHER, "k", NOW) is None


def test_a_write_replaces_value_expiry_and_metadata_together(store):
    put(store, "k", b"old", expires_at_s=NOW + 60, metadata=b'{"m":1}')

    put(store, "k", b"new")

    assert value_of(store, "k") == b"new"
    assert store.entry(NS, "k", NOW) == Entry("k", None, None)


def test_a_value_tells_its_length_and_entry_before_it_is_read(store):
    put(store, "k", LARGE, expires_at_s=NOW + 60, metadata=b"1")

    with store.get(NS, "k", NOW) as value:
        assert (value.length, value.entry) == (len(LARGE), Entry("k", NOW + 60, b"1"))


@pytest.mark.parametrize("content", [b"v", LARGE], ids=["row", "blob"])
def test_a_value_stays_readable_while_it_is_deleted(store, content):
    put(store, "k", content)

    with store.get(NS, "k", NOW) as value:
        assert store.delete(NS, ["k"]).result(60).value == 1
        assert value.read() == content

    assert value_of(store, "k") is None


def test_a_deletion_counts_the_rows_that_were_there(store):
    put(store, "a")

    assert store.delete(NS, ["a", "b", "a"]).result(60).value == 1
    assert store.delete(OTHER, ["a"]).result(60).value == 0


# Many at once


def test_pairs_are_written_together_and_the_last_of_a_key_wins(store):
    written = store.put(NS, [Pair("a", b"1"), Pair("b", b"2"), Pair("a", b"3")]).result(60)

    assert written.value == 3
    assert (value_of(store, "a"), value_of(store, "b")) == (b"3", b"2")


def test_small_and_large_values_may_come_mixed(store, blobs):
    def large(content):
        incoming = Incoming(store.blobs)
        incoming.write(content)
        return incoming.finish()

    contents = [b"1", large(LARGE), b"2", large(LARGE + b"3"), large(LARGE + b"4")]
    keys_written = ["a", "a", "a", "b", "c"]

    written = store.put(NS, map(Pair, keys_written, contents)).result(60)

    assert written.value == 5
    assert [value_of(store, key) for key in "abc"] == [b"2", LARGE + b"3", LARGE + b"4"]
    assert len(blob_ids(store, blobs)) == 2, "the one that was replaced in the same write is gone"


def test_pairs_that_fail_halfway_leave_nothing_behind(store, blobs):
    def halfway():
        yield Pair("a", b"1")
        incoming = Incoming(store.blobs)
        incoming.write(LARGE)
        yield Pair("b", incoming.finish())
        raise ValueError("item 2")

    with pytest.raises(ValueError, match="item 2"):
        store.put(NS, halfway()).result(60)

    assert keys(store) == []
    assert blob_ids(store, blobs) == set()


def test_a_failed_write_leaves_the_one_before_it_and_its_blob(store, blobs):
    put(store, "a", LARGE)

    def halfway():
        yield Pair("a", b"1")
        raise ValueError("item 1")

    with pytest.raises(ValueError, match="item 1"):
        store.put(NS, halfway()).result(60)

    assert value_of(store, "a") == LARGE
    assert len(blob_ids(store, blobs)) == 1


# Expiry


def test_a_key_is_gone_from_the_second_of_its_expiry(store):
    put(store, "k", expires_at_s=NOW + 60)

    assert value_of(store, "k", now_s=NOW + 59) == b"v"
    assert value_of(store, "k", now_s=NOW + 60) is None
    assert store.entry(NS, "k", NOW + 60) is None
    assert (keys(store, now_s=NOW + 59), keys(store, now_s=NOW + 60)) == (["k"], [])


def test_expired_keys_do_not_shorten_a_page(store):
    for i in range(10):
        put(store, f"{i}", expires_at_s=NOW + 60 if i % 2 else None)

    assert [len(page) for page in pages(store, now_s=NOW + 60, limit=3)] == [3, 2]


def test_the_sweep_removes_what_has_expired_and_nothing_else(store, blobs):
    put(store, "stays", LARGE, expires_at_s=NOW + 61)
    put(store, "goes", LARGE, expires_at_s=NOW + 60)

    assert [store.sweep(NOW + 60) for _ in range(2)] == [1, 0]

    assert keys(store, now_s=NOW) == ["stays"]
    assert len(blob_ids(store, blobs)) == 1


# Listings


def test_keys_are_listed_in_the_order_of_their_utf8_bytes(store):
    assert store.put(NS, [Pair(key, b"") for key in reversed(KEYS_IN_ORDER)]).result(60)

    assert tuple(keys(store)) == KEYS_IN_ORDER == tuple(sorted(KEYS_IN_ORDER, key=str.encode))


@pytest.mark.parametrize("limit", [1, 2, 3, 10, 11, 12])
def test_pages_of_any_size_give_the_same_listing(store, limit):
    store.put(NS, [Pair(key, b"") for key in KEYS_IN_ORDER]).result(60)

    assert tuple(keys(store, limit=limit)) == KEYS_IN_ORDER


@pytest.mark.parametrize("prefix", ["", "a", "a/", "aa", "é", "😀", "zz", "\U0010ffff"])
@pytest.mark.parametrize("limit", [1, 100])
def test_a_prefix_lists_exactly_the_keys_that_start_with_it(store, prefix, limit):
    store.put(NS, [Pair(key, b"") for key in KEYS_IN_ORDER]).result(60)

    assert keys(store, prefix=prefix, limit=limit) == [key for key in KEYS_IN_ORDER if key.startswith(prefix)]


def test_the_last_page_has_an_empty_cursor_even_when_it_is_full(store):
    store.put(NS, [Pair("a", b""), Pair("b", b"")]).result(60)

    assert store.page(NS, now_s=NOW, limit=2).cursor == ""
    assert store.page(NS, now_s=NOW, limit=1).cursor != ""


def test_a_cursor_needs_no_escaping_in_a_query(store):
    store.put(NS, [Pair(key * length, b"") for key in "k~ÿ" for length in range(1, 5)]).result(60)

    cursors = [store.page(NS, now_s=NOW, limit=limit).cursor for limit in range(1, 12)]

    assert [cursor for cursor in cursors if quote(cursor, safe="") != cursor] == []


def test_a_listing_goes_on_behind_a_key_of_any_length(store):
    keys = ["k" * length for length in range(1, 25)]
    store.put(NS, [Pair(key, b"") for key in keys]).result(60)

    assert [entry.key for page in pages(store, limit=1) for entry in page] == keys


def test_a_listing_shows_expiry_and_metadata(store):
    put(store, "k", expires_at_s=NOW + 60, metadata=b'{"m":"\xc3\xa9"}')

    assert store.page(NS, now_s=NOW, limit=9).entries == (Entry("k", NOW + 60, b'{"m":"\xc3\xa9"}'),)


@pytest.mark.parametrize("cursor", BAD_CURSORS)
def test_a_cursor_that_no_listing_gave_is_refused(store, cursor):
    with pytest.raises(BadCursor):
        store.page(NS, now_s=NOW, limit=9, cursor=cursor)


def test_a_listing_under_writes_shows_every_lasting_key_exactly_once(store):
    lasting = {f"{i:03d}" for i in range(0, 200, 2)}
    store.put(NS, [Pair(key, b"") for key in lasting]).result(60)
    stop = threading.Event()

    def churn():
        for i in count():
            if stop.is_set():
                return
            passing = f"{i % 200 | 1:03d}"
            store.put(NS, [Pair(passing, b"x"), Pair(f"{i % 200 & ~1:03d}", b"again")]).result(60)
            store.delete(NS, [passing]).result(60)

    writer = threading.Thread(target=churn)
    writer.start()
    try:
        for _ in range(20):
            seen = [key for key in keys(store, limit=7) if key in lasting]
            assert seen == sorted(lasting)
    finally:
        stop.set()
        writer.join()


# Namespaces


def test_a_dropped_namespace_is_empty_at_once_and_swept_later(store, blobs):
    put(store, "k", LARGE)
    put(store, "small")
    put(store, "k", ns=OTHER)

    store.drop(NS).result(60)

    assert (keys(store), value_of(store, "k"), store.namespaces()) == ([], None, [OTHER])
    assert len(blob_ids(store, blobs)) == 1
    assert list(islice(iter(lambda: store.sweep(NOW), 0), 9)) == [2]
    assert blob_ids(store, blobs) == set()
    assert keys(store, ns=OTHER) == ["k"]


def test_a_namespace_that_comes_again_does_not_find_its_old_keys(store):
    put(store, "old")
    store.drop(NS).result(60)
    put(store, "new")

    assert keys(store) == ["new"]
    assert store.sweep(NOW) == 1
    assert keys(store) == ["new"]


def test_dropping_an_unknown_namespace_is_harmless(store):
    store.drop(NS).result(60)

    assert store.namespaces() == []


# Blobs


def test_a_replaced_or_deleted_large_value_takes_its_blob_along(store, blobs):
    put(store, "a", LARGE)
    put(store, "b", LARGE)
    put(store, "c", LARGE)

    put(store, "a", b"small")
    put(store, "b", LARGE)
    store.delete(NS, ["c"]).result(60)

    assert len(blob_ids(store, blobs)) == 1
    assert value_of(store, "b") == LARGE


@pytest.mark.parametrize("chunks", [(), (b"a",), (b"a" * INLINE_BYTES_MAX, b"b", b"c")])
def test_what_comes_in_tells_how_long_it_is(store, chunks):
    incoming, lengths = Incoming(store.blobs), []
    for chunk in chunks:
        incoming.write(chunk)
        lengths.append(incoming.length)
    length = incoming.length
    incoming.discard()

    assert lengths == list(accumulate(map(len, chunks)))
    assert length == sum(map(len, chunks))


def test_a_discarded_upload_leaves_nothing(store, blobs):
    incoming = Incoming(store.blobs)
    incoming.write(LARGE)

    incoming.discard()

    assert blob_ids(store, blobs) == set()


def test_stray_blobs_are_swept_only_when_they_have_been_idle_for_the_grace(store, blobs):
    put(store, "k", LARGE)
    stray = blobs.create()
    stray.write(b"lost by a crash")
    stray.finish()
    now_s = int(time.time())

    assert store.sweep(now_s) == 0
    assert store.sweep(now_s + BLOB_GRACE_SECONDS + 2) == 1
    assert len(blob_ids(store, blobs)) == 1
    assert value_of(store, "k") == LARGE


def test_a_blob_with_other_bytes_is_reported_before_its_last_chunk(stores):
    store = stores.open()
    put(store, "k", LARGE)
    stores.damage(b"y" * len(LARGE))

    received = []
    with pytest.raises(Damaged), store.get(NS, "k", NOW) as value:
        received.extend(value)

    assert sum(map(len, received)) < len(LARGE)


def test_a_blob_of_another_length_is_reported_at_once(stores):
    store = stores.open()
    put(store, "k", LARGE)
    stores.damage(LARGE[:-1])

    with pytest.raises(Damaged):
        store.get(NS, "k", NOW)


# Quotas: keys of 4 octets, values of 96


def quota(namespace_bytes=0, account_bytes=0):
    return {"allowance": lambda _: Allowance(namespace_bytes, account_bytes, (NS, OTHER))}


def hundreds(store, namespace, first, count):
    pairs = [Pair(f"{number:04}", b"v" * 96) for number in range(first, first + count)]
    return store.put(namespace, pairs)


def refusal_of(future):
    with pytest.raises(SpaceQuota) as refused:
        future.result(60)
    return refused.value.facts


def test_a_namespace_holds_what_it_may_and_no_more(stores):
    store = stores.open(**quota(namespace_bytes=1_000))

    hundreds(store, NS, 0, 10).result(60)
    facts = refusal_of(hundreds(store, NS, 10, 1))

    assert facts == {"holder": "namespace", "used_bytes": 1_000, "limit_bytes": 1_000}
    assert len(keys(store)) == 10
    hundreds(store, OTHER, 0, 10).result(60)


def test_namespaces_of_an_account_hold_together_what_it_may(stores):
    store = stores.open(**quota(account_bytes=1_000))
    hundreds(store, NS, 0, 6).result(60)

    facts = refusal_of(hundreds(store, OTHER, 0, 5))
    hundreds(store, OTHER, 0, 4).result(60)

    assert facts == {"holder": "account", "used_bytes": 600, "limit_bytes": 1_000}


def test_what_was_there_before_the_quota_counts_and_may_shrink(stores):
    store = stores.open()
    hundreds(store, NS, 0, 9).result(60)
    store.put(NS, [Pair("0009", b"v" * 96, None, b"1234"), Pair("long", content_of(store, LARGE))]).result(60)
    store.close()
    store = stores.open(**quota(namespace_bytes=500))

    assert refusal_of(hundreds(store, NS, 50, 1))["used_bytes"] == 1_008 + len(LARGE)
    store.put(NS, [Pair("long", b"")]).result(60)
    store.put(NS, [Pair("0000", b"w" * 96)]).result(60)  # no more than it was
    store.delete(NS, [f"{number:04}" for number in range(6)]).result(60)
    assert refusal_of(hundreds(store, NS, 60, 1))["used_bytes"] == 408
    store.delete(NS, ["long", "0009"]).result(60)
    hundreds(store, NS, 60, 2).result(60)


def test_expired_keys_count_until_they_are_swept_and_dropped_ones_not(stores):
    store = stores.open(**quota(namespace_bytes=1_000))
    store.put(NS, [Pair(f"{number:04}", b"v" * 96, NOW + 60) for number in range(10)]).result(60)

    refusal_of(hundreds(store, NS, 20, 1))
    while store.sweep(NOW + 60):
        pass
    hundreds(store, NS, 20, 10).result(60)
    store.drop(NS).result(60)
    hundreds(store, NS, 0, 10).result(60)
    refusal_of(hundreds(store, NS, 10, 1))


def test_a_refused_put_leaves_no_blob(stores):
    store = stores.open(**quota(namespace_bytes=1_000))

    refusal_of(store.put(NS, [Pair("long", content_of(store, LARGE))]))

    assert blob_ids(store, stores.blobs()) == set()


@pytest.mark.parametrize("seed", range(5))
def test_the_count_is_what_is_there_after_any_changes(stores, seed):
    chance, store = random.Random(seed), stores.open(**quota(namespace_bytes=1 << 40))
    held = {}
    for _ in range(60):
        key = f"k{chance.randrange(8)}"
        if chance.random() < 0.3:
            store.delete(NS, [key, "none"]).result(60)
            held.pop(key, None)
        else:
            value = b"v" * chance.choice([0, 1, 300, INLINE_BYTES_MAX + 1])
            metadata = chance.choice([None, b'{"a":1}'])
            times = chance.choice([1, 2])
            pairs = [Pair(key, content_of(store, value), None, metadata) for _ in range(times)]
            store.put(NS, pairs).result(60)
            held[key] = len(key) + len(value) + len(metadata or b"")
    store.close()

    facts = refusal_of(hundreds(stores.open(**quota(namespace_bytes=1)), NS, 0, 1))
    assert facts["used_bytes"] == sum(held.values())


# Closing


def test_what_was_acknowledged_before_closing_is_there_and_closing_twice_is_harmless(stores):
    store = stores.open()
    futures = [store.put(NS, [Pair(f"{i}", b"v")]) for i in range(50)]

    store.close()
    store.close()

    assert all(future.result(0).value == 1 for future in futures)
    assert len(keys(stores.open())) == 50


def test_two_openings_of_one_folder_see_each_other(stores):
    one, two = stores.open(), stores.open()

    put(one, "k", b"1")
    put(two, "k", b"2")

    assert value_of(one, "k") == b"2"


def test_a_closed_store_reads_nothing_and_holds_no_file_open(stores):
    before = open_now()
    store = stores.open()
    put(store, "k", LARGE)
    assert value_of(store, "k") == LARGE
    store.close()

    assert not left_open(before)
    with pytest.raises(Unavailable):
        store.get(NS, "k", NOW)
    with pytest.raises(Unavailable):
        store.put(NS, [])


def test_a_deletion_of_no_key_is_done_when_what_began_before_is_durable(store):
    written = [store.put(NS, [Pair(str(number), b"v", None, None)]) for number in range(20)]

    store.delete(OTHER, ()).result(60)

    assert all(one.done() for one in written)
    assert len(keys(store)) == 20
