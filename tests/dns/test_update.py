"""Dynamic updates at a DNS process: what is refused at once, what is handed over, what comes back."""

import base64

import dns.message
import dns.name
import dns.rcode
import dns.tsig
import dns.update
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from edgestead.dns import tsig, update
from edgestead.dns.counters import NoCounters, Tally
from edgestead.dns.keyring import Keyring
from edgestead.dns.update import Updates
from edgestead.dns.wire import BadMessage
from edgestead.model.tsig import KIND_KEY, ServedKey, encode
from tests.dns.serving import Change

SECRETS = {"may": b"a" * 32, "may-not": b"b" * 32}
NOT_YET = b""


def keyring():
    made = Keyring(lambda key: key.sealed)
    rows = []
    for label, secret in SECRETS.items():
        name = dns.name.from_text(label).to_wire()
        key = ServedKey(name, "hmac-sha256", "account", secret, transfer=True, update=label == "may")
        rows.append(Change("tsig", KIND_KEY, label, encode(key)))
    made.take(rows)
    return made


class World:
    """`forwarded` are the messages that control would get; `room` is how many it takes."""

    def __init__(self, room=1):
        self.forwarded, self.room, self.sent = [], room, []
        self.updates = Updates(keyring(), Tally(NoCounters()), self.forward)

    def forward(self, message, client, answered):
        if not self.room:
            return False
        self.room -= 1
        self.forwarded.append((message, client, answered))
        return True

    def begin(self, octets):
        return self.updates.begin(octets, "192.0.2.1", self.sent.append)


def message(key=None, secret=None):
    made = dns.update.UpdateMessage("example.com")
    made.add("www", 300, "A", "192.0.2.1")
    if key is not None:
        made.use_tsig(dns.tsig.Key(key, base64.b64encode(secret or SECRETS.get(key, b"?")).decode()))
    return made


@pytest.mark.parametrize(
    ("key", "secret", "rcode", "error"),
    [
        (None, None, dns.rcode.REFUSED, None),
        ("may-not", None, dns.rcode.REFUSED, 0),
        ("may", b"guessed", dns.rcode.NOTAUTH, tsig.BADSIG),
        ("nobody", None, dns.rcode.NOTAUTH, tsig.BADKEY),
    ],
)
def test_who_may_change_nothing_is_not_handed_over(key, secret, rcode, error):
    world = World()
    reply = world.begin(message(key, secret).to_wire())

    assert reply[3] & 0x0F == rcode
    assert world.forwarded == []
    if error is not None:
        assert tsig.find(reply).error == error


def test_without_a_signature_nothing_of_the_message_is_read():
    world = World()
    reply = world.begin(message().to_wire()[:12] + b"\xff" * 4000)

    assert (reply[3] & 0x0F, len(reply)) == (dns.rcode.REFUSED, 12)


@pytest.mark.parametrize("rcode", [0, 3, 5, 6, 7, 8, 9, 10])
def test_what_control_says_comes_back_signed(rcode):
    world, asked = World(), message("may")
    octets = asked.to_wire()

    assert world.begin(octets) is None
    ((handed, client, answered),) = world.forwarded
    assert (handed, client) == (octets, "192.0.2.1")
    answered(rcode)
    (reply,) = world.sent
    read = dns.message.from_wire(reply, keyring=asked.keyring, request_mac=asked.mac)
    assert (read.id, read.rcode(), read.had_tsig) == (asked.id, rcode, True)
    assert asked.is_response(read)


def test_over_tcp_the_reply_takes_its_time():
    world = World()
    steps = world.updates.over_tcp(message("may").to_wire(), "192.0.2.1", NOT_YET)

    assert [next(steps), next(steps)] == [NOT_YET, NOT_YET]
    world.forwarded[0][2](0)
    (reply,) = steps
    assert reply[1] & 0x0F == 0


def test_when_too_many_wait_the_client_asks_again():
    reply = World(room=0).begin(message("may").to_wire())

    assert reply[3] & 0x0F == dns.rcode.SERVFAIL
    assert tsig.find(reply).mac


def test_a_message_is_read_as_dnspython_wrote_it():
    made = dns.update.UpdateMessage("Example.com")  # names in it point to this one
    made.present("a", "MX", "10 Mail.example.com.")
    made.add("a", 300, "SRV", "1 2 3 a.example.com.")
    made.delete("b")
    read = update.read(made.to_wire())

    assert read.apex == b"\x07example\x03com\0"
    (prerequisite,) = read.prerequisites
    assert (prerequisite.owner, prerequisite.type, prerequisite.class_) == (b"\1a" + read.apex, 15, 1)
    assert prerequisite.rdata == b"\0\x0a\x04Mail\x07Example\x03com\0"
    assert [(line.type, line.class_, line.ttl) for line in read.updates] == [(33, 1, 300), (255, 255, 0)]
    assert read.updates[0].rdata.lower() == b"\0\1\0\2\0\3\1a" + read.apex


WHOLE = message().to_wire()


@given(st.integers(0, len(WHOLE) - 1), st.integers(1, 255), st.integers(0, len(WHOLE)))
@example(4, 1, 0)
def test_no_octets_make_it_raise_anything_else(at, mask, end):
    changed = bytearray(WHOLE)
    changed[at] ^= mask
    for octets in (bytes(changed), WHOLE[:end], bytes(changed[:end]), WHOLE + bytes(changed[:end])):
        try:
            update.read(octets)
        except BadMessage:
            pass
        World().begin(octets.ljust(12, b"\0"))
