"""Modules open with what they own, import by full names, and texts name only what is there.

Each test gathers what is wrong in all files: a case for each file would take longer than reading them.
"""

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "edgestead"
MODULES = sorted(PACKAGE.rglob("*.py"))
ROOMS = sorted(path.stem for path in PACKAGE.iterdir() if not path.name.startswith(("_", "py.typed")))
# Pages for users name fields of expressions and files of theirs in the same form.
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs" / "design").rglob("*.md"))]
_SECTION = re.compile(r"^(Owns  |Not   )\S", re.MULTILINE)
_MODULE = re.compile(r"`((?:" + "|".join(ROOMS) + r")(?:\.\w+)+)`")
_FILE = re.compile(r"(?<![\w/.<-])((?:src|tests|docs|scripts|benchmarks|packaging|examples)/[\w/.-]*\w)")
_DEFINES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def place(path):
    return str(path.relative_to(ROOT))


class Facts(NamedTuple):
    header: str
    has_code: bool
    imports_relatively: bool


@cache
def facts(path):
    """What is asked of its tree, which is not kept: those of all files are 450 MiB."""
    tree = ast.parse(path.read_text())
    return Facts(
        header=ast.get_docstring(tree) or "",
        has_code=any(isinstance(node, _DEFINES) for node in tree.body),
        imports_relatively=any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(tree)),
    )


def header(path):
    return facts(path).header


def is_there(dotted):
    """Whether it is a module, or a name that stands in one."""
    parts = dotted.split(".")
    for count in range(len(parts), 0, -1):
        stem = PACKAGE.joinpath(*parts[:count])
        file = stem.with_suffix(".py") if stem.with_suffix(".py").exists() else stem / "__init__.py"
        if file.exists():
            return count == len(parts) or re.search(rf"\b{parts[count]}\b", file.read_text()) is not None
    return False


def test_a_module_opens_with_a_sentence():
    assert [place(path) for path in MODULES if not header(path).partition("\n")[0].endswith((".", "?"))] == []


def test_a_module_with_code_says_what_it_owns_and_what_not():
    with_code = [path for path in MODULES if facts(path).has_code]
    rooms = [path for path in with_code if path.name not in ("__init__.py", "__main__.py")]

    assert len(rooms) > 300
    assert [place(p) for p in rooms if _SECTION.findall(header(p)) != ["Owns  ", "Not   "]] == []


def test_headers_do_not_say_what_imports_say():
    modules = [*MODULES, *sorted((ROOT / "tests").rglob("*.py"))]

    assert [place(path) for path in modules if re.search(r"^(Asks|Tells) ", header(path), re.MULTILINE)] == []


def test_imports_are_absolute():
    assert [place(path) for path in MODULES if facts(path).imports_relatively] == []


def test_modules_that_headers_and_design_notes_name_are_there():
    texts = [(path, header(path)) for path in MODULES] + [(path, path.read_text()) for path in PAGES]
    named = {(place(path), name) for path, text in texts for name in _MODULE.findall(text)}

    assert len(named) > 100
    assert sorted((path, name) for path, name in named if not is_there(name)) == []


def test_files_that_design_notes_name_are_there():
    named = {(place(path), name) for path in PAGES for name in _FILE.findall(path.read_text())}

    assert len(named) > 30
    assert sorted((path, name) for path, name in named if not (ROOT / name).exists()) == []
