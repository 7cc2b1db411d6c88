"""The reference pages of the REST face, written from its own tables.

Owns  the text of `docs/reference/errors.md` and `docs/reference/routes.md`.
Asks  `api.routing` for routes, `model.errors` and `objects.http_errors` for refusals.
Tells docs/generate.py.
Not   anything at run time.
"""

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

from edgestead import model
from edgestead.api.declared import Parameter
from edgestead.api.routing import BASE_PATH, ROUTES, Route
from edgestead.model.errors import EdgeError

_OBJECTS = "edgestead.objects.http_errors"  # what the objects' own address refuses
_WRITTEN = "<!-- Written by docs/generate.py; change the code instead. -->\n"


def errors_page() -> str:
    """Every refusal: code, status, words, and what its class says of it. One heading per code."""
    for module in iter_modules(model.__path__, f"{model.__name__}."):
        import_module(module.name)  # a page must not depend on what happens to be loaded
    import_module(_OBJECTS)
    lines = [
        "# Errors\n",
        _WRITTEN,
        "A refusal is `success: false` with at least one object in `errors`: `code`, `message`, and",
        "`source.pointer` (RFC 6901) when one member of the body is at fault. `{…}` below stands for a fact",
        "of the request. Permanent refusals are never 409, 429 or 5xx: clients repeat those.\n",
    ]
    by_code: dict[int, dict[tuple[int, str], str]] = {}
    for refusal in _refusals(EdgeError):
        same = by_code.setdefault(refusal.code, {})
        explanation = " ".join((refusal.__dict__.get("__doc__") or "").split())
        same[refusal.status, refusal.wording] = explanation or same.get((refusal.status, refusal.wording), "")
    for code in sorted(by_code):
        lines.append(f"## {code}\n")
        lines.extend(_refusal_line(words, text) for words, text in sorted(by_code[code].items()))
        lines.append("")
    return "\n".join(lines)


def _refusal_line(words: tuple[int, str], explanation: str) -> str:
    status, wording = words
    return f"* **{status}** `{wording}`" + (f"  \n  {explanation}" if explanation else "")


def routes_page() -> str:
    """Every route: method, path, what it does, its parameters, which permission group it asks for."""
    import_module("edgestead.api.app")
    lines = [
        "# Routes\n",
        _WRITTEN,
        f"Paths of the API follow `{BASE_PATH}`. A *Write* group implies the *Read* group of the same name;",
        "the key pair (`X-Auth-Email`, `X-Auth-Key`) may do everything that its user may. A running server",
        "says the same at `/openapi.json` (OpenAPI 3.1, with every shape), and as a page at `/docs`.\n",
    ]
    for path in sorted({row.path for row in ROUTES}):
        lines.append(f"## `{path.removeprefix(BASE_PATH)}`\n")
        lines.extend(_route_line(row) for row in ROUTES if row.path == path)
        lines.append("")
    return "\n".join(lines)


def _route_line(row: Route) -> str:
    if row.public:
        asks = "no credentials"
    elif row.permission:
        asks = row.permission
    else:
        asks = "a user's credentials" if row.user_only else "any valid credentials"
    line = f"* **{row.method}** {row.summary} ({asks})"
    if row.change is not None:
        line += f" — [deprecated](changes.md#{row.change.subject}) since {row.change.day}"
    return "\n".join((line, *map(_parameter_line, row.query)))


def _parameter_line(parameter: Parameter) -> str:
    words = [
        parameter.kind if not parameter.choices else " or ".join(f"`{one}`" for one in parameter.choices)
    ]
    if parameter.repeated:
        words.append("may be repeated")
    if parameter.default is not None:
        words.append(f"default `{parameter.default}`")
    return f"    * `{parameter.name}` {parameter.summary} ({', '.join(words)})"


def _refusals(base: type[EdgeError]) -> Iterator[type[EdgeError]]:
    """Every class with a code or words of its own; not those that only group others."""
    for child in base.__subclasses__():
        is_ours = child.__module__.startswith((f"{model.__name__}.", _OBJECTS))
        groups = child.wording == "{reason}" and child.__subclasses__()
        if is_ours and not groups and {"code", "wording"} & set(child.__dict__):
            yield child
        yield from _refusals(child)
