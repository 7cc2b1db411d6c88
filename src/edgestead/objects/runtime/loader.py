"""From `--objects` to classes.

Owns  importing users' files and modules, finding their classes.
Not   running them.
"""

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from traceback import extract_tb
from types import ModuleType
from typing import TypeVar

from edgestead.objects.errors import ObjectError
from edgestead.objects.runtime.classes import ClassInfo, StatefulObject, describe

T = TypeVar("T")


class LoadError(ObjectError):
    """A file or module of objects cannot be used; the message names it."""


def load(
    sources: Iterable[str], importing: Callable[[str], None] = lambda source: None
) -> dict[str, ClassInfo]:
    """The classes of each `FILE.py`, folder of such files, or dotted module, by name. Raises LoadError.

    `importing` is told of each file or module before its code runs, which may take for ever.
    """
    found: dict[str, ClassInfo] = {}
    for source in sources:
        classes = [info for module in _modules(source, importing) for info in classes_of(module)]
        if not classes:
            raise LoadError(f"{source}: no class derives from StatefulObject")
        for info in classes:
            if info.name in found:
                raise LoadError(f"{source}: class {info.name} is already defined by another source")
            found[info.name] = info
    return found


def classes_of(module: ModuleType) -> list[ClassInfo]:
    """The classes that a module defines itself. Raises LoadError."""
    try:
        return [
            describe(value)
            for value in vars(module).values()
            if isinstance(value, type)
            and issubclass(value, StatefulObject)
            and value is not StatefulObject
            and value.__module__ == module.__name__
            and not value.__name__.startswith("_")
        ]
    except TypeError as error:
        raise LoadError(f"{module.__name__}: {error}") from None


def _modules(source: str, importing: Callable[[str], None]) -> list[ModuleType]:
    path = Path(source)
    if path.is_dir():
        return [_from_file(source, file, importing) for file in sorted(path.glob("*.py"))]
    if source.endswith(".py"):
        return [_from_file(source, path.resolve(), importing)]
    _search(os.getcwd())
    importing(source)
    return [_guarded(source, lambda: importlib.import_module(source))]


def _from_file(source: str, path: Path, importing: Callable[[str], None]) -> ModuleType:
    """Import a file, which may import its neighbours by their names."""
    _search(str(path.parent))
    name = f"edgestead_objects_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise LoadError(f"{source}: not a Python file")
    module, loader = importlib.util.module_from_spec(spec), spec.loader
    sys.modules[name] = module
    importing(str(path))
    _guarded(str(path), lambda: loader.exec_module(module))
    return module


def _search(folder: str) -> None:
    """Find modules there too, behind all others: no file of a user hides one of the platform's."""
    if folder not in sys.path:
        sys.path.append(folder)


def _guarded(source: str, run: Callable[[], T]) -> T:
    try:
        return run()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever the user's code raises while it is imported, SystemExit too
        raise LoadError(f"{_place(source, error)}: {type(error).__name__}: {error}") from error


def _place(source: str, error: BaseException) -> str:
    """The line of the file that was imported, or else the innermost one, that led to an exception."""
    frames = [frame for frame in extract_tb(error.__traceback__) if not _is_ours(frame.filename)]
    for frame in reversed(frames):
        if frame.filename == source:
            return f"{source}:{frame.lineno}"
    return f"{source} ({frames[-1].filename}:{frames[-1].lineno})" if frames else source


def _is_ours(filename: str) -> bool:
    return filename == __file__ or filename.startswith("<frozen ")
