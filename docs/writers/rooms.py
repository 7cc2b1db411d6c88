"""The page of rooms, drawn from the imports: who leans on whom.

Owns  the page's words, and reading imports.
Not   what is allowed: the contracts in pyproject.toml.
"""

import ast
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import edgestead

PACKAGE = Path(edgestead.__file__).parent
PROJECT = PACKAGE.parents[1] / "pyproject.toml"


def folders() -> list[Path]:
    """Every package below ours, in the order of names."""
    return sorted(path.parent for path in PACKAGE.rglob("__init__.py") if path.parent != PACKAGE)


def _name(folder: Path) -> str:
    return ".".join(folder.relative_to(PACKAGE).parts)


def _folder_of(dotted: str) -> str:
    """The package that holds what `edgestead.<dotted>` names; empty for a module beside the rooms."""
    parts = dotted.split(".")
    while parts and not (PACKAGE.joinpath(*parts) / "__init__.py").exists():
        parts.pop()
    return ".".join(parts)


def _imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("edgestead."):
            for alias in node.names:
                yield _folder_of(f"{node.module.removeprefix('edgestead.')}.{alias.name}")


def uses() -> dict[str, set[str]]:
    """For each folder, the other folders that its modules import from."""
    found: dict[str, set[str]] = defaultdict(set)
    for folder in folders():
        for file in folder.glob("*.py"):
            found[_name(folder)].update(_imported(file))
        found[_name(folder)] -= {"", _name(folder)}
    return found


def _floors() -> Iterator[str]:
    """The floors of the house, then those inside of rooms, each under its contract's name."""
    contracts = tomllib.loads(PROJECT.read_text())["tool"]["importlinter"]["contracts"]
    for contract in contracts:
        if contract["type"] == "layers":
            yield f"{contract['name']}:\n\n```text"
            for layer in contract["layers"]:
                yield layer.replace("|", "·").replace(":", "·").replace("__main__", "main")
            yield "```\n"


def _first_sentence(folder: Path) -> str:
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
    return " ".join(text.split("\n\n")[0].split())


def _listed(names: set[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names)) or "–"


def page() -> str:
    """Floors as the contract has them; then each folder with its sentence, its uses and its users."""
    used = uses()
    lines = [
        "# Rooms, and who uses whom\n",
        "<!-- Written by docs/generate.py; change the code instead. -->\n",
        "A room leans only on floors below its own: `pyproject.toml` holds the contract, and import-linter",
        "checks it. A `·` keeps the rooms of one floor apart. Some rooms have floors inside, too.\n",
        *_floors(),
        "| folder | what it is | uses | used by |",
        "|---|---|---|---|",
    ]
    for folder in folders():
        name = _name(folder)
        users = {other for other, names in used.items() if name in names}
        lines.append(f"| `{name}` | {_first_sentence(folder)} | {_listed(used[name])} | {_listed(users)} |")
    return "\n".join(lines) + "\n"
