"""Reads of a node that its cluster's database does not answer, without sockets: who answers them, and how."""

import asyncio
from types import SimpleNamespace

import pytest

from edgestead.cluster.silence import Age, Silence
from edgestead.http1.messages import Body, Request, Response
from edgestead.server.cluster.gate import Gate
from edgestead.store.answered import Answers

PATH = b"/client/v4/zones"


class Node:
    """A gate whose process may answer, and hears the database, as its fields say.

    `is_silent` is of a database that is, for longer than reads go on.
    """

    leads, leader_number, answers = True, None, Answers()

    def __init__(self, *, reads_go_on=True, may_answer=False, age=None, is_silent=False):
        self.may_answer, self.age = may_answer, age
        self._is_silent = is_silent
        self.handled = 0
        self.seat = SimpleNamespace(may_answer=lambda: self.may_answer)
        self.leader_address = ""
        self.gate = Gate(
            self._handle,
            self,
            None,
            reads_go_on=reads_go_on,
            age=lambda: self.age,
        )
        self.passed_on = 0
        self.gate._elsewhere = self._pass_on

    @property
    def is_silent(self):
        return self._is_silent or (self.age is not None and self.age.is_silent)

    def _handle(self, request):
        self.handled += 1
        return Response(200, [(b"x", b"y")], b"here")

    async def _pass_on(self, request):
        self.passed_on += 1
        return Response(200, [], b"elsewhere")

    def ask(self, method="GET"):
        request = Request(method, PATH, [], "192.0.2.1", Body(lambda: None, ended=True))
        answer = self.gate(request)
        return answer if isinstance(answer, Response) else asyncio.run(answer)


def silent(seconds):
    return Age(seconds, is_silent=True)


def heard(seconds):
    """The database answers again, and this process has not joined yet."""
    return Age(seconds, is_silent=False)


def old_seconds(answer):
    return dict(answer.headers).get(b"edge-stale")


@pytest.mark.parametrize(
    ("node", "status", "body", "old"),
    [
        (Node(may_answer=True), 200, b"here", None),
        (Node(may_answer=True, age=silent(1)), 200, b"here", None),
        (Node(age=silent(0)), 200, b"here", b"0"),
        (Node(age=silent(90)), 200, b"here", b"90"),
        (Node(age=heard(3)), 200, b"elsewhere", None),
        (Node(), 200, b"elsewhere", None),
        (Node(reads_go_on=False), 200, b"elsewhere", None),
        (Node(is_silent=True), 503, None, None),
        (Node(reads_go_on=False, age=silent(90)), 503, None, None),
        (Node(reads_go_on=False, is_silent=True), 503, None, None),
        (Node(reads_go_on=False, age=heard(90)), 200, b"elsewhere", None),
    ],
    ids=[
        "leased",
        "leased still",
        "silent",
        "silent long",
        "heard again",
        "never silent",
        "current only",
        "silent for too long",
        "current only, silent",
        "current only, silent for too long",
        "current only, heard again",
    ],
)
def test_a_read_is_current_or_says_that_it_may_be_old(node, status, body, old):
    answer = node.ask()

    assert (answer.status, old_seconds(answer)) == (status, old)
    assert body is None or answer.body == body


def test_a_read_whose_leader_may_not_answer_either_waits_until_somebody_may():
    node, left = Node(), [3]

    async def refused(request):
        return Response(503, [], b"not now")

    async def look():
        left[0] -= 1
        node.may_answer = left[0] == 0

    node.gate._elsewhere, node.gate._look = refused, look

    answer = node.ask()

    assert (answer.status, answer.body, left) == (200, b"here", [0])


def test_a_read_that_waits_for_a_leader_is_answered_here_once_the_database_is_silent_again():
    node, looks = Node(age=heard(3)), []

    async def refused(request):
        return Response(503, [], b"nobody leads")

    async def look():
        looks.append(node.age)
        node.age = silent(4)

    node.gate._elsewhere, node.gate._look = refused, look

    answer = node.ask()

    assert (answer.status, old_seconds(answer), looks) == (200, b"4", [heard(3)])


@pytest.mark.parametrize(("age", "status", "old"), [(heard(9), 200, b"9"), (None, 503, None)])
def test_a_read_for_which_no_leader_came_is_answered_with_what_there_is_and_its_age(
    age, status, old, monkeypatch
):
    monkeypatch.setattr("edgestead.server.cluster.gate.HOLD_SECONDS_MAX", 0.01)
    node = Node(age=age)

    async def refused(request):
        return Response(503, [], b"nobody leads")

    async def look():
        await asyncio.sleep(0.001)

    node.gate._elsewhere, node.gate._look = refused, look

    answer = node.ask()

    assert (answer.status, old_seconds(answer), node.handled) == (status, old, int(status == 200))


@pytest.mark.parametrize("was_running", [False, True])
def test_a_read_waits_while_the_office_moves_as_writes_do(was_running):
    """Who gave it away knows of no other leader for a moment, and may not answer."""
    node, looks = Node(reads_go_on=False, may_answer=was_running), []
    node.leads = False
    del node.gate._elsewhere

    async def handle(request):
        node.may_answer = False
        return Response(200, [], b"here")

    async def look():
        looks.append(node.leader_address)
        if len(looks) == 3:
            node.leader_address, node.leader_number = "192.0.2.2:1", 2

    async def ask(address, request, content, number, *, is_act):
        return Response(200, [], address.encode())

    node.gate._handler, node.gate._look, node.gate._ask = handle, look, ask

    answer = node.ask()

    assert (answer.status, answer.body, looks) == (200, b"192.0.2.2:1", [""] * 3)


def test_a_read_that_waits_ends_as_soon_as_the_database_is_silent():
    node, looks = Node(reads_go_on=False), []
    node.leads = False
    del node.gate._elsewhere

    async def look():
        looks.append(0)
        node.age = silent(0)

    node.gate._look = look

    assert (node.ask().status, looks) == (503, [0])


def test_waiting_for_a_leader_ends_when_a_read_can_be_answered_here():
    node, looks = Node(age=heard(3)), []
    gate, node.leads = node.gate, False
    del gate._elsewhere

    async def look():
        looks.append(node.age)
        node.age = silent(4)

    gate._look = look

    answer = node.ask()

    assert (answer.status, old_seconds(answer), looks) == (200, b"4", [heard(3)])


@pytest.mark.parametrize("after", [silent(2), heard(2)])
def test_no_write_goes_on(after):
    node = Node(age=after)

    answer = node.ask("POST")

    assert (answer.status, node.handled) == (503, 0)


@pytest.mark.parametrize("after", [silent(2), heard(2)])
def test_a_lease_that_ends_under_a_read_makes_its_answer_one_that_may_be_old(after):
    node = Node(may_answer=True)

    def handle(request):
        node.may_answer, node.age = False, after
        return Response(200, [], b"here")

    node.gate._handler = handle

    assert old_seconds(node.ask()) == b"2"


@pytest.mark.parametrize(
    ("after_ms", "hours_max", "seconds"),
    [(0, 1, 0), (1_999, 1, 1), (3_599_000, 1, 3_599), (3_600_000, 1, None), (0, 0, None)],
)
def test_silence_counts_from_the_first_question_that_failed_up_to_its_limit(after_ms, hours_max, seconds):
    silence = Silence()

    assert silence.age(10_000, hours_max) is None
    silence.failed(10_000)
    silence.failed(10_500)

    assert silence.age(10_000 + after_ms, hours_max) == (None if seconds is None else silent(seconds))


def test_what_a_process_has_ages_until_it_may_answer_again():
    silence = Silence()
    silence.failed(10_000)
    silence.may_answer()  # its lease holds, and the database is silent
    assert silence.age(11_000) == silent(1)

    silence.heard()
    assert silence.age(12_000) == heard(2)
    silence.failed(12_500)
    assert silence.age(13_000) == silent(3)
    silence.heard()
    silence.may_answer()

    assert silence.age(14_000) is None
