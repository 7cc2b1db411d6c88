"""The reference page of the fields that the edge fills.

Owns  the page's words around the facts.
Asks  `fields` for what is known, `language` for everything else.
Tells docs/generate.py.
Not   what a field means.
"""

from edgestead.language import FIELDS
from edgestead.language.fields import Field
from edgestead.proxy.fields import BODY_OCTETS_SEEN_MAX, KNOWN

_HEAD = f"""# Fields at the edge

<!-- Written by docs/generate.py; change the code instead. -->
Which [fields](fields.md) have a request's value at the edge, and which only their default, because nothing on
this machine could know more. A rule that asks for one of the latter is taken and does what its default says.

Where a rule asks for a body, the edge holds up to {BODY_OCTETS_SEEN_MAX:,} bytes of it before it decides;
`http.request.body.truncated` tells whether there is more. Requests that no rule looks into are not held.

## With a value

| Field | Type |
| --- | --- |
"""
_DEFAULTS = """
## With a default only

| Field | Type | Default |
| --- | --- | --- |
"""


def reference_page() -> str:
    """docs/reference/edge-fields.md."""
    known = [field for field in FIELDS.values() if field.name in KNOWN]
    others = [field for field in FIELDS.values() if field.name not in KNOWN]
    return _HEAD + _rows(known) + _DEFAULTS + _rows(others, with_default=True)


def _rows(fields: list[Field], *, with_default: bool = False) -> str:
    lines = []
    for field in sorted(fields, key=lambda one: one.name):
        line = f"| `{field.name}` | `{field.type}` |".replace("Bytes", "String")
        lines.append(f"{line} {_default(field)} |\n" if with_default else f"{line}\n")
    return "".join(lines)


def _default(field: Field) -> str:
    default = field.default
    if default is None:
        return "missing"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return f"`{default}`" if isinstance(default, int) else '`""`'
