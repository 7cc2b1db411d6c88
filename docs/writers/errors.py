"""The reference page of refusals, written from their classes.

Owns  the page's words around the facts.
Not   code, status or wording of a refusal.
"""

from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages

from edgestead import model
from edgestead.model.refusals import EdgeError


def page() -> str:
    """docs/reference/errors.md: a heading for each code, and below it the refusals that have it."""
    for module in walk_packages(model.__path__, f"{model.__name__}."):
        import_module(module.name)  # a page must not depend on what happens to be loaded
    lines = [
        "# Errors\n",
        "<!-- Written by docs/generate.py; change the code instead. -->\n",
        "A refusal is `success: false` with at least one object in `errors`: `code`, `message`, and",
        "`source.pointer` (RFC 6901) when one member of the body is at fault. `{…}` below stands for a fact",
        "of the request. Permanent refusals are never 409, 429 or 5xx: clients repeat those. The exceptions",
        "are 501 and 505, for bytes that no client of the API sends.\n",
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


def _refusals(base: type[EdgeError]) -> Iterator[type[EdgeError]]:
    """Every class with a code, status or words of its own; not those that only group others."""
    for child in base.__subclasses__():
        is_ours = child.__module__.startswith(f"{model.__name__}.")
        groups = child.wording == "{reason}" and child.__subclasses__()
        if is_ours and not groups and {"code", "status", "wording"} & set(child.__dict__):
            yield child
        yield from _refusals(child)
