"""The reference page of the expression language's fields, written from the table.

Owns  the page's words around the facts.
Not   a fact of its own.
"""

from edgestead.language.fields import ALIASES, FIELDS, Field
from edgestead.language.meanings import meaning_of
from edgestead.language.types import VALUE_BYTES_MAX, VALUE_ITEMS_MAX

INTRODUCTION = f"""# Fields

This page is written from the table in `edgestead.language.fields`. How fields are used is in
[expressions](expressions.md).

A String is cut after {VALUE_BYTES_MAX:,} bytes; an Array or Map shows its first {VALUE_ITEMS_MAX:,} items.
*Otherwise* is the value where nothing fills the field: many belong to services that a machine of your own
does not have, and keep a neutral value so that existing rules load and mean no harm. A missing value makes
every comparison false, except `ne`.
"""
# title, prefixes of names (the longest match wins), what the group says
GROUPS = (
    (
        "Request",
        ("http.",),
        "Letter case is kept. The path is its normal spelling, `/admin` for `/%61dmin` and `//x/../admin` "
        "([more](../explanation/edge-rules.md#which-path-a-rule-sees)); queries, headers and cookies are as "
        "they came. Keys of `http.request.headers` are lower-case, repeated headers and arguments are more "
        "items of the array. Which fields the edge fills: [fields at the edge](edge-fields.md).",
    ),
    (
        "Body",
        ("http.request.body.",),
        "`form` and its parts are filled for `application/x-www-form-urlencoded`, `multipart` for multipart "
        "bodies. The items of `multipart.*` stand in the order of the parts.",
    ),
    ("Raw request", ("raw.http.request.",), "As received, whatever earlier rules rewrote."),
    (
        "Client address",
        ("ip.",),
        "`ip.src` is the client's address behind trusted proxies. The other fields need a source of "
        "geographical data.",
    ),
    (
        "Connection and platform",
        ("ssl", "cf."),
        "The prefix `cf.` is part of the language: rules written for the v4 API use it.",
    ),
    (
        "Response",
        ("http.response.", "raw.http.response.", "cf.response.", "cf.timings.edge", "cf.timings.origin",
         "cf.timings.worker"),
        "In response phases, and in the counting expression of a rate limit.",
    ),
)  # fmt: skip


def page() -> str:
    """docs/reference/fields.md."""
    sections = []
    for title, _, words in GROUPS:
        rows = [field for field in FIELDS.values() if _group(field) == title]
        sections.append(f"## {title}\n\n{words}\n\n{_table(rows)}")
    old = "".join(f"| `{alias}` | `{name}` |\n" for alias, name in sorted(ALIASES.items()))
    sections.append(f"## Old names\n\nStill understood.\n\n| Old | Now |\n| --- | --- |\n{old}")
    return "\n".join([INTRODUCTION, *sections])


def _group(field: Field) -> str:
    prefixes = [(prefix, title) for title, group, _ in GROUPS for prefix in group]
    return max((len(prefix), title) for prefix, title in prefixes if field.name.startswith(prefix))[1]


def _table(rows: list[Field]) -> str:
    lines = (
        f"| `{field.name}` | {_shown_type(field)} | {_default(field)} | {meaning_of(field.name)} |\n"
        for field in sorted(rows, key=lambda row: row.name)
    )
    return "| Field | Type | Otherwise | Meaning |\n| --- | --- | --- | --- |\n" + "".join(lines)


def _shown_type(field: Field) -> str:
    """The type by its name in the documentation: String, Int, Bool, IP, Array<…>, Map<…>."""
    return f"`{field.type}`".replace("Bytes", "String").replace("Ip", "IP")


def _default(field: Field) -> str:
    if field.default is None:
        return "missing"
    return f"`{str(field.default).lower()}`" if not isinstance(field.default, bytes) else '`""`'
