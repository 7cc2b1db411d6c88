"""The SQL that SQLite and PostgreSQL both run, and the way from one to the other.

Owns  the small differences: `?`, 64-bit integers, the substring helper, and words that mean two things.
Not   running SQL.

Statements are written as SQLite takes them. docs/design/0002-store.md lists what is allowed and why.
"""

import re
from collections.abc import Iterator
from types import ModuleType

# A database is made with ENCODING UTF8 and LOCALE C, so that text sorts by bytes as in SQLite.
POSTGRES_PREAMBLE = """
CREATE DOMAIN blob AS bytea;
CREATE FUNCTION instr(haystack text, needle text) RETURNS integer
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS 'SELECT strpos(haystack, needle)';
"""

# What would prepare on both and mean two things, or binds us to one of them.
UNPORTABLE = {
    r"\bi?like\b|\bglob\b|\bregexp\b": "case rules differ: compare a folded column, or use instr",
    r"->|\bjson\w*\s*\(": "JSON operators differ: keep what is searched in a column",
    r"\bautoincrement\b|\bnextval\b|\bserial\b\s+primary": "the caller makes ids and sequences",
    r"\browid\b|\bwithout\s+rowid\b": "only SQLite has row ids",
    r"\bcreate\s+(temp\s+)?trigger\b": "rules live in services",
    r"\bcurrent_(time|date|timestamp)\b|\bnow\s*\(|\brandom\w*\s*\(": "the caller brings time and chance",
    r"\bcollate\b": "text sorts by bytes everywhere",
    r"\bdatetime\b|\bboolean\b|\breal\b|\bnumeric\b": "types are text, integer and blob",
}

# Text that must stay as it is comes first, so that a `?` inside of it is not a parameter.
_TOKEN = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|/\*.*?\*/|\?|\binteger\b", re.DOTALL | re.IGNORECASE)
_LITERAL = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|/\*.*?\*/", re.DOTALL)
_STATEMENT = re.compile(r"\s*(select|insert|update|delete|with)\b", re.IGNORECASE)


def to_postgres(sql: str) -> str:
    """Number the parameters and widen `integer`, whose 64 bits SQLite takes for granted.

    >>> to_postgres("SELECT cast(a AS integer) FROM t WHERE b = ? AND c <> '?' AND d = ?")
    "SELECT cast(a AS bigint) FROM t WHERE b = $1 AND c <> '?' AND d = $2"
    """
    number = 0

    def replace(match: re.Match[str]) -> str:
        nonlocal number
        token = match[0]
        if token == "?":
            number += 1
            return f"${number}"
        return "bigint" if token.lower() == "integer" else token

    return _TOKEN.sub(replace, sql)


def objections(sql: str) -> list[str]:
    """What is not portable in a statement or migration, in words; empty when nothing is."""
    bare = _LITERAL.sub("''", sql)
    found = ((re.search(pattern, bare, re.IGNORECASE), reason) for pattern, reason in UNPORTABLE.items())
    return [f"{match[0]!r}: {reason}" for match, reason in found if match]


def statements(module: ModuleType) -> Iterator[str]:
    """The statements of one module, by convention.

    Every module-level constant in capitals that begins like a statement is one, alone or in a tuple or
    dict; what a module puts together at run time, its own function `statements()` enumerates.
    """
    for name, value in vars(module).items():
        if name.isupper():
            yield from (text for text in _texts(value) if _STATEMENT.match(text))
    if composed := getattr(module, "statements", None):
        yield from composed()


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (tuple, list, frozenset)):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
