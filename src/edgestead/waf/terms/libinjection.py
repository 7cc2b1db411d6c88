"""The detectors of SQL injection and cross-site scripting, from the C library that ModSecurity carries.

Owns  finding the library, and the two calls.
Not   the rules that use them.

Without the library both detectors never match. That weakens the rule set, so it is never silent: `state`
says it in words. Each call takes about a microsecond; short values without SQL are remembered, as names of
arguments come again and again. One thread at a time: the buffer is shared.

Source: headers of libinjection 3.9 and 4.0.
"""

import ctypes
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

SONAME = "libmodsecurity.so.3"
PACKAGE = "libmodsecurity3"
WHEEL = "libmodsecurity"  # a dependency, but it is not made for every machine
_FINGERPRINT_BYTES = 8
INNOCENT_MAX = 4_096  # values remembered
INNOCENT_BYTES_MAX = 64  # of one of them
_innocent: set[bytes] = set()


@lru_cache(maxsize=1)
def _library() -> Any:
    """The loaded library, or None."""
    for name in (SONAME, *_in_wheel()):
        try:
            library = ctypes.CDLL(name)
            library.libinjection_sqli.argtypes = (ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p)
            library.libinjection_xss.argtypes = (ctypes.c_char_p, ctypes.c_size_t)
        except (OSError, AttributeError):
            continue
        return library
    return None


def _in_wheel() -> list[str]:
    spec = find_spec(WHEEL)
    if spec is None or spec.origin is None:
        return []
    folder = Path(spec.origin).parent.parent / "libmodsecurity.libs"
    return sorted(map(str, folder.glob("libmodsecurity-*.so*")))


_fingerprint = ctypes.create_string_buffer(_FINGERPRINT_BYTES + 8)


def available() -> bool:
    return _library() is not None


def state() -> str:
    """Empty when the detectors work, else what is missing and how to get it."""
    if available():
        return ""
    return (
        f"@detectSQLi and @detectXSS are off, so most injections pass: no {SONAME} here; "
        f"apt install {PACKAGE} (or pip install {WHEEL}) and start again"
    )


def sql_injection(value: bytes) -> bytes | None:
    """The fingerprint of the SQL in a value, as ``s&1c``, or None."""
    if value in _innocent:
        return None
    library = _library()
    if library is None or not library.libinjection_sqli(value, len(value), _fingerprint):
        if len(value) <= INNOCENT_BYTES_MAX:
            if len(_innocent) >= INNOCENT_MAX:
                _innocent.clear()
            _innocent.add(value)
        return None
    return _fingerprint.value


def cross_site_scripting(value: bytes) -> bytes | None:
    """The value, when a browser would run a script in it."""
    library = _library()
    if library is None or not library.libinjection_xss(value, len(value)):
        return None
    return value
