"""Transfers in: what a primary may send, and what is taken. The primary is a socket that sends anything."""

import socket
import struct
import threading

import dns.flags
import dns.message
import dns.rcode
import dns.rrset
import dns.tsig
import pytest

from edgestead.dns.tsig import Key
from edgestead.server.control import incoming
from edgestead.usecases.zone.secondary import Peer, Rr, Unfit

KEY = Key(b"\3xfr\0", b"\x0bhmac-sha256\0", b"s" * 32)
APEX = b"\7example\4test\0"
NS = "example.test. 300 IN NS ns.example.net."


def soa(serial):
    return f"example.test. 300 IN SOA ns.example.net. h.example.net. {serial} 7200 900 86400 600"


def a(name, last, ttl=60):
    return f"{name}.example.test. {ttl} IN A 192.0.2.{last}"


class Primary:
    """Answers one connection with messages of these lines each, and keeps what it was asked."""

    def __init__(
        self, messages, *, change=lambda octets: octets, ends=True, rcode=0, secret=None, unsigned=()
    ):
        self._secret, self._unsigned = secret, unsigned
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.peer = Peer("1", "primary", "127.0.0.1", self._listening.getsockname()[1])
        self._messages, self._change, self._ends, self._rcode = messages, change, ends, rcode
        self.asked = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self):
        sock, _ = self._listening.accept()
        with sock:
            (octets,) = struct.unpack("!H", sock.recv(2, socket.MSG_WAITALL))
            wire = sock.recv(octets, socket.MSG_WAITALL)
            key = dns.tsig.Key("xfr", KEY.secret, "hmac-sha256")
            self.asked, context = dns.message.from_wire(wire, keyring=key), None
            if self._secret is not None:
                self.asked.keyring = dns.tsig.Key("xfr", self._secret, "hmac-sha256")
            try:
                for number, lines in enumerate(self._messages):
                    answer = dns.message.make_response(self.asked)
                    answer.set_rcode(self._rcode)
                    answer.answer = [dns.rrset.from_text(*line.split(maxsplit=4)) for line in lines]
                    if number in self._unsigned:
                        answer.keyring = answer.tsig = None
                    wire = self._change(answer.to_wire(want_shuffle=False, multi=True, tsig_ctx=context))
                    context = answer.tsig_ctx
                    sock.sendall(struct.pack("!H", len(wire)) + wire)
            except OSError:
                return  # hung up on
            if not self._ends:
                self._over.wait(300)

    def close(self):
        self._over.set()
        self._listening.close()
        self._thread.join(300)


def fetch(messages, serial=None, present=(), *, whole=False, seconds=300.0, key=None, **more):
    primary = Primary(messages, **more)
    try:
        return incoming.fetch(
            *(primary.peer, APEX, serial, lambda: frozenset(present)), whole=whole, key=key, seconds=seconds
        )
    finally:
        primary.close()


def texts(found):
    """(first label, last octet of the address) of the A records."""
    return {(rr.owner[1 : 1 + rr.owner[0]].decode(), rr.rdata[-1]) for rr in found.records if rr.type == 1}


def kept(name, last):
    owner = bytes((len(name),)) + name.encode() + APEX
    return Rr(owner, 1, 60, bytes((192, 0, 2, last)))


NS_KEPT = Rr(APEX, 2, 300, b"\2ns\7example\3net\0")


def test_a_whole_zone_in_several_messages():
    found = fetch([[soa(7), NS, a("www", 1)], [a("WWW", 2)], [a("mail", 3), soa(7)]])

    assert (found.serial, found.soa_ttl) == (7, 300)
    assert texts(found) == {("www", 1), ("www", 2), ("mail", 3)}


def test_a_ttl_of_one_second_becomes_two_because_one_means_another_thing():
    found = fetch([[soa(7), NS, a("www", 1, ttl=1), soa(7)]])

    assert {rr.ttl for rr in found.records if rr.type == 1} == {2}


def test_changes_one_after_the_other():
    found = fetch(
        [
            [
                soa(9),
                soa(7),
                a("old", 1),
                soa(8),
                a("new", 2),
                soa(8),
                a("new", 2),
                soa(9),
                a("newer", 3),
                soa(9),
            ]
        ],
        serial=7,
        present=[NS_KEPT, kept("old", 1), kept("stays", 4)],
    )

    assert found.serial == 9
    assert texts(found) == {("newer", 3), ("stays", 4)}


def test_a_digest_that_is_not_kept_may_be_replaced():
    old, new = (f"example.test. 300 IN ZONEMD {serial} 1 1 {'ab' * 48}" for serial in (7, 8))
    found = fetch([[soa(8), soa(7), old, soa(8), new, soa(8)]], serial=7, present=[NS_KEPT, kept("www", 1)])

    assert texts(found) == {("www", 1)}
    assert [rr.rdata[:4] for rr in found.records if rr.type == 63] == [b"\0\0\0\x08"]


def test_a_primary_that_answers_for_changes_with_the_whole_zone():
    found = fetch([[soa(9), NS, a("www", 1), soa(9)]], serial=7, present=[NS_KEPT, kept("old", 1)])

    assert texts(found) == {("www", 1)}


def test_nothing_newer():
    assert fetch([[soa(7)]], serial=7, ends=False) is None


def test_a_forced_transfer_takes_the_same_serial():
    assert fetch([[soa(7), NS, soa(7)]], serial=7) is None
    assert fetch([[soa(7), NS, soa(7)]], serial=7, whole=True).serial == 7


GOOD = [soa(7), NS, a("www", 1)]


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([], "ended before"),
        ([GOOD], "ended before"),
        ([[NS, soa(7)]], "begin with the SOA"),
        ([[*GOOD, soa(8)]], "another SOA"),
        ([[*GOOD, soa(7), a("more", 2)]], "follow the end"),
        ([[*GOOD, "www.example.org. 60 IN A 192.0.2.1", soa(7)]], "outside"),
        ([[*GOOD, "www.notexample.test. 60 IN A 192.0.2.1", soa(7)]], "outside"),
        ([[*GOOD, "sub." + soa(7), soa(7)]], "below the apex"),
        ([[soa(7), a("www", 1), soa(7)]], "no NS"),
        ([[], GOOD], "no records"),
        ([[*GOOD, "www.example.test. 60 CH TXT no", soa(7)]], "class"),
    ],
)
def test_an_answer_that_is_none_is_not_taken(messages, reason):
    with pytest.raises(Unfit, match=reason):
        fetch(messages)


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([[soa(6)]], "older serial, 6, than 7"),
        ([[soa(6), NS, soa(6)]], "older serial"),
        ([[soa(9), soa(7), a("absent", 1), soa(9), soa(9)]], "not there"),
        ([[soa(9), soa(7), soa(8), soa(7), soa(9), soa(9)]], "follow one another"),
        ([[soa(9), soa(7), soa(8), a("new", 2)]], "ended before"),
    ],
)
def test_changes_that_are_none_are_not_taken(messages, reason):
    with pytest.raises(Unfit, match=reason):
        fetch(messages, serial=7, present=[NS_KEPT])


@pytest.mark.parametrize("serial", [None, 6])
def test_an_answer_that_is_signed_is_taken(serial):
    found = fetch([[soa(7), NS, a("www", 1)], [a("more", 2)], [soa(7)]], serial=serial, key=KEY)

    assert texts(found) == {("www", 1), ("more", 2)}


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"secret": b"t" * 32}, "signature is not right"),
        ({"unsigned": (0, 1, 2)}, "a message is not signed"),
        ({"unsigned": (0,)}, "a message is not signed"),
        ({"unsigned": (2,)}, "last message is not signed"),
        ({"change": lambda octets: octets.replace(b"\xc0\0\2\1", b"\xc0\0\2\7")}, "signature is not right"),
    ],
    ids=["another secret", "none", "not the first", "not the last", "changed"],
)
def test_an_answer_that_does_not_prove_who_it_is_from_is_not_taken(more, reason):
    with pytest.raises(Unfit, match=reason):
        fetch([[soa(7), NS, a("www", 1)], [a("more", 2)], [soa(7)]], key=KEY, **more)


def test_a_refusal_of_a_question_that_is_signed_is_told():
    with pytest.raises(Unfit, match=r"prove who it is from.*answers NOTAUTH"):
        fetch([[]], rcode=dns.rcode.NOTAUTH, key=KEY, unsigned=(0,))


def test_a_refusal_of_the_primary_is_told():
    with pytest.raises(Unfit, match="REFUSED"):
        fetch([[]], rcode=dns.rcode.REFUSED)


@pytest.mark.parametrize(
    "change",
    [
        lambda octets: b"xx" + octets[2:],
        lambda octets: octets[:2] + b"\0" + octets[3:],
        lambda octets: octets[:-3],
        lambda octets: b"\0" * 5,
        lambda octets: octets[:40] + b"\xc0\x28" * 30,
    ],
    ids=["another id", "a query", "cut", "too short", "a loop of names"],
)
def test_octets_that_are_no_answer_are_not_taken(change):
    with pytest.raises(Unfit):
        fetch([[*GOOD, soa(7)]], change=change)


def test_a_transfer_that_never_ends_is_given_up():
    with pytest.raises((Unfit, TimeoutError)):
        fetch([GOOD], ends=False, seconds=0.3)


def test_a_transfer_of_too_many_records_is_given_up(monkeypatch):
    monkeypatch.setattr(incoming, "RECORDS_MAX", 5)

    with pytest.raises(Unfit, match="more than 5 records"):
        fetch([GOOD, *[[a(f"n{n}", n)] for n in range(100)]])


def test_a_transfer_of_too_many_octets_is_given_up(monkeypatch):
    monkeypatch.setattr(incoming, "OCTETS_MAX", 1000)

    with pytest.raises(Unfit, match="MiB"):
        fetch([GOOD, *[[a(f"n{n}", n)] for n in range(100)]])


def test_nobody_there():
    with pytest.raises(ConnectionRefusedError):
        incoming.fetch(Peer("1", "none", "127.0.0.1", 1), APEX, None, frozenset)
