"""What every BlobStore promises."""

import hashlib

import pytest

from edgestead.store.kv import Blob, Damaged
from tests.descriptors import left_open, open_now


def write(blobs, *chunks):
    writer = blobs.create()
    for chunk in chunks:
        writer.write(chunk)
    return writer.finish()


def read(blobs, blob):
    reader = blobs.open(blob)
    try:
        return b"".join(reader)
    finally:
        reader.close()


@pytest.mark.parametrize("chunks", [(), (b"",), (b"abc",), (b"a" * 300_000, b"b", b"c" * 700_000)])
def test_a_blob_comes_back_as_it_was_written(blobs, chunks):
    content = b"".join(chunks)

    blob = write(blobs, *chunks)

    assert (blob.length, blob.sha256) == (len(content), hashlib.sha256(content).digest())
    assert read(blobs, blob) == content


def test_every_blob_has_an_id_of_its_own(blobs):
    assert write(blobs, b"same").id != write(blobs, b"same").id


def test_an_unknown_blob_is_not_found(blobs):
    with pytest.raises(FileNotFoundError):
        blobs.open(Blob("0" * 32, 0, b""))


def test_removing_is_harmless_when_it_is_gone(blobs):
    blob = write(blobs, b"x")

    blobs.remove([blob.id])
    blobs.remove([blob.id])

    with pytest.raises(FileNotFoundError):
        blobs.open(blob)


def test_an_open_blob_outlives_its_removal(blobs):
    blob = write(blobs, b"x")
    reader = blobs.open(blob)

    blobs.remove([blob.id])

    assert b"".join(reader) == b"x"
    reader.close()


def test_a_discarded_blob_is_gone_and_discarding_twice_is_harmless(blobs):
    writer = blobs.create()
    writer.write(b"x")

    writer.discard()
    writer.discard()

    assert list(blobs.idle_ids(float("inf"))) == []


def test_blobs_are_idle_from_their_last_write_on(blobs):
    blob = write(blobs, b"x")

    assert list(blobs.idle_ids(0)) == []
    assert list(blobs.idle_ids(float("inf"))) == [blob.id]


def test_finished_discarded_and_closed_blobs_hold_no_file_open(blobs):
    write(blobs, b"opens what the store itself keeps open")
    before = open_now()
    writer, discarded = blobs.create(), blobs.create()
    discarded.discard()
    blob = writer.finish()
    writer.discard()  # harmless, and removes what no row will name
    kept = write(blobs, b"x")
    with pytest.raises(Damaged):
        blobs.open(Blob(kept.id, kept.length + 1, kept.sha256))
    blobs.open(kept).close()

    assert not left_open(before)
    with pytest.raises(FileNotFoundError):
        blobs.open(blob)
