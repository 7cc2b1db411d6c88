"""Random questions to random zones get what NSD, Knot and BIND say, but for differences that are known."""

import contextlib
import functools
import socket
from collections import Counter
from pathlib import Path

import pytest

from edgestead.dns.udp import serve_udp
from tests.dns import peers
from tests.dns.facts import AA, ANY, RA, RD, facts
from tests.dns.known_differences import RULES, Asked, explained
from tests.dns.random_zones import APEXES, World
from tests.dns.serving import Asker, Counts, running, table_of

ALL = ("NSD", "Knot", "BIND")
WINDOW = 50
WAIT_SECONDS = 60
QUESTIONS = 5000
LONG_QUESTIONS = 10_000


def _later(section):
    return tuple((*record[:3], record[3] + 1, *record[4:]) for record in section)


WRONG = {
    "a TTL of an answer": lambda reply: reply._replace(answer=_later(reply.answer)),
    "a TTL of an authority": lambda reply: reply._replace(authority=_later(reply.authority)),
    "no authority": lambda reply: reply._replace(flags=reply.flags ^ AA),
    "recursion": lambda reply: reply._replace(flags=reply.flags | RA),
    "not RD of the query": lambda reply: reply._replace(flags=reply.flags ^ RD),
    "an address of nobody": lambda reply: reply._replace(
        additional=(*reply.additional, ("nobody.invalid.", 1, 1, 60, b"\xc0\0\2\1"))
    ),
    "not implemented": lambda reply: reply._replace(rcode=4),
}
"""What makes a reply wrong for every question whose reply it changes."""


@pytest.mark.parametrize("number", range(1, 4))
def test_random_questions_get_what_three_servers_say(number, tmp_path):
    compare(World(number), QUESTIONS, ALL, tmp_path)


def test_what_nsd_does_its_own_way_gets_what_knot_and_bind_say(tmp_path):
    compare(World(4, everything=True), QUESTIONS, ("Knot", "BIND"), tmp_path)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("number", range(1000, 1100))
def test_a_million_random_questions(number, tmp_path, capsys):
    everything = number % 4 == 0
    found = compare(
        World(number, everything=everything), LONG_QUESTIONS, ALL[1:] if everything else ALL, tmp_path
    )
    with capsys.disabled():
        print(f"\nzones {number}: {LONG_QUESTIONS} questions, {dict(found)}")  # noqa: T201


def test_every_known_difference_and_who_has_it_is_in_the_docs():
    page = Path(__file__).parents[2].joinpath("docs/differences.md").read_text()
    rows = dict(line[2:].split(" | ")[:2] for line in page.splitlines() if line.count(" | ") == 2)

    assert {title: [peer for peer in ALL if peer in rows[title]] for title in RULES} == {
        title: list(peers) for title, (peers, _) in RULES.items()
    }


@pytest.mark.parametrize("peer", ALL)
@pytest.mark.parametrize("spoil", WRONG.values(), ids=WRONG)
def test_no_rule_explains_a_wrong_reply(spoil, peer):
    world = World(1)
    everybody = Asker(table_of(world.zones))
    for packet in map(world.packet, range(300)):
        reply = everybody.raw(packet)
        asked, right = asked_in(world, peer, packet, len(reply)), facts(reply)
        wrong = spoil(right)

        assert wrong == right or asked.kind == ANY or explained(asked, right, wrong) is None


def compare(world, questions, names, folder):
    """Ask everybody the same; returns how often which server's answer differed for which known reason."""
    missing = [name for name in names if not peers.is_installed(name)]
    if missing:
        pytest.skip(f"NOT INSTALLED: {', '.join(missing)}. ANSWERS ARE NOT COMPARED WITH OTHER SERVERS.")
    found = Counter()
    with contextlib.ExitStack() as stack:
        everybody = _everybody(stack, world, names, folder)
        for _ in range(questions // WINDOW):
            packets = [world.packet(number) for number in range(WINDOW)]
            replies = _asked(everybody, packets)
            for packet, ours, *theirs in zip(packets, *replies, strict=True):
                for name, their in zip(names, theirs, strict=True):
                    for title in _differences(world, name, packet, ours, their):
                        found[name, title] += 1
    return found


def _everybody(stack, world, names, folder):
    """Sockets connected to us and to each peer."""
    places = []
    for name in names:
        (folder / name).mkdir()
        peer = stack.enter_context(peers.started(name, folder / name, world.zones))
        places.append((peer.host, peer.port))
    ours = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    ours.bind(("127.0.0.1", 0))
    stack.enter_context(running(serve_udp, ours, table_of(world.zones), Counts()))
    clients = []
    for place in (ours.getsockname(), *places):
        client = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        client.settimeout(WAIT_SECONDS)
        client.connect(place)
        clients.append(client)
    return clients


def _asked(clients, packets):
    """Each client's replies in the order of the packets, whose IDs are their numbers."""
    for client in clients:
        for packet in packets:
            client.send(packet)
    answers = []
    for client in clients:
        got = {reply[:2]: reply for reply in (client.recv(65_535) for _ in packets)}
        answers.append([got[packet[:2]] for packet in packets])
    return answers


def _differences(world, name, packet, ours, theirs):
    if ours == theirs:
        return ()
    our_facts, their_facts = facts(ours), facts(theirs)
    if our_facts == their_facts:
        return ()
    titles = explained(asked_in(world, name, packet, len(ours)), our_facts, their_facts)
    what = f"zones {world.number}, {name}, {packet.hex()}\n ours   {our_facts}\n theirs {their_facts}"
    assert titles is not None, what
    return titles


def asked_in(world, peer, packet, reply_octets):
    labels, at = [], 12
    while length := packet[at]:
        labels.append(packet[at + 1 : at + 1 + length].decode().lower())
        at += length + 1
    payload = int.from_bytes(packet[at + 8 : at + 10], "big") if len(packet) > at + 5 else 0
    limit = min(max(payload, 512), 1232)
    kind, flags = (int.from_bytes(packet[i : i + 2], "big") for i in (at + 1, 2))
    name = ".".join(labels) + "."

    def alone():
        return facts(_only(world, asked.zone_of(name)).raw(packet))

    asked = Asked(peer, name, kind, flags, tuple(APEXES), world.owners, limit - reply_octets, alone)
    return asked


@functools.lru_cache(maxsize=len(APEXES))
def _only(world, apex):
    """Who serves one zone of a world and no other."""
    return Asker(table_of({apex: world.zones[apex]} if apex else {}))
