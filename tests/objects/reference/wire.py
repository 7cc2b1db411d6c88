"""Values as JSON that Python and JavaScript read alike: `{"$": kind, "v": ...}` for what JSON lacks.

A JavaScript Map and object are both a Python dict, and a number is the same whether Python says 1 or 1.0.
"""

import math
import re
from datetime import UTC, datetime, timedelta
from typing import Any

SAFE_INT_MAX = 2**53 - 1  # what a JavaScript number holds exactly
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ERRORS = {"TypeError": TypeError}


class Function:
    """Stands for a function in a script: nothing that storage takes."""


def _number(value: float) -> Any:
    if math.isfinite(value) and not (value == 0 and math.copysign(1, value) < 0):
        return int(value) if value.is_integer() and abs(value) <= SAFE_INT_MAX else value
    names = {math.inf: "Infinity", -math.inf: "-Infinity", 0.0: "-0"}
    return {"$": "number", "v": names.get(value, "NaN")}


def to_wire(value: Any) -> Any:
    """A value as JSON. Raises TypeError for what has no form."""
    for kind, write in _WRITERS:
        if isinstance(value, kind):
            return write(value)
    raise TypeError(f"no wire form for {type(value).__name__}")


_WRITERS: tuple[tuple[Any, Any], ...] = (
    ((type(None), bool, str), lambda v: v),
    (int, lambda v: v if abs(v) <= SAFE_INT_MAX else {"$": "bigint", "v": str(v)}),
    (float, _number),
    ((list, tuple), lambda v: [to_wire(item) for item in v]),
    (dict, lambda v: {"$": "object", "v": [[to_wire(key), to_wire(item)] for key, item in v.items()]}),
    ((set, frozenset), lambda v: {"$": "set", "v": [to_wire(item) for item in v]}),
    (bytes, lambda v: {"$": "bytes", "v": list(v)}),
    (datetime, lambda v: {"$": "date", "v": (v - EPOCH) // timedelta(milliseconds=1)}),
    (re.Pattern, lambda v: {"$": "regexp", "v": [v.pattern, "i" if v.flags & re.IGNORECASE else ""]}),
    (Exception, lambda v: {"$": "error", "v": [type(v).__name__, str(v)]}),
    (Function, lambda v: {"$": "function", "v": None}),
)


def from_wire(wire: Any) -> Any:
    """The value of its wire form."""
    if isinstance(wire, list):
        return [from_wire(item) for item in wire]
    if not isinstance(wire, dict):
        return wire
    return _READERS[wire["$"]](wire["v"])


_READERS: dict[str, Any] = {
    "object": lambda v: {from_wire(key): from_wire(item) for key, item in v},
    "set": lambda v: set(map(from_wire, v)),
    "bytes": bytes,
    "number": float,
    "bigint": int,
    "date": lambda v: EPOCH + timedelta(milliseconds=v),
    "regexp": lambda v: re.compile(v[0], re.IGNORECASE if v[1] else 0),
    "error": lambda v: ERRORS[v[0]](v[1]),
    "function": lambda v: lambda: v,
}
