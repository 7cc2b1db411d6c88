"""NOTIFYs in a cluster: any node hears them, and the one that leads acts on them."""

import asyncio
import socket

import pytest

from edgestead.model import names
from edgestead.model.refusals import Unavailable
from edgestead.server.control import notices
from edgestead.server.control.notices import NoticesPart
from edgestead.server.dns.notices import NAME, Inbox

FIRST, SECOND = ("192.0.2.1", "one.example"), ("192.0.2.1", "two.example")


class Node:
    def __init__(self, folder):
        folder.mkdir()
        self.leads = False
        self._path = str(folder / NAME)
        self.inbox = Inbox(str(folder / "feed.sock"))
        self.part = NoticesPart(self.inbox, lambda: self.leads)

    def hear(self, notice):
        address, name = notice
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.sendto(address.encode() + b" " + names.wire_from_text(name), self._path)


@pytest.fixture
def nodes(tmp_path):
    made = [Node(tmp_path / name) for name in "ab"]
    made[0].leads = True
    yield made
    for node in made:
        node.part.close()
        node.inbox.close()


def test_what_any_node_hears_is_the_leaders_once(nodes):
    leader, other = nodes
    leader.hear(FIRST)
    other.hear(SECOND)
    for node in nodes:
        asyncio.run(node.part.tell(leader.part.take))

    assert leader.part.heard() == {FIRST, SECOND}
    assert leader.part.heard() == other.part.heard() == set()


def test_nothing_waits_until_its_node_leads_again(nodes):
    before, after = nodes
    before.hear(FIRST)
    asyncio.run(before.part.take(b'[["192.0.2.1","two.example"]]'))
    before.leads, after.leads = False, True
    asyncio.run(before.part.tell(after.part.take))

    assert before.part.heard() == set()
    assert after.part.heard() == {FIRST, SECOND}


def test_a_leader_that_is_not_reached_is_told_the_next_time(nodes, monkeypatch):
    monkeypatch.setattr(notices, "TELL_SECONDS", 0)
    leader, other = nodes
    failures = [Unavailable(), LookupError("odd")]

    async def told():
        over = asyncio.Event()

        async def pass_on(content):
            if failures:
                other.hear(SECOND)
                raise failures.pop(0)
            await leader.part.take(content)
            over.set()

        other.hear(FIRST)
        other.part.tell_by(pass_on)
        await asyncio.wait_for(over.wait(), 60)
        other.part.close()

    asyncio.run(told())
    assert leader.part.heard() == {SECOND}
