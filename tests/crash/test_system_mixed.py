"""Kills and standstills of any processes at once, under records, values, rules and tokens together.

After each fault everything lives again by itself, and API, DNS, edge, values and objects agree with what the
writers were told: what was acknowledged is there, what was cut off is there or is not, and a token whose
deletion was acknowledged has opened no door since.
"""

import contextlib
import http.client
import os
import random
import signal
import threading
import time

import pytest

from edgestead.testing.server import START_SECONDS_MAX, wait_until
from tests.crash.test_system import RETRY_SECONDS, Writer, disagreements, forget
from tests.server.test_objects import COUNTER, make_token
from tests.support.frozen import Frozen

ROUNDS_LONG = 60
LOAD_SECONDS_MAX = 0.3
CHILDREN = ("control", "dns-0", "dns-tcp", "edge-0", "objects-0")
HANGS = "hangs"  # beside the signals that end
# What befalls whom, in the rounds that always run. "supervisor" takes everybody with it.
SCHEDULE = (
    {"dns-0": HANGS, "control": signal.SIGKILL, "edge-0": signal.SIGKILL},
    {"supervisor": signal.SIGKILL},
)
SETTINGS = "silence-seconds = 3\nobjects-blocked-seconds = 1\nobjects-workers = 1\norigin-port = 1\n"


class Cell(threading.Thread):
    """Writes one value after the other to one place; `possible` is what may be found there."""

    def __init__(self, put):
        super().__init__()
        self.put, self.possible = put, {None}
        self.acknowledged = 0
        self.ended, self.error = threading.Event(), None

    def run(self):
        try:
            while not self.ended.is_set():
                self.step(f"{self.acknowledged}-{random.getrandbits(40):x}")
        except BaseException as error:
            self.error = error

    def step(self, value):
        self.possible = self.possible | {value}
        try:
            answer = self.put(value)
        except (http.client.HTTPException, OSError):
            time.sleep(RETRY_SECONDS)
            return
        if answer.status == 503:  # nothing was written
            return
        assert answer.status == 200, answer
        self.possible = {value}
        self.acknowledged += 1


class Doors(threading.Thread):
    """Makes and deletes tokens; each one opens an object's door before, and never after."""

    def __init__(self, server):
        super().__init__()
        self.server, self.acknowledged = server, 0
        self.ended, self.error = threading.Event(), None

    def run(self):
        try:
            while not self.ended.is_set():
                try:
                    self.step()
                except (http.client.HTTPException, OSError, Busy):
                    time.sleep(RETRY_SECONDS)
        except BaseException as error:
            self.error = error

    def step(self):
        id_, secret = self.made()
        self.call(secret)
        deleted = self.server.call("DELETE", f"/user/tokens/{id_}")
        if deleted.status != 200:
            raise Busy
        self.acknowledged += 1
        assert self.call(secret) != 200, "a dead token opened a door"

    def made(self):
        try:
            return make_token(self.server, "Objects Invoke")
        except (AssertionError, KeyError):  # 503 during a fault
            raise Busy from None

    def call(self, secret):
        status = self.server.call_object("Counter/a/add", token=secret).status
        assert status in (200, 403, 503), status
        return status


class Busy(Exception):
    pass


class House:
    """A server with one of everything, and the places that are written to."""

    def __init__(self, server):
        self.server = server
        self.zone_id = server.make_zone("example.com")
        server.make_record(self.zone_id, "A", "www", "127.0.0.1", proxied=True)
        account = f"/accounts/{server.ready['account_id']}/storage/kv/namespaces"
        self.value = f"{account}/{server.call('POST', account, {'title': 'mixed'}).result['id']}/values/key"
        self.rules = f"/zones/{self.zone_id}/rulesets/phases/http_request_firewall_custom/entrypoint"

    def put_value(self, value):
        return self.server.call("PUT", self.value, value)

    def put_rule(self, value):
        rule = {"action": "block", "expression": f'http.request.uri.path eq "/{value}"'}
        return self.server.call("PUT", self.rules, {"rules": [rule]})

    def blocked(self, value):
        connection = http.client.HTTPConnection(self.server.ready["http"], timeout=START_SECONDS_MAX)
        with contextlib.closing(connection):
            connection.request("GET", f"/{value}", headers={"Host": "www.example.com"})
            return connection.getresponse().status == 403

    def strike(self, faults):
        """Let it befall them, and wait until each lives again."""
        if "supervisor" in faults:
            os.kill(self.server.pid, signal.SIGKILL)
            self.server.wait()
            self.server.start()  # while its orphans may still be dying
            return
        before = {name: self.server.wait_for_life(name) for name in faults}
        with contextlib.ExitStack() as thawing:
            for name, fault in faults.items():
                if fault is HANGS:
                    thawing.callback(Frozen(before[name]).thaw)
                else:
                    os.kill(before[name], fault)
            for name in faults:
                self.server.wait_for_life(name, before[name])

    def is_well(self):
        try:
            return self.server.call("GET", "//health/ready").status == 200
        except (http.client.HTTPException, OSError):
            return False

    def round(self, number, faults, seed):
        allowed = {}
        writers = [Writer(self.server, self.zone_id, allowed, f"m{number}-{w}", seed + w) for w in range(2)]
        value, rule, doors = Cell(self.put_value), Cell(self.put_rule), Doors(self.server)
        everybody = [*writers, value, rule, doors]
        for one in everybody:
            one.start()
        wait_until(lambda: all(one.acknowledged or one.error for one in everybody), START_SECONDS_MAX)
        time.sleep(random.Random(seed).uniform(0, LOAD_SECONDS_MAX))

        self.strike(faults)

        for one in everybody:
            one.ended.set()
        for one in everybody:
            one.join(300)
        self.server.wait_until(self.is_well, START_SECONDS_MAX)
        assert [one.error for one in everybody if one.error] == []
        assert list(disagreements_besides_www(self.server, self.zone_id, allowed)) == []
        assert self.server.call("GET", self.value).body in value.possible
        assert sum(map(self.blocked, rule.possible - {None})) == 1
        for name in [name for name, contents in allowed.items() if contents != {None}]:
            forget(self.server, self.zone_id, name)


def disagreements_besides_www(server, zone_id, allowed):
    return (words for words in disagreements(server, zone_id, allowed) if not words.startswith("www "))


@pytest.fixture
def house(new_server, tmp_path):
    settings, counter = tmp_path / "edge.toml", tmp_path / "counter.py"
    settings.write_text(SETTINGS)
    counter.write_text(COUNTER)
    return House(new_server("--objects", str(counter), "--config", str(settings)).start())


@pytest.mark.timeout(600)
def test_processes_that_die_and_hang_together_cost_nothing_acknowledged(house):
    for number, faults in enumerate(SCHEDULE):
        house.round(number, faults, seed=random.randrange(2**32))


@pytest.mark.long
@pytest.mark.timeout(7_200)
def test_sixty_mixed_faults_cost_nothing_acknowledged(house):
    seed = random.randrange(2**32)
    choose = random.Random(seed)
    for number in range(ROUNDS_LONG):
        if choose.random() < 0.2:
            faults = {"supervisor": signal.SIGKILL}
        else:
            chosen = choose.sample(CHILDREN, choose.randint(1, len(CHILDREN)))
            faults = {name: choose.choice([HANGS, signal.SIGKILL]) for name in chosen}
        try:
            house.round(number, faults, choose.randrange(2**32))
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, round {number}, {faults}") from error
