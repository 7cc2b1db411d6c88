"""Domain names as bytes: absolute, lower-case, uncompressed wire form.

Owns  the two spellings of a name (text and wire), the relations between names, and which owner names a
      record type or a zone may have.
Not   what a name means: that is for zones and records; refusals and their codes (`model.refusals.record`).

One form means one identity: equal names are equal bytes, hashable, and go into a DNS message unchanged.
Everything here walks its input once; nothing depends on a pattern matcher.
"""

from collections.abc import Sequence

from edgestead.model.call import Profile
from edgestead.model.limits import LABEL_OCTETS_MAX, NAME_OCTETS_MAX
from edgestead.model.refusals import CLIENTS_TAKE_IT

ROOT = b"\x00"

TEXT_CHARACTERS_MAX = 4 * NAME_OCTETS_MAX  # every octet written as \DDD
ZONE_CHARACTERS_MAX = 253  # zone names, in text form without the last dot
SHOWN_CHARACTERS_MAX = 40  # of a client's text, in an error message

# Printable ASCII without the characters that a zone file gives a meaning (RFC 1035 §5.1).
_LABEL_OCTETS = bytes(octet for octet in range(0x21, 0x7F) if octet not in b'"().;@$\\')
_NAME_OCTETS = _LABEL_OCTETS + b"."
_ADDRESS_OCTETS = b"abcdefghijklmnopqrstuvwxyz0123456789-_"
_LENGTHS = tuple(bytes((length,)) for length in range(LABEL_OCTETS_MAX + 1))

# RFC 5891 reads these differently from RFC 3490, so a guess would sometimes be another owner's name.
_DEVIATIONS = "ßẞς\u200c\u200d"
_FULL_STOPS = str.maketrans("\u3002\uff0e\uff61", "...")  # RFC 3490 §3.1


class InvalidValue(ValueError):
    """Text or bytes that do not hold what they should. `reason` is a sentence part for the caller."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class InvalidName(InvalidValue):
    """A name that cannot be, or not here."""


def shown(text: str) -> str:
    """Somebody's text, quoted and cut to `SHOWN_CHARACTERS_MAX`, for the words of a refusal."""
    return repr(text) if len(text) <= SHOWN_CHARACTERS_MAX else f"{text[:SHOWN_CHARACTERS_MAX]!r}…"


def escaped_octet(text: str, position: int) -> tuple[int, int]:
    r"""Read what follows a backslash, `DDD` or one ASCII character; returns the octet and the next position.

    Raises: InvalidValue: cut short, a number over 255, not ASCII.
    """
    digits = text[position : position + 3]
    if not digits[:1].isdigit():
        if not digits[:1] or not digits[0].isascii():
            raise InvalidValue("a backslash must be followed by an ASCII character or three digits")
        return ord(digits[0]), position + 1
    if len(digits) < 3 or not digits.isascii() or not digits.isdigit() or int(digits) > 255:
        raise InvalidValue(f"the escape {shown(chr(92) + digits)} is not three digits from 000 to 255")
    return int(digits), position + 3


def wire_from_text(text: str) -> bytes:
    r"""Read a name; it is taken as absolute, with or without its last dot.

    >>> wire_from_text("WWW.Example.NET.")
    b'\x03www\x07example\x03net\x00'

    `\.` and `\DDD` are escapes (RFC 1035 §5.1). Labels in Unicode become punycode (RFC 3490); the few
    characters that the two IDNA standards read differently are refused.

    Raises: InvalidName: empty, a label over 63 or a name over 255 octets, a character that must be escaped.
    """
    if text == ".":
        return ROOT
    if not text or len(text) > TEXT_CHARACTERS_MAX:
        raise InvalidName("a name has 1 to 255 octets")
    if not text.isascii():
        text = _ascii_from_unicode(text)
    if "\\" in text:
        return wire_from_labels(_unescaped_labels(text))
    octets = text.encode("ascii").lower()
    if octets.translate(None, _NAME_OCTETS):
        raise InvalidName(f"{shown(text)} holds a character that must be escaped in a name")
    return wire_from_labels((octets[:-1] if octets[-1:] == b"." else octets).split(b"."))


def wire_from_labels(parts: Sequence[bytes]) -> bytes:
    """Join labels, leftmost first, without the root's; upper case is folded.

    Raises: InvalidName: an empty label, a label over 63 or a name over 255 octets.
    """
    pieces = []
    for label in parts:
        length = len(label)
        if not length:
            raise InvalidName("a label is empty (two dots in a row, or a dot at the start)")
        if length > LABEL_OCTETS_MAX:
            raise InvalidName(f"a label has {length} octets, more than {LABEL_OCTETS_MAX}")
        pieces.append(_LENGTHS[length])
        pieces.append(label)
    pieces.append(ROOT)
    wire = b"".join(pieces)
    if len(wire) > NAME_OCTETS_MAX:
        raise InvalidName(f"the name has {len(wire)} octets, more than {NAME_OCTETS_MAX}")
    return wire.lower()  # lengths are below 64, so no length is a capital letter


def text_from_wire(wire: bytes) -> str:
    """Write a name without its last dot; the root is `.`. The inverse of `wire_from_text`."""
    return ".".join([_label_text(label) for label in labels(wire)]) or "."


def absolute_text(wire: bytes) -> str:
    """Write a name with its last dot, as a zone file wants it."""
    return ".".join([_label_text(label) for label in labels(wire)]) + "."


def read_wire(message: bytes, offset: int) -> tuple[bytes, int]:
    """Read an uncompressed name at `offset`; returns it, folded, and the offset behind it.

    Raises: InvalidName: cut short, compressed (RFC 3597 §4 forbids it in stored rdata), over 255 octets.
    """
    start = offset
    while True:
        length = message[offset] if offset < len(message) else -1
        if not 0 <= length <= LABEL_OCTETS_MAX:
            raise InvalidName("the wire form of a name is cut short or compressed")
        offset += length + 1
        if offset - start > NAME_OCTETS_MAX:
            raise InvalidName(f"the name has more than {NAME_OCTETS_MAX} octets")
        if not length:
            return message[start:offset].lower(), offset


def labels(name: bytes) -> tuple[bytes, ...]:
    """The labels of a checked wire name, leftmost first, without the root's empty one."""
    parts = []
    offset = 0
    while length := name[offset]:
        parts.append(name[offset + 1 : offset + 1 + length])
        offset += length + 1
    return tuple(parts)


def parent(name: bytes) -> bytes:
    """The name one label up; the root is its own parent."""
    return name[name[0] + 1 :] or ROOT


def is_at_or_below(name: bytes, ancestor: bytes) -> bool:
    """Whether `name` is `ancestor` or stands below it. `xa.test` is not below `a.test`."""
    start = len(name) - len(ancestor)
    offset = 0
    while offset < start:
        offset += name[offset] + 1
    return offset == start and name.endswith(ancestor)


def is_wildcard(name: bytes) -> bool:
    """Whether the leftmost label is exactly `*` (RFC 4592 §2.1.1)."""
    return name.startswith(b"\x01*")


def ascii_part(text: str) -> str:
    """A piece of a name as text: lower case, labels that are not ASCII in punycode, without a last dot.

    Raises: InvalidName.
    """
    return (text if text.isascii() else _ascii_from_unicode(text)).lower().removesuffix(".")


def owner_from_text(text: str, apex: bytes) -> bytes:
    """Read the `name` of a record: `@` or nothing is the apex; a name outside the zone is taken as relative.

    Raises: InvalidName.
    """
    if text in ("@", ""):
        return apex
    name = wire_from_text(text)
    if is_at_or_below(name, apex):
        return name
    if len(name) - 1 + len(apex) > NAME_OCTETS_MAX:
        raise InvalidName(f"the name has more than {NAME_OCTETS_MAX} octets together with the zone's")
    return name[:-1] + apex


# Which owner names a record type takes. One signature, so that the table of types can hold them.


def check_any_name(name: bytes, profile: Profile, apex: bytes = ROOT) -> None:
    """Any name will do."""


def check_address_name(name: bytes, profile: Profile, apex: bytes = ROOT) -> None:
    """The rule for A, AAAA and CNAME (spec "Name rules"), label by label below `apex`.

    A label starts with a letter or `_`, ends with a letter or digit, and holds letters, digits, hyphens and
    underscores; `*` may be the whole first label. Under the profile `clients` a digit may start a label.

    Raises: InvalidName.
    """
    below = labels(name)[: len(labels(name)) - len(labels(apex))]
    if below and below[0] == b"*":
        below = below[1:]
    for label in below:
        first = label[:1]
        if not (first.isalpha() or first == b"_" or (first.isdigit() and profile is Profile.CLIENTS)):
            hint = f"; {CLIENTS_TAKE_IT}" if first.isdigit() else ""
            raise InvalidName(f"label {shown(_label_text(label))} must start with a letter{hint}")
        if not label[-1:].isalnum():
            raise InvalidName(f"label {shown(_label_text(label))} must end with a letter or digit")
        if label.translate(None, _ADDRESS_OCTETS):
            raise InvalidName(
                f"label {shown(_label_text(label))} may only hold letters, digits, hyphens and underscores"
            )


def check_service_name(name: bytes, profile: Profile, apex: bytes = ROOT) -> None:
    """The shape of an SRV name: `_service._proto.base` (spec "Name rules", RFC 2782).

    Raises: InvalidName.
    """
    if not all(_is_underscored(label) for label in _first_two(name)):
        raise InvalidName("the name must have the shape _service._proto.base")


def check_port_name(name: bytes, profile: Profile, apex: bytes = ROOT) -> None:
    """The shape of a TLSA name: `_port._proto.base`, or `*` for every port (RFC 6698 §3).

    Raises: InvalidName.
    """
    port, proto = _first_two(name)
    is_port = _is_underscored(port) and port[1:].isdigit() and len(port) <= 6 and int(port[1:]) <= 65_535
    if not (is_port or port == b"*") or not _is_underscored(proto):
        raise InvalidName("the name must have the shape _port._proto.base")


def check_zone_name(name: bytes) -> None:
    """The rule for a zone: at least two labels of letters, digits and inner hyphens, 253 characters.

    Raises: InvalidName.
    """
    parts = labels(name)
    if len(parts) < 2:
        raise InvalidName("a zone name has at least two labels")
    if len(name) - 2 > ZONE_CHARACTERS_MAX:
        raise InvalidName(f"a zone name has at most {ZONE_CHARACTERS_MAX} characters")
    for label in parts:
        if not label.replace(b"-", b"").isalnum() or b"-" in (label[:1], label[-1:]):
            raise InvalidName(
                f"label {shown(_label_text(label))} may only hold letters, digits and inner hyphens"
            )


def _first_two(name: bytes) -> tuple[bytes, bytes]:
    first, second = (*labels(name), b"", b"")[:2]
    return first, second


def _is_underscored(label: bytes) -> bool:
    return len(label) > 1 and label.startswith(b"_")


def _label_text(label: bytes) -> str:
    if not label.translate(None, _LABEL_OCTETS):
        return label.decode("ascii")
    return "".join([_octet_text(octet) for octet in label])


def _octet_text(octet: int) -> str:
    if octet in _LABEL_OCTETS:
        return chr(octet)
    return f"\\{chr(octet)}" if 0x21 <= octet < 0x7F else f"\\{octet:03d}"


def _unescaped_labels(text: str) -> list[bytes]:
    """Split ASCII text at its dots while taking escapes apart (RFC 1035 §5.1)."""
    parts = [bytearray()]
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character == "\\":
            octet, position = _escaped_name_octet(text, position)
            parts[-1].append(octet)
        elif character == ".":
            parts.append(bytearray())
        elif ord(character) in _LABEL_OCTETS:
            parts[-1].append(ord(character))
        else:
            raise InvalidName(f"{shown(text)} holds a character that must be escaped in a name")
    if not parts[-1]:
        parts.pop()
    return [bytes(part) for part in parts]


def _escaped_name_octet(text: str, position: int) -> tuple[int, int]:
    try:
        return escaped_octet(text, position)
    except InvalidValue as error:
        raise InvalidName(error.reason) from None


def _ascii_from_unicode(text: str) -> str:
    parts = text.translate(_FULL_STOPS).split(".")
    return ".".join([part if part.isascii() else _punycode(part) for part in parts])


def _punycode(label: str) -> str:
    """One label in Unicode to its A-label (RFC 3490 §4.1, with STD3 ASCII rules)."""
    if len(label) > LABEL_OCTETS_MAX:
        raise InvalidName(f"a label has more than {LABEL_OCTETS_MAX} characters")
    # Both modules carry large tables, and nearly every name is ASCII.
    import unicodedata
    from encodings.idna import nameprep

    try:
        prepared = nameprep(label)
        stable = prepared == unicodedata.normalize("NFKC", prepared.casefold())
        encoded = prepared if prepared.isascii() else "xn--" + prepared.encode("punycode").decode("ascii")
    except UnicodeError:
        raise InvalidName(f"label {shown(label)} holds characters that no name may have") from None
    plain = all(not char.isascii() or char.isalnum() or char in "-_" for char in prepared)
    if not (prepared and stable and plain) or any(char in _DEVIATIONS for char in label):
        raise InvalidName(f"label {shown(label)} has no single meaning; write it in punycode (xn--…)")
    return encoded
