"""Where a line of text uses what a date ended or replaced.

Owns  how paths and names of dated rows are written in source, configuration and logs.
Not   files; HAR, whose requests need no guessing (`cli.dated.har`).

A line is searched for fixed strings, and only what stands around a hit is looked at: no pattern has a
repetition. A use is certain when a whole path stands there, with any expression for the zone or account, or a
name that nothing else has. It is possible when the name is common and its surroundings fit.
"""

import re
from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import NamedTuple

from edgestead.changes import CHANGES
from edgestead.model.ciphers import is_draft_chacha20

GAP_CHARACTERS_MAX = 96  # of what stands for an id: an expression of a programming language
TEXT_CHARACTERS_MAX = 120  # of a use, as it is shown
NEAR_LINES = 20  # how far a common name may be from what makes it likely
_SCOPES = ("zones", "accounts")
_QUOTES = "\"'`"


class Use(NamedTuple):
    """One use in a line. `near` is what must stand within NEAR_LINES of it, empty for nothing."""

    column: int
    subject: str
    text: str
    is_certain: bool
    near: str = ""


class Path(NamedTuple):
    """The fixed part of a dated path behind its zone or account, which `scope` names."""

    run: str
    scope: str
    subject: str
    is_distinct: bool


class Name(NamedTuple):
    """A name of a member or a setting. `quoted` ones count only as a text, or as an attribute after a dot."""

    word: str
    subject: str
    is_certain: bool = False
    near: str = ""
    quoted: bool = False


def _paths() -> Iterator[Path]:
    for change in CHANGES:
        for path in dict.fromkeys(endpoint.path for endpoint in change.endpoints):
            parts = path.removeprefix("/").split("/")
            scope, rest = (parts[0], parts[2:]) if parts[0] in _SCOPES else ("", parts)
            run = "/".join(takewhile(lambda part: not part.startswith("{"), rest))
            yield Path(run, scope, change.subject, "/" in run or change.moved is not None)


# The runs in an order in which none hides a longer one.
PATHS = {path.run: path for path in sorted(_paths(), key=lambda path: -len(path.run))}
NAMES = {
    name.word: name
    for name in (
        *(
            Name(change.setting, change.subject, is_certain=True)
            for change in CHANGES
            if "_" in change.setting
        ),
        Name("brotli", "setting-brotli", near="settings", quoted=True),
        Name("minify", "setting-minify", near="settings", quoted=True),
        Name("default_nameservers", "account-nameserver-settings", is_certain=True),
        Name("use_account_custom_ns_by_default", "account-nameserver-settings", is_certain=True),
        Name("notification_email", "notification-email", near="load_balancer"),
        Name("error_chain", "dns-error-chain", near="dns_records"),
        Name("zone_id", "record-zone-fields", near="dns_records", quoted=True),
        Name("zone_name", "record-zone-fields", near="dns_records", quoted=True),
        Name("locked", "record-locked", near="dns_records", quoted=True),
        Name("service", "srv-data-members", near="SRV", quoted=True),
        Name("proto", "srv-data-members", near="SRV", quoted=True),
    )
}
NEAR = tuple(sorted({name.near for name in NAMES.values() if name.near}))
_CIPHER = "CHACHA20"
_ANY = re.compile("|".join(map(re.escape, (*PATHS, *NAMES, _CIPHER, _CIPHER.lower()))))


def uses(line: str) -> Iterator[Use]:
    """What the line uses, from left to right; each row once."""
    seen: set[str] = set()
    for hit in _ANY.finditer(line):
        word = hit.group()
        use = _reader(word)(line, hit.start(), word)
        if use is None or use.subject in seen:
            continue
        if not use.near:
            seen.add(use.subject)
        yield use


def nearby(line: str) -> Iterator[str]:
    """What this line has that makes common names near it likely uses."""
    return (word for word in NEAR if word in line)


def _reader(word: str) -> Callable[[str, int, str], Use | None]:
    if word in PATHS:
        return _path_use
    return _name_use if word in NAMES else _cipher_use


def _path_use(line: str, start: int, word: str) -> Use | None:
    path = PATHS[word]
    end = start + len(word)
    if _goes_on(line, end):
        return None
    before = line[start - 1] if start else ""
    if path.scope:
        head = _scope_start(line, start, path.scope) if before == "/" else None
        if head is None and not (path.is_distinct and before in ("/", *_QUOTES)):
            return None
        begin = start if head is None else head
        return Use(begin + 1, path.subject, _shown(line, begin, end), head is not None)
    if before != "/" or (line[end : end + 1] != "/" and not path.is_distinct):
        return None
    root = line[max(0, start - 4) : start - 1]
    is_ours = root.endswith("/v4")
    if not is_ours and (root[-1:].isalnum() or root[-1:] in (".", "-", "_")):
        return None  # the path of another server, or a longer one
    return Use(start, path.subject, _shown(line, start - 1, end), is_ours or path.is_distinct)


def _scope_start(line: str, start: int, scope: str) -> int | None:
    """Where `zones/<anything>/` begins that ends just before `start`."""
    left = max(0, start - len(scope) - 2 - GAP_CHARACTERS_MAX)
    head = line.rfind(f"{scope}/", left, start - 1)
    if head < 0 or (head and _is_word(line[head - 1])):
        return None
    gap = line[head + len(scope) + 1 : start - 1]
    return head if gap and "/" not in gap else None


def _name_use(line: str, start: int, word: str) -> Use | None:
    name = NAMES[word]
    end = start + len(word)
    before = line[start - 1] if start else ""
    if _goes_on(line, end) or _is_word(before):
        return None
    if name.quoted and not _is_text(line, start, end) and not (before == "." and word != "zone_id"):
        return None
    return Use(start + 1, name.subject, _shown(line, start, end), name.is_certain, name.near)


def _cipher_use(line: str, start: int, word: str) -> Use | None:
    """A draft suite: the name around the hit decides."""
    left, right = start, start + len(word)
    while left and start - left < GAP_CHARACTERS_MAX and (_is_word(line[left - 1]) or line[left - 1] == "-"):
        left -= 1
    while right - start < GAP_CHARACTERS_MAX and right < len(line) and _goes_on(line, right):
        right += 1
    name = line[left:right]
    if "POLY1305" not in name.upper() or not is_draft_chacha20(name):
        return None
    return Use(left + 1, "draft-chacha20", name, True)


def _is_text(line: str, start: int, end: int) -> bool:
    return bool(start) and line[start - 1] in _QUOTES and line[end : end + 1] == line[start - 1]


def _goes_on(line: str, at: int) -> bool:
    """Whether the word before `at` is only the beginning of a longer one."""
    return at < len(line) and (_is_word(line[at]) or line[at] == "-")


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _shown(line: str, begin: int, end: int) -> str:
    return line[begin:end][-TEXT_CHARACTERS_MAX:]
