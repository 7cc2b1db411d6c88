"""HPACK of our own, judged by the `hpack` library: what the one writes the other reads."""

from random import Random

import pytest
from hpack import Decoder, Encoder
from hpack.huffman_table import decode_huffman

from edgestead.http2.field_blocks import TABLE_OCTETS_MAX, Reader, Unreadable, Writer

NAMES = [b":method", b":path", b"accept", b"cookie", b"x-a", b"x-b", b"set-cookie", b"", b"n" * 200]
VALUES = [b"", b"GET", b"/", b"a", b"*/*", b"b" * 130, b"c" * 900, b"d" * 5_000, bytes(range(256))]
KEPT_OUT = frozenset({b"cookie"})


def any_fields(random):
    return [(random.choice(NAMES), random.choice(VALUES)) for _ in range(random.randrange(12))]


@pytest.mark.parametrize("seed", range(40))
def test_what_we_write_is_what_hpack_reads(seed):
    random, writer, decoder = Random(seed), Writer(KEPT_OUT), Decoder()
    decoder.max_header_list_size = 1 << 20
    for _ in range(60):
        if random.random() < 0.2:
            decoder.max_allowed_table_size = 1 << 20
            for _ in range(random.randrange(1, 3)):
                writer.resize(random.choice((0, 50, 300, 4_096, 1 << 20)))
        fields = any_fields(random)
        assert [tuple(one) for one in decoder.decode(writer.write(fields), raw=True)] == fields
        assert decoder.header_table_size <= TABLE_OCTETS_MAX


@pytest.mark.parametrize("seed", range(40))
def test_what_hpack_writes_is_what_we_read(seed):
    random, reader, encoder = Random(seed), Reader(1 << 20), Encoder()
    for _ in range(60):
        if random.random() < 0.2:
            encoder.header_table_size = random.choice((0, 50, 300, 4_096))
        fields = any_fields(random)
        block = encoder.encode([(*field, random.random() < 0.3) for field in fields], random.random() < 0.5)
        assert reader.read(block) == fields


def test_what_is_kept_out_is_in_no_table():
    writer, decoder = Writer(KEPT_OUT), Decoder()
    blocks = [writer.write([(b"cookie", b"secret"), (b"x", b"y")]) for _ in range(2)]
    assert all(b"secret" in block for block in blocks)
    assert all(block[0] & 0xF0 == 0x10 for block in blocks), "never indexed, by anybody behind us either"
    assert len(blocks[1]) < len(blocks[0])
    for block in blocks:
        decoder.decode(block)
    assert [name for name, _ in decoder.header_table.dynamic_entries] == [b"x"]


BAD = {
    "an index of nothing": b"\x80",
    "an index beyond both tables": b"\xff\x00",
    "an index that was dropped": b"\x20\x40\1a\1b\xbe",
    "a table larger than was offered": b"\x3f\xe2\x1f",
    "a size behind a field": b"\x82\x20",
    "an integer without an end": b"\xff" + b"\xff" * 10,
    "an integer that is cut off": b"\xff",
    "a name that is cut off": b"\x40\5abc",
    "a value that is cut off": b"\x40\1a\5abc",
    "no value": b"\x40\1a",
    "what is no Huffman code": b"\x40\1a\x84\xff\xff\xff\xff",
    "fields larger than a head may be": b"\x40\1a\x7f\xa1\x1e" + b"b" * 4_000 + b"\xbe" * 30,
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_read_is_not_read(name):
    with pytest.raises(Unreadable):
        Reader(64 * 1024).read(BAD[name])


@pytest.mark.parametrize("seed", range(20))
def test_no_octets_do_more_than_be_refused(seed):
    random = Random(seed)
    for _ in range(300):
        reader = Reader(64 * 1024)
        for _ in range(4):
            try:
                fields = reader.read(random.randbytes(random.randrange(40)))
            except Unreadable:
                break
            assert sum(len(name) + len(value) for name, value in fields) <= 64 * 1024


def test_the_huffman_code_is_the_librarys():
    assert decode_huffman(bytes.fromhex("f1e3c2e5f23a6ba0ab90f4ff")) == b"www.example.com"  # RFC 7541 §C.4.1
