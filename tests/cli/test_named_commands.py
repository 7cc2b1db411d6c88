"""A command that a page, a message or a comment names is one, and has the options that are named with it."""

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.commands import every_command, every_group

ROOT = Path(__file__).parents[2]
COMMANDS = {found.words: found for found in every_command()}
GROUPS = set(every_group())
NAMED = re.compile(r"`(?:\.venv/bin/)?edgecli ([a-z][^`]*)`")
# In a block: behind a blank or a bracket, up to what the shell makes of it.
TYPED = re.compile(r"(?:^|[\s(/])edgecli ([a-z][^#;|>]*?)(?=$| *(?:#|;|\||2?>|&&?|<|\)))", re.MULTILINE)
PLACES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "src").rglob("*.py"),
]
NO_COMMANDS = {("CHANGELOG.md", "zone ls"): "named as a slip, with what it is answered"}
OTHERS = ("kv:", "kv --local", "object wave")  # wrangler's old spelling, all of a group, an example's own


def blocks(text):
    """The lines of a page that are typed, fenced or indented; continued ones are one."""
    fenced = False
    for line in text.replace("\\\n", " ").splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            yield line.partition(" #")[0]


def named():
    for path in PLACES:
        page = path.read_text()
        typed = "\n".join(blocks(page)) if path.suffix == ".md" else ""
        for found in [*NAMED.finditer(page), *TYPED.finditer(typed)]:
            text = " ".join(found[1].split())
            if not text.startswith(OTHERS) and not re.search(r"[|{]|\[OPTIONS\]|\$@", text):
                yield str(path.relative_to(ROOT)), text


def fault(text):
    """Why it cannot be typed, as far as placeholders let that be said; None: it can."""
    try:
        words = shlex.split(text)
    except ValueError:  # an argument that the shell reads further, as a bracket or a line
        words = shlex.split(text.replace("'", "").replace('"', ""))
    place = words.pop(0)
    while words and f"{place} {words[0]}" in COMMANDS.keys() | GROUPS:
        place += f" {words.pop(0)}"
    if place not in COMMANDS:
        return (
            None if place in GROUPS and (not words or words[0] in ("…", "--help")) else f"no command {place}"
        )
    flags = COMMANDS[place].flags | {"--help"}
    unknown = [word for word in words if re.match(r"--?[a-z]", word) and word.partition("=")[0] not in flags]
    if unknown:
        return f"{place} has no {unknown[0]}"
    if place == "setting set" and "=" not in words[0] and words[0] != "…":
        return "setting set takes NAME=VALUE"
    return None


def test_what_is_named_can_be_typed():
    every = list(named())

    assert len(every) > 800
    wrong = {(path, text): found for path, text in every if (found := fault(text))}
    assert {place: found for place, found in wrong.items() if place not in NO_COMMANDS} == {}
    assert wrong.keys() == NO_COMMANDS.keys(), "an exception is left over"


@pytest.mark.parametrize(
    "text", ["serve --dns-identity NAME", "setting set http2 on", "zone ls", "dance", "rule add custom -x"]
)
def test_what_cannot_be_typed_is_noticed(text):
    assert fault(text)


def test_the_blocks_of_a_page_are_read_as_a_shell_would():
    page = """`edgecli x`

    a=$(edgecli zone list) # edgecli y
    edgecli dns \\
      query NAME | head
```sh
.venv/bin/edgecli top
```
"""

    assert [" ".join(found[1].split()) for found in TYPED.finditer("\n".join(blocks(page)))] == [
        *("zone list", "dns query NAME", "top"),
    ]
