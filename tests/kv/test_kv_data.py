"""Large values between the event loop and the threads."""

import asyncio

import pytest

from edgestead.model.refusals import Unavailable
from edgestead.rest.kv_data import SENT_BYTES, KvData
from edgestead.sqlite.kv import SqliteKvStore
from edgestead.store.kv import CHUNK_BYTES, Incoming, Pair

CONTENT = bytes(range(256)) * 4_000 + b"rest"


def test_a_large_value_is_sent_in_pieces_between_which_others_have_their_turn(tmp_path):
    store = SqliteKvStore(tmp_path)
    incoming = Incoming(store.blobs)
    incoming.write(CONTENT)
    store.put("n", [Pair("k", incoming.finish())]).result()

    async def read():
        data, turns, done = KvData(store), 0, False

        async def others():
            nonlocal turns
            while not done:
                turns += 1
                await asyncio.sleep(0)

        other = asyncio.create_task(others())
        with store.get("n", "k", 0) as value:
            pieces = [(piece, turns) async for piece in data.chunks(value)]
        done = True
        await other
        data.close()
        store.close()
        return pieces

    pieces = asyncio.run(read())

    assert CHUNK_BYTES > SENT_BYTES
    assert b"".join(piece for piece, _ in pieces) == CONTENT
    assert max(len(piece) for piece, _ in pieces) == SENT_BYTES
    at = [turns for _, turns in pieces]
    assert at == sorted(set(at)), "some piece came in the same turn as the one before it"


def test_a_process_that_lost_its_place_writes_nothing_that_was_queued(tmp_path):
    """A node of a cluster that stood still knows tokens that were deleted meanwhile."""
    store = SqliteKvStore(tmp_path)
    asked = []

    async def write():
        data = KvData(store)

        def lost():
            raise Unavailable

        await data.put("n", [Pair("kept", b"1")])
        data.check_place = lost
        for call in (data.put("n", [Pair("k", b"1")], lambda: asked.append(1)), data.delete("n", ["kept"])):
            with pytest.raises(Unavailable):
                await call
        await data.settled()
        data.close()

    asyncio.run(write())
    with store.get("n", "kept", 0) as value:
        assert value is not None
    assert store.get("n", "k", 0) is None
    assert asked == []
    store.close()
