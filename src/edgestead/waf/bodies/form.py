"""Arguments: what ``name=value&name=value`` says, and the collections that hold it.

Owns  ARGS and its relatives.
Not   limits (the callers').

Source: reference manual of ModSecurity v3, "ARGS"; WHATWG URL §5.1 for the form.
"""

import re
from collections.abc import Generator

from edgestead.waf.limits import CALL_UNITS, PART_BYTES
from edgestead.waf.terms.encodings import url_decode
from edgestead.waf.terms.transformations import IN_PORTIONS
from edgestead.waf.transaction import Pair, Values

_BAD_PERCENT = re.compile(rb"%(?![0-9A-Fa-f]{2})")


def arguments(text: bytes) -> tuple[list[Pair], bool]:
    """The arguments of a query or form in order, decoded; whether an escape was broken.

    ``a&=b&`` is three of them: names and values may be empty, only behind a last ``&`` there is none.
    """
    if text.endswith(b"&"):
        text = text[:-1]
    pairs = []
    plain = b"%" not in text and b"+" not in text
    for part in text.split(b"&"):
        name, _, value = part.partition(b"=")
        pairs.append((name, value) if plain else (url_decode(name), url_decode(value)))
    return pairs, _is_broken(text)


def _is_broken(text: bytes) -> bool:
    return b"%" in text and _BAD_PERCENT.search(text) is not None


def count(text: bytes) -> int:
    """How many arguments there are."""
    return text.count(b"&") + (not text.endswith(b"&"))


def reading(text: bytes) -> Generator[int, None, tuple[list[Pair], bool]]:
    """As `arguments`; tells the units of work of each portion."""
    if len(text) <= PART_BYTES:
        return arguments(text)
    if text.endswith(b"&"):
        text = text[:-1]
    pairs = []
    for part in text.split(b"&"):
        name, _, value = part.partition(b"=")
        if len(part) > PART_BYTES:
            pairs.append(((yield from _decode(name)), (yield from _decode(value))))
        else:
            pairs.append((url_decode(name), url_decode(value)))
            yield len(part) + CALL_UNITS * (part.count(b"%") + 3)
    return pairs, _is_broken(text)


_decode = IN_PORTIONS["urlDecode"]


def set_arguments(values: Values, from_query: list[Pair], from_body: list[Pair]) -> None:
    """Fill ARGS, ARGS_GET, ARGS_POST, their names, and ARGS_COMBINED_SIZE."""
    values["ARGS_GET"] = from_query
    values["ARGS_GET_NAMES"] = [(name, name) for name, _ in from_query]
    values["ARGS_POST"] = from_body
    values["ARGS_POST_NAMES"] = [(name, name) for name, _ in from_body]
    set_all(values, from_query + from_body)


def set_all(values: Values, pairs: list[Pair]) -> None:
    """Fill ARGS, ARGS_NAMES and ARGS_COMBINED_SIZE."""
    values["ARGS"] = pairs
    values["ARGS_NAMES"] = [(name, name) for name, _ in pairs]
    if pairs:
        values["ARGS_COMBINED_SIZE"] = [(b"", b"%d" % sum([len(name) + len(value) for name, value in pairs]))]
