"""What the package imports is what it says it depends on, and each dependency has its reason."""

import ast
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
IMPORTED_AS = {
    "dnspython": "dns",
    "google-re2": "re2",
    "python-multipart": "python_multipart",
    "zlib-ng": "zlib_ng",
}
LOADED = {"libmodsecurity"}  # as a C library, by ctypes
OF_TESTS = {"pytest"}  # only `edgestead.testing` imports it, and only users' tests import that


def declared():
    """By the locked file, what is needed; without the extras of each package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    files = {"serve": project["dependencies"], **project["optional-dependencies"]}
    return {file: {re.split(r"[>\[]", line)[0] for line in lines} for file, lines in files.items()}


def imported():
    found = set()
    for file in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                found.add(node.module.partition(".")[0])
    return found - set(sys.stdlib_module_names) - {"edgestead"} - OF_TESTS


def test_every_import_is_declared_and_every_declaration_is_imported():
    assert imported() == {IMPORTED_AS.get(name, name) for name in set().union(*declared().values()) - LOADED}


def test_the_locked_file_and_the_reasons_cover_each_of_them():
    reasons = (ROOT / "docs" / "design" / "dependencies.md").read_text()

    for file, names in declared().items():
        locked = (ROOT / "requirements" / f"{file}.txt").read_text()
        for name in names:
            assert f"\n{name}==" in f"\n{locked}", (
                f"{name} is not in requirements/{file}.txt: run scripts/lock"
            )
            assert re.search(rf"^\| {name}( \||, )", reasons, re.M), (
                f"{name} has no reason in dependencies.md"
            )


def test_no_note_of_a_working_day_is_part_of_the_project():
    names = {path.name for path in ROOT.iterdir() if path.suffix == ".md"}

    assert names == {"CHANGELOG.md", "CONTRIBUTING.md", "README.md", "SECURITY.md"}
