"""What the supervisor decides for the objects processes before it starts them.

Owns  how many there are, and which variables of the environment they get.
Not   starting them; what they do.

User code runs in them. What the operator's shell holds, tokens of other services among it, is none of its
business: only variables that say where programs and files are, and in which language to speak, are passed on.
"""

import os
from collections.abc import Mapping

from edgestead.config import Config

LOCKED_FACTOR = 2  # times what a class may block, until a process that holds the interpreter's lock is ended
_PASSED = frozenset(
    {"HOME", "LANG", "LANGUAGE", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER", "VIRTUAL_ENV"}
)
_PASSED_BEGINNINGS = ("LC_", "PYTHON", "OBJECTS_")


def workers(config: Config) -> int:
    """0 when nobody asked for objects."""
    if not config.objects:
        return 0
    return config.objects_workers or len(os.sched_getaffinity(0))


def blocked_seconds(config: Config) -> int:
    """How long an objects process may give its supervisor no sign of life.

    A class may block it for as long as its own watchdog allows, which can name the culprit.
    """
    return LOCKED_FACTOR * config.objects_blocked_seconds


def environment(whole: Mapping[str, str]) -> dict[str, str]:
    """The variables that user code may see; OBJECTS_… are the operator's way to tell it something."""
    return {
        name: value for name, value in whole.items() if name in _PASSED or name.startswith(_PASSED_BEGINNINGS)
    }
