"""Secondaries that show a proof, or do not."""

import asyncio

import dns.message
import dns.rrset

from edgestead.server.control import authorities
from edgestead.server.control.authorities import shown_everywhere

NAME = "_acme-challenge.example.com"


class Secondary(asyncio.DatagramProtocol):
    """Answers every question with these texts."""

    def __init__(self, *texts):
        self.texts = texts

    async def open(self):
        made, _ = await asyncio.get_running_loop().create_datagram_endpoint(
            lambda: self, local_addr=("127.0.0.1", 0)
        )
        self.transport = made
        return made.get_extra_info("sockname")

    def datagram_received(self, data, address):
        reply = dns.message.make_response(dns.message.from_wire(data))
        if self.texts:
            reply.answer.append(
                dns.rrset.from_text(f"{NAME}.", 60, "IN", "TXT", *(f'"{text}"' for text in self.texts))
            )
        self.transport.sendto(reply.to_wire(), address)


def shown(proofs, *secondaries):
    async def ask():
        places = [await one.open() for one in secondaries]
        found = await shown_everywhere(places, proofs)
        for one in secondaries:
            one.transport.close()
        return found

    return asyncio.run(ask())


def test_every_proof_has_to_be_at_every_secondary():
    both, one = [(NAME, "a"), (NAME, "b")], [(NAME, "a")]
    assert shown(both)
    assert shown(both, Secondary("a", "b", "mine"), Secondary("b", "a"))
    assert not shown(both, Secondary("a", "b"), Secondary("a"))
    assert not shown(one, Secondary())


def test_one_that_does_not_answer_shows_nothing(monkeypatch):
    monkeypatch.setattr(authorities, "QUESTION_SECONDS_MAX", 0.2)
    silent = Secondary()
    silent.datagram_received = lambda *_: None
    assert not shown([(NAME, "a")], silent)
