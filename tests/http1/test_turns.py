"""Connections of a server take turns by address: in rounds of an invented loop, on an invented clock."""

import asyncio

import pytest

from edgestead.http1.limits import PIECE_BYTES
from edgestead.http1.messages import Response
from edgestead.http1.protocol import PassingOn, Protocol
from edgestead.http1.server import Server
from edgestead.model.budgets.turns import LATE_SECONDS, LOOK_OCTETS, TURN_SECONDS, Turns

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
CHUNKED = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
WORK_SECONDS = TURN_SECONDS / 4
REQUESTS = LOOK_OCTETS // len(GET)  # so many are looked at the clock for


class Transport:
    def __init__(self, address):
        self.address, self.written, self.is_paused, self.is_open = address, b"", False, True

    def get_extra_info(self, name):
        return (self.address, 5) if name == "peername" else None

    def set_write_buffer_limits(self, octets):
        pass

    def write(self, data):
        self.written += data

    def is_closing(self):
        return not self.is_open

    def pause_reading(self):
        self.is_paused = True

    def resume_reading(self):
        self.is_paused = False

    def can_write_eof(self):
        return False

    def close(self):
        self.is_open = False

    abort = close

    @property
    def answers(self):
        return self.written.count(b"HTTP/1.1 200")


def speaks_for(request):
    """The client of a request that another process has passed on."""
    return request.header(b"from").decode()


class World:
    """A server whose handler takes WORK_SECONDS; `asked` is who was served, in order."""

    def __init__(self):
        self.now, self.began, self.soon, self.asked = 100.0, 100.0, [], []
        processor = Turns(self.soon.append, lambda: self.began, lambda: self.now)
        self.server = Server(
            self.handle, lambda *_: Response(400, [], b"no"), processor=processor, client_of=speaks_for
        )

    def handle(self, request):
        self.now += WORK_SECONDS
        self.asked.append(request.client or speaks_for(request))
        return Response(200, [], b"ok")

    def connect(self, address, kind=Protocol):
        protocol, transport = kind(self.server), Transport(address)
        protocol.connection_made(transport)
        return protocol, transport

    def round(self):
        self.began, soon = self.now, self.soon[:]
        self.soon.clear()
        for function in soon:
            function()


@pytest.fixture
def world():
    async def made():
        return World()

    return asyncio.run(made())


def test_a_request_is_served_at_once_while_the_loop_is_not_late(world):
    protocol, transport = world.connect("192.0.2.1")
    protocol.data_received(GET)

    assert transport.answers == 1
    assert not transport.is_paused
    assert world.soon == []


def test_requests_behind_one_another_are_served_between_those_of_others(world):
    bad = [world.connect("192.0.2.1")[0] for _ in range(10)]
    for protocol in bad:
        protocol.data_received(GET * 40)
    good, transport = world.connect("2001:db8::1")
    for _ in range(20):
        world.round()
    before = len(world.asked)
    good.data_received(GET)
    while not transport.answers:
        world.round()

    assert world.asked[before:].index("2001:db8::1") <= 1


def test_a_crowd_of_addresses_costs_a_good_one_no_more_than_a_work_of_each(world):
    crowd = [f"192.0.2.{number}" for number in range(50)]
    for address in crowd:
        for _ in range(4):
            world.connect(address)[0].data_received(GET * 40)
    good, transport = world.connect("198.51.100.1")
    good.data_received(GET)
    while not transport.answers:
        world.round()

    ahead = world.asked[world.asked.index("192.0.2.0") + 4 * len(crowd) :]
    assert max(map(ahead.count, crowd)) <= 2  # it read, and was served


def test_what_comes_in_a_late_round_is_read_in_the_next_one(world):
    protocol, transport = world.connect("192.0.2.1")
    world.now += 2 * LATE_SECONDS
    protocol.data_received(GET * REQUESTS)
    at_once = transport.answers, transport.is_paused
    for _ in range(200):
        world.round()

    assert at_once == (0, True)
    assert transport.answers == REQUESTS
    assert not transport.is_paused


def test_a_body_in_small_chunks_is_read_in_portions(world):
    protocol, transport = world.connect("192.0.2.1")
    protocol.data_received(CHUNKED)
    protocol.data_received(b"1\r\nx\r\n" * PIECE_BYTES + b"0\r\n\r\n")
    paused, rounds = transport.is_paused, 0
    while world.soon:
        world.round()
        rounds += 1

    assert paused
    assert rounds > 0
    protocol.data_received(GET)
    assert transport.answers == 2


def test_a_client_that_leaves_while_it_waits_leaves_nothing_behind(world):
    gone, transport = world.connect("192.0.2.1")
    gone.data_received(GET * 10)
    transport.close()
    gone.connection_lost(None)
    while world.soon:
        world.round()
    other, transport = world.connect("192.0.2.2")
    other.data_received(GET)

    assert transport.answers == 1


def test_one_request_is_neither_read_nor_served_while_others_wait(world):
    world.connect("192.0.2.1")[0].data_received(GET * 5)
    served = list(world.asked)
    other, transport = world.connect("192.0.2.2")
    other.data_received(GET)

    assert (world.asked, transport.is_paused) == (served, True)


def test_connections_of_one_network_have_the_part_of_one(world):
    for number in range(9):
        world.connect(f"2001:db8::{number:x}")[0].data_received(GET * 40)
    world.connect("192.0.2.1")[0].data_received(GET * 40)
    for _ in range(20):
        world.round()

    alone = world.asked.count("192.0.2.1")
    assert abs(len(world.asked) - 9 - 2 * alone) <= 9


def test_requests_that_another_process_passes_on_take_the_turns_of_their_clients(world):
    def pass_on(address):
        protocol, transport = world.connect("", PassingOn)
        protocol.data_received(GET.replace(b"\r\n\r\n", b"\r\nFrom: %b\r\n\r\n" % address.encode()))
        return transport

    for _ in range(100):
        pass_on("192.0.2.1")
    before = len(world.asked)
    transport = pass_on("198.51.100.1")
    while not transport.answers:
        world.round()

    assert before < 100
    assert world.asked[before:].index("198.51.100.1") <= 1
    while world.soon:
        world.round()
    assert len(world.asked) == 101
