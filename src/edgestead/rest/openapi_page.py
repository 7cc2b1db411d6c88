"""The API's description as one page of HTML, which needs nothing else.

Owns  the page's markup, and the style of every page here.
Not   scripts: `details` elements open and close by themselves, and the browser's own search finds words.
"""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any

Json = dict[str, Any]

STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
body{color:#1b1f24;background:#fff}
h1{margin-bottom:.2rem}h2{margin-top:2.5rem;border-bottom:1px solid #d0d7de}
code,summary{font-family:ui-monospace,monospace}summary{cursor:pointer;padding:.3rem 0}
details{border-bottom:1px solid #eaeef2}details>div{padding:.2rem 0 1rem 1.2rem}
table{border-collapse:collapse;margin:.5rem 0}
td,th{text-align:left;vertical-align:top;padding:.15rem .8rem .15rem 0}
.m{display:inline-block;min-width:4.2rem;font-weight:700}.s{font-family:system-ui,sans-serif;color:#57606a}
@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}details,h2{border-color:#30363d}
.s{color:#8d96a0}}
""".strip()


def render(document: Json) -> str:
    """The whole page."""
    info = document["info"]
    body = "\n".join((*_operations(document), *_shapes(document["components"]["schemas"])))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<link rel="icon" href="data:,">'  # else a browser asks for /favicon.ico
        f"<title>{escape(info['title'])} API</title><style>{STYLE}</style></head><body>"
        f"<h1>{escape(info['title'])} API</h1><p>Version {escape(info['version'])} · "
        f'<a href="/openapi.json">openapi.json</a></p><p>{prose(info["description"])}</p>'
        f"<p>Send <code>Authorization: Bearer TOKEN</code>, or <code>X-Auth-Email</code> with "
        f"<code>X-Auth-Key</code>.</p>\n{body}\n</body></html>\n"
    )


def _operations(document: Json) -> Iterator[str]:
    for tag in (one["name"] for one in document["tags"]):
        yield f'<h2 id="{escape(tag.replace(" ", "-"))}">{escape(tag)}</h2>'
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                if tag in operation["tags"]:
                    yield _operation(method, path, operation)


def _operation(method: str, path: str, operation: Json) -> str:
    asks = operation.get("x-permission", "any valid credentials" if operation["security"] else "nothing")
    parts = [
        "<p><strong>Deprecated.</strong></p>" if operation.get("deprecated") else "",
        f"<p>{prose(operation.get('description', ''))}</p>" if "description" in operation else "",
        f"<p>Asks for: {escape(asks)}.</p>",
        _parameters(operation["parameters"]),
        *_body(operation.get("requestBody", {}).get("content", {})),
        *_answer(operation["responses"]),
    ]
    return (
        f'<details id="{escape(operation["operationId"])}"><summary><span class="m">{method.upper()}</span>'
        f'{escape(path)} <span class="s">{prose(operation["summary"])}</span></summary>'
        f"<div>{''.join(parts)}</div></details>"
    )


def _parameters(parameters: Iterable[Json]) -> str:
    rows = [
        (one["name"], one["in"], _type(one["schema"]), prose(one.get("description", "")))
        for one in parameters
    ]
    return _table(("parameter", "in", "type", ""), rows)


def _body(contents: Json) -> Iterator[str]:
    for media, content in contents.items():
        yield f"<p>Takes <code>{escape(media)}</code>: {_type(content.get('schema', {}))}</p>"


def _answer(responses: Json) -> Iterator[str]:
    for status, answer in responses.items():
        if "$ref" in answer:
            continue
        for media, content in answer.get("content", {}).items():
            schema = content.get("schema", {})
            members = schema.get("properties", {})
            result = f"<code>result</code> is {_type(members['result'])}" if "result" in members else ""
            yield f"<p>Answers {status} <code>{escape(media)}</code> {result}</p>"
        if not answer.get("content"):
            yield f"<p>Answers {status}. {escape(answer['description'])}</p>"


def _shapes(schemas: Json) -> Iterator[str]:
    yield "<h2>Shapes</h2>"
    for name, schema in schemas.items():
        needed = schema.get("required", ())
        rows = [
            (member, _type(one), "always" if member in needed else "")
            for member, one in schema.get("properties", {}).items()
        ]
        about = f"<p>{prose(schema['description'])}</p>" if "description" in schema else ""
        yield (
            f'<details id="shape-{escape(name)}"><summary>{escape(name)}</summary>'
            f"<div>{about}{_table(('member', 'type', ''), rows)}</div></details>"
        )


def _table(heads: Iterable[str], rows: Sequence[tuple[str, ...]]) -> str:
    """The first cell of each row is a name, and the others are HTML already."""
    if not rows:
        return ""
    head = "".join(f"<th>{escape(one)}</th>" for one in heads)
    lines = [
        f"<tr><td><code>{escape(name)}</code></td>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
        for name, *cells in rows
    ]
    return f"<table><tr>{head}</tr>{''.join(lines)}</table>"


def _type(schema: Json) -> str:
    """A schema in a few words, as HTML."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f'<a href="#shape-{escape(name)}">{escape(name)}</a>'
    if "anyOf" in schema:
        return " or ".join(map(_type, schema["anyOf"]))
    if "enum" in schema:
        return " | ".join(f"<code>{escape(str(one))}</code>" for one in schema["enum"])
    if "const" in schema:
        return f"<code>{escape(str(schema['const']).lower())}</code>"
    kind = schema.get("type", "anything")
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return escape(str(kind))


def prose(text: str) -> str:
    """Escaped text in which what stands between backticks is code."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if at % 2 else part for at, part in enumerate(parts))
