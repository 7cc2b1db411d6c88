"""The quota of API requests in a cluster: followers tell the leader, which adds up."""

import random
from contextlib import suppress

import pytest

from edgestead.model.refusals import Unavailable
from edgestead.model.refusals.request import RateLimited
from edgestead.rest.quota import Quota
from edgestead.server.control.quota import QuotaPart

SECOND_US = 1_000_000
WINDOW_S = 300


class Nodes:
    """The first one leads. Their clocks differ by hours: none of them may be compared."""

    def __init__(self, limit, count=3):
        self.now_s = 0
        self.quotas = [Quota(limit) for _ in range(count)]
        self.parts = [
            QuotaPart(quota, lambda n=n: n == 0, lambda n=n: self.now_us(n))
            for n, quota in enumerate(self.quotas)
        ]
        for part in self.parts:
            part.pass_on = self.parts[0].take

    def now_us(self, node):
        return (self.now_s + 3_600 * node + 1) * SECOND_US

    def ask(self, node, user="ann"):
        """Whether it is let in."""
        try:
            self.quotas[node].take(user, self.now_us(node))
        except RateLimited:
            return False
        return True

    def left(self, node, user="ann"):
        headers = dict(self.quotas[node]._headers(self.quotas[node]._windows[user]))
        return int(headers[b"x-ratelimit-remaining"])

    def tell(self, *nodes):
        for node in nodes or range(len(self.parts)):
            with suppress(StopIteration):  # nothing waits
                self.parts[node].tell().send(None)


@pytest.fixture
def nodes():
    made = Nodes(10)
    made.tell()  # the first round begins the count
    return made


def test_requests_of_all_nodes_are_added_up_and_each_is_counted_once(nodes):
    assert all(nodes.ask(node) for node in (0, 1, 1, 2, 2, 2))

    nodes.tell(1, 2, 1, 2)
    assert (nodes.left(0), nodes.left(2)) == (4, 4)
    assert nodes.ask(1)
    nodes.tell()

    assert (nodes.left(0), nodes.left(1)) == (3, 3)


def test_one_too_many_at_one_node_blocks_the_user_at_all_for_the_same_time_and_nobody_else(nodes):
    assert [nodes.ask(1) for _ in range(11)] == [True] * 10 + [False]
    nodes.now_s += 10
    nodes.tell(1)

    assert [nodes.ask(0), nodes.ask(0, "bob")] == [False, True]
    nodes.now_s += WINDOW_S - 11
    assert [nodes.ask(0), nodes.ask(1)] == [False, False]
    nodes.now_s += 1
    assert [nodes.ask(0), nodes.ask(1)] == [True, True]


def test_a_follower_that_has_no_leader_counts_for_itself_and_tells_later_requests(nodes):
    async def away(content):
        raise Unavailable()

    there, nodes.parts[1].pass_on = nodes.parts[1].pass_on, away
    assert nodes.ask(1)
    with pytest.raises(Unavailable):
        nodes.tell(1)
    nodes.parts[1].pass_on = there
    assert nodes.ask(1)
    nodes.tell(1)

    assert nodes.left(0) == 9, "what was lost is not told again: it may have been counted"


@pytest.mark.parametrize("seed", range(100))
def test_a_user_gets_no_less_than_the_quota_and_no_more_than_was_let_in_between_two_rounds(seed):
    rnd = random.Random(seed)
    nodes, limit = Nodes(100), 100
    nodes.tell()
    admitted, since, slack = 0, [0, 0, 0], 0
    for _ in range(rnd.randrange(20, 60)):
        for _ in range(rnd.randrange(8)):
            node = rnd.randrange(3)
            if nodes.ask(node):
                admitted += 1
                since[node] += 1
        slack = max(slack, sum(since))
        nodes.tell()
        since = [0, 0, 0]
    while nodes.ask(rnd.randrange(3)) or any(nodes.ask(node) for node in range(3)):
        admitted += 1
        nodes.tell()

    assert limit <= admitted <= limit + slack + 3


def test_a_follower_that_leads_when_it_tells_counts_its_own_requests_once(nodes):
    for _ in range(4):
        nodes.ask(1)
    nodes.parts[1].pass_on = nodes.parts[1].take  # what reaches the leader is this process by now

    nodes.tell(1)

    assert nodes.left(1) == 6
