"""Configurations of other programs, as parts that can be looked at one by one.

Owns  from a file to parts: resources of Terraform (HCL, state, plan), tables of TOML, lines of all others.
Not   what a part means here (`cli.server.client_rules`).

HCL is read by its lines: blocks by their braces, and members whose value stands on the line. What is computed
is no text and is not looked at.
"""

import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any, NamedTuple

PREFIX = "cloudflare_"
TEXT_BYTES_MAX = 32 << 20  # a state with a hundred thousand records
DEPTH_MAX = 64  # of modules and blocks
_RESOURCE = re.compile(r'\s*resource\s+"(\w+)"\s+"([^"]+)"\s*\{')
_MEMBER = re.compile(
    r'\s*"?(\w+)"?\s*[=:]\s*(?:"((?:[^"\\]|\\.)*)"|(-?\d+|true|false))\s*,?\s*(?:#.*|//.*)?$'
)
_BLOCK = re.compile(r"\s*(\w+)\s*=?\s*\[?\{\s*$")


class Part(NamedTuple):
    """`place` says where it stands, `kind` what it is, `values` its members."""

    place: str
    kind: str
    values: dict[str, Any]


def terraform(text: str) -> Iterator[Part]:
    """Raises ValueError."""
    if text.lstrip().startswith("{"):
        yield from _document(json.loads(text))
    else:
        yield from _hcl(text.splitlines())


def toml(text: str) -> Iterator[Part]:
    """Each member of the file, and of its environments. Raises ValueError."""
    found = tomllib.loads(text)
    for name, value in found.items():
        yield Part(name, name, {"value": value})
    for environment, members in found.get("env", {}).items():
        for name, value in members.items():
            yield Part(f"env.{environment}.{name}", name, {"value": value})


def lines(text: str) -> Iterator[Part]:
    """Each line that says something, and the whole at last."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith(("#", ";")):
            yield Part(f"line {number}", "line", {"text": line.strip()})
    yield Part("the file", "whole", {"text": text})


def _document(found: Any) -> Iterator[Part]:
    """A state, or what `terraform show -json` prints of a state or a plan."""
    if not isinstance(found, dict):
        raise ValueError("it is no state and no plan")
    shown = found.get("planned_values") or found.get("values")
    if shown is not None:
        yield from _modules([shown["root_module"]])
        return
    for one in found["resources"]:
        if one["mode"] == "managed" and one["type"].startswith(PREFIX):
            for instance in one["instances"]:
                address = f"{one['type']}.{one['name']}"
                yield Part(address, one["type"].removeprefix(PREFIX), instance["attributes"])


def _modules(modules: list[Any]) -> Iterator[Part]:
    while modules:
        module = modules.pop()
        modules += module.get("child_modules", ())
        for one in module.get("resources", ()):
            if one["mode"] == "managed" and one["type"].startswith(PREFIX):
                yield Part(one["address"], one["type"].removeprefix(PREFIX), one["values"])


def _hcl(text: list[str]) -> Iterator[Part]:
    part: Part | None = None
    inside: list[str] = []
    for line in text:
        begun = _RESOURCE.match(line)
        if begun is not None:
            kind = begun[1].removeprefix(PREFIX) if begun[1].startswith(PREFIX) else ""
            part, inside = Part(f"{begun[1]}.{begun[2]}", kind, {}), []
            if line.count("{") > line.count("}"):
                continue
        if part is None:
            continue
        if (block := _BLOCK.match(line)) and begun is None:
            if len(inside) >= DEPTH_MAX:
                raise ValueError(f"more than {DEPTH_MAX} blocks in one another")
            inside.append(block[1])
        elif member := _MEMBER.match(line):
            _at(part.values, inside)[member[1]] = _value(member)
        elif line.strip().startswith(("}", "]")) or begun is not None:
            if inside:
                inside.pop()
                continue
            if part.kind:
                yield part
            part = None


def _at(values: dict[str, Any], inside: list[str]) -> dict[str, Any]:
    for name in inside:
        below = values.setdefault(name, {})
        values = below if isinstance(below, dict) else {}
    return values


def _value(member: re.Match[str]) -> str | int | bool:
    if member[2] is not None:
        return re.sub(r"\\(.)", r"\1", member[2])
    return member[3] == "true" if member[3] in ("true", "false") else int(member[3])
