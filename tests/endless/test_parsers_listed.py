"""Every function that reads octets has its endless input, or says why none comes: `parsers.txt`.

Found by annotation (a parameter of octets) and name: one with another name is not found.
"""

import ast
from pathlib import Path

import pytest

from tests.endless.test_parsers import ROWS

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "edgestead"
LIST = Path(__file__).with_name("parsers.txt")
ELSEWHERE = {"cli", "testing"}  # run by one user for themselves
OCTETS = {"bytes", "bytearray", "memoryview", "bytes | memoryview", "bytes | bytearray"}
VERBS = {"read", "parse", "decode", "find", "feed", "reading", "receive", "received", "unpack", "verify"}
RECEIVED = {"data_received", "datagram_received"}


def parsers_in(text):
    """The functions that read octets, by their qualified names."""

    def within(node, scopes):
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield from within(child, scopes)
                continue
            inner = (*scopes, child.name)
            if not isinstance(child, ast.ClassDef) and _reads(child):
                yield ".".join(inner)
            yield from within(child, inner)

    return list(within(ast.parse(text), ()))


def _reads(function):
    arguments = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    annotations = {ast.unparse(one.annotation) for one in arguments if one.annotation is not None}
    verb = function.name.lstrip("_").split("_")[0]
    return bool(annotations & OCTETS) and (verb in VERBS or function.name in RECEIVED)


def lines():
    kept = {}
    for line in LIST.read_text().splitlines():
        if line and not line.startswith("#"):
            where, how = (part.strip() for part in line.split("|"))
            kept[tuple(where.split(" "))] = how
    return kept


LINES = lines()


def found():
    for path in sorted(SOURCES.rglob("*.py")):
        where = path.relative_to(SOURCES)
        if where.parts[0] not in ELSEWHERE:
            for name in parsers_in(path.read_text()):
                yield where.as_posix(), name


def test_every_parser_has_endless_input_or_a_reason():
    missing = [" ".join(one) for one in found() if one not in LINES]

    assert not missing, (
        "These read octets, and nobody has said what they do with input without an end:\n"
        + "\n".join(missing)
        + "\nGive each a row in tests/endless/test_parsers.py, and a line in tests/endless/parsers.txt with"
        " that row's begin; or a line with the reason why no stranger's octets come there, or only a few."
    )


def test_no_line_is_left_of_what_is_gone():
    gone = [(file, name) for file, name in LINES if name.split(".")[-1] not in functions_in(SOURCES / file)]

    assert not gone, "take these lines out of tests/endless/parsers.txt"


def functions_in(path):
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kinds)}


@pytest.mark.parametrize("key", LINES, ids=" ".join)
def test_a_line_names_what_there_is(key):
    how = LINES[key]
    if how.startswith("row "):
        assert [name for name in ROWS if name.startswith(how.removeprefix("row "))]
    elif how.startswith("tests/"):
        assert (ROOT / how).exists()
    else:
        assert len(how) > len("internal")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def read(data: bytes): ...", ["read"]),
        ("class A:\n async def _read_more(self, data: memoryview): ...", ["A._read_more"]),
        ("class A:\n def data_received(self, data: bytes): ...", ["A.data_received"]),
        ("def read(data: str): ...", []),
        ("def write(data: bytes): ...", []),
    ],
)
def test_a_new_one_is_found(text, expected):
    assert parsers_in(text) == expected
