"""What a comment says about its record: a comment, tags, proxy status.

Owns  the words behind `;` on a record's line, both spellings of them.
Not   how long a comment or tag may be.

    www 300 IN A 192.0.2.1 ; for the shop edge_tags=owner:web,note:"a, b",edge-proxied:true

Everything before the last ` edge_tags=` is the record's comment. Behind it stand tags with commas between; a
value with other characters than letters, digits and `._/:@+-` is a JSON string. Tags whose name begins with
`edge-` (or `cf-`) are settings.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from edgestead.model.call import Profile
from edgestead.model.names import InvalidValue, shown

NOTE_TAGS_MAX = 64  # behind one record; services allow fewer
_PREFIXES = {Profile.SPEC: ("edge_tags=", "edge-"), Profile.CLIENTS: ("cf_tags=", "cf-")}
_SETTINGS = ("proxied", "flatten-cname", "ipv4-only", "ipv6-only")
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/:@+-")


class Notes(NamedTuple):
    """`settings` are those that were said: proxied, flatten-cname, ipv4-only, ipv6-only."""

    comment: str | None = None
    tags: tuple[str, ...] = ()
    settings: Mapping[str, bool] = {}


def read_notes(comment: str) -> Notes:
    """Read the text behind the `;`. Raises: InvalidValue: tags that cannot be read."""
    start, length = max((_last(comment, word), len(word)) for word, _ in _PREFIXES.values())
    if start < 0:
        return Notes(comment.strip() or None)
    tags: list[str] = []
    settings: dict[str, bool] = {}
    for name, value in _tags(comment[start + length :]):
        setting = _setting_named(name)
        if setting is None:
            tags.append(name if value is None else f"{name}:{value}")
        elif value in ("true", "false"):
            settings[setting] = value == "true"
        else:
            raise InvalidValue(f"{name} is true or false")
    return Notes(comment[:start].strip() or None, tuple(tags), settings)


def write_notes(notes: Notes, profile: Profile) -> str:
    """The text behind the `;`, empty when there is nothing to say."""
    word, prefix = _PREFIXES[profile]
    tags = [_tag(*tag.partition(":")) for tag in notes.tags]
    tags += [f"{prefix}{name}:{_truth(value)}" for name, value in notes.settings.items()]
    comment = notes.comment or ""
    # A comment that could be taken for tags is closed with none.
    if tags or any(other in comment for other, _ in _PREFIXES.values()):
        return f"{comment} {word}{','.join(tags)}".lstrip()
    return comment


def _last(comment: str, word: str) -> int:
    """Where the tags begin: at the word's last place at the start or behind a blank."""
    end = len(comment)
    while (start := comment.rfind(word, 0, end)) > 0 and not comment[start - 1].isspace():
        end = start + len(word) - 1
    return start


def _setting_named(name: str) -> str | None:
    lower = name.lower()
    for _, prefix in _PREFIXES.values():
        if lower.startswith(prefix) and lower.removeprefix(prefix) in _SETTINGS:
            return lower.removeprefix(prefix)
    return None


def _tags(text: str) -> Iterator[tuple[str, str | None]]:
    """Name and value of each tag; None is a tag without a colon."""
    position = count = 0
    text = text.strip()
    while position < len(text):
        count += 1
        if count > NOTE_TAGS_MAX:
            raise InvalidValue(f"there are more than {NOTE_TAGS_MAX} tags")
        end = _end_of(text, position, ":,")
        name, value = text[position:end].strip(), None
        if text[end : end + 1] == ":":
            value, end = _value(text, end + 1)
        if not name:
            raise InvalidValue("a tag has no name")
        yield name, value
        position = end + 1


def _value(text: str, start: int) -> tuple[str, int]:
    if text[start : start + 1] != '"':
        end = _end_of(text, start, ",")
        return text[start:end].strip(), end
    end = start + 1
    while end < len(text) and text[end] != '"':
        end += 2 if text[end] == "\\" else 1
    try:
        value = msgspec.json.decode(text[start : end + 1], type=str)
    except msgspec.DecodeError:
        raise InvalidValue(f"{shown(text[start : end + 1])} is no JSON string") from None
    end += 1
    if text[end : end + 1] not in ("", ","):
        raise InvalidValue("a comma is missing between tags")
    return value, end


def _end_of(text: str, start: int, ends: str) -> int:
    found = [position for end in ends if (position := text.find(end, start)) >= 0]
    return min(found, default=len(text))


def _tag(name: str, colon: str, value: str) -> str:
    """`=` is escaped, so that no value can look like the word before the tags."""
    if not colon or _PLAIN.issuperset(value):
        return f"{name}{colon}{value}"
    return f"{name}:{msgspec.json.encode(value).decode().replace('=', chr(92) + 'u003d')}"


def _truth(value: bool) -> str:
    return "true" if value else "false"
