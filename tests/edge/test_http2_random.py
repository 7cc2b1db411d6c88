"""Many streams in any order: heads, bodies, windows, resets and answers, cut into any pieces.

An answer arrives whole and in order, or its stream is reset; a body arrives at its origin as it was sent; and
when all is over nothing is held for anybody.
"""

from random import Random

import pytest
from h2.exceptions import ProtocolError

from edgestead.edge.http.origin import OriginConnection
from tests.edge.bench import TARGET, Transport
from tests.edge.http2_client import Http2Client, fields, http2_bench
from tests.edge.http2_server import Http2Server, h2c_bench

SEEDS = 60
STEPS = 120


class Origins:
    """As many connections to the origin as are asked for, each with its request and what it answers."""

    def __init__(self, bench, random):
        self.bench, self.random, self.open = bench, random, []
        bench.edge.pool.kept = self.kept

    def kept(self, aim):
        origin, transport = OriginConnection(self.bench.edge.pool, TARGET), Transport("192.0.2.1")
        origin.connection_made(transport)
        transport.abort = lambda: setattr(transport, "state", "aborted")
        self.open.append((origin, transport, []))
        return origin

    def step(self):
        """One of those whose request is here says a part of its answer, if it may."""
        ready = [one for one in self.open if one[1].state == "open" and not one[1].is_paused]
        ready = [one for one in ready if one[1].written.endswith((b"\r\n\r\n", b"!")) or one[2]]
        if not ready:
            return
        origin, transport, left = self.random.choice(ready)
        if not left:
            path = transport.written.split(b" ", 2)[1]
            content = answer_of(path)
            left.append(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(content), content))
        size = self.random.choice((10, 1_000, 60_000))
        part, left[0] = left[0][:size], left[0][size:]
        if not left[0]:
            self.open = [one for one in self.open if one[0] is not origin]
        if part:
            origin.data_received(part)


def answer_of(path):
    """Of any length up to 120 KB, and another one for each path."""
    number = int(path[1:])
    return (b"%d-" % number) * (number * 7_919 % 20_000)


class World:
    """A client and its origins, and what was asked for: paths by number."""

    def __init__(self, seed, bench=None, origins=Origins):
        self.random = random = Random(seed)
        self.bench = bench or http2_bench()
        self.origins = origins(self.bench, random)
        self.client = Http2Client(self.bench, window=random.choice((100, 10_000, 65_535)))
        self.client.edge.data_received = cut(self.client.edge.data_received, random)
        self.asked, self.taken_back = {}, set()

    @property
    def awaited(self):
        """What is neither answered nor taken back."""
        answers = self.client.answers
        return [one for one in self.asked if one not in self.taken_back and not answers[one].ended]

    def step(self, number):
        kind, awaited = self.random.randrange(6), self.awaited
        if kind < 2 and len(awaited) < 90:
            self.ask(b"/%d" % number)
        elif kind == 2 and awaited and len(self.taken_back) < 90:
            taken = self.random.choice(awaited)
            self.taken_back.add(taken)
            self.client.reset(taken)
        elif kind == 3 and awaited:
            self.client.give(self.random.choice((1, 5_000, 50_000)), self.random.choice(awaited))
        else:
            self.answer()

    def ask(self, path):
        body = None if self.random.random() < 0.5 else b"x" * self.random.randrange(3_000) + b"!"
        said = fields(b"GET" if body is None else b"PUT", path)
        self.asked[self.client.ask(said, body)] = path

    def answer(self):
        self.origins.step()
        self.client.listen()

    def end(self):
        for number in self.awaited:
            if number in self.awaited:
                self.client.give(1 << 20, number)
        for _ in range(20_000):
            if not self.awaited:
                return
            self.answer()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_answers_are_whole_whatever_the_order(seed):
    world = World(seed)
    for number in range(STEPS):
        world.step(number)
    world.end()

    client = world.client
    assert world.awaited == []
    assert client.edge._streams == {}
    for number in world.asked.keys() - world.taken_back:
        assert client.answers[number].body == answer_of(world.asked[number])
    assert client.edge._receiving == 0
    assert client.transport.state == "open"
    assert world.bench.edge.accounts.memory.held["192.0.2.9"] <= 40 * 1024  # two connections, idle


def cut(receive, random):
    def received(data):
        while data:
            size = random.choice((1, 9, 100, 5_000))
            receive(data[:size])
            data = data[size:]

    return received


class SharedOrigins:
    """Connections of HTTP/2, each of which takes a few requests at a time."""

    def __init__(self, bench, random):
        self.bench, self.random = bench, random
        self.servers, self.said = [], {}
        bench.edge.pool.seek = self.seek

    def seek(self, aim, seeker, *, is_again):
        server = Http2Server(self.bench, streams=5, window=self.random.choice((100, 9_000, 65_535)))
        server.edge.data_received = cut(server.edge.data_received, self.random)
        self.servers.append(server)
        seeker.connected(self.bench.edge.pool.take(aim.first))

    def step(self):
        """One of those whose request is here says a part of its answer, or trailers and an end."""
        for server in self.servers:
            server.talk()
        ready = [
            (server, number, asked)
            for server in self.servers
            for number, asked in server.asked.items()
            if asked.ended and asked.reset is None and self.said.get((id(server), number)) != "all"
        ]
        if not ready:
            return
        server, number, asked = self.random.choice(ready)
        if asked[b":method"] == b"PUT":
            assert asked.body == b"x" * (len(asked.body) - 1) + b"!"
        content, at = answer_of(asked[b":path"]), self.said.get((id(server), number))
        try:
            if at is None:
                server.h2.send_headers(number, [(b":status", b"200")])
                at = 0
            size = self.random.choice((10, 1_000, 16_000))
            size = min(size, server.h2.local_flow_control_window(number), len(content) - at)
            if size:
                server.h2.send_data(number, content[at : at + size])
            at += size
            if at == len(content):
                server.h2.send_headers(number, [(b"x-last", b"1")], end_stream=True)
                at = "all"
        except ProtocolError:  # it was reset just now
            at = "all"
        self.said[id(server), number] = at
        server.talk()


@pytest.mark.parametrize("seed", range(SEEDS // 2))
def test_answers_are_whole_where_origins_share_connections(seed):
    world = World(seed, h2c_bench(), SharedOrigins)
    for number in range(STEPS):
        world.step(number)
    world.end()

    client = world.client
    assert world.awaited == []
    assert client.edge._streams == {}
    for number in world.asked.keys() - world.taken_back:
        assert client.answers[number].body == answer_of(world.asked[number]), world.bench.decisions
    for server in world.origins.servers:
        assert server.edge._streams == {}
        assert server.transport.state == "open"
        assert not server.transport.is_paused
