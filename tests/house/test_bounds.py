"""What is filled from outside has a bound: every queue, cache and table of it has its line in `bounds.txt`.

A line says what bounds it, and who fills it. Names in capitals and names of budgets are looked up.
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from edgestead.model.budgets.table import NAMES

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "edgestead"
LIST = Path(__file__).with_name("bounds.txt")
ELSEWHERE = {"cli", "testing"}  # run by one user for themselves
KINDS = {"deque", "Queue", "SimpleQueue", "LifoQueue", "PriorityQueue", "OrderedDict", "lru_cache", "cache"}
BOUND = re.compile(r"_?([A-Z0-9]+_)*(KEPT|WAITING|QUEUED|TRACKED|CACHED|OWNERS|PENDING|KNOWN|REMEMBERED)_MAX")
MEASURED = re.compile(r".*_(BYTES|OCTETS|CHARS|SECONDS)_KEPT_MAX")  # of one of them, not how many there are
WORDS = re.compile(r"\b_?[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b")


def name_of(node):
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None


def _bounds(name):
    return BOUND.fullmatch(name) and not MEASURED.fullmatch(name)


class Found(ast.NodeVisitor):
    """The queues and caches of one file, by where they are and what they are called there."""

    def __init__(self):
        self.names, self.constants, self._scopes, self._target = [], [], [], None

    def _within(self, node):
        for decorator in node.decorator_list:
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            if name_of(called) in KINDS:
                self.names.append(".".join((*self._scopes, node.name)))
        self._scopes.append(node.name)
        for child in node.body:
            self.visit(child)
        self._scopes.pop()

    visit_ClassDef = visit_FunctionDef = visit_AsyncFunctionDef = _within

    def _assigned(self, node):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = [name_of(one) for target in targets for one in getattr(target, "elts", [target])]
        before, self._target = self._target, next((name for name in names if name), None)
        if not self._scopes:
            self.constants += [name for name in names if name and _bounds(name)]
        for part in (*targets, node.value):
            if part is not None:
                self.visit(part)
        self._target = before

    visit_Assign = visit_AnnAssign = visit_NamedExpr = _assigned

    def visit_Call(self, node):
        factories = [one.value for one in node.keywords if one.arg == "default_factory"]
        if any(name_of(one) in KINDS for one in (node.func, *factories)):
            self.names.append(".".join((*self._scopes, *([self._target] if self._target else []))))
        self.generic_visit(node)


def found_in(text):
    found = Found()
    found.visit(ast.parse(text))
    return found


@cache
def sources():
    """The texts of all files, by name."""
    named = {path.relative_to(SOURCES).as_posix(): path for path in sorted(SOURCES.rglob("*.py"))}
    return {name: path.read_text() for name, path in named.items() if name.split("/")[0] not in ELSEWHERE}


@cache  # not where it is imported: every worker collects, and one of them runs these tests
def found_in_sources():
    return {name: found_in(text) for name, text in sources().items()}


def lines():
    """(file, name): (what bounds it, who fills it)."""
    kept = {}
    for line in LIST.read_text().splitlines():
        if line and not line.startswith("#"):
            where, bound, filler = (part.strip() for part in line.split("|"))
            kept[tuple(where.split(" "))] = bound, filler
    return kept


LINES = lines()


def missing_in(name, found):
    """What has no line; a constant may be named by another line of its file."""
    own = [bound for (file, _), (bound, _) in LINES.items() if file == name]
    named = {word for bound in own for word in WORDS.findall(bound)}
    queues = {one for one in found.names if (name, one) not in LINES}
    return queues | {one for one in found.constants if (name, one) not in LINES and one not in named}


def test_every_queue_cache_and_table_has_a_bound():
    missing = [
        f"{name} {one}"
        for name, found in found_in_sources().items()
        for one in sorted(missing_in(name, found))
    ]

    assert not missing, (
        "These are queues, caches or tables without a bound that somebody wrote down:\n"
        + "\n".join(missing)
        + "\nIf a client can fill it, draw on a budget (model/budgets/table.py) or give it a maximum; then"
        " add a line to tests/house/bounds.txt: what bounds it, and who fills it. A cache needs a number."
    )


def test_no_line_is_left_of_what_is_gone():
    found = found_in_sources()
    gone = [key for key in LINES if key[1] not in {*found[key[0]].names, *found[key[0]].constants}]

    assert not gone, "take these lines out of tests/house/bounds.txt"


@pytest.mark.parametrize("key", LINES, ids=" ".join)
def test_a_line_names_what_there_is(key):
    bound, filler = LINES[key]
    text = sources()[key[0]]
    elsewhere = re.search(r"(?:of|in) ([a-z_/]+\.py)", bound)
    if elsewhere:
        text += sources()[elsewhere[1]]

    assert filler
    assert bound
    assert set(re.findall(r"`(\w+)`", bound)) <= set(NAMES)
    assert not {word for word in WORDS.findall(bound) if word not in text}


NEW = (
    ("class A:\n def __init__(self):\n  self._waiting = deque()", {"A.__init__._waiting"}),
    ("@lru_cache(4)\ndef read(): ...", {"read"}),
    ("@functools.cache\ndef read(): ...", {"read"}),
    ("read = lru_cache(4)(other)", {"read"}),
    ("class A:\n held: deque = field(default_factory=deque)", {"A.held"}),
    ("def f(self):\n self.by.setdefault(1, OrderedDict())[2] = 3", {"f"}),
    ("PAGES_KEPT_MAX = 4", {"PAGES_KEPT_MAX"}),
    ("PAGES_KEPT_MAX: Final = 4", {"PAGES_KEPT_MAX"}),
    ("PAGE_BYTES_KEPT_MAX = 4\nPAGES = [1]", set()),
)


@pytest.mark.parametrize(("text", "expected"), NEW)
def test_a_new_one_is_found(text, expected):
    assert missing_in("some/new.py", found_in(text)) == expected
