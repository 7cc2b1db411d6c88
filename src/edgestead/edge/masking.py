"""What a stranger sent, as an event may keep it: short, printable, without secrets.

Owns  which names mean a credential, how its value is hidden, how bytes become text.
Not   which parts of a request an event holds.

Hiding errs on the side of hiding: ``tokens=3`` is hidden too. A text in which no word of a credential stands,
which is most of them, is let through by some searches; any other is walked once, and its length is bounded
first. What is secret by its place alone, such as a token in a path, nobody can know.
"""

import re
from urllib.parse import quote_from_bytes, unquote_to_bytes

HIDDEN = b"***"
CUT = "…"
ENCODINGS_MAX = 3  # of an address within an address within one
TEXT_OCTETS_MAX = 1_024  # of a path, a query, a header; what follows is cut
MATCHED_OCTETS_MAX = 256  # of what a managed rule matched

# In lower case, without - _ . and blanks: anywhere in a name, or the whole name.
_PARTS = (
    b"apikey", b"auth", b"cookie", b"credential", b"jwt", b"passphrase", b"passw", b"privatekey", b"pwd",
    b"secret", b"session", b"signature", b"token",
)  # fmt: skip
_WHOLE = frozenset((b"key", b"pass", b"pin", b"pw", b"otp", b"sid", b"sig", b"code", b"cvv", b"cvc"))
_NAME = re.compile(rb"[A-Za-z0-9\-_.%]+")
_BETWEEN_OCTETS = b" \t\"'=:\\[]"  # between a name and its value, in queries, JSON and headers
_BETWEEN = re.compile(b"[" + re.escape(_BETWEEN_OCTETS) + b"]*")
_VALUE = re.compile(rb"[^&;,\"'<>\r\n{}()]*")
_SAFE = "*"  # so that what was hidden is seen
_SCHEMES = (b"bearer ", b"basic ", b"digest ")
_JWT = b"eyJ"  # base64 of '{"', with which every JSON web token begins
_JWT_OCTETS_MIN = 20
_TOKEN = re.compile(rb"[A-Za-z0-9\-_.=+/]*")
_SECRET_SOURCES = (b"cookies", b"cookie", b"authorization", b"proxy-authorization")
# One of them stands in a text that hides something: in lower case, without - _ . and blanks, and = for all
# that parts a name from its value.
_WORDS = (*_PARTS, *(word + b"=" for word in _WHOLE), *(scheme.rstrip() for scheme in _SCHEMES), _JWT.lower())
_WORD = re.compile(b"|".join(sorted(_WORDS)))
_SQUEEZED = bytes(
    ord("=") if octet in _BETWEEN_OCTETS else ord(chr(octet).lower()) if octet < 0x80 else octet
    for octet in range(256)
)


def may_hold_secrets(text: bytes) -> bool:
    """False where `hidden` and `hidden_query` would change nothing."""
    for _ in range(ENCODINGS_MAX + 2):  # as it is, within each encoding, and a name's own
        if _WORD.search(text.translate(_SQUEEZED, b"-_. ")):
            return True
        if b"%" not in text:
            return False
        text = unquote_to_bytes(text)
    return False


def is_secret(name: bytes) -> bool:
    """Whether a value of that name is a credential, as far as names tell."""
    plain = unquote_to_bytes(name).lower().translate(None, b"-_. ")
    return plain in _WHOLE or any(part in plain for part in _PARTS)


def hidden_query(query: bytes) -> bytes:
    """A query with the values of secret names hidden."""
    if not may_hold_secrets(query):
        return query
    return b"&".join(map(_hidden_pair, query.split(b"&")))


def _hidden_pair(pair: bytes) -> bytes:
    if not may_hold_secrets(pair):
        return pair
    name, equals, value = pair.partition(b"=")
    if equals and value and is_secret(name):
        return name + b"=" + HIDDEN
    return _walked(pair, ENCODINGS_MAX)


def hidden(text: bytes) -> bytes:
    """A text with secrets hidden: values behind secret names, authorization schemes, JSON web tokens.

    Also in parts of it that are percent-encoded, as addresses within addresses are: ENCODINGS_MAX times over.
    """
    return _walked(text, ENCODINGS_MAX) if may_hold_secrets(text) else text


def _walked(text: bytes, encodings: int) -> bytes:
    parts: list[bytes] = []
    done = at = 0
    while found := _NAME.search(text, at):
        at, end = found.span()
        run = found[0]
        if run.lower() + b" " in _SCHEMES:
            start, stop = end + 1, _end(_TOKEN, text, end + 1)
        elif run.startswith(_JWT) and end - at >= _JWT_OCTETS_MIN:
            start, stop = at, _end(_TOKEN, text, at)
        else:
            start, stop = _value_of(text, run, end)
        if stop > start:
            parts += (text[done:start], HIDDEN)
            done = end = stop
        elif encodings and b"%" in run:
            decoded = unquote_to_bytes(run)
            if decoded != run and (kept := _walked(decoded, encodings - 1)) != decoded:
                parts += (text[done:at], quote_from_bytes(kept, safe=_SAFE).encode())
                done = end
        at = end
    return b"".join((*parts, text[done:])) if parts else text


def _value_of(text: bytes, name: bytes, end: int) -> tuple[int, int]:
    """Where the value of the name that ends there stands; empty when it has none, or is no secret."""
    start = _end(_BETWEEN, text, end)
    between = text[end:start]
    if (b"=" in between or b":" in between) and is_secret(name):
        return start, _end(_VALUE, text, start)
    return end, end


def _end(octets: re.Pattern[bytes], text: bytes, at: int) -> int:
    """Where a run of them that begins there ends."""
    found = octets.match(text, at)
    return at if found is None else found.end()


def hidden_match(variable: bytes, matched: bytes) -> bytes:
    """What a managed rule matched, hidden as a whole where the variable itself is secret."""
    place, _, name = variable.lower().partition(b":")
    if place.endswith(_SECRET_SOURCES) or (name and (name in _SECRET_SOURCES or is_secret(name))):
        return HIDDEN
    return hidden(matched)


def shown(text: bytes, octets_max: int = TEXT_OCTETS_MAX) -> str:
    """At most that many octets as text; what no terminal may obey, and what is no UTF-8, as escapes."""
    words = text[:octets_max].decode("utf-8", "backslashreplace")
    if not words.isprintable():
        words = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in words)
    return words + CUT if len(text) > octets_max else words
