"""TSIG: what dnspython signs is believed, what we sign is believed by it, and nothing else is."""

import struct
import time

import dns.flags
import dns.message
import dns.name
import dns.query
import dns.rcode
import dns.tsig
import dns.tsigkeyring
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgestead.dns import tsig, wire
from edgestead.dns.tsig import Key, NotSigned, Signer, Verifier
from edgestead.dns.wire import BadMessage

NOW = 1_700_000_000
KEYS = [
    Key(b"\x04xfr1\x07example\0", b"\x0bhmac-sha256\0", b"a" * 32),
    Key(b"\x04xfr2\x07example\0", b"\x0bhmac-sha512\0", b"b" * 64),
]
RING = {key.name: key for key in KEYS}
OTHER = Key(b"\x05other\0", b"\x0bhmac-sha256\0", b"c" * 32)


def theirs(key):
    name, algorithm = (dns.name.from_wire(octets, 0)[0] for octets in (key.name, key.algorithm))
    return dns.tsig.Key(name, key.secret, algorithm)


def asked(key=None, *, at=NOW, fudge=300, text="www.example.com", original_id=None):
    """A question as dnspython signs it."""
    message = dns.message.make_query(text, "SOA", use_edns=True, id=4711)
    if key is not None:
        message.use_tsig(theirs(key), fudge=fudge, original_id=original_id)
    return message, signed_at(message, at)


def signed_at(message, at):
    real = time.time
    time.time = lambda: at
    try:
        return message.to_wire()
    finally:
        time.time = real


@pytest.mark.parametrize("key", KEYS, ids=["sha256", "sha512"])
def test_a_message_that_dnspython_signed_is_believed_and_our_answer_by_it(key):
    message, octets = asked(key)
    verdict = tsig.verify(octets, RING, NOW)
    plain, _ = asked()

    assert (verdict.key, verdict.error, verdict.message) == (key, 0, plain.to_wire())

    reply = dns.message.make_response(plain).to_wire()
    signed = tsig.answer(reply, verdict, int(time.time()))

    assert len(signed) == len(reply) + key.record_octets
    assert dns.message.from_wire(signed, keyring=theirs(key), request_mac=message.mac).had_tsig


def test_an_id_that_a_forwarder_changed_does_no_harm():
    message, octets = asked(KEYS[0], original_id=99)
    verdict = tsig.verify(octets, RING, NOW)

    assert verdict.key == KEYS[0]

    back = tsig.answer(dns.message.make_response(asked()[0]).to_wire(), verdict, int(time.time()))

    assert dns.message.from_wire(back, keyring=theirs(KEYS[0]), request_mac=message.mac).had_tsig


def test_a_message_without_a_signature_is_nobodys():
    _, octets = asked()

    assert tsig.verify(octets, RING, NOW) == (octets, None, None, 0)


@pytest.mark.parametrize(
    ("key", "at", "error"),
    [
        (OTHER, NOW, tsig.BADKEY),
        (KEYS[0]._replace(algorithm=KEYS[1].algorithm), NOW, tsig.BADKEY),
        (KEYS[0]._replace(secret=b"guessed"), NOW, tsig.BADSIG),
        (KEYS[0], NOW - 301, tsig.BADTIME),
        (KEYS[0], NOW + 301, tsig.BADTIME),
    ],
    ids=["unknown", "other algorithm", "other secret", "too old", "too new"],
)
def test_who_is_not_to_be_believed_is_told_why(key, at, error):
    message, octets = asked(key, at=at)
    verdict = tsig.verify(octets, RING, NOW)

    assert (verdict.key, verdict.error) == (None, error)

    refusal = tsig.refusal(verdict, NOW)
    record = tsig.find(refusal)

    assert refusal[3] & 0x0F == dns.rcode.NOTAUTH
    assert record.error == error
    assert bool(record.mac) is (error == tsig.BADTIME)
    if error == tsig.BADTIME:
        assert (record.time_s, int.from_bytes(record.other, "big")) == (at, NOW)
        with pytest.raises(dns.tsig.PeerBadTime):
            validated(refusal, key, message.mac, at)


def validated(octets, key, mac, at):
    real = time.time
    time.time = lambda: at
    try:
        return dns.message.from_wire(octets, keyring=theirs(key), request_mac=mac)
    finally:
        time.time = real


def test_a_large_fudge_opens_no_window():
    _, octets = asked(KEYS[0], at=NOW - 1_000, fudge=60_000)

    assert tsig.verify(octets, RING, NOW).error == tsig.BADTIME


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_no_changed_octet_is_believed(where, mask):
    _, octets = asked(KEYS[1])
    record = tsig.find(octets)
    fields_case = range(record.at, record.at + len(record.name))  # names are signed in lower case
    at = 2 + where % (len(octets) - 2)
    changed = bytearray(octets)
    changed[at] ^= mask
    if at in fields_case or bytes(changed).lower() == octets.lower():
        return

    try:
        verdict = tsig.verify(bytes(changed), RING, NOW)
    except BadMessage:
        return

    assert verdict.key is None


@pytest.mark.parametrize(
    ("octets", "error"), [(9, None), (15, None), (16, tsig.BADTRUNC), (31, tsig.BADTRUNC)]
)
def test_a_truncated_mac_is_refused(octets, error):
    _, whole = asked(KEYS[0])
    record = tsig.find(whole)
    cut = tsig._with(tsig._without(whole, record), record, record.mac[:octets])
    if error is None:
        with pytest.raises(BadMessage):
            tsig.verify(cut, RING, NOW)
        return

    verdict = tsig.verify(cut, RING, NOW)

    assert (verdict.key, verdict.error) == (None, error)
    assert tsig.find(tsig.refusal(verdict, NOW)).mac  # signed: the sender is known


def rebuilt(record=b"", *, counts=None, behind=b""):
    _, whole = asked(KEYS[0])
    found = tsig.find(whole)
    octets = bytearray(whole[: found.at] + (record or whole[found.at :]) + behind)
    if counts is not None:
        octets[10:12] = struct.pack("!H", counts)
    return bytes(octets)


def record_with(kind=250, class_=255, ttl=0, rdata=b"\0" * 17):
    return KEYS[0].name + struct.pack("!HHIH", kind, class_, ttl, len(rdata)) + rdata


@pytest.mark.parametrize(
    "octets",
    [
        rebuilt(behind=b"\0"),
        rebuilt(behind=record_with(), counts=3),
        rebuilt(record_with(class_=1)),
        rebuilt(record_with(ttl=1)),
        rebuilt(record_with(rdata=b"")),
        rebuilt(record_with(rdata=b"\0" * 16)),
        rebuilt(record_with(rdata=b"\xc0\x0c" + b"\0" * 16)),
        rebuilt(counts=99),
        b"\0" * 11,
    ],
    ids=["octets behind", "two", "class", "ttl", "empty", "short", "compressed", "counts", "no header"],
)
def test_another_form_is_no_tsig(octets):
    with pytest.raises(BadMessage):
        tsig.verify(octets, RING, NOW)


@pytest.mark.parametrize("key", KEYS, ids=["sha256", "sha512"])
def test_dnspython_believes_each_message_of_an_answer(key):
    question, octets = asked(key, at=int(time.time()))
    signer = Signer(tsig.verify(octets, RING, int(time.time())))
    plain = dns.message.make_response(asked()[0]).to_wire()
    context = None
    for number in range(3):
        read = dns.message.from_wire(
            signer.sign(plain, int(time.time())),
            keyring=theirs(key),
            request_mac=question.mac,
            tsig_ctx=context,
            multi=True,
            xfr=number > 0,
        )
        context = read.tsig_ctx

        assert read.had_tsig


def test_what_a_signer_signed_a_verifier_takes():
    _, octets = asked(KEYS[0])
    verdict = tsig.verify(octets, RING, NOW)
    signer, verifier = Signer(verdict), Verifier(KEYS[0], verdict.mac)
    plain = dns.message.make_response(asked()[0]).to_wire()

    assert [verifier.take(signer.sign(plain, NOW), NOW) for _ in range(3)] == [plain] * 3

    verifier.end()


def test_a_verifier_takes_dnspythons_messages_with_unsigned_ones_between():
    question, _ = asked(KEYS[0])
    plain = dns.message.make_response(asked()[0]).to_wire()
    verifier, context = Verifier(KEYS[0], question.mac), None
    signing = theirs(KEYS[0])
    for number in range(4):
        if number % 2:  # dnspython's context takes what is not signed, too
            context.update(plain)
            verifier.take(plain, NOW)
            continue
        record = tsig.Record(0, KEYS[0].name, KEYS[0].algorithm, NOW, 300, b"", plain[:2], 0, b"")
        rdata = dns.message.from_wire(tsig._with(plain, record, b"x" * 32), keyring=False).tsig[0]
        made, context = dns.tsig.sign(plain, signing, rdata, NOW, question.mac, context, True)
        verifier.take(tsig._with(plain, record, made.mac), NOW)
    with pytest.raises(NotSigned):
        verifier.take(plain, NOW), verifier.end()


def test_a_verifier_refuses_what_is_left_out_turned_round_or_never_signed():
    _, octets = asked(KEYS[0])
    verdict = tsig.verify(octets, RING, NOW)
    plain = dns.message.make_response(asked()[0]).to_wire()
    signer = Signer(verdict)
    first, second, third = (signer.sign(plain, NOW) for _ in range(3))
    for wrong in ((plain,), (second,), (first, third), (first, first), (first, second[:-1] + b"\1")):
        verifier = Verifier(KEYS[0], verdict.mac)
        with pytest.raises((NotSigned, BadMessage)):
            [verifier.take(message, NOW) for message in wrong]
    verifier = Verifier(KEYS[0], verdict.mac)
    verifier.take(first, NOW)
    for _ in range(tsig.UNSIGNED_MAX):
        verifier.take(plain, NOW)
    with pytest.raises(NotSigned):
        verifier.take(plain, NOW)


def test_a_key_shows_no_secret():
    assert "aaaa" not in repr(KEYS[0]) + str(RING)


def test_a_name_is_read_through_its_pointers():
    message = b"\0" * 12 + b"\3WWW\7example\0" + b"\4mail\xc0\x10" + b"\xc0\x19"

    assert wire.expand_name(message, 12) == (b"\3www\7example\0", 25)
    assert wire.expand_name(message, 25) == (b"\4mail\7example\0", 32)
    assert wire.expand_name(message, 32) == (b"\4mail\7example\0", 34)


@pytest.mark.parametrize(
    "tail",
    [
        b"\xc0\x0c",
        b"\1a\xc0\x0c",
        b"\xc0\x20",
        b"\xc0",
        b"\1a",
        b"\x40",
        b"\1a" * 128 + b"\0",
        b"\0" + b"".join(struct.pack("!H", 0xC000 | at) for at in (12, *range(13, 13 + 2 * 200, 2))),
    ],
    ids=["itself", "round", "outside", "half", "no end", "label type", "long", "many pointers"],
)
def test_a_name_without_an_end_is_none(tail):
    at = 12 if len(tail) < 300 else 12 + len(tail) - 2
    with pytest.raises(BadMessage):
        wire.expand_name(b"\0" * 12 + tail, at)
