"""The reference page of operators' routes, written from their table.

Owns  the text of `docs/reference/operating-objects.md`.
Asks  `operate_routes`, the shapes of answers, `http_errors`.
Tells docs/generate.py.
Not   anything at run time.
"""

import inspect
from collections.abc import Iterator

from edgestead.objects import checks, copies, http_errors, operate, operate_routes, operate_sql, operate_time
from edgestead.objects.operate_routes import ROUTES, Route
from edgestead.objects.operations import Moment

_INTRODUCTION = """# Operating stateful objects

<!-- Written by docs/generate.py; change the code instead. -->

Routes on the objects' own address, beside the calls under `/objects/`, so that no class or method can have
their paths. They authenticate like the REST API and answer its envelope. `<object>` stands for
`objects/<class>/<name>`, with the name percent-encoded, or `ids/<class>/<id>`. The class need not be loaded,
but to be called. With several objects processes any of them answers; what another one owns is passed on.
`edgecli object` speaks to these routes: [commands](command-line.md#edgecli-object),
[how to](../how-to/operate-objects.md).

Times are milliseconds since 1970, or text like `2026-11-21T10:30:00Z`.
"""
_SHAPES = (
    ("an item of the list", operate.Item),
    ("facts", operate.Info),
    ("rows", operate_sql.Rows),
    ("a verdict", checks.Verdict),
    ("a moment of the timeline", Moment),
    ("an alarm", operate_time.Alarm),
)
_LIMITS = (
    ("items, or moments, of one answer", f"{operate_routes.ITEMS_MAX:,}"),
    ("rows of one answer; then `truncated` is true", f"{operate_sql.ROWS_MAX:,}"),
    ("text and blobs of these rows", f"{operate_sql.ROWS_BYTES_MAX // 1024**2} MiB"),
    ("one query", f"{operate_sql.SECONDS_MAX:g} s"),
    ("body of a request", f"{operate_routes.BODY_BYTES_MAX // 1024**2} MiB"),
    ("waiting for a transaction to end, when a copy is made", f"{copies.BUSY_SECONDS_MAX:g} s"),
    ("free on the disk, when a copy has been made", f"{copies.ROOM_LEFT_BYTES // 1024**2} MiB"),
    ("problems that a check tells", f"{checks.PROBLEMS_MAX}"),
)
_REFUSALS = (
    http_errors.NoSuchRoute,
    http_errors.NoSuchObject,
    http_errors.BadOperation,
    http_errors.OperationFailed,
    http_errors.WrongVerb,
    http_errors.CallTooLarge,
    http_errors.WasReset,
)


def reference_page() -> str:
    """docs/reference/operating-objects.md."""
    return "\n".join([_INTRODUCTION, *_routes(), *_shapes(), *_limits(), *_refusals()])


def _routes() -> Iterator[str]:
    yield "## Routes\n"
    yield "| | path | permission | |\n|---|---|---|---|"
    for route in ROUTES:
        yield f"| {route.method} | `{_path(route)}` | {route.permission} | {_words(route)} |"
    yield ""


def _path(route: Route) -> str:
    if not route.of_object:
        return f"/operate/{route.path or 'objects'}"
    return f"/operate/<object>{'/' if route.path else ''}{route.path}"


def _words(route: Route) -> str:
    words = [route.summary]
    if route.parameters:
        words.append("Parameters: " + ", ".join(f"`{name}`" for name in route.parameters) + ".")
    if route.body:
        words.append(f"Body: `{route.body}`.")
    return " ".join(words)


def _shapes() -> Iterator[str]:
    yield "## Answers\n"
    yield "A list's `result_info` has `count` and `cursor`, which asks for the next page; empty at the end."
    yield '`export` answers the file itself. `restore` and `undo` answer `{"undo": bookmark}`.\n'
    for called, shape in _SHAPES:
        members = ", ".join(f"`{name}`" for name in shape.__struct_encode_fields__)
        text = " ".join(inspect.cleandoc(shape.__doc__ or "").split())
        yield f"* **{called}**: {members}. {text}"
    yield ""


def _limits() -> Iterator[str]:
    yield "## Limits\n"
    yield "| what | limit |\n|---|---|"
    yield from (f"| {what} | {value} |" for what, value in _LIMITS)
    yield ""


def _refusals() -> Iterator[str]:
    yield "## Refusals\n"
    yield "| status | code | |\n|---|---|---|"
    for refusal in _REFUSALS:
        text = " ".join((refusal.__doc__ or "").split())
        yield f"| {refusal.status} | {refusal.code} | {text} |"
    yield ""
