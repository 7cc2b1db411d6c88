"""From `--objects` to classes.

Owns  importing users' files and modules, finding their classes.
Asks  Python's import system; `classes` for the rules.
Tells `node` which classes there are.
Not   running them.
"""

import importlib
import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from edgestead.objects.classes import ClassInfo, StatefulObject, describe
from edgestead.objects.errors import ObjectError


class LoadError(ObjectError):
    """A file or module of objects cannot be used; the message names it."""


def load(sources: Iterable[str]) -> dict[str, ClassInfo]:
    """The classes of each `FILE.py` or dotted module, by name. Raises LoadError."""
    found: dict[str, ClassInfo] = {}
    for source in sources:
        classes = classes_of(_import(source))
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


def _import(source: str) -> ModuleType:
    try:
        if not source.endswith(".py"):
            return importlib.import_module(source)
        path = Path(source).resolve()
        name = f"edgestead_objects_{path.stem}"
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise LoadError(f"{source}: not a Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module
    except LoadError:
        raise
    except Exception as error:  # whatever the user's code raises while it is imported
        raise LoadError(f"{source}: {type(error).__name__}: {error}") from error
