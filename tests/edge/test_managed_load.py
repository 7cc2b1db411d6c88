"""Attacks among good requests, on many connections, while the configuration changes: none is let through, no
good request is lost, and every decision is counted."""

import random
import threading

import pytest

from edgestead.crs import ANOMALY_RULE_ID, RULESET_ID
from tests.edge.talk import connected, get, read_answer
from tests.edge.test_managed_server import PHASE, deployed, part, site, wait_for_patterns

__all__ = ["site"]
CONNECTIONS = 6
ATTACKS = ("/?{n}&id=1+union+select+2", "/?{n}&id=1%20UNION%0aSELECT", "/p?{n}&a=x&b=union%09select+1")
GOOD = ("/?{n}&id=1", "/shop?{n}&q=red+shoes", "/?{n}&q=the+union+of+two+sets")
TYPES = {"form": "application/x-www-form-urlencoded", "json": "application/json"}


def request(chance, host, name):
    """(bytes, whether it is an attack)."""
    bad = chance.random() < 0.4
    target = chance.choice(ATTACKS if bad else GOOD).format(n=name)
    kind = chance.choice(["get", "get", "form", "json", "upload"])
    if kind == "get":
        return f"GET {target} HTTP/1.1\r\nhost: {host}\r\n\r\n".encode(), bad
    words = b"union select" if bad else b"just words"
    if kind == "upload":
        file = part("f", b"\0\n" * chance.choice([10, 100_000]), "a.bin")
        content = file + part("n", words) + b"--XyZ--\r\n"
        type_ = "multipart/form-data; boundary=XyZ"
    else:
        content = b"a=" + words.replace(b" ", b"+") if kind == "form" else b'{"a":"%b"}' % words
        type_ = TYPES[kind]
    fields = f"host: {host}\r\ncontent-type: {type_}\r\ncontent-length: {len(content)}\r\n"
    return f"POST /?{name} HTTP/1.1\r\n{fields}\r\n".encode() + content, bad


class Client(threading.Thread):
    """Sends its requests one after the other, anew where the answer ended the connection."""

    def __init__(self, number, site, host, count):
        super().__init__(daemon=True)
        self.number, self.site, self.host, self.count = number, site, host, count
        self.wrong, self.attacks, self.good = [], 0, []

    def run(self):
        chance = random.Random(self.number)
        done = 0
        while done < self.count:
            with connected(self.site.http) as connection, connection.makefile("rb") as stream:
                while done < self.count:
                    name = f"c{self.number}-{done}"
                    sent, bad = request(chance, self.host, name)
                    try:
                        connection.sendall(sent)
                    except OSError:
                        pass  # answered before all was sent
                    answer = read_answer(stream)
                    done += 1
                    self.attacks += bad
                    self.good += [name] * (not bad)
                    if answer is None or answer.status != (403 if bad else 200):
                        self.wrong.append((name, bad, answer and answer.status))
                        break
                    if answer.headers.get(b"connection") == b"close":
                        break


def run(site, host, count, meanwhile=lambda: None):
    clients = [Client(number, site, host, count) for number in range(CONNECTIONS)]
    for client in clients:
        client.start()
    while any(client.is_alive() for client in clients):
        meanwhile()
        clients[0].join(0.05)
    return clients


def blocked(site):
    api = site.server.ready["api_base"].removeprefix("http://").partition("/")[0]
    lines = get(api, api, "/metrics").body.decode().splitlines()
    return sum(
        int(line.rpartition(" ")[2])
        for line in lines
        if line.startswith("edge_events_total{") and 'action="block"' in line
    )


def checked(site, host, origin, count, meanwhile=lambda: None):
    before, seen = blocked(site), len(origin.requests)
    clients = run(site, host, count, meanwhile)

    assert [wrong for client in clients for wrong in client.wrong] == []
    site.server.wait_until(lambda: blocked(site) - before == sum(client.attacks for client in clients), 180)
    arrived = [name_of(head) for head, body in origin.requests[seen:] if not _cut(head, body)]
    assert sorted(arrived) == sorted(name for client in clients for name in client.good)


def name_of(head):
    return head.split(b"?", 1)[1].split(b" ", 1)[0].split(b"&", 1)[0].decode()


def _cut(head, body):
    """A body that an attack ended before its end: the origin has a start, and no request."""
    lines = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return bool(lines) and len(body) < int(lines[0].partition(b":")[2])


def test_nothing_is_let_through_and_nothing_is_lost(site):
    host, origin = deployed(site)
    wait_for_patterns(site)
    checked(site, host, origin, 60)


def test_not_even_while_the_configuration_changes(site):
    host, origin = deployed(site)
    thresholds = iter(range(1_000_000))

    def change():
        own = {"id": ANOMALY_RULE_ID, "score_threshold": 4 + next(thresholds) % 2}
        rule = {
            "action": "execute",
            "expression": "true",
            "action_parameters": {"id": RULESET_ID, "overrides": {"rules": [own]}},
        }
        path = f"/zones/{site.zone_id}/rulesets/phases/{PHASE}/entrypoint"
        assert site.server.call("PUT", path, {"rules": [rule]}).status == 200

    checked(site, host, origin, 60, change)


@pytest.mark.long
def test_nor_in_many_thousand_requests(site):
    host, origin = deployed(site)
    wait_for_patterns(site)
    checked(site, host, origin, 3_000)
