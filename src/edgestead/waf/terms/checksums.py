"""Numbers with check digits: payment cards and three kinds of national numbers.

Owns  the four checks.
Not   finding candidates.

Source: ISO/IEC 7812-1 annex B (Luhn); for the others the reference manual of ModSecurity v3, "verifyCPF",
"verifySSN", "verifySVNR".
"""

from itertools import pairwise

_LUHN = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)
_CPF_FIRST, _CPF_SECOND = range(10, 1, -1), range(11, 1, -1)
_SVNR_WEIGHTS = (3, 7, 9, 0, 5, 8, 4, 2, 1, 6)
_RUNS = frozenset((*(str(digit) * 10 for digit in range(10)), "0123456789", "1234567890"))
_SSN_AREAS_FROM = 740  # areas from here on were never given


def _digits(text: bytes) -> list[int]:
    return [byte - 48 for byte in text if 48 <= byte <= 57]


def is_card(text: bytes) -> bool:
    """Luhn's sum over the digits, however many."""
    digits = _digits(text)
    total = sum(_LUHN[digit] if place % 2 else digit for place, digit in enumerate(reversed(digits)))
    return bool(digits) and total % 10 == 0


def is_cpf(text: bytes) -> bool:
    """Brazil: the first eleven digits, not all the same, two check digits modulo 11."""
    digits = _digits(text)[:11]
    if len(digits) < 11 or len(set(digits)) == 1:
        return False
    first = _modulo_11(digits[:9], _CPF_FIRST)
    second = _modulo_11([*digits[:9], first], _CPF_SECOND)
    return digits[9:] == [first, second]


def _modulo_11(digits: list[int], weights: range) -> int:
    rest = sum(digit * weight for digit, weight in zip(digits, weights, strict=True)) % 11
    return 0 if rest < 2 else 11 - rest


def is_ssn(text: bytes) -> bool:
    """United States: nine digits, neither counting up nor all the same, no part zero, an area that exists."""
    digits = _digits(text)
    if len(digits) != 9:
        return False
    steps = {after - before for before, after in pairwise(digits)}
    if steps in ({0}, {1}):
        return False
    joined = "".join(map(str, digits))
    area, group, serial = int(joined[:3]), int(joined[3:5]), int(joined[5:])
    return 0 not in (area, group, serial) and area != 666 and area < _SSN_AREAS_FROM


def is_svnr(text: bytes) -> bool:
    """Austria: ten digits of which the fourth checks the others, modulo 11."""
    digits = _digits(text)[:10]
    if len(digits) < 10 or "".join(map(str, digits)) in _RUNS:
        return False
    rest = sum(digit * weight for digit, weight in zip(digits, _SVNR_WEIGHTS, strict=True)) % 11
    return digits[3] == (0 if rest == 10 else rest)
