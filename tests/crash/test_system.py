"""SIGKILL of control or of everything, at random moments under write load: nothing acknowledged is lost.

After each kill the API and DNS have to agree with one another and with what the writers were told: a write
that was acknowledged is there, one that was cut off is there or is not, and nothing else is answered.
"""

import http.client
import random
import threading
import time

import pytest

from edgestead.testing.server import START_SECONDS_MAX, wait_until
from tests.crash.kills import kill_everything, kill_process

ROUNDS, ROUNDS_LONG = 10, 100
WRITERS = 4
NAMES_A_WRITER_MAX = 12  # alive at a time; then it deletes, so that all three kinds of write are cut
LOAD_SECONDS_MAX = 0.4
RETRY_SECONDS = 0.02  # while nobody listens


class Writer(threading.Thread):
    """Creates, changes and deletes records of its own, one at a time, until it is told to end.

    `allowed` says for each name which contents may be found afterwards; None stands for no record.
    """

    def __init__(self, server, zone_id, allowed, label, seed):
        super().__init__()
        self.server, self.zone_id, self.allowed, self.label = server, zone_id, allowed, label
        self.choose = random.Random(seed)
        self.ids = {}
        self.acknowledged = 0
        self.ended = threading.Event()
        self.error = None

    def run(self):
        try:
            while not self.ended.is_set():
                self.step()
        except BaseException as error:
            self.error = error

    def step(self):
        if len(self.ids) >= NAMES_A_WRITER_MAX or (self.ids and self.choose.random() < 0.3):
            name = self.choose.choice(list(self.ids))
            address = None if self.choose.random() < 0.5 else self.new_address()
        else:
            name, address = (
                f"{self.label}-{len(self.allowed)}-{self.choose.getrandbits(40):x}",
                self.new_address(),
            )
        before = self.allowed.get(name, {None})
        self.allowed[name] = before | {address}
        try:
            answer = self.write(name, address)
        except (http.client.HTTPException, OSError):
            self.ids.pop(name, None)  # nobody said whether it was done: leave this name alone
            time.sleep(RETRY_SECONDS)
            return
        assert answer.status == 200, answer
        self.allowed[name] = {address}
        self.acknowledged += 1
        if address is None:
            del self.ids[name]
        else:
            self.ids[name] = answer.body["result"]["id"]

    def write(self, name, address):
        path = f"/zones/{self.zone_id}/dns_records"
        if name not in self.ids:
            return self.server.make_record(self.zone_id, "A", name, address)
        if address is None:
            return self.server.call("DELETE", f"{path}/{self.ids[name]}")
        return self.server.call("PATCH", f"{path}/{self.ids[name]}", {"content": address})

    def new_address(self):
        return f"10.{self.choose.randrange(256)}.{self.choose.randrange(256)}.{self.choose.randrange(1, 255)}"


def listed(server, zone_id):
    """Content by label, as the API says."""
    records = server.call("GET", f"/zones/{zone_id}/dns_records?per_page=5000").result
    return {record["name"].removesuffix(".example.com"): record["content"] for record in records}


def disagreements(server, zone_id, allowed):
    """What API, DNS and the writers' memory say differently, in words."""
    said = listed(server, zone_id)
    for name in said.keys() - allowed.keys():
        yield f"{name} is listed, and nobody wrote it"
    for name, contents in allowed.items():
        content = said.get(name)
        if content not in contents:
            yield f"{name}: the API says {content}, the writer was told {contents}"
        answered = ["NXDOMAIN"] if content is None else [content]
        for tcp in (False, True):
            found = server.dig(f"{name}.example.com", tcp=tcp)
            if found != answered:
                yield f"{name}: the API says {content}, DNS over {'TCP' if tcp else 'UDP'} {found}"


@pytest.mark.timeout(3600)
def test_nothing_acknowledged_is_lost_and_dns_agrees_with_the_api(edge_server, request):
    rounds = ROUNDS_LONG if request.config.getoption("--long") else ROUNDS
    seed = random.randrange(2**32)
    choose = random.Random(seed)
    zone_id = edge_server.make_zone("example.com")
    acknowledged = 0
    for number in range(rounds):
        allowed = {}
        writers = [
            Writer(edge_server, zone_id, allowed, f"w{number}-{w}", choose.random()) for w in range(WRITERS)
        ]
        for writer in writers:
            writer.start()
        # The moment is a matter of chance, but not whether a busy machine came to write anything before it.
        wait_until(lambda: any(w.acknowledged or w.error for w in writers), START_SECONDS_MAX)  # noqa: B023
        time.sleep(choose.uniform(0, LOAD_SECONDS_MAX))

        everything = choose.random() < 0.5
        if everything:
            kill_everything(edge_server)
        else:
            kill_process(edge_server, "control")
        for writer in writers:
            writer.ended.set()
        for writer in writers:
            writer.join(300)
        if everything:
            edge_server.start()

        assert [writer.error for writer in writers if writer.error] == [], f"seed {seed}, round {number}"
        assert list(disagreements(edge_server, zone_id, allowed)) == [], f"seed {seed}, round {number}"
        acknowledged += sum(writer.acknowledged for writer in writers)
        for name in [name for name, contents in allowed.items() if contents != {None}]:
            forget(edge_server, zone_id, name)

    assert acknowledged >= rounds


def forget(server, zone_id, name):
    """Delete what a round left, so that the next one looks at its own records only."""
    found = server.call("GET", f"/zones/{zone_id}/dns_records?name={name}.example.com").result
    for record in found:
        assert server.call("DELETE", f"/zones/{zone_id}/dns_records/{record['id']}").status == 200
    assert server.dig(f"{name}.example.com") == ["NXDOMAIN"]
