"""Which of many joined values may match a link: all that do are among them.

Owns  what is asked of the joined text before any value is looked at by itself.
Not   the tests themselves.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate

from edgestead.waf.limits import CALL_UNITS, PART_BYTES, Meter
from edgestead.waf.load.compile import CLEAN_VALUE_BYTES_MAX, CLEAN_VALUES_MAX, Link
from edgestead.waf.terms.variants import SEPARATOR, Joined

TRIES_MAX = 8  # joined matches followed to their values, before each value is looked at
SOFT_KINDS = frozenset(("rx", "joined", "sqli", "xss"))
DETECTORS = frozenset(("sqli", "xss"))
DETECTOR_UNITS_PER_BYTE = 3  # beside the one that every look at a byte costs; measured on ``x=x=x=…``
Suspect = tuple[int, bytes]  # place among the values, transformed value


def may_match(link: Link, part: Joined, stage: int, meter: Meter) -> bool:
    """False only when none of the values matches at that stage. For links of `SOFT_KINDS`."""
    pattern = link.pattern
    if pattern is not None:
        text = part.lines(stage, meter) if pattern.anchored else part.text(stage, meter)
        meter.spend(len(text))
        return pattern.search_joined(text) is not None
    if link.kind in DETECTORS:
        return _detects(link, part, stage, meter)
    if link.test is None:
        return True
    text = part.lines(stage, meter)
    meter.spend(len(text))
    found = link.test(text)
    if found is None:
        return False
    # a byte range may object to nothing but the line ends between values
    return link.operator != "validateByteRange" or found != b"\n" * (len(part.values) - 1) or len(found) == 0


def _detects(link: Link, part: Joined, stage: int, meter: Meter) -> bool:
    text = part.text(stage, meter)
    if link.kind == "xss" and b"<" not in text and b"=" not in text:
        return False
    test = link.test or bool
    meter.spend(len(text))
    meter.toil(len(text) * DETECTOR_UNITS_PER_BYTE + len(part.values) * 4 * CALL_UNITS)
    for value in part.split(stage, meter):
        if _suspicious(link, value) and test(value):
            return True
    return False


def any_holds(link: Link, values: Iterable[bytes], meter: Meter) -> bool:
    """Whether any of a few values matches, each by itself. For links whose test needs no request.

    A large value may match, as far as this says: its rule looks at it in portions.
    """
    clean = link.clean
    assert clean is not None, "the argument has no macros"
    for value in values:
        if value not in clean:
            octets = len(value)
            if octets > PART_BYTES:
                return True
            meter.spend(octets * (len(link.steps) + 1) + 16)
            if _holds(link, value):
                return True
            if octets <= CLEAN_VALUE_BYTES_MAX:
                if len(clean) >= CLEAN_VALUES_MAX:
                    clean.clear()
                clean.add(value)
    return False


def _holds(link: Link, value: bytes) -> bool:
    test = link.test if link.pattern is None else link.pattern.search
    assert test is not None, "the argument has no macros"
    if len(link.stages) == 1:
        for step in link.steps:
            value = step(value)
        return (test(value) is None) == link.negated
    stages = {value: None}
    for step in link.steps:
        value = step(value)
        stages[value] = None
    for value in stages:
        if _suspicious(link, value) and (test(value) is None) == link.negated:
            return True
    return False


def suspects(link: Link, part: Joined, stage: int, meter: Meter) -> Iterator[Suspect]:
    """The values that may match at that stage."""
    if link.kind == "rx":
        yield from _walk(link, part, stage, meter)
        return
    if link.kind == "joined" and not may_match(link, part, stage, meter):
        return
    meter.toil(len(part.values) * CALL_UNITS)
    for place, value in zip(part.places, part.split(stage, meter), strict=True):
        if _suspicious(link, value):
            yield place, value


def _suspicious(link: Link, value: bytes) -> bool:
    """Whether a detector has to be asked."""
    if link.kind == "sqli":
        return not value.isalnum()  # one word is no SQL
    return link.kind != "xss" or b"<" in value or b"=" in value


def _walk(link: Link, part: Joined, stage: int, meter: Meter) -> Iterator[Suspect]:
    """Values in which a joined match begins: where none begins, none matches."""
    pattern = link.pattern
    assert pattern is not None
    text = part.lines(stage, meter) if pattern.anchored else part.text(stage, meter)
    meter.spend(len(text))
    found = pattern.search_joined(text)
    if found is None:
        return
    values = part.split(stage, meter)
    meter.toil(len(values) * CALL_UNITS)
    gap = 1 if pattern.anchored else len(SEPARATOR)
    starts = [0, *accumulate([len(value) + gap for value in values])]
    tries = 0
    while found is not None and tries < TRIES_MAX:
        at = bisect_right(starts, found.start(), 0, len(values)) - 1
        yield part.places[at], values[at]
        if at + 1 == len(values):
            return
        tries += 1
        start = starts[at + 1]
        meter.spend(len(text) - start)
        found = pattern.search_joined(text, start)
    if found is not None:
        at = bisect_right(starts, found.start(), 0, len(values)) - 1
        yield from zip(part.places[at:], values[at:], strict=True)
