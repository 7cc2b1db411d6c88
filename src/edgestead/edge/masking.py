"""What a stranger sent, as an event may keep it: short, printable, without secrets.

Owns  which names mean a credential, how its value is hidden, how bytes become text.
Not   which parts of a request an event holds.

Hiding errs on the side of hiding: ``tokens=3`` is hidden too. One walk over the text, whose length is bounded
first. What is secret by its place alone, such as a token in a path, nobody can know.
"""

from urllib.parse import unquote_to_bytes

HIDDEN = b"***"
CUT = "…"
TEXT_OCTETS_MAX = 1_024  # of a path, a query, a header; what follows is cut
MATCHED_OCTETS_MAX = 256  # of what a managed rule matched

# In lower case, without - _ . and blanks: anywhere in a name, or the whole name.
_PARTS = (
    b"apikey", b"auth", b"cookie", b"credential", b"jwt", b"passphrase", b"passw", b"privatekey", b"pwd",
    b"secret", b"session", b"signature", b"token",
)  # fmt: skip
_WHOLE = frozenset((b"key", b"pass", b"pin", b"pw", b"otp", b"sid", b"sig", b"code", b"cvv", b"cvc"))
_NAME = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.%")
_BETWEEN = frozenset(b" \t\"'=:\\[]")  # between a name and its value, in queries, JSON and headers
_END = frozenset(b"&;,\"'<>\r\n{}()")
_SCHEMES = (b"bearer ", b"basic ", b"digest ")
_JWT = b"eyJ"  # base64 of '{"', with which every JSON web token begins
_JWT_OCTETS_MIN = 20
_TOKEN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.=+/")
_SECRET_SOURCES = (b"cookies", b"cookie", b"authorization", b"proxy-authorization")


def is_secret(name: bytes) -> bool:
    """Whether a value of that name is a credential, as far as names tell."""
    plain = unquote_to_bytes(name).lower().translate(None, b"-_. ")
    return plain in _WHOLE or any(part in plain for part in _PARTS)


def hidden_query(query: bytes) -> bytes:
    """A query with the values of secret names hidden."""
    return b"&".join(map(_hidden_pair, query.split(b"&")))


def _hidden_pair(pair: bytes) -> bytes:
    name, equals, value = pair.partition(b"=")
    if equals and value and is_secret(name):
        return name + b"=" + HIDDEN
    return hidden(pair)


def hidden(text: bytes) -> bytes:
    """A text with secrets hidden: values behind secret names, authorization schemes, JSON web tokens."""
    parts: list[bytes] = []
    done = at = 0
    while at < len(text):
        if text[at] not in _NAME:
            at += 1
            continue
        end = _run(text, at, _NAME)
        if text[at:end].lower() + b" " in _SCHEMES:
            start, stop = end + 1, _run(text, end + 1, _TOKEN)
        elif text.startswith(_JWT, at) and end - at >= _JWT_OCTETS_MIN:
            start, stop = at, _run(text, at, _TOKEN)
        else:
            start, stop = _value_of(text, at, end)
        if stop > start:
            parts += (text[done:start], HIDDEN)
            done = end = stop
        at = end
    return b"".join((*parts, text[done:])) if parts else text


def _value_of(text: bytes, at: int, end: int) -> tuple[int, int]:
    """Where the value of the name at `at` stands; empty when it has none, or is no secret."""
    start = _run(text, end, _BETWEEN)
    between = text[end:start]
    if (b"=" in between or b":" in between) and is_secret(text[at:end]):
        stop = start
        while stop < len(text) and text[stop] not in _END:
            stop += 1
        return start, stop
    return end, end


def _run(text: bytes, at: int, octets: frozenset[int]) -> int:
    while at < len(text) and text[at] in octets:
        at += 1
    return at


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
