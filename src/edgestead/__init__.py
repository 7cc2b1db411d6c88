"""Edgestead: an edge platform that you run yourself."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgestead.objects.runtime.alarms import AlarmInfo
    from edgestead.objects.runtime.bindings import KeyValues
    from edgestead.objects.runtime.classes import StatefulObject
    from edgestead.objects.runtime.env import Namespace
    from edgestead.objects.runtime.web import Request, Response

__all__ = ["AlarmInfo", "KeyValues", "Namespace", "Request", "Response", "StatefulObject"]
__version__ = "0.2.0"

_PUBLIC = {
    "AlarmInfo": "edgestead.objects.runtime.alarms",
    "KeyValues": "edgestead.objects.runtime.bindings",
    "Namespace": "edgestead.objects.runtime.env",
    "StatefulObject": "edgestead.objects.runtime.classes",
    "Request": "edgestead.objects.runtime.web",
    "Response": "edgestead.objects.runtime.web",
}


def __getattr__(name: str) -> Any:
    """What users' objects import, found when it is asked for: commands must not pay for it."""
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_PUBLIC[name]), name)
