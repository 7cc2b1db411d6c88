"""The reference page of routes, written from the one table of them.

Owns  the page's words around the facts.
Not   `/docs` of a running server (`rest.openapi_page`).
"""

from collections.abc import Iterator
from importlib import import_module

from edgestead.rest.declared import Parameter
from edgestead.rest.examples import command_of
from edgestead.rest.routing import ANY, BASE_PATH, ROUTES, Route


def page() -> str:
    """docs/reference/routes.md: a heading for each path, then its methods."""
    import_module("edgestead.rest.app")
    lines = [
        "# Routes\n",
        "<!-- Written by docs/generate.py; change the code instead. -->\n",
        f"Paths of the API follow `{BASE_PATH}`. A *Write* group implies the *Read* group of the same name;",
        "the key pair (`X-Auth-Email`, `X-Auth-Key`) may do everything that its user may. A running server",
        "says the same at `/openapi.json` (OpenAPI 3.1, with every shape), and as a page at `/docs`.",
        "What begins with `/objects/` or `/operate/` is served at the objects' own address",
        "(`--objects-http`).\n",
        'Each route has an example, behind `eval "$(edgecli env)"` and',
        '`api() { curl -sS -H "Authorization: Bearer $EDGE_TOKEN" "$@"; }`, with identifiers in variables',
        "of the parameters' names. Tests send the same bodies.\n",
    ]
    for path in sorted({row.path for row in ROUTES if not row.has_ended}):
        lines.append(f"## `{path.removeprefix(BASE_PATH)}`\n")
        lines.extend(_route_line(row) for row in ROUTES if row.path == path)
        lines.append("")
    return "\n".join([*lines, *_ended()])


def _ended() -> Iterator[str]:
    """What is only refused with its successor."""
    yield "## Ended by a date\n"
    yield "These answer 410 and name what came after them: [the changes](changes.md).\n"
    methods: dict[tuple[str, str], list[str]] = {}
    for row in ROUTES:
        if row.has_ended and row.change is not None:
            methods.setdefault((row.path.removeprefix(BASE_PATH), row.change.subject), []).append(row.method)
    for (path, subject), found in sorted(methods.items()):
        yield f"* {' '.join(found)} `{path}`: [{subject}](changes.md#{subject})"


def _route_line(row: Route) -> str:
    if row.public:
        asks = "no credentials"
    elif row.permission:
        asks = row.permission
    else:
        asks = "a user's credentials" if row.user_only else "any valid credentials"
    method = "any method" if row.method == ANY else row.method
    line = f"* **{method}** {row.summary} ({asks})"
    if row.change is not None:
        line += f" — [deprecated](changes.md#{row.change.subject}) since {row.change.day}"
    return "\n".join((line, *map(_parameter_line, row.query), f"    * `{command_of(row)}`"))


def _parameter_line(parameter: Parameter) -> str:
    words = [
        parameter.kind if not parameter.choices else " or ".join(f"`{one}`" for one in parameter.choices)
    ]
    if parameter.repeated:
        words.append("may be repeated")
    if parameter.default is not None:
        words.append(f"default `{parameter.default}`")
    return f"    * `{parameter.name}` {parameter.summary} ({', '.join(words)})"
