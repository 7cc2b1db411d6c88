"""Adding a namespace to the configuration file, or showing what to add.

Owns  the snippet, and the edit that keeps comments, order and layout.
Not   creating the namespace. Imported only by `namespace create`.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from edgestead.cli import files
from edgestead.cli.failure import Failed
from edgestead.cli.kv.project import Project, parse

MEMBER = "kv_namespaces"
BYTE_ORDER_MARK = "\ufeff"


class Addition(NamedTuple):
    """`member` is id or preview_id."""

    env: str | None
    binding: str
    member: str
    id: str

    @property
    def entry(self) -> dict[str, str]:
        return {"binding": self.binding, self.member: self.id}


def check_can_add(project: Project, env: str | None, binding: str, member: str) -> None:
    """Raises Failed when the binding has that member already: it would have to be replaced."""
    entry = _entry(project, env, binding)
    if entry is not None and entry.get(member):
        raise Failed(
            f"Binding {binding} in {project.where(env)} has the {member} {entry[member]} already.",
            "Nothing is created. Choose another name with --binding.",
        )


def write(project: Project, addition: Addition) -> None:
    """Add it to the file, whole or not at all. Raises Failed with the snippet to add by hand."""
    path = project.path
    assert path is not None
    try:
        old = path.read_bytes().decode()
        add = _added_to_toml if path.suffix == ".toml" else _added_to_json
        new = _with_own_line_ends(old, lambda text: add(text, addition))
        check = Project(path, path.parent, parse(path, new.encode()))
        entry = _entry(check, addition.env, addition.binding)
        if entry is None or entry.get(addition.member) != addition.id:
            raise ValueError("its layout is not understood")
        with files.written(path) as file:
            file.write(new.encode())
    except (OSError, ValueError) as error:
        raise Failed(
            f"The namespace {addition.id} is created, but {path} cannot be changed: {error}",
            snippet(project, addition),
        ) from None


def _with_own_line_ends(text: str, edit: Callable[[str], str]) -> str:
    """The edited text, with the line ends and the byte order mark that the file had."""
    mark = BYTE_ORDER_MARK if text.startswith(BYTE_ORDER_MARK) else ""
    plain = text.removeprefix(mark)
    if plain.count("\r\n") != plain.count("\n"):  # a mixture stays one
        return mark + edit(plain)
    return mark + edit(plain.replace("\r\n", "\n")).replace("\n", "\r\n")


def _entry(project: Project, env: str | None, binding: str) -> dict[str, Any] | None:
    if not project.has(env):
        return None
    return next((entry for entry in project.namespaces(env) if entry.get("binding") == binding), None)


# The snippet


def snippet(project: Project, addition: Addition) -> str:
    """What to add, and where: it can be pasted as it stands."""
    path = project.path
    where = f"{path.name if path else 'edge.toml'}"
    if addition.env is not None:
        where += f', environment "{addition.env}"'
    if path is not None and _entry(project, addition.env, addition.binding) is not None:
        member = _member_text(addition, json_form=path.suffix != ".toml")
        return f"Add this to the entry with binding {addition.binding} in {MEMBER} ({where}):\n{member}"
    if path is not None and path.suffix != ".toml":
        return _json_snippet(project, addition, where)
    return _toml_snippet(project, addition, where)


def _member_text(addition: Addition, *, json_form: bool) -> str:
    return f'"{addition.member}": "{addition.id}"' if json_form else f'{addition.member} = "{addition.id}"'


def _json_snippet(project: Project, addition: Addition, where: str) -> str:
    if not project.has(addition.env):
        text = json.dumps({addition.env: {MEMBER: [addition.entry]}}, indent=2)
        return f"Add this to the env object ({where}):\n{text[2:-2]}"
    if project.namespaces(addition.env):
        return f"Add this to the {MEMBER} array ({where}):\n{json.dumps(addition.entry, indent=2)}"
    text = json.dumps({MEMBER: [addition.entry]}, indent=2)
    member = text[text.index("\n") + 1 : text.rindex("\n")]
    return f"Add this member with the {MEMBER} array ({where}):\n{member}"


def _toml_snippet(project: Project, addition: Addition, where: str) -> str:
    table = f"env.{_toml_key(addition.env)}.{MEMBER}" if addition.env is not None else MEMBER
    lines = [f"{name} = {_toml_text(value)}" for name, value in addition.entry.items()]
    block = "\n".join([f"[[{table}]]", *lines])
    if project.path is not None and not _can_append(project.path, block):
        # The array is written inline, and TOML cannot add a table to that.
        return f"Add this to the {MEMBER} array ({where}):\n{{ {', '.join(lines)} }},"
    return f"Add this to the {MEMBER} array ({where}):\n{block}"


def _can_append(path: Path, block: str) -> bool:
    import tomllib

    try:
        tomllib.loads(path.read_text("utf-8") + "\n" + block)
    except (ValueError, OSError):
        return False
    return True


def _toml_key(name: str) -> str:
    bare = name and all(c.isascii() and (c.isalnum() or c in "-_") for c in name)
    return name if bare else _toml_text(name)


def _toml_text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")  # JSON's escapes are TOML's too


# The edit


def _added_to_toml(text: str, addition: Addition) -> str:
    import tomlkit
    from tomlkit.items import AoT, Table

    document = tomlkit.parse(text)
    section: Any = document
    if addition.env is not None:
        section = document["env"][addition.env]
    entries = section.get(MEMBER)
    for entry in entries or ():
        if entry.get("binding") == addition.binding:
            entry[addition.member] = addition.id
            return tomlkit.dumps(document)
    if entries is None or isinstance(entries, AoT):
        table: Table = tomlkit.table()
        for name, value in addition.entry.items():
            table.add(name, value)
        if entries is None:
            entries = tomlkit.aot()
            section.append(MEMBER, entries)
        entries.append(table)
    else:
        inline = tomlkit.inline_table()
        inline.update(addition.entry)
        entries.append(inline)
    return tomlkit.dumps(document)


def _added_to_json(text: str, addition: Addition) -> str:
    from edgestead.cli.kv import jsonc

    plain = jsonc.blanked(text)
    places = jsonc.members(plain, plain.index("{"))
    section = plain.index("{")
    if addition.env is not None:
        environments = jsonc.members(plain, places["env"][0])
        section = environments[addition.env][0]
        places = jsonc.members(plain, section)
    if MEMBER not in places:
        entry = json.dumps([addition.entry], indent=2)
        return _inserted(text, plain, section, list(places.values()), f'"{MEMBER}": {entry}')
    array = places[MEMBER][0]
    entries = jsonc.items(plain, array)
    for start, end in entries:
        if json.loads(plain[start:end]).get("binding") == addition.binding:
            members = list(jsonc.members(plain, start).values())
            return _inserted(text, plain, start, members, _member_text(addition, json_form=True))
    return _inserted(text, plain, array, entries, json.dumps(addition.entry))


def _inserted(text: str, plain: str, opening: int, places: list[tuple[int, int]], addition: str) -> str:
    """Text with an addition behind the last place of a container, or as its first."""
    if not places:
        return text[: opening + 1] + addition + text[opening + 1 :]
    start, end = places[-1]
    line = plain.rfind("\n", 0, start) + 1
    if line <= opening:  # all on one line
        separator, behind = " ", end
    else:
        indent = plain[line : len(plain) - len(plain[line:].lstrip())]
        separator, behind = "\n" + indent, _end_of_line(text, plain, end)
        addition = addition.replace("\n", separator)
    comma = "" if _has_comma(text, end) else ","
    if behind == end and not comma:
        behind = text.index(",", end) + 1
    return text[:end] + comma + text[end:behind] + separator + addition + text[behind:]


def _end_of_line(text: str, plain: str, end: int) -> int:
    """Behind the comma and the comment that belong to a place, when nothing else is on its line."""
    line_end = text.find("\n", end)
    rest = text[end:line_end]
    if line_end < 0 or plain[end:line_end].strip() or ("/*" in rest and "*/" not in rest):
        return end
    return line_end


def _has_comma(text: str, end: int) -> bool:
    """Whether a last comma follows, which `blanked` does not show."""
    from edgestead.cli.kv import jsonc

    return jsonc.without_comments(text)[end:].lstrip().startswith(",")
