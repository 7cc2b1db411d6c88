"""A server's connection under random schedules: bytes cut anywhere, answers at any time, ends of every kind.

A schedule sends requests, pipelined as the connection lets it, on a transport that exists in this test alone,
and answers them whole or in portions, early or late. Nothing waits for a clock.
"""

import itertools
import random
import re
from typing import ClassVar

import msgspec
import pytest

from edgestead.http1 import limits
from edgestead.http1.answering import Answering
from edgestead.http1.connection import TABLE, Action, State
from edgestead.http1.head import Refused
from edgestead.http1.messages import Request, Response

SCHEDULES = 400
SCHEDULES_LONG = 20_000
REQUESTS_MAX = 24  # more than may wait
SMALL_REQUESTS_MAX = 500  # so many that some are not even parsed while others wait
BODY = bytes(range(256)) * 200
BAD_HEADS = [
    b"\r\n" * limits.HEAD_BYTES_MAX,
    b"nonsense\r\n\r\n",
    b"GET / HTTP/2.0\r\nHost: a\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * limits.HEAD_BYTES_MAX,
]
CHUNKED = b"PUT /NUMBER HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
UPGRADE = b"GET /NUMBER HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
SWITCHED = b"HTTP/1.1 101 Switching Protocols\r\n\r\n"
BAD_BODIES = [
    CHUNKED + b"5\r\nhelloX",
    CHUNKED + b"fa00\r\n" + b"x" * 64_000 + b"X",
    CHUNKED + b"0\r\n" + b"a: b\r\n" * 200,
]
ANSWER = re.compile(rb"HTTP/1\.1 (\d+)[^\r]*\r\n((?:[^\r]+\r\n)*)\r\n")


class Tunnel(Request):
    """A request that may get another protocol."""

    @property
    def upgrades(self):
        return True


class Told(Answering):
    """Remembers which steps it took; some of its requests may get another protocol, as at the edge."""

    __slots__ = ()
    taken: ClassVar[set] = set()

    def _made(self, version, method, target, headers, keep_alive):
        request, length = super()._made(version, method, target, headers, keep_alive)
        if request.found.get(b"upgrade") == b"websocket":
            request = Tunnel(*msgspec.structs.astuple(request))
        return request, length

    def _go(self, event):
        self.taken.add((self.state, event))
        super()._go(event)


class Driver:
    """Carries out actions as `protocol` does, a schedule deciding when."""

    def __init__(self, chance, turned_away=None):
        self.chance = chance
        self.connection = Told(
            lambda status, reason, client: Response(status, [], b"refused"), turned_away=turned_away
        )
        self.written, self.over = bytearray(), None
        self.is_paused = self.wants_reading = False
        self.begun = []  # requests that the application was given
        self.soon = []
        self.streaming = self.tunnel = None
        self.patience = chance.choice((1, 100))
        self.closes = False  # an answer has ended the connection
        self.reads = chance.choice((0.1, 0.9, 0.99))  # how often an application reads before it answers

    def serve(self, request):
        if request is not None:
            assert len(self.begun) == len(self.soon), "two requests at a time"
            self.begun.append(request)

    def act(self):
        connection = self.connection
        while connection.actions:
            actions, connection.actions = connection.actions, []
            for action, value in actions:
                assert self.over in (None, Action.END_WRITING) or action is Action.ABORT, (self.over, action)
                if action is Action.WRITE:
                    assert self.over is None, "something is written behind the end"
                    self.written += value
                elif action is Action.SERVE:
                    self.serve(value)
                elif action is Action.READ_SOON:
                    self.wants_reading = True
                elif action in (Action.PAUSE, Action.RESUME):
                    assert self.is_paused is (action is Action.RESUME)
                    self.is_paused = action is Action.PAUSE
                else:
                    self.over = action
        assert (connection.state is State.CLOSED) == (self.over in (Action.CLOSE, Action.ABORT))

    def receive(self, data):
        """At once, or put off to the turn of its address."""
        connection = self.connection
        if self.chance.random() < 0.2:
            connection.hold(data)
            self.wants_reading = True
        else:
            self.serve(connection.receive(data))
        self.act()
        is_full = len(connection._waiting) > limits.REQUESTS_WAITING_MAX or connection._held
        if is_full and self.over is None:
            assert self.is_paused, "more is read than is worked off"

    @property
    def request(self):
        """The one that is to be answered."""
        return self.begun[-1] if len(self.begun) > len(self.soon) else None

    def step(self):
        """Something that an application or the loop does; False when there is nothing."""
        connection, request = self.connection, self.request
        if self.wants_reading:
            self.wants_reading = False
            self.serve(connection.read_on())
        elif self.streaming is not None:
            if connection.state is not State.SENDING:
                self.soon.append(self.streaming[0])
                self.streaming = None
            elif self.streaming[1]:
                self.written += connection.portion(self.streaming[1].pop())
            else:
                self.soon.append(self.streaming[0])
                self.streaming = None
                connection.end_answer()
        elif request is not None:
            self.answer(request)
        else:
            return False
        self.act()
        return True

    def answer(self, request):
        chance, body = self.chance, request.body
        if body.wanted is not None and chance.random() < 0.9:
            wanted, body.wanted = body.wanted, None
            wanted()
        if request.upgrades and chance.random() < 0.7:
            self.tunnel = request
            self.soon.append(request)
            self.connection.stream()
            self.written += SWITCHED
            self.connection.switch()
            return
        if not body.ended and chance.random() < self.reads and self.connection.state is State.SERVING:
            body._chunks.clear()  # the application reads what is there
            body.waiting_bytes = 0
            body._taken()
            return
        self.closes |= not body.ended and body.wanted is not None
        close, kind = chance.random() < 0.03 / self.patience, chance.randrange(4)
        self.closes |= close
        text = b"answer to " + request.target
        if kind == 0:
            self.streaming = (request, [b"b" * 300] * chance.choice((2, 100)))
            response = Response(200, [(b"x", text)], _stream(), close=close)
        elif kind == 1:
            self.streaming = (request, [b"c" * 600])
            response = Response(200, [(b"x", text)], _stream(), length=600, close=close)
        else:
            self.soon.append(request)
            response = Response(200, [(b"x", text)], b"whole", close=close)
        self.connection.answer(response)

    def end(self, event):
        connection = self.connection
        if event == "lost":
            connection.lost()
            self.over = Action.ABORT
        elif event == "late" and connection.seconds is not None:
            connection.late()
        elif event == "finish":
            connection.finish()
        elif event == "broken":
            connection.break_off()
        elif event == "over" and connection.state is State.TUNNELLED:
            connection.answered(keeps_alive=False)
        self.act()
        if self.over is Action.CLOSE and self.chance.random() < 0.5:
            connection.late()
            self.act()
        if self.over in (Action.CLOSE, Action.ABORT):
            connection.lost()


async def _stream():
    yield b""


def written(chance, number, sizes):
    """The bytes of a request."""
    head = b"PUT /%d HTTP/1.1\r\nHost: a\r\n" % number
    body = BODY[: chance.choice(sizes)]
    if chance.random() < 0.1:
        head += b"Connection: Upgrade\r\nUpgrade: h2c\r\n"
    if chance.random() < 0.1:
        head += b"Expect: 100-continue\r\n"
    if chance.random() < 0.5:
        return head + b"Content-Length: %d\r\n\r\n" % len(body) + body
    chunks, at = b"", 0
    while at < len(body):
        chunk = body[at : at + chance.randrange(1, 9_000)]
        chunks += b"%x\r\n%b\r\n" % (len(chunk), chunk)
        at += len(chunk)
    return head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"


def cut(chance, data):
    """A stream in pieces as a socket may give them."""
    largest = chance.choice((1, 40, 3_000, 70_000))
    at = 0
    while at < len(data):
        size = chance.randrange(1, largest + 1)
        if largest == 1 and at > 300:
            size = 5_000
        yield data[at : at + size]
        at += size


def answers(data):
    """(status, target that is answered) of each answer, in order."""
    found, at = [], 0
    while (match := ANSWER.match(data, at)) is not None:
        at = match.end()
        if match[1] == b"100":
            continue
        if match[1] == b"101":
            break
        headers = dict(line.split(b": ", 1) for line in match[2].split(b"\r\n") if line)
        if headers.get(b"transfer-encoding") == b"chunked":
            while (size := int(data[at : data.index(b"\r\n", at)], 16)) > 0:
                at = data.index(b"\r\n", at) + 2 + size + 2
            at += 5
        else:
            at += int(headers[b"content-length"])
        found.append((int(match[1]), headers.get(b"x", b"").removeprefix(b"answer to /")))
    assert at == len(data), data[at : at + 100]
    return found


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Little may come that is dropped, so that too much does."""
    monkeypatch.setattr(limits, "LINGER_BYTES_MAX", 10_000)
    monkeypatch.setattr(limits, "UNREAD_BODY_BYTES_MAX", 20_000)


def run(seed):
    chance = random.Random(seed)
    is_bad = chance.random() < 0.3
    if chance.random() < 0.1:
        count, sizes = chance.randrange(SMALL_REQUESTS_MAX), (0, 1)
    else:
        count, sizes = chance.randrange(REQUESTS_MAX), (0, 1, 100, 20_000, len(BODY))
    data = b"".join(written(chance, number, sizes) for number in range(count))
    if is_bad:
        data += chance.choice(chance.choice((BAD_HEADS, BAD_BODIES))).replace(b"NUMBER", b"%d" % count)
    raw = b""
    if not is_bad and chance.random() < 0.2:
        # behind it is another request, or what looks like one in a tunnel
        raw = written(chance, count + 1, sizes)
        data += UPGRADE.replace(b"NUMBER", b"%d" % count) + raw
        count += 2
    turned_away = Refused(429, "there are too many") if chance.random() < 0.05 else None
    ends = chance.choice((None, None, None, "lost", "late", "finish", "broken", "over"))
    driver = Driver(chance, turned_away)
    pieces, steps = cut(chance, data), 0
    end_at = chance.randrange(200) if ends else None
    piece = next(pieces, None)
    while piece is not None or driver.request is not None or driver.wants_reading:
        steps += 1
        if steps == end_at:
            driver.end(ends)
        if driver.over in (Action.CLOSE, Action.ABORT):
            break
        if piece is not None and not driver.is_paused and chance.random() < 0.5:
            driver.receive(piece)
            piece = next(pieces, None)
        elif not driver.step() and piece is not None:
            assert not driver.is_paused, "nothing happens any more, and nothing is read"
            driver.receive(piece)
            piece = next(pieces, None)
        assert len(driver.connection._waiting) <= limits.REQUESTS_WAITING_MAX + limits.PIECE_BYTES // 30
        assert steps < 200_000, "it does not end"
    if ends and driver.over is None:
        driver.end(ends)
    if driver.tunnel is not None and ends is None:
        assert b"".join(driver.tunnel.body._chunks) == raw
        count -= 2
    return driver, count, is_bad, ends or turned_away


def check(seed):
    driver, count, is_bad, ends = run(seed)
    if driver.over is Action.ABORT or ends is not None:
        return
    found = answers(bytes(driver.written))
    good = [number for status, number in found if status == 200]
    assert good == [b"%d" % number for number in range(len(good))], "answers are not in order"
    if not driver.closes:
        assert count <= len(good) <= count + is_bad  # one may be answered before its body is bad
    if driver.over is None:
        at_rest = State.TUNNELLED if driver.tunnel is not None else State.WAITING
        assert driver.connection.state in (at_rest, State.HEAD) or is_bad
        assert not driver.is_paused or is_bad
    assert len(found) - len(good) <= 1
    assert [status == 200 for status, _ in found] == sorted(
        (status == 200 for status, _ in found), reverse=True
    )


@pytest.mark.parametrize("block", range(8))
def test_answers_are_whole_and_in_order_whatever_comes_between(block):
    for seed in range(block * SCHEDULES // 8, (block + 1) * SCHEDULES // 8):
        check(seed)


@pytest.mark.long
def test_so_they_are_in_many_schedules():
    for seed in range(SCHEDULES, SCHEDULES_LONG):
        check(seed)


def test_every_step_of_the_table_is_taken():
    Told.taken.clear()
    wanted = {(state, event) for state, events in TABLE.items() for event in events}
    for seed in itertools.count():
        check(seed)
        if wanted <= Told.taken:
            break
        missing = [f"{state.name} {event.name}" for state, event in wanted - Told.taken]
        assert seed < 20 * SCHEDULES, missing
