"""The scan may name too many rules, never too few; and rules come out the same without it."""

import sys
from random import Random

import pytest

from edgestead.waf.engine import Engine
from edgestead.waf.limits import Meter
from edgestead.waf.load.compile import RuleSet
from edgestead.waf.plan import scan
from edgestead.waf.plan.gates import ARGUMENTS, gates_of, soft_gate, takes_line_ends
from edgestead.waf.plan.search import confirmed
from edgestead.waf.terms.transformations import TRANSFORMATIONS
from edgestead.waf.terms.variants import HARMLESS_WITHOUT, HAZARDS, SEPARATOR, Chains, Texts
from edgestead.waf.transaction import Request
from tests.waf.conftest import engine_of, ids, inspect, small_program
from tests.waf.regression import FOLDERS
from tests.waf.traffic import ATTACKS, Traffic

BATCHES, VALUES = 25, 20
SEEDS, VALUES_LONG = 4, 250_000  # a million altogether
VALUES_RELEASE = 100_000  # through the rules of each release that is named
SIZES = (1, 8, 32, 64)  # of batches: in a small one a rule that is named for one value hides no other's miss
ODD = rb"\ %1e %5c &#30; &#92; /* */ -- # %u001e \x1e \\".split(b" ")
ODD += [b"", b"\x1d", b"\x1e", SEPARATOR, b"\0", b"\n", b"\r", b"\t", b"\xff", b"\xc3", b"\xe2\x80"]
FILLERS = (b"p", b" ", b"x ", b"ab", b"-", b"1")
# What patterns that look at the ends of values, at line ends or at nothing make of joined values.
ENDS = r"""
SecRule ARGS "@rx \Aab\z" "id:1,phase:2,pass,t:none"
SecRule ARGS "@rx ^$" "id:2,phase:2,pass,t:none"
SecRule ARGS "@rx a++b" "id:3,phase:2,pass,t:none"
SecRule ARGS "@rx a(?!b)" "id:4,phase:2,pass,t:none,t:lowercase"
SecRule ARGS "@rx (?<!a|bc)d$" "id:5,phase:2,pass,t:none"
SecRule ARGS "@rx \bx\b" "id:6,phase:2,pass,t:none,t:removeWhitespace"
SecRule ARGS "@rx [\n\r]" "id:7,phase:2,pass,t:none"
SecRule ARGS "@rx a\sb" "id:8,phase:2,pass,t:none,t:compressWhitespace"
SecRule ARGS "@pm ab cd" "id:9,phase:2,pass,t:none,t:cssDecode,t:jsDecode"
SecRule ARGS "@endsWith b" "id:10,phase:2,pass,t:none,t:normalizePath"
SecRule ARGS "@streq a" "id:11,phase:2,pass,t:none,t:urlDecodeUni,t:htmlEntityDecode"
SecRule ARGS "@rx (?i)(x|y)\1" "id:12,phase:2,pass,t:none,t:replaceComments"
SecRule ARGS "@validateByteRange 32-126" "id:13,phase:2,pass,t:none,t:utf8toUnicode"
SecRule ARGS "@rx (?i)@.+=\s*\(\s*select" "id:15,phase:2,pass,t:none"
SecRule ARGS "@rx ^b" "id:14,phase:2,pass,t:none,t:base64Decode,multiMatch"
"""


def values(random, count):
    """Attacks, cuts and joins of them, odd bytes, short words, nothing."""
    traffic = Traffic(0)
    traffic.random = random
    made = []
    for _ in range(count):
        chance = random.random()
        if chance < 0.4:
            made.append(traffic.value().encode())
        elif chance < 0.5:
            made.append(b"".join(random.choice(ODD) for _ in range(random.randrange(4))))
        elif chance < 0.7:
            made.append(bytes(random.choices(b"abcdxyABX \n\\/*.%", k=random.randrange(5))))
        elif chance < 0.8:
            made.append(random.randbytes(random.randrange(30)))
        elif chance < 0.9:
            cut = random.choice(ATTACKS).encode()
            made.append(cut[random.randrange(len(cut)) :] + random.choice(ODD) + random.choice(ODD))
        else:
            made.append(stretched(random, random.choice(ATTACKS).encode()))
    return made


def stretched(random, value):
    """With much of the same in between: what a matcher passes over in blocks."""
    at = random.randrange(len(value) + 1)
    return value[:at] + random.choice(FILLERS) * random.randrange(1, 200) + value[at:]


def missed(engine, batch):
    """(rule, value) of every match whose rule the scan did not name."""
    rule_set, meter = engine.rule_set, Meter(1 << 60)
    everything = tuple(range(len(rule_set.chains.chains)))
    texts = Texts(rule_set.chains, batch).scannable(everything, meter)
    text = b"\n".join(text for text in texts if text is not None)
    named = engine.scanner.candidates(text, ARGUMENTS, ARGUMENTS)
    transformed = {}
    misses = []
    for rule in rule_set.rules:
        hard, soft = engine.scanner.gate(rule), soft_gate(rule)
        gate = hard or soft
        if gate is None or ARGUMENTS not in gate.sources:
            continue
        found = hard is None or (rule.phase, rule.place) in named
        if found and (hard is None or takes_line_ends(gate.link)):
            found = confirmed(gate.link, Texts(rule_set.chains, batch), meter)
        if not found:
            misses += [(rule, value) for value in batch if matches(rule_set, gate.link, value, transformed)]
    return misses


def matches(rule_set, link, value, transformed):
    """The plain reading: step by step, one value."""
    test = link.pattern.search if link.pattern is not None else link.test
    for stage in link.stages:
        key = stage, value
        if key not in transformed:
            result = value
            for name in rule_set.chains.chains[stage]:
                result = TRANSFORMATIONS[name](result)
            transformed[key] = result
        if test(transformed[key]) is not None:
            return True
    return False


needs_scan = pytest.mark.skipif(not scan.available(), reason=f"NOT TESTED: {scan.state()}")


@pytest.fixture(scope="module")
def ends_engine():
    rule_set = RuleSet(*small_program(ENDS))
    return Engine(rule_set, stored=scan.compile_database(rule_set))


@needs_scan
def test_no_match_is_missed_by_the_system_rules(engine):
    random = Random(1)

    assert [miss for _ in range(BATCHES) for miss in missed(engine, values(random, VALUES))] == []


@needs_scan
def test_no_match_is_missed_at_the_ends_of_values(ends_engine):
    random = Random(2)

    assert [miss for _ in range(300) for miss in missed(ends_engine, values(random, 8))] == []


def through(engines, seed, count):
    """Misses in that many values, and how many of the values were empty."""
    random, seen, empty, misses = Random(seed), 0, 0, []
    while seen < count:
        batch = values(random, min(random.choice(SIZES), count - seen))
        seen += len(batch)
        empty += batch.count(b"")
        misses += [miss for engine in engines for miss in missed(engine, batch)]
    sys.stdout.write(f"seed {seed}: {seen} values, {empty} of them empty, {len(misses)} misses\n")
    return misses, empty


@needs_scan
@pytest.mark.long
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_match_is_missed_in_a_million_values(engine, ends_engine, seed):
    misses, empty = through([engine, ends_engine], 100 + seed, VALUES_LONG)

    assert misses == []
    assert empty > VALUES_LONG / 100


@needs_scan
@pytest.mark.long
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_no_match_is_missed_by_a_release(folder):
    misses, _ = through([engine_of(folder)], 200, VALUES_RELEASE)

    assert misses == []


@pytest.mark.parametrize("name", sorted(HAZARDS.keys() | HARMLESS_WITHOUT.keys()))
def test_joined_values_are_transformed_as_each_by_itself(name):
    chains, random = Chains([(name,)]), Random(name)
    for _ in range(200):
        batch = values(random, random.randrange(1, 7))
        texts = Texts(chains, batch)

        parts = texts.prepare(1, Meter())

        seen = {
            place: value
            for part in parts
            for place, value in zip(part.places, part.split(1, Meter()), strict=True)
        }
        assert [seen[place] for place in range(len(batch))] == [
            TRANSFORMATIONS[name](value) for value in batch
        ]


def test_a_value_with_a_separator_goes_alone():
    texts = Texts(Chains([("urlDecode",)]), [b"a", b"b" + SEPARATOR, b"c%1e%1dd", b"e"])

    parts = texts.prepare(1, Meter())

    assert [part.places for part in parts] == [[0, 3], [1], [2]]


@pytest.mark.parametrize("level", [1, 4])
def test_rules_come_out_the_same_without_the_scan(engine, plain_engine, level):
    policy = engine.level_policy(level, 40)

    for request in Traffic(seed=50 + level).requests(60):
        scanned, plain = inspect(engine, request, policy), inspect(plain_engine, request, policy)
        assert (ids(scanned), scanned.score) == (ids(plain), plain.score), request


def test_a_hyperscan_that_misses_is_not_used(monkeypatch):
    monkeypatch.setattr(scan, "_PROBE", (b"a", b"b"))
    if scan.hyperscan is not None:
        assert "misses what it should find" in scan.state.__wrapped__()


@needs_scan
def test_most_rules_are_held_back(engine):
    policy = engine.level_policy(4, 40)
    plan = engine.plan(policy)

    waiting = sum(len(phase.gated) for phase in plan.phases.values())

    assert waiting > 150
    assert len(gates_of(engine.rule_set)) > 250


def test_values_that_come_again_are_judged_as_the_first_time(engine):
    policy = engine.level_policy(4, 40)
    requests = [
        Request(method=b"GET", target=b"/", headers=((b"Host", b"a.example"), (b"User-Agent", agent)))
        for agent in (b"x", b"() { :;}; echo", b"x", b"() { :;}; echo", b"sqlmap/1.7", b"x", b"sqlmap/1.7")
    ]

    found = [ids(inspect(engine, request, policy)) for request in requests * 2]

    assert found[:7] == found[7:]
    assert found[0] == found[2] == found[5]
    assert found[1] == found[3] != found[0]


def test_what_is_remembered_of_a_value_is_true_wherever_it_stands(engine, plain_engine):
    policy = engine.level_policy(2, 40)
    texts = [b"x", b"1' or 1=1-- -", b"text/html", b"/etc/passwd", b"<script>alert(1)</script>", b"a\nb", b""]
    names = (b"User-Agent", b"Cookie", b"Content-Type", b"X-Any")
    places = [lambda text, name=name: {"target": b"/", "headers": ((name, text),)} for name in names]
    places.append(lambda text: {"target": b"/?a=" + text.replace(b" ", b"+").replace(b"\n", b"%0a")})
    random = Random(5)
    sent = [random.choice(places)(random.choice(texts)) for _ in range(300)]
    asked = {repr(each): each for each in sent}
    expected = {
        key: ids(inspect(plain_engine, Request(method=b"GET", **each), policy)) for key, each in asked.items()
    }

    for each in sent:
        assert ids(inspect(engine, Request(method=b"GET", **each), policy)) == expected[repr(each)]


@needs_scan
def test_a_database_of_other_rules_is_refused(ends_engine, engine):
    stored = scan.compile_database(ends_engine.rule_set)

    with pytest.raises(ValueError, match="of other rules"):
        Engine(engine.rule_set, stored=stored)


@needs_scan
@pytest.mark.parametrize("damage", [b"", b"\x93\x01", b"x" * 100])
def test_a_damaged_database_is_refused(ends_engine, damage):
    with pytest.raises(ValueError, match="damaged"):
        Engine(ends_engine.rule_set, stored=damage)


@needs_scan
def test_a_flipped_byte_is_noticed(ends_engine):
    stored = bytearray(scan.compile_database(ends_engine.rule_set))
    stored[-200] ^= 1

    with pytest.raises(ValueError, match="damaged"):
        Engine(ends_engine.rule_set, stored=bytes(stored))
