"""Configurations of other programs, as parts that can be looked at one by one.

Owns  from a file to parts: resources of Terraform (HCL, state, plan), tables of TOML, lines of all others.
Not   what a part means here (`cli.server.client_rules`); HCL's grammar (`cli.server.hcl`).
"""

import json
import tomllib
from collections.abc import Iterator
from typing import Any, NamedTuple

from edgestead.cli.server import hcl

PREFIX = "cloudflare_"
WHOLE = "whole"  # the kind of a part that is the whole file once more
TEXT_BYTES_MAX = 32 << 20  # a state with a hundred thousand records


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
        for block in hcl.blocks(text):
            if block.kind == "resource" and len(block.labels) == 2 and block.labels[0].startswith(PREFIX):
                yield Part(".".join(block.labels), block.labels[0].removeprefix(PREFIX), block.members)


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
    yield Part("the file", WHOLE, {"text": text})


def _document(found: Any) -> Iterator[Part]:
    """A state, what `terraform show -json` prints of a state or a plan, or a configuration as JSON."""
    if not isinstance(found, dict):
        raise ValueError("it is no state and no plan")
    for kind, named in found.get("resource", {}).items():
        for name, members in named.items() if kind.startswith(PREFIX) else ():
            for values in members if isinstance(members, list) else [members]:
                yield Part(f"{kind}.{name}", kind.removeprefix(PREFIX), values)
    if "resource" in found:
        return
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
