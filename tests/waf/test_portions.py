"""An inspection never keeps the loop for long: whatever the body, its work is done in portions, and they find
what work at one stretch finds."""

import json
import random

import pytest

from edgestead.waf.bodies import json as bodies_json
from edgestead.waf.bodies.late_parts import LateParts
from edgestead.waf.engine import Engine
from edgestead.waf.limits import PART_BYTES, PART_VALUES, PORTION_UNITS_MAX, SLICE_BYTES, Meter, at_once
from edgestead.waf.plan.constants import Uses
from edgestead.waf.plan.gates import ARGUMENTS
from edgestead.waf.plan.policies import Rest
from edgestead.waf.run.suspects import DETECTOR_UNITS_PER_BYTE
from edgestead.waf.terms.transformations import IN_PORTIONS, TRANSFORMATIONS
from edgestead.waf.terms.variants import SEPARATOR, Chains, Texts
from edgestead.waf.transaction import Refused, Request
from tests.waf.conftest import ids, inspect

WORDS = b"summer winter shoes red price size select from union where script".split()
PUNCTUATION = b"!\"#$'()*,-./:;<=>?@[\\]^_`{|}~"
FORM, JSON, XML = b"application/x-www-form-urlencoded", b"application/json", b"application/xml"
BODY_BYTES = 130_000
CHANCE = random.Random(5)


def some(alphabet, octets):
    return bytes(CHANCE.choices(alphabet, k=octets))


def word():
    return CHANCE.choice(WORDS)


def fields(text, count=999):
    return b"&".join(b"a%d=" % number + text % {b"word": word(), b"n": number} for number in range(count))


def elements(text, count):
    return b"<r>" + b"".join(text % {b"word": word(), b"n": number} for number in range(count)) + b"</r>"


def multipart(part, count):
    return b"--XyZ\r\n" + b"\r\n--XyZ\r\n".join([part] * count) + b"\r\n--XyZ--\r\n"


NAMED = b'Content-Disposition: form-data; name="%b"\r\n\r\n'
MULTIPART = b"multipart/form-data; boundary=XyZ"
BODIES = {
    "XML of 108 KB": (XML, elements(b"<a b='%(n)d'>%(word)b %(n)d</a>", 4_200)),
    "999 arguments": (FORM, fields(b"%(word)b%%27%(n)d")),
    "JSON of 900 strings 60 deep": (
        JSON,
        b"[" * 60 + b",".join(b'"%b %d"' % (word(), number) for number in range(900)) + b"]" * 60,
    ),
    "42 KB of punctuation": (FORM, b"a=" + some(PUNCTUATION, 42_000)),
    "999 attacks": (FORM, fields(b"%(word)b'+or+1=1--%(n)d")),
    "999 paths": (FORM, fields(b"../../etc/passwd%%00%(n)d;cat")),
    "999 names": (FORM, b"&".join(b"a[%d].%b'=1" % (number, word()) for number in range(999))),
    "XML of many tags": (XML, elements(b"<a/>", 9_990)),
    "XML of many attributes": (XML, elements(b"<a b='x' c='y' d='z' e='%(n)d'/>", 1_990)),
    "JSON of numbers": (JSON, b"[" + b"1," * 60_000 + b"1]"),
    "JSON of empty objects": (JSON, b"[" + b"{}," * 40_000 + b"{}]"),
    "JSON without end": (JSON, b"[" * 60_000),
    "parts": (MULTIPART, multipart(NAMED % b"n" + b"' or 1=1", 250)),
    "a part's headers": (MULTIPART, multipart(b"X: y\r\n" + NAMED % (b'\\"' * 3_900), 15)),
    "lines like boundaries": (MULTIPART, multipart(NAMED % b"n" + b"-- x\r\n" * 18_000, 1)),
    "escapes": (FORM, b"a=" + b"%41" * 43_000),
    "entities": (FORM, b"a=" + b"%26lt" * 26_000),
    "UTF-8": (FORM, b"a=" + "é".encode() * 65_000),
    "segments": (FORM, b"a=" + b"/./a" * 32_000),
    "blanks": (FORM, b"a=" + b"+a" * 65_000),
    "SQL": (FORM, b"a=" + b"' or 1=1 -- " * 10_800),
    "tags": (FORM, b"a=" + b"<script " * 16_000),
}
# At one level, as these take tens of milliseconds each; all of them in the long run.
SOON = [*list(BODIES)[:5], "XML of many tags", "JSON of empty objects", "a part's headers", "segments", "SQL"]


def post(kind, body):
    headers = ((b"Host", b"shop.example"), (b"User-Agent", b"Browser/1.0"), (b"Content-Type", kind))
    return Request(method=b"POST", target=b"/api", headers=headers, body=body)


ONE_VALUE = ("lines like boundaries", "escapes", "entities", "blanks", "SQL", "tags", "segments")


def longest_allowed(name):
    """A detector looks at a value in one call. It is C, and the only thing that cannot be divided."""
    octets = 5 * BODY_BYTES if name == "UTF-8" else len(BODIES[name][1]) if name in ONE_VALUE else 0
    return PORTION_UNITS_MAX + (DETECTOR_UNITS_PER_BYTE + 1) * octets


class Measured(Meter):
    """A meter that remembers its largest portion."""

    longest = 0

    def is_due(self):
        self.longest = max(self.longest, self.portion)
        return super().is_due()

    @property
    def portion(self):
        return self.units + self._beside - self._mark


@pytest.fixture(autouse=True)
def measured(monkeypatch):
    monkeypatch.setattr("edgestead.waf.engine.Meter", Measured)


def longest(inspection):
    meter = inspection._meter
    return max(meter.longest, meter.portion)


def look(engine, name, level):
    kind, body = BODIES[name]
    inspection = engine.inspect(post(kind, body[:BODY_BYTES]), engine.level_policy(level, 60))
    at_once(inspection.request())
    return longest(inspection)


@pytest.mark.parametrize("name", SOON)
def test_no_portion_of_a_body_is_longer_than_is_allowed(engine, name):
    assert 0 < look(engine, name, 4) <= longest_allowed(name)


@pytest.mark.long
@pytest.mark.parametrize("level", [1, 4])
@pytest.mark.parametrize("name", BODIES)
def test_nor_of_any_other(engine, name, level):
    assert 0 < look(engine, name, level) <= longest_allowed(name)


TARGETS = [b"/" + b"%41" * 20_000, b"/?a=" + b"%41" * 20_000, b"/" + b"../" * 20_000]
HEADERS = [
    (b"Cookie", b"=;" * 30_000),
    (b"Cookie", b'a="' + b"\\012" * 15_000 + b'"'),
    (b"X", b"' or 1 " * 8_000),
]


@pytest.mark.parametrize("target", TARGETS)
def test_nor_of_a_long_target(engine, target):
    inspection = engine.inspect(Request(method=b"GET", target=target), engine.level_policy(4, 60))
    at_once(inspection.request())
    assert longest(inspection) <= PORTION_UNITS_MAX + (DETECTOR_UNITS_PER_BYTE + 1) * len(target)


@pytest.mark.parametrize("header", HEADERS)
def test_nor_of_a_long_header(engine, header):
    request = Request(method=b"GET", target=b"/", headers=(header,))
    inspection = engine.inspect(request, engine.level_policy(4, 60))
    at_once(inspection.request())
    assert longest(inspection) <= PORTION_UNITS_MAX + (DETECTOR_UNITS_PER_BYTE + 1) * len(header[1])


@pytest.mark.parametrize("name", ["parts", "a part's headers"])
def test_nor_of_the_second_look_at_the_start_of_an_upload(engine, name):
    kind, body = BODIES[name]
    whole = LateParts(kind, body)
    inspection = engine.inspect(post(kind, body), engine.level_policy(1, 60))

    steps = inspection.late_parts()
    count = sum(1 for _ in steps)

    assert count > 1
    assert 0 < longest(inspection) <= PORTION_UNITS_MAX
    assert at_once(inspection.late_parts()).first == whole.first != b""


def test_what_wakes_a_rule_is_looked_for_among_all_names_together():
    asked = []

    class Some(Uses):
        def touches(self, keys):
            asked.append(len(keys))
            return super().touches(keys)

    uses = Some()
    uses.keys = {b"wakes"}
    rest, names = Rest(uses), {b"n%d" % number for number in range(2_000)}

    assert not rest.ends(names)
    assert not rest.ends(names | {b"another"})
    assert asked == [2_000, 1]
    for _ in range(2):
        assert rest.ends(names | {b"wakes"})
        assert not rest.ends(names)
    assert asked == [2_000, 1, 1, 1]


# the same is found


@pytest.mark.parametrize("name", ["999 attacks", "999 names", "parts", "SQL"])
def test_a_scan_in_portions_finds_what_plain_interpretation_finds(engine, plain_engine, name):
    kind, body = BODIES[name]
    request = post(kind, body[:20_000] if kind == FORM else body[:BODY_BYTES])

    verdicts = [inspect(each, request, each.level_policy(1, 60)) for each in (engine, plain_engine)]

    assert ids(verdicts[0]) == ids(verdicts[1])
    assert verdicts[0].score == verdicts[1].score


ALPHABETS = [
    bytes(range(256)),
    bytes(range(128, 256)),
    b"%uU0123456789abcdefABCDEF+&#x;ltgtqu\\xnr/*.-<!># \t\r\n\0=",
    b"/.",
    b" \r\n\0AA=",
]


@pytest.mark.parametrize("name", sorted(IN_PORTIONS))
def test_a_step_in_portions_comes_to_the_same(name):
    chance = random.Random(name)
    for _ in range(300):
        value = bytes(chance.choices(chance.choice(ALPHABETS), k=chance.randrange(30)))
        assert at_once(IN_PORTIONS[name](value)) == TRANSFORMATIONS[name](value)
    long = value * (40_000 // max(len(value), 1))
    assert at_once(IN_PORTIONS[name](long)) == TRANSFORMATIONS[name](long)


def test_a_large_value_is_scanned_in_pieces_as_it_is_in_one(engine):
    chance = random.Random(1)
    for _ in range(20):
        filler = some(chance.choice([b"ab c", PUNCTUATION, b"0123"]), chance.randrange(3 * SLICE_BYTES))
        at = chance.randrange(len(filler) + 1)
        value = filler[:at] + b"' union select 1 from users; cat /etc/passwd" + filler[at:]
        steps = engine.scanner.in_portions(value, ARGUMENTS, ARGUMENTS)
        assert at_once(steps) == engine.scanner.candidates(value, ARGUMENTS, ARGUMENTS) != set()


def test_many_values_are_joined_in_several_parts(engine):
    values = [b"a%d" % number for number in range(3 * PART_VALUES)]
    values += [b"%41" * PART_BYTES, b"x" + SEPARATOR + b"y", b""]
    texts = Texts(Chains([("urlDecode",)]), values)

    parts = [part for part in texts.making((1,), Meter()) if part is not None]

    assert all(len(part.values) <= PART_VALUES for part in parts)
    assert all(len(part.values) == 1 or sum(map(len, part.values)) <= PART_BYTES for part in parts)
    found = {}
    for part in parts:
        found |= dict(zip(part.places, part.split(1, Meter()), strict=True))
    assert [found[place] for place in range(len(values))] == [*values[:-3], b"A" * PART_BYTES, *values[-2:]]


def document(chance, depth):
    if depth and chance.random() < 0.6:
        if chance.random() < 0.5:
            return [document(chance, depth - 1) for _ in range(chance.randrange(4))]
        names = ["a", "", "a.b", 'q"', "é", "a"]
        return {chance.choice(names): document(chance, depth - 1) for _ in range(chance.randrange(4))}
    return chance.choice([None, True, False, 0, -1, 1.5e300, 10**30, "", "x", "\ud800", '\n\\"/', "東"])


BROKEN = [*b'[]{},:"\\0123.-+eEtrufalsn \n\t\r\x01', 0xFF, 0xC3]


def broken(chance, text):
    for _ in range(chance.choice([0, 0, 1, 1, 2])):
        at = chance.randrange(len(text) + 1)
        text = text[:at] + bytes(chance.choices(BROKEN, k=1)) + text[at + chance.randrange(2) :]
    return text


def read(body):
    try:
        return bodies_json.arguments(body)
    except Refused as refused:
        return refused.reason, refused.status


TOO_MUCH = [
    b"[" * 65 + b"]" * 65,
    b"[" * 64 + b"]" * 64,
    b"[" * 65 + b"]" * 64,
    b"[" * 65 + b"]" * 65 + b",",
    b"[" * 2_000,
    b"[" + b"1," * 1_000 + b"1]",
    b"[" + b"1," * 999 + b"1]",
    b"[" + b"1," * 2_000 + b"1",
    b"[" + b"1," * 2_000 + b"[" * 70 + b"]" * 71,
    b'{"' + b"n" * 30_000 + b'":[' + b"1," * 900 + b"1]}",
]


def test_json_in_portions_reads_as_json_at_once(monkeypatch):
    chance = random.Random(2)
    bodies = [broken(chance, json.dumps(document(chance, 4)).encode()) for _ in range(3_000)]
    bodies += [*TOO_MUCH, b"", b" ", b"nul", b"NaN", b"-Infinity", b"01", b"1.", b"-", b'"', b" 1 ", b"1 1"]
    at_once_read = [read(body) for body in bodies]
    monkeypatch.setattr(bodies_json, "AT_ONCE_MAX", -1)
    monkeypatch.setattr(bodies_json, "VALUES_AT_ONCE", 2)

    assert [read(body) for body in bodies] == at_once_read
    assert sum(isinstance(outcome, list) for outcome in at_once_read) > 800


def test_a_choice_of_rules_is_prepared_in_portions_too(engine):
    fresh = Engine(engine.rule_set)
    policy = fresh.level_policy(3, 25)
    request = Request(method=b"GET", target=b"/", headers=((b"Host", b"a.example"),))

    first, again = (sum(1 for _ in fresh.inspect(request, policy).request()) for _ in range(2))

    assert first - again > 3 * sum(len(phase.rules) for phase in fresh.plan(policy).phases.values())


def test_requests_that_wait_for_one_choice_of_rules_prepare_it_together(engine):
    fresh = Engine(engine.rule_set)
    policy = fresh.level_policy(1, None)
    gone, one, other = (fresh.planning(policy).waiting() for _ in range(3))
    for _ in range(50):
        next(gone)
    gone.close()

    shared = sum(1 for _ in zip(one, other, strict=False))

    assert fresh.planning(policy).plan is not None
    assert shared < sum(1 for _ in Engine(engine.rule_set).planning(policy).waiting()) / 2
