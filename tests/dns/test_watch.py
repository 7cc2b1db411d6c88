"""What is asked most, in bounded memory; what a loop shows of itself."""

import random
import socket
from collections import Counter
from functools import partial

import dns.message
import pytest

from edgestead.dns.udp import serve_udp
from edgestead.dns.watch import SAMPLE_MAX, Sketch, Watch
from tests.dns.serving import Counts, running

CLIENT = bytes((192, 0, 2, 53))


def test_a_sketch_never_counts_too_little_nor_more_than_its_floor_too_much():
    chosen = random.Random(1)
    sketch, truth = Sketch(50), Counter()
    for _ in range(20_000):
        key = int(chosen.paretovariate(0.7))
        sketch.add(key, 1)
        truth[key] += 1

    held = dict(sketch.top(100))

    assert len(held) < 100
    assert all(truth[key] <= count <= truth[key] + sketch.floor for key, count in held.items())
    assert {key for key, count in truth.items() if count > sketch.floor} <= held.keys()
    assert [key for key, _ in sketch.top(5)] == [key for key, _ in truth.most_common(5)]


def test_a_sketch_that_is_not_full_counts_exactly():
    sketch = Sketch(10)
    for key, n in (("a", 3), ("b", 1), ("a", 2)):
        sketch.add(key, n)

    assert (sketch.top(10), sketch.floor) == ([("a", 5), ("b", 1)], 0)


def test_a_flood_of_random_names_does_not_push_out_what_is_asked_often():
    sketch = Sketch(100)
    for number in range(20_000):
        sketch.add(f"random-{number}", 1)
        if number % 10 == 0:
            sketch.add("www", 1)

    assert sketch.top(1)[0][0] == "www"


@pytest.mark.parametrize("serve", [serve_udp, partial(serve_udp, batched=False)])
def test_queries_one_by_one_are_all_counted(serve, table):
    watch = Watch(now=lambda: 1000.0, share=1)
    asked = [("www.example.test.", "A")] * 3 + [("WWW.example.test.", "A"), ("no.example.test.", "TXT")]
    asked += [("www.elsewhere.test.", "A")]
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client,
    ):
        sock.bind(("127.0.0.1", 0))
        client.connect(sock.getsockname())
        client.settimeout(60)
        with running(lambda *args: serve(*args, watch=watch), sock, table, Counts()):
            for name, kind in asked:
                client.send(dns.message.make_query(name, kind).to_wire())
                client.recv(4096)
            client.send(b"\0\1\0\0\0\7" + bytes(6))
            client.recv(4096)

    www, no = b"\3www\7example\4test\0", b"\2no\7example\4test\0"
    assert watch.names.top(9)[0] == ((www, 1), 4)
    assert dict(watch.groups.top(9)) == {
        (b"\7example\4test\0", 1, 0): 4,
        (b"\7example\4test\0", 16, 3): 1,
        (b"", 1, 5): 1,
        (b"", 0, 1): 1,
    }
    assert [(seen.network, seen.name, seen.rcode) for seen in list(watch.sample)[-3:]] == [
        (b"\x7f\0\0", no, 3),
        (b"\x7f\0\0", b"\3www\x09elsewhere\4test\0", 5),
        (b"\x7f\0\0", b"", 1),
    ]


def test_the_sample_is_bounded():
    watch = Watch()
    for _ in range(SAMPLE_MAX + 10):
        watch.see(b"\x80\5" + bytes(8), CLIENT, 1, {})

    assert len(watch.sample) == SAMPLE_MAX


def test_a_reply_is_shown_for_a_share_of_them_or_after_a_pause():
    clock = [1000.0]
    watch = Watch(now=lambda: clock[0], share=16)

    assert [watch.due(n) for n in (1, 5, 10, 1, 64)] == [1, 0, 0, 16, 64]
    assert watch.due(3) == 0
    clock[0] += 0.01
    assert watch.due(2) == 5


def test_each_place_of_a_batch_has_its_turn():
    watch = Watch()

    assert {watch.choose(8) for _ in range(8)} == set(range(8))
