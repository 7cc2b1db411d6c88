"""What a node says of a request that it passed on, when the leader is lost in the middle of it."""

import asyncio
import json
from types import SimpleNamespace

import pytest

from edgestead.http1.client import ExchangeError
from edgestead.http1.head import by_name
from edgestead.http1.messages import Body, Request, Response
from edgestead.model.refusals import Unavailable
from edgestead.server.cluster import gate as module
from edgestead.server.cluster.gate import HasWritten
from edgestead.store.answered import PASSED, Answers
from edgestead.store.control import Answered
from edgestead.store.controllog import NotLeader, Unknown

RECORDS = b"/client/v4/zones/z/dns_records"
VALUE = b"/client/v4/accounts/a/storage/kv/namespaces/n/values/k"


class Cluster:
    """A node's view: 1 leads until it is lost, with or without an entry; then `next_`."""

    def __init__(self, *, lands, next_=2):
        self.lands, self.next = lands, next_
        self.answers = Answers()
        self.leads = False
        self.leader_number, self.leader_address = 1, "127.0.0.1:1"
        self.seat = SimpleNamespace(office=SimpleNamespace(number=9), may_answer=lambda: True)
        self.incarnation = 9
        self.position, self.newest = 7, 7
        self.asked = []

    async def changed(self):
        self.position = self.newest  # the log arrives
        await asyncio.sleep(0)

    async def settled(self):
        return 9, self.newest

    async def exchange(self, to, method, target, headers, body, **more):
        """Instead of `http1.client.exchange`."""
        if target == module.SETTLED:
            return answer(200, json.dumps([self.leader_number, self.newest]).encode())
        number, _, leader = dict(headers)[module.REQUEST_HEADER].decode().partition(" ")
        self.asked.append((int(leader), body))
        if leader != "1":
            return answer(200, b"of the next one")
        if self.lands is not None:
            self.newest += 1
            self.answers.landed([Answered(number, self.lands)])
        self.leader_number = self.next
        self.leads = self.next == 9
        raise ExchangeError("it is gone")


def answer(status, body, headers=()):
    async def chunks():
        yield body

    return SimpleNamespace(status=status, headers=list(headers), body=chunks(), ends=False)


def request(target=RECORDS, body=b"{}", headers=()):
    head = [(b"host", b"x"), (b"content-length", b"%d" % len(body)), *headers]
    incoming = Body(lambda: None)
    if body:
        incoming.feed(body)
    incoming.end()
    return Request("POST", target, head, "192.0.2.1", incoming, by_name(head))


async def here(request):
    return Response(200, [], b"answered here")


def ask(monkeypatch, cluster, **options):
    async def run():
        monkeypatch.setattr(module, "exchange", cluster.exchange)
        found = await module.Gate(here, cluster, None)(request(**options))
        if not isinstance(found.body, bytes):
            found.body = b"".join([chunk async for chunk in found.body])
        return found.status, found.body

    return asyncio.run(run())


@pytest.mark.parametrize("next_", [2, 9], ids=["another", "this one"])
def test_a_write_that_landed_is_answered_as_it_was(monkeypatch, next_):
    cluster = Cluster(lands=b"the answer", next_=next_)

    assert ask(monkeypatch, cluster) == (200, b"the answer")
    assert len(cluster.asked) == 1


def test_a_write_that_did_not_land_is_made_by_the_next_leader(monkeypatch):
    cluster = Cluster(lands=None)

    assert ask(monkeypatch, cluster) == (200, b"of the next one")
    assert cluster.asked == [(1, b"{}"), (2, b"{}")]
    assert ask(monkeypatch, Cluster(lands=None, next_=9)) == (200, b"answered here")


@pytest.mark.parametrize(
    ("options", "lands", "next_", "words"),
    [
        ({}, b"", 2, HasWritten),
        ({}, None, 1, Unknown),
        ({"target": VALUE}, None, 2, Unknown),
        ({"headers": [(b"transfer-encoding", b"chunked")]}, None, 2, Unknown),
        ({"target": b"/dashboard"}, None, 2, Unknown),
    ],
    ids=["without its answer", "by who still leads", "a value", "a long body", "not of the API"],
)
def test_the_rest_is_503_and_is_not_made_again(monkeypatch, options, lands, next_, words):
    cluster = Cluster(lands=lands, next_=next_)

    status, body = ask(monkeypatch, cluster, **options)

    assert status == 503
    assert words().message in json.loads(body)["errors"][0]["message"]
    assert len(cluster.asked) == 1


def test_without_a_next_leader_it_is_503(monkeypatch):
    cluster = Cluster(lands=b"the answer")
    monkeypatch.setattr(module, "LOST_SECONDS_MAX", 0.05)
    real, cluster.exchange = cluster.exchange, None

    async def nobody(to, method, target, *more, **options):
        if target == module.SETTLED:
            raise ConnectionRefusedError
        return await real(to, method, target, *more, **options)

    cluster.exchange = nobody
    assert ask(monkeypatch, cluster)[0] == 503


def passed_on(cluster, header, handler=here):
    async def run():
        found = module.Gate(handler, cluster, None).passed_on(
            request(headers=[(module.REQUEST_HEADER, header)])
        )
        return found if isinstance(found, Response) else await found

    return asyncio.run(run())


def test_what_was_passed_on_to_another_leader_is_refused():
    """The same address, and another number: the node that asked would take its silence for a no."""
    cluster = Cluster(lands=None)
    cluster.leads = True

    assert dict(passed_on(cluster, b"r 8").headers)[module.NOT_LEADER]
    assert passed_on(cluster, b"r 9").body == b"answered here"


@pytest.mark.parametrize("has_run", [False, True])
def test_a_leader_says_which_503_may_have_written(has_run):
    cluster = Cluster(lands=None)
    cluster.leads = True

    async def handler(request):
        if has_run:
            PASSED.get().noted(lambda tx: None)(SimpleNamespace(answered=lambda one: None))
        return module.refusal(NotLeader())

    assert (module.PERHAPS in dict(passed_on(cluster, b"r 9", handler).headers)) is has_run


# What a node asks of the leader by itself.


async def act(content):
    return b"done with " + content


def ask_leader(monkeypatch, cluster):
    async def run():
        monkeypatch.setattr(module, "exchange", cluster.exchange)
        gate = module.Gate(here, cluster, None)
        gate.acts = {b"/act": act}
        return await gate.ask_leader(b"/act", b"content")

    return asyncio.run(run())


def test_an_act_is_the_leaders(monkeypatch):
    cluster = Cluster(lands=None)
    cluster.leads = True
    assert ask_leader(monkeypatch, cluster) == b"done with content"

    cluster = Cluster(lands=None)
    cluster.leader_number = 2
    assert ask_leader(monkeypatch, cluster) == b"of the next one"
    assert cluster.asked == [(2, b"content")]
    with pytest.raises(Unknown):
        ask_leader(monkeypatch, Cluster(lands=None))


@pytest.mark.parametrize("is_of_node", [True, False])
def test_only_a_node_has_acts_done(is_of_node):
    cluster = Cluster(lands=None)
    cluster.leads = True
    headers = [(module.REQUEST_HEADER, b"r 9"), *([(module.BETWEEN_NODES, b"1")] if is_of_node else [])]

    async def run():
        gate = module.Gate(here, cluster, None)
        gate.acts = {b"/act": act}
        return await gate.passed_on(request(b"/act", b"it", headers))

    assert asyncio.run(run()).body == (b"done with it" if is_of_node else b"answered here")


@pytest.mark.parametrize(("error", "is_unknown"), [(Unknown, True), (NotLeader, False)])
def test_who_asks_learns_that_an_act_may_be_done(monkeypatch, error, is_unknown):
    """Its write may be in the log of a leader that lost the database meanwhile."""

    async def failing(content):
        raise error()

    async def run():
        leader = Cluster(lands=None)
        leader.leads = True
        there = module.Gate(here, leader, None)
        there.acts = {b"/act": failing}

        async def exchange(to, method, target, headers, body, **more):
            # the number that the request carries is of the leader that the asker knows
            leader.seat.office.number = 1
            own = [header for header in headers if header[0] != b"host"]
            found = await there.passed_on(request(target, body, own))
            return answer(found.status, found.body, found.headers)

        monkeypatch.setattr(module, "exchange", exchange)
        await module.Gate(here, Cluster(lands=None), None).ask_leader(b"/act", b"content")

    with pytest.raises(Unavailable) as caught:
        asyncio.run(run())
    assert isinstance(caught.value, Unknown) is is_unknown


def test_an_act_that_this_release_does_not_know_is_refused():
    cluster = Cluster(lands=None)
    cluster.leads = True

    async def run():
        gate = module.Gate(here, cluster, None)
        node = [(module.REQUEST_HEADER, b"r 9"), (module.BETWEEN_NODES, b"1")]
        return await gate.passed_on(request(b"/of-the-next-release", b"it", node))

    assert asyncio.run(run()).status == 404


def test_a_client_cannot_say_that_it_is_a_node(monkeypatch):
    cluster = Cluster(lands=None)
    sent = []

    async def exchange(to, method, target, headers, body, **more):
        sent.append(dict(headers))
        return answer(200, b"")

    cluster.exchange = exchange
    ask(monkeypatch, cluster, target=b"/act", headers=[(module.BETWEEN_NODES, b"1")])

    assert sent
    assert all(module.BETWEEN_NODES not in headers for headers in sent)
