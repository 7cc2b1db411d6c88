"""What hostile clients do to a server at the same time, and what good ones measure meanwhile.

Owns  the attacks, by name; the good clients, who count their steps and keep their longest gap.
Not   which attacks meet, and what must hold (`test_attacks`).
"""

import asyncio
import contextlib
import http.client
import itertools
import math
import os
import random
import signal
import struct
import threading
import time

import dns.exception
import dns.message
import dns.query

from edgestead.testing.server import is_running, wait_until
from tests.crash.objects_chaos import ENDING, HARMLESS
from tests.crash.test_objects_chaos import do
from tests.server.test_disk_steps import fill_to, free_bytes
from tests.server.test_full_disk import is_full
from tests.support.frozen import Frozen

TRY_SECONDS = (1.0, 1.0, 5.0)  # a resolver, a browser asks again; a busy machine needs longer
PAUSE_SECONDS = 0.02  # of good clients: two cores also run the attacks
HELD_PAUSE_SECONDS = 0.2
HANG_SECONDS_MAX = 10.0
KEPT_KEYS = 50
BULK_BYTES = 400_000
HANGING = ("dns-0", "edge-0", "objects-0", "dns-tcp")


class Loop(threading.Thread):
    """Calls `step` again and again until it is ended; what it raises besides lost connections is kept."""

    def __init__(self, step, pause=0.0):
        super().__init__()
        self.error, self._step, self._pause, self._ended = None, step, pause, threading.Event()
        self.start()

    def run(self):
        while not self._ended.wait(self._pause):
            try:
                self._step()
            except (OSError, http.client.HTTPException):
                continue
            except BaseException as error:
                self.error = error
                return

    def end(self):
        self._ended.set()
        self.join()
        if self.error is not None:
            raise self.error


class Client(Loop):
    """A good client. `ask` tells whether it was served; `gap` is the longest time between two that were."""

    def __init__(self, name, ask):
        self.name_of_part, self.served, self.gap = name, 0, 0.0
        self._ask, self._last = ask, time.monotonic()
        super().__init__(self._once, PAUSE_SECONDS)

    def _once(self):
        if self._ask():
            self.served += 1
            self.gap, self._last = self.gap_so_far(), time.monotonic()

    def gap_so_far(self):
        return max(self.gap, time.monotonic() - self._last)

    def measure_anew(self):
        self.gap, self._last = 0.0, time.monotonic()


# Good clients: functions of the house (`test_attacks.House`) that make an `ask`.


def nothing(house):
    """Of no server: its gap is what the machine, and the attackers in this process, keep from everybody."""
    return lambda: True


def patient(ask):
    """With the seconds that it has: more of them behind tries in vain."""
    vain = 0

    def once():
        nonlocal vain
        served = False
        try:
            served = ask(TRY_SECONDS[min(vain, len(TRY_SECONDS) - 1)])
        finally:
            vain = 0 if served else vain + 1
        return served

    return once


def queries(house):
    host, _, port = house.server.ready["dns"].rpartition(":")
    query = dns.message.make_query(house.site, "A")

    def ask(seconds):
        try:
            return bool(dns.query.udp(query, host, seconds, int(port)).answer)
        except dns.exception.Timeout:
            return False

    return patient(ask)


def sites(house):
    def ask(seconds):
        connection = http.client.HTTPConnection(house.server.ready["http"], timeout=seconds)
        with contextlib.closing(connection):
            connection.request("GET", "/", headers={"Host": house.site})
            return connection.getresponse().read() == b"ok"

    return patient(ask)


def objects(house, name):
    def ask():
        answer = house.server.call_object(f"Good/{name}/count")
        assert answer.status in (200, 503), answer
        return answer.status == 200

    return ask


def revocations(house):
    """Disables a token, and gives it back: a step is one of both, with the request that shows it."""
    token = house.make_token("victim")
    secret = token.pop("value")
    statuses = itertools.cycle(("disabled", "active"))
    status = next(statuses)

    def ask():
        nonlocal status
        changed = {**house.narrow_fields, "id": token["id"], "name": "victim", "status": status}
        if house.server.call("PUT", f"/user/tokens/{token['id']}", changed).status != 200:
            return False
        set_to, status = status, next(statuses)
        door = house.server.call("GET", f"{house.space}/keys", token=secret)
        if set_to == "active":
            return door.status == 200
        assert door.status in (401, 403, 429, 503), "a dead token opened a door"
        return door.status in (401, 403)

    return ask


# Attacks: functions of the house that give a context in which they go on.
# It gives what tells whether one was felt.


@contextlib.contextmanager
def looping(step, felt, pause=0.0):
    loop = Loop(step, pause)

    def is_felt():
        return loop.error is not None or felt()

    try:
        yield is_felt
    finally:
        loop.end()


def narrow_token(house):
    """What it may and what it may not, in turn: large values, and other people's things."""
    server, secret, numbers = house.server, house.make_token("attacker")["value"], itertools.count()
    victim, statuses = house.make_token("bystander")["id"], set()
    forbidden = (
        ("DELETE", f"/zones/{house.zone_id}", None),
        ("DELETE", f"/user/tokens/{victim}", None),
        ("POST", "/user/tokens", {**house.narrow_fields, "name": "wider"}),
        ("PUT", f"/user/tokens/{victim}/value", {}),
        ("GET", f"/zones/{house.zone_id}/dns_records", None),
        ("POST", "/zones", {"name": "other.example", "account": {"id": server.ready["account_id"]}}),
    )

    def step():
        number = next(numbers)
        pairs = [{"key": f"attack-{number % KEPT_KEYS}", "value": "x" * BULK_BYTES}]
        answer = server.call("PUT", f"{house.space}/bulk", pairs, secret)
        assert answer.status in (200, 429, 503, 507), answer
        statuses.add(answer.status)
        answer = server.call(*forbidden[number % len(forbidden)], token=secret)
        assert answer.status in (401, 403, 404, 429, 503, 507), answer
        statuses.add(answer.status)

    return looping(step, lambda: {200, 507} & statuses and {403, 404} & statuses)


def guesses(house):
    """Credentials that nobody has."""
    refused = []

    def step():
        answer = house.server.call("GET", "/user/tokens", token=f"{random.getrandbits(200):050x}")
        assert answer.status in (400, 401, 403, 429, 503), answer
        refused.append(answer.status)

    return looping(step, lambda: refused)


def hostile_class(house):
    chance, ends = random.Random(house.seed), []

    def step():
        ends.append(do(house.server, next(house.numbers), chance.choice(ENDING + HARMLESS)))

    # Where the class has a process of its own, another one answers for it: 503.
    return looping(step, lambda: {"lost", 503} & set(ends), HELD_PAUSE_SECONDS)


def stopped_processes(house):
    """Stops every process, one after the other."""
    stopped = []

    def step():
        for name, pid in house.server.children().items():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
                stopped.append(name)

    return looping(step, lambda: "control" in stopped, HELD_PAUSE_SECONDS)


def hanging_processes(house):
    """One process after the other hangs; the next when the one before was ended."""
    return _hanging(house, itertools.cycle(house.hanging))


def hanging_control(house):
    """Once: its start takes a second and more, and hangs in a row would leave no time in between."""
    return _hanging(house, itertools.repeat("control"), times=1)


def _hanging(house, names, times=math.inf):
    ended = []

    def step():
        if len(ended) >= times:
            return
        server, name = house.server, next(names)
        before = server.children().get(name)
        if before is not None:
            # One that has not served yet has two minutes for its start: it goes on after a while.
            with contextlib.suppress(ProcessLookupError, TimeoutError), contextlib.closing(Frozen(before)):
                wait_until(lambda: not is_running(before), HANG_SECONDS_MAX)
                ended.append(name)

    return looping(step, lambda: ended, HELD_PAUSE_SECONDS)


@contextlib.contextmanager
def slow_peers(house):
    """Heads and bodies by the octet, requests whose answers nobody reads, on all faces."""
    ended, connected = threading.Event(), []
    thread = threading.Thread(target=asyncio.run, args=(_all_slow(house, ended, connected),))
    thread.start()
    try:
        yield lambda: len(connected) >= house.connections
    finally:
        ended.set()
        thread.join()


async def _all_slow(house, ended, connected):
    ready = house.server.ready
    head = f"POST / HTTP/1.1\r\nHost: {house.site}\r\n".encode()
    get = f"GET / HTTP/1.1\r\nHost: {house.site}\r\n\r\n".encode()
    query = dns.message.make_query(house.site, "TXT").to_wire()
    frame = struct.pack("!H", len(query)) + query
    for_http = (
        (head, b"x"),
        (head + b"Content-Length: 100000\r\n\r\n", b"x"),
        (head + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        (head, b"a: b\r\n" * 200),
        (b"", get * 50),
    )
    for_dns = ((frame[:-1], b""), (b"", frame * 50))
    base = ready["api_base"].split("/")[2]
    faces = [
        (base, for_http),
        (ready["objects"], for_http),
        (ready["http"], for_http),
        (ready["dns"], for_dns),
    ]
    tasks = [
        asyncio.create_task(_slow(address, number, connected, *kinds[number % len(kinds)]))
        for address, kinds in faces
        for number in range(house.connections // len(faces))
    ]
    await asyncio.to_thread(ended.wait)
    for task in tasks:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    house.unexpected += [one for one in results if not isinstance(one, asyncio.CancelledError)]


async def _slow(address, number, connected, once, again):
    host, _, port = address.rpartition(":")
    source = f"127.77.{number // 250}.{number % 250 // 50 + 1}"  # 50 behind one address
    while True:
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection(host, int(port), local_addr=(source, 0), limit=1024)
            connected.append(number)
            try:
                writer.write(once)
                while not writer.transport.is_closing():
                    await asyncio.sleep(0.5)
                    if writer.transport.get_write_buffer_size() == 0:
                        writer.write(again)
            finally:
                writer.transport.abort()
        await asyncio.sleep(0.5)


@contextlib.contextmanager
def full_disk(house):
    """Another program takes every block, and again what becomes free."""
    path, full = house.disk / "of-another-program", []

    def step():
        if free_bytes(house.disk) > 0:
            with path.open("ab", buffering=0) as file:
                fill_to(file, house.disk, 0)
        elif not full and is_full(house.server):
            full.append(True)

    with looping(step, lambda: full, HELD_PAUSE_SECONDS) as is_felt:
        yield is_felt
    path.unlink()
