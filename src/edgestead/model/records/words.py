r"""Presentation text: words, double quotes and backslashes (RFC 1035 §5.1).

Owns  splitting content into words, and strings of octets to and from text.
Not   zone files: directives, parentheses and comments are not content.

Text outside ASCII is its UTF-8. Octets that are not UTF-8 or not printable are written `\DDD`.
"""

from edgestead.model.names import InvalidValue, escaped_octet


def words(text: str) -> list[str]:
    """Split at blanks that stand outside double quotes; quotes and escapes stay in the words.

    A quoted string ends its word, so `"a""b"` is two words.
    Raises: InvalidValue: a quote is left open, or a backslash ends the text.
    """
    if '"' not in text and "\\" not in text:
        return text.split()
    found: list[str] = []
    position = 0
    while True:
        while position < len(text) and text[position].isspace():
            position += 1
        if position == len(text):
            return found
        end = _word_end(text, position)
        found.append(text[position:end])
        position = end


def _word_end(text: str, start: int) -> int:
    is_quoted = False
    position = start
    while position < len(text):
        character = text[position]
        if character == "\\":
            position += 1
        elif character == '"':
            is_quoted = not is_quoted
            if not is_quoted and text[start] == '"':
                return position + 1
        elif not is_quoted and character.isspace():
            return position
        position += 1
    if is_quoted:
        raise InvalidValue("the double quotes are inconsistent")
    if position > len(text):
        raise InvalidValue("a backslash stands at the end")
    return position


def string_octets(word: str) -> bytes:
    """The octets of one word, quoted or bare, its escapes taken apart.

    Raises: InvalidValue: a bad escape, or a quote inside the word.
    """
    return unescaped(word[1:-1] if len(word) > 1 and word[0] == word[-1] == '"' else word)


def unescaped(text: str) -> bytes:
    """The octets of text that stands between quotes.

    Raises: InvalidValue: a bad escape, or a double quote that is not escaped.
    """
    pieces = []
    position = 0
    while (slash := text.find("\\", position)) >= 0:
        pieces.append(_octets(text[position:slash]))
        octet, position = escaped_octet(text, slash + 1)
        pieces.append(bytes((octet,)))
    pieces.append(_octets(text[position:]))
    return b"".join(pieces)


def _octets(text: str) -> bytes:
    if '"' in text:
        raise InvalidValue("the double quotes are inconsistent")
    return utf8(text)


def utf8(text: str) -> bytes:
    """Text as octets. Raises: InvalidValue: half of a surrogate pair."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidValue("the text is not valid Unicode") from None


def quoted(octets: bytes) -> str:
    """Write octets as one quoted string that a person can read."""
    text = octets.decode("utf-8", "surrogateescape")
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join([_escaped(character, character.isprintable()) for character in text]) + '"'


def quoted_ascii(octets: bytes) -> str:
    """Write octets as one quoted string of printable ASCII, as zone files need it."""
    text = octets.decode("latin-1")
    return (
        '"' + "".join([_escaped(character, " " <= character <= "~", "latin-1") for character in text]) + '"'
    )


def _escaped(character: str, is_plain: bool, encoding: str = "utf-8") -> str:
    if character in '"\\':
        return f"\\{character}"
    if is_plain:
        return character
    return "".join([f"\\{octet:03d}" for octet in character.encode(encoding, "surrogateescape")])
