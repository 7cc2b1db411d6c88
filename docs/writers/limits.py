"""The reference page of limits, read from the sources.

Owns  which numbers are limits, and the page's words around them.
Not   a number or its reason: they stand in the code.
"""

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import edgestead
from edgestead.model.budgets.table import BUDGETS, Budget

PACKAGE = Path(edgestead.__file__).parent
TOOLS = {"cli", "testing"}  # what they limit is their own reading


class Limit(NamedTuple):
    """A number that bounds something, with its comment. `module` is its place within the room."""

    room: str
    module: str
    name: str
    value: float
    words: str

    @property
    def heading(self) -> str:
        return f"{self.module}.{self.name}" if self.module else self.name


def limits() -> Iterator[Limit]:
    """Every public number of the rooms' `limits.py`, and every other one that says that it is a limit."""
    for path in sorted(PACKAGE.rglob("*.py")):
        room, *module = path.relative_to(PACKAGE).with_suffix("").parts
        if room not in TOOLS:
            lines = path.read_text().splitlines()
            body = ast.parse("\n".join(lines)).body
            for node, following in zip(body, [*body[1:], ast.Pass()], strict=True):
                name = _assigned(node)
                if name and name.isupper() and (name.endswith(("_MAX", "_MIN")) or module[-1:] == ["limits"]):
                    value = getattr(import_module(".".join((edgestead.__name__, room, *module))), name)
                    if isinstance(value, int | float):
                        words = _comment(lines, node) or _text(following)
                        yield Limit(room, ".".join(module), name, value, words)


def _assigned(node: ast.stmt) -> str:
    targets = node.targets if isinstance(node, ast.Assign) else []
    target = node.target if isinstance(node, ast.AnnAssign) else targets[0] if len(targets) == 1 else None
    return target.id if isinstance(target, ast.Name) and not target.id.startswith("_") else ""


def _comment(lines: list[str], node: ast.stmt) -> str:
    """What stands behind the number, else the lines above it."""
    for line in lines[node.lineno - 1 : node.end_lineno]:
        if "  # " in line:
            return line.partition("  # ")[2]
    above: list[str] = []
    for line in reversed(lines[: node.lineno - 1]):
        if not line.startswith("# "):
            break
        above.insert(0, line.removeprefix("# "))
    return " ".join(above)


def _text(node: ast.stmt) -> str:
    """What a text that stands alone below the number says."""
    if (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ):
        return " ".join(node.value.value.split())
    return ""


def _budgets() -> list[str]:
    return [
        "## What one peer may cost\n",
        "The budgets of connections, addresses (an IPv6 one is its network of 64 bits), credentials, zones",
        "and objects, and of all of them in one process. What is over a budget is refused, counted in",
        "`edge_budget_refused_total` under its name, and told in the log. Why these numbers:",
        "[0032](../design/0032-budgets.md).\n",
        "| budget | of one | resource | at most | over it | why |",
        "|---|---|---|---|---|---|",
        *(_row(budget) for budget in BUDGETS),
        "",
    ]


def _row(budget: Budget) -> str:
    setting = f" ([`{budget.setting}`](configuration.md#{budget.setting}))" if budget.setting else ""
    most = f"{budget.limit:,} {budget.unit}" if budget.limit else f"no limit of {budget.unit}"
    cells = (
        f"`{budget.name}`",
        budget.subject.value,
        budget.resource.value,
        most + setting,
        budget.answer,
        budget.why,
    )
    return f"| {' | '.join(cells)} |"


def page() -> str:
    """docs/reference/limits.md: one heading per limit, by room."""
    lines = [
        "# Limits\n",
        "<!-- Written by docs/generate.py; change the code instead. -->\n",
        "What the server takes, keeps and waits for at most, by room and file of the code. The name says the",
        "unit. A limit that an operator chooses is a [setting](configuration.md).\n",
        *_budgets(),
    ]
    room = ""
    for limit in limits():
        if limit.room != room:
            room = limit.room
            lines.append(f"## {room}\n")
        value = f"{limit.value:,}"
        lines += [f"### {limit.heading}\n", f"{value}: {limit.words}\n" if limit.words else f"{value}\n"]
    return "\n".join(lines)
