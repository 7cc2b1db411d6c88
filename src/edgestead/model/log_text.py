"""A line of the log: as people read it on a terminal, and as JSON elsewhere.

Owns  the two forms; that nothing a client sent can steer the terminal that shows a line of either.
Not   which form is taken (`config`, by whether standard error is a terminal); the members of a line.
"""

import re
import time
from typing import Literal

import msgspec

LogForm = Literal["json", "text"]
_COLUMN = 10  # the longest usual name of a process is "supervisor"
_COLOURS = {"debug": "2", "warning": "33", "error": "31", "critical": "31"}  # SGR: dim, yellow, red
_UTF16_UNIT = 2  # bytes
_UNPRINTED = re.compile("[^ -~]")  # of which most are letters of some script
_encode = msgspec.json.Encoder().encode


def line(time_us: int, process: str, level: str, words: str, more: str = "") -> bytes:
    """One line in local time, with `more` (a traceback) below it, ready to be written.

    What a client sent is in the words, so everything that could steer a terminal is escaped.
    """
    clock = time.strftime("%H:%M:%S", time.localtime(time_us // 1_000_000))
    named = "" if level == "info" else f"{level}: "
    text = f"{clock} {process:<{_COLUMN}} {named}{_printable(words)}"
    if more:
        text += "".join("\n    " + _printable(row) for row in more.rstrip().split("\n"))
    if colour := _COLOURS.get(level):
        text = f"\x1b[{colour}m{text}\x1b[0m"
    return text.encode("utf-8", "replace") + b"\n"


def _printable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def json_line(members: msgspec.Struct) -> bytes:
    r"""One line of JSON, without control characters beyond ASCII's either, ready to be written.

    JSON itself escapes U+0000 to U+001F alone (RFC 8259 §7). DEL, C1 and what changes the direction of text
    would reach the terminal of the log's reader. Letters of every script stay as they are.
    """
    octets = _encode(members)
    if octets.isascii() and b"\x7f" not in octets:
        return octets + b"\n"
    return _UNPRINTED.sub(_escaped, octets.decode()).encode() + b"\n"


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    if character.isprintable():
        return character
    units = character.encode("utf-16-be")
    return "".join(rf"\u{units[i : i + _UTF16_UNIT].hex()}" for i in range(0, len(units), _UTF16_UNIT))
