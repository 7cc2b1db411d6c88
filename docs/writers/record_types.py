"""The reference page of record types, written from the table.

Owns  the page's words around the facts.
Not   a fact of its own: what is said of a type comes from its row and docstring.
"""

import inspect
from collections.abc import Iterable

from edgestead.model.names import check_address_name, check_any_name, check_service_name
from edgestead.model.records import TYPES, RecordType
from edgestead.model.records.svcparams import KEY_MAX, PARAMS
from edgestead.model.records.table import CONTENT_OCTETS_MAX, NameRule

INTRODUCTION = f"""# Record types

This page is written from the table in `edgestead.model.records`.

A record carries its contents as text in `content` or as an object in `data`; the column *Form* says which.
The other member is ignored, but a type with `data` may be sent `content` alone. In `data` a null counts as
not sent, a number may be text (`"37"`), and unknown members are ignored. Answers always have `content`, and
`data` where the form is `data`.

Host names are answered in lower case without their last dot, `.` stays as it is; where the kind says so a
last dot is kept. Hexadecimal digits keep their capitals. Rdata has at most {CONTENT_OCTETS_MAX:,} octets.
In `content`, text stands in double quotes, with `\\"`, `\\\\` and `\\DDD` as escapes.
"""

NAME_RULES: dict[NameRule, str] = {
    check_any_name: "any",
    check_address_name: "labels of letters, digits, `-` and `_` that start with a letter or `_`; `*` first",
    check_service_name: "`_service._proto.base`",
}
PRIORITY_PLACES = {None: "", "top": "top level", "both": "top level and `data`"}


def page() -> str:
    """docs/reference/record-types.md."""
    rows = sorted(TYPES.values(), key=lambda row: row.name)
    overview = _table(
        ("Type", "Number", "Source", "Form", "Priority", "Can be proxied"),
        (
            (
                f"[{row.name}](#{row.name.lower()})",
                str(row.number),
                row.source,
                f"`{row.form}`",
                PRIORITY_PLACES[row.priority],
                "yes" if row.proxiable else "no",
            )
            for row in rows
        ),
    )
    sections = [_section(row) for row in rows]
    return "\n".join([INTRODUCTION, overview, *sections, _parameters()])


def _section(row: RecordType) -> str:
    fields = _table(
        ("Field", "Kind", "When not sent"),
        (
            (
                f"`{field.name}`",
                field.kind.label,
                "refused" if field.default is None else f"`{field.default}`",
            )
            for field in row.fields
        ),
    )
    content = " ".join(field.name for field in row.content_fields)
    facts = f"Content: `{content}`. Name: {NAME_RULES[row.name_rule]}."
    if row.is_extension:
        facts += " An extension: the profile `spec` refuses it with 9002, `clients` takes it."
    return f"## {row.name}\n\n{inspect.cleandoc(row.rdata.__doc__ or '')}\n\n{facts}\n\n{fields}"


def _parameters() -> str:
    keys = ((f"`{param.name}`", str(param.number), param.source) for param in PARAMS)
    return (
        '## Service parameters\n\nOf SVCB and HTTPS, written `key=value` or `key="value"`. '
        f"Keys without a name are `key0` to `key{KEY_MAX}`.\n\n" + _table(("Key", "Number", "Source"), keys)
    )


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
