"""Write the reference pages that come from tables: `.venv/bin/python docs/generate.py`.

A page that a room writes itself gets a row in PAGES; tests/docs checks that every one is current.
"""

import ast
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import edgestead
from edgestead import config
from edgestead.api import pages
from edgestead.changes import page as changes
from edgestead.cli import page as command_line
from edgestead.model import counters
from edgestead.objects import operate_page
from edgestead.proxy import fields_page
from edgestead.services import settings_page

DOCS = Path(__file__).parent
PACKAGE = Path(edgestead.__file__).parent
TOOLS = {"cli", "testing"}  # what they limit is their own reading
HOW_TO = {  # what somebody wants to do, in the order in which they come to it
    "Run a server": ("run", "operate", "tokens", "move-in", "dated-behaviours"),
    "Zones and records": ("dns", "history", "name-servers", "secondaries"),
    "Sites behind the edge": ("edge", "edge-rules", "waf-configuration", "waf-tuning"),
    "Values and objects": ("key-value", "objects", "objects-in-time", "operate-objects"),
    "Tests": ("test-against-edgestead", "test-objects"),
}
SECTIONS = {  # of the index, behind the how-tos: folder, heading and a remark
    "explanation": ("Explanation", ""),
    "reference": ("Reference", ""),
    "design": ("Design notes", "Why it is built so. A number that is not here was never given."),
}


def index_page() -> str:
    """docs/index.md: every page under its title."""
    lines = ["# All pages", "", "* [The tutorial](tutorial.md)"]
    lines += ["* [Differences from the service you know](differences.md)", "", "## How to"]
    for task, names in HOW_TO.items():
        lines += ["", f"### {task}", "", *(_link(DOCS / "how-to" / f"{name}.md") for name in names)]
    for folder, (heading, remark) in SECTIONS.items():
        lines += ["", f"## {heading}", "", *([remark, ""] if remark else [])]
        lines += map(_link, sorted((DOCS / folder).glob("*.md")))
    return "\n".join(lines) + "\n"


def _link(path: Path) -> str:
    title = path.read_text().partition("\n")[0].removeprefix("# ")
    return f"* [{title}]({path.relative_to(DOCS)})"


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


def limits_page() -> str:
    """docs/reference/limits.md: one heading per limit, by room."""
    lines = [
        "# Limits\n",
        "<!-- Written by docs/generate.py; change the code instead. -->\n",
        "What the server takes, keeps and waits for at most, by room and file of the code. The name says the",
        "unit. A limit that an operator chooses is a [setting](configuration.md).\n",
    ]
    room = ""
    for limit in limits():
        if limit.room != room:
            room = limit.room
            lines.append(f"## {room}\n")
        value = f"{limit.value:,}"
        lines += [f"### {limit.heading}\n", f"{value}: {limit.words}\n" if limit.words else f"{value}\n"]
    return "\n".join(lines)


PAGES: dict[str, Callable[[], str]] = {
    "index.md": index_page,
    "reference/changes.md": changes.reference_page,
    "reference/command-line.md": command_line.reference_page,
    "reference/configuration.md": config.reference_page,
    "reference/edge-fields.md": fields_page.reference_page,
    "reference/errors.md": pages.errors_page,
    "reference/limits.md": limits_page,
    "reference/metrics.md": counters.reference_page,
    "reference/operating-objects.md": operate_page.reference_page,
    "reference/routes.md": pages.routes_page,
    "reference/settings.md": settings_page.reference_page,
}

if __name__ == "__main__":
    for name, write in PAGES.items():
        (DOCS / name).write_text(write())
