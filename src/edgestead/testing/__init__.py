"""What users' tests and ours share.

Owns  nothing at import: `from edgestead.testing import ObjectNode` finds it when it is asked for.
Not   fixtures: those are the pytest plugin's (`plugin`).
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgestead.testing.answers import Answer
    from edgestead.testing.lives import Stuck
    from edgestead.testing.node import ObjectNode
    from edgestead.testing.snapshots import Snapshot

__all__ = ["Answer", "ObjectNode", "Snapshot", "Stuck"]

_PUBLIC = {
    "Answer": "edgestead.testing.answers",
    "ObjectNode": "edgestead.testing.node",
    "Snapshot": "edgestead.testing.snapshots",
    "Stuck": "edgestead.testing.lives",
}


def __getattr__(name: str) -> Any:
    """The plugin is imported at every start of pytest, and must not bring all of this."""
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_PUBLIC[name]), name)
