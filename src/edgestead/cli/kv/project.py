"""The project's configuration file, as `edgecli kv` reads it.

Owns  where the file is looked for, and which namespace a binding means.
Not   changing the file (`cli.kv.project_edit`); every other setting in it. Standard library and click only.
"""

from pathlib import Path
from typing import Any, NamedTuple

from edgestead.cli.failure import Failed
from edgestead.cli.files import read_path

# Ours first, then the names that clients of the compatible API read, with the same members.
FILE_NAMES = ("edge.json", "edge.jsonc", "edge.toml", "wrangler.json", "wrangler.jsonc", "wrangler.toml")
FILE_BYTES_MAX = 1 << 20


class Project(NamedTuple):
    """`path` is None when there is no configuration; `folder` is then the current one."""

    path: Path | None
    folder: Path
    data: dict[str, Any]

    @property
    def name(self) -> str | None:
        name = self.data.get("name")
        return name if isinstance(name, str) and name else None

    def account_id(self, env: str | None) -> str | None:
        for section in (self._section(env), self.data):
            account = section.get("account_id")
            if isinstance(account, str) and account:
                return account
        return None

    def namespaces(self, env: str | None) -> list[dict[str, Any]]:
        """The entries of `kv_namespaces`. An environment has its own and inherits none."""
        section = self._section(env)
        entries = section.get("kv_namespaces", [])
        where = f"kv_namespaces of {self.where(env)}"
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise Failed(f"{where} must be an array of tables with binding and id.")
        return entries

    def has(self, env: str | None) -> bool:
        """Whether there is such an environment; where there is no file, any is."""
        sections = self.data.get("env")
        return env is None or self.path is None or (isinstance(sections, dict) and env in sections)

    def namespace_id(self, binding: str, env: str | None, preview: bool | None) -> str:
        """The id that the binding means. Raises Failed, saying what to add or to choose."""
        entry = self._entry(binding, env)
        ids = {member: entry.get(member) or None for member in ("id", "preview_id")}
        for member, id_ in ids.items():
            if id_ is not None and not isinstance(id_, str):
                raise Failed(f"{member} of binding {binding} in {self.where(env)} must be text.")
        if preview is None:
            given = [id_ for id_ in ids.values() if id_]
            if len(given) == 2:
                raise Failed(
                    f"Binding {binding} has both id and preview_id.",
                    "Choose with --preview or --preview false.",
                )
            if not given:
                raise Failed(f"Binding {binding} in {self.where(env)} has neither id nor preview_id.")
            return str(given[0])
        member = "preview_id" if preview else "id"
        id_ = ids[member]
        if id_ is None:
            raise Failed(f"Binding {binding} in {self.where(env)} has no {member}.")
        return str(id_)

    def where(self, env: str | None) -> str:
        return f"{self.path}" if env is None else f'environment "{env}" of {self.path}'

    def _section(self, env: str | None) -> dict[str, Any]:
        if env is None or self.path is None:
            return self.data
        sections = self.data.get("env")
        section = sections.get(env) if isinstance(sections, dict) else None
        if not isinstance(section, dict):
            raise Failed(f'There is no environment "{env}" in {self.path}.')
        return section

    def _entry(self, binding: str, env: str | None) -> dict[str, Any]:
        if self.path is None:
            raise Failed(
                f"--binding {binding} needs a configuration file, and there is none: "
                + ", ".join(FILE_NAMES[:3]),
                "--namespace-id works without one.",
            )
        entries = self.namespaces(env)
        for entry in entries:
            if entry.get("binding") == binding:
                return entry
        known = ", ".join(str(entry.get("binding")) for entry in entries)
        more = [f"It has: {known}."] if known else []
        if env is not None and not known and self.data.get("kv_namespaces"):
            more = ["Environments do not inherit kv_namespaces: repeat them in the environment's section."]
        raise Failed(f"There is no binding {binding} in kv_namespaces of {self.where(env)}.", *more)


def find_project(given: str | None) -> Project:
    """The file given, else the nearest one upwards from the current folder. Raises Failed."""
    if given is not None:
        return _read(Path(given).absolute())
    here = Path.cwd()
    for folder in (here, *here.parents):
        for name in FILE_NAMES:
            path = folder / name
            if path.is_file():
                return _read(path)
    return Project(None, here, {})


def _read(path: Path) -> Project:
    return Project(path, path.parent, parse(path, read_path(path, FILE_BYTES_MAX)))


def parse(path: Path, content: bytes) -> dict[str, Any]:
    """Raises Failed with the place that is wrong."""
    try:
        text = content.decode("utf-8-sig")
        if path.suffix == ".toml":
            import tomllib

            data = tomllib.loads(text)
        else:
            from edgestead.cli.kv import jsonc

            data = jsonc.loads(text)
    except (ValueError, RecursionError) as error:  # both readers' errors are ValueErrors
        raise Failed(f"{path} cannot be read: {error}") from None
    if not isinstance(data, dict):
        raise Failed(f"{path} must hold one object.")
    return data
