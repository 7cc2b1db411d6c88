"""Values as JSON text, or the reason why not.

Owns  what of a result JSON can hold.
Not   the value codec, which holds more.
"""

import math
from typing import Any

import msgspec

DEPTH_MAX = 100  # lists and dictionaries inside one another

_write = msgspec.json.Encoder().encode


class NotJson(ValueError):
    """The message says what JSON cannot hold."""


def to_json(value: Any) -> bytes:
    """JSON text: None, bool, int, finite float, str, list, tuple (as an array), dict with str keys.

    Raises NotJson. Nothing is converted silently.
    """
    _check(value, 0)
    return _write(value)


def _check(value: Any, depth: int) -> None:
    kind = type(value)
    if value is None or kind is bool or kind is int:
        return
    if kind is str:
        if not value.isascii():
            _check_text(value)
    elif kind is float:
        if not math.isfinite(value):
            raise NotJson(f"{value} is no JSON number")
    elif depth >= DEPTH_MAX:
        raise NotJson(f"it is nested more than {DEPTH_MAX} deep")
    elif kind is list or kind is tuple:
        for item in value:
            _check(item, depth + 1)
    elif kind is dict:
        for key, item in value.items():
            if type(key) is not str:
                raise NotJson(f"a key is {type(key).__name__}, not str")
            _check(key, depth + 1)
            _check(item, depth + 1)
    else:
        raise NotJson(f"it holds a value of type {kind.__name__}")


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise NotJson("a str holds half a surrogate pair") from None
