r"""From the lines of a zone file to entries: owner, TTL, class, type, contents.

Owns  directives, what a line inherits from the one before, relative names.
Not   reading the contents: they are handed over as `content` and `priority`, which `model.records` reads.

Sources: RFC 1035 §5.1; $TTL RFC 2308 §4; `\#` and TYPE… RFC 3597 §5. $INCLUDE is refused: whoever sends a
file must not name files of the server. A TTL may be written with units (`1h30m`).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from edgestead.model import names
from edgestead.model.names import InvalidValue, shown
from edgestead.model.records import TYPES, TYPES_BY_NUMBER, RecordType, from_wire
from edgestead.model.records.kinds import Host, Target
from edgestead.model.records.txt import Strings
from edgestead.model.refusals import BadRequest
from edgestead.model.refusals.record import LineUnreadable, RecordRefused
from edgestead.model.zonefile.generate import Pattern, numbers
from edgestead.model.zonefile.lines import Line, lines

TTL_SECONDS_MAX = 2**31 - 1  # RFC 2181 §8
TTL_CHARACTERS_MAX = 32  # a number with units, such as `1w2d`, and then some
TTL_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_UNREAD = b""  # no name
_CLASSES = frozenset(("IN", "CH", "HS", "CS"))


class Entry(NamedTuple):
    """One record of the file. `ttl` None is not said; `content` has absolute names."""

    line: int
    owner: bytes
    ttl: int | None
    type: str
    content: str
    priority: str | None
    comment: str


def _raise(refusal: LineUnreadable) -> None:
    raise refusal


def read(
    text: str,
    apex: bytes,
    give_way: Callable[[], None] = lambda: None,
    refuse: Callable[[LineUnreadable], None] = _raise,
) -> Iterator[Entry]:
    """Every record of a zone file, in order; names that end without a dot are below `apex` or $ORIGIN.

    `give_way` is called now and then, so that a thread that reads a long file lets others run. `refuse` hears
    of each line that cannot be read, and reading continues after it where possible: not with an open
    parenthesis or an unknown $ORIGIN. Without it the first such line raises LineUnreadable. SOA records are
    read as far as their owner: a server makes its own.
    """
    reader = _Reader(apex)
    for line in lines(text, give_way, refuse):
        try:
            yield from reader.entries(line)
        except (InvalidValue, RecordRefused) as error:
            reason = error.reason or (error.message if isinstance(error, BadRequest) else "")
            refuse(LineUnreadable(line=line.number, reason=reason.rstrip(".")))
            if line.words[0].upper() == "$ORIGIN":
                return


class _Reader:
    """What holds from one line to the next."""

    def __init__(self, apex: bytes) -> None:
        self._origin = apex
        self._owner: bytes | None = None  # _UNREAD: the line that named it was refused
        self._default_ttl: int | None = None
        self._last_ttl: int | None = None

    def entries(self, line: Line) -> Iterator[Entry]:
        first = line.words[0]
        if not first.startswith("$") or line.starts_blank:
            entry = self._entry(line)
            if entry.owner != _UNREAD:
                yield entry
            return
        directive, arguments = first.upper(), line.words[1:]
        if directive == "$GENERATE":
            yield from self._generate(line, arguments)
        elif directive == "$ORIGIN":
            self._origin = self._absolute(_only(arguments, "$ORIGIN takes one name"))
        elif directive == "$TTL":
            self._default_ttl = _ttl(_only(arguments, "$TTL takes one number of seconds"))
        elif directive == "$INCLUDE":
            raise InvalidValue("$INCLUDE is not allowed: send one file with everything in it")
        else:
            raise InvalidValue(f"the directive {shown(first)} is unknown")

    def _entry(self, line: Line) -> Entry:
        words = line.words
        if not line.starts_blank:
            self._owner = _UNREAD
            self._owner = self._absolute(words[0])
            words = words[1:]
        if self._owner is None:
            raise InvalidValue("the first record has no owner name")
        return self._record(line, self._owner, words)

    def _record(self, line: Line, owner: bytes, words: list[str]) -> Entry:
        ttl, words = self._head(words)
        if not words:
            raise InvalidValue("it ends before a type")
        row, contents = _type(words[0]), words[1:]
        content, priority = ("", None) if row.name == "SOA" else self._contents(row, contents)
        return Entry(line.number, owner, ttl, row.name, content, priority, line.comment)

    def _head(self, words: list[str]) -> tuple[int | None, list[str]]:
        """TTL and class in either order; the TTL that holds, and what follows."""
        ttl: int | None = None
        position = 0
        seen_class = False
        while position < len(words) and position < 2:
            word = words[position]
            if word.upper() in _CLASSES and not seen_class:
                if word.upper() != "IN":
                    raise InvalidValue(f"the class is {word.upper()}, and only IN is served")
                seen_class = True
            elif word[:1].isdigit() and ttl is None:
                ttl = _ttl(word)
            else:
                break
            position += 1
        if ttl is not None:
            self._last_ttl = ttl
        elif self._default_ttl is not None:
            ttl = self._default_ttl
        else:
            ttl = self._last_ttl
        return ttl, words[position:]

    def _contents(self, row: RecordType, words: list[str]) -> tuple[str, str | None]:
        if not words:
            raise InvalidValue(f"the {row.name} record has no contents")
        if words[0] == "\\#":
            rdata = from_wire(row.name, _octets(words[1:]))
            priority = None if rdata.top_priority is None else str(rdata.top_priority)
            return rdata.to_content(), priority
        found = [self._word(row, position, word) for position, word in enumerate(words)]
        if row.priority is None:
            return " ".join(found), None
        return " ".join(found[1:]), found[0]

    def _word(self, row: RecordType, position: int, word: str) -> str:
        """A word as `content` has it: names absolute, each string of a TXT record quoted."""
        field = row.fields[min(position, len(row.fields) - 1)]
        if isinstance(field.kind, Strings):
            return word if word.startswith('"') else f'"{word}"'
        if isinstance(field.kind, (Host, Target)):
            return word if word == "." else names.absolute_text(self._absolute(word))
        return word

    def _absolute(self, word: str) -> bytes:
        if word == "@":
            return self._origin
        if word.endswith(".") and not word.endswith("\\."):
            return names.wire_from_text(word)
        relative = names.wire_from_text(word)
        return names.wire_from_labels((*names.labels(relative), *names.labels(self._origin)))

    def _generate(self, line: Line, arguments: list[str]) -> Iterator[Entry]:
        if len(arguments) < 4:
            raise InvalidValue("$GENERATE takes a range, a name, a type and contents")
        found, owner = numbers(arguments[0]), Pattern(arguments[1])
        patterns = [Pattern(word) for word in arguments[2:]]
        for number in found:
            words = [pattern.at(number) for pattern in patterns]
            yield self._record(line, self._absolute(owner.at(number)), words)


def _only(arguments: Sequence[str], expected: str) -> str:
    if len(arguments) != 1:
        raise InvalidValue(expected)
    return arguments[0]


def _type(word: str) -> RecordType:
    name = word.upper()
    row = TYPES.get(name)
    number = name.removeprefix("TYPE")
    if row is None and number != name and number.isascii() and number.isdigit() and len(number) <= 5:
        row = TYPES_BY_NUMBER.get(int(number))
    if row is None:
        raise InvalidValue(f"the record type {shown(word)} is not supported")
    return row


def _octets(words: Sequence[str]) -> bytes:
    """The rdata behind `\\#`: its length, then hex in any number of words (RFC 3597 §5)."""
    try:
        octets = bytes.fromhex("".join(words[1:]))
    except ValueError:
        octets = b""
    if not words or words[0] != str(len(octets)):
        raise InvalidValue("behind \\# stand the number of octets and that many of them in hex")
    return octets


def _ttl(text: str) -> int:
    """Seconds, or numbers with units. Raises: InvalidValue."""
    seconds, digits = 0, ""
    for character in text.lower() if len(text) <= TTL_CHARACTERS_MAX else "?":
        if character.isascii() and character.isdigit():
            digits += character
        elif character in TTL_UNITS and digits:
            seconds, digits = seconds + int(digits) * TTL_UNITS[character], ""
        else:
            raise InvalidValue(f"the TTL {shown(text)} is not a number of seconds")
    seconds += int(digits or "0")
    if not text or seconds > TTL_SECONDS_MAX:
        raise InvalidValue(f"the TTL {shown(text)} is not a number of seconds up to {TTL_SECONDS_MAX}")
    return seconds
