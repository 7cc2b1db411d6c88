"""What the product's own source text says."""

import re
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import edgestead


def unnamed(patterns: Iterable[str], declared_in: ModuleType) -> list[str]:
    """Those that no source has but the one that declares them. By file: all as one text are 20 MiB."""
    left = list(patterns)
    assert left
    for path in Path(edgestead.__file__).parent.rglob("*.py"):
        if path != Path(declared_in.__file__ or ""):
            text = path.read_text()
            left = [one for one in left if not re.search(one, text)]
    return left
