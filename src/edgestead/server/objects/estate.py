"""What the supervisor decides for the objects processes before it starts them.

Owns  how many there are, how large each may become, and which variables of the environment they get.
Not   starting them; what they do.

User code runs in them. What the operator's shell holds, tokens of other services among it, is none of its
business: only variables that say where programs and files are, and in which language to speak, are passed on.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from edgestead.config import Config
from edgestead.server.process import STILL_AFTER_SECONDS

FOLDER = "objects"  # of the data folder
CLUSTER_FOLDER = "cluster-objects"  # the same where objects are in a cluster's database: caches
LOCKED_FACTOR = 1.2
"""Times what a class may block, until a process whose interpreter lock is held is ended: one sign of life of
eight was due before the lock was taken, and the look at it may be late. Who blocks without the lock goes on
giving them, and is ended from within, by who can name the cause."""
IDLE_STILL_PART = 0.3
"""Of what a class may block, one that runs no code of users may do nothing at all from when its sign of life
did not come. Whatever of ours waits, lets the interpreter's lock go; a machine that is busy or pages makes
nobody still."""
SPARES = ("objects-spare", "objects-spare-1")
"""The second one where several processes share the classes: a class ends one after the other until the first
one's next life has read whose code it was, and a start without a spare process takes longer than a second."""
MEMORY_SHARE = 2  # what all objects processes together may have is the machine's memory divided by this
MEMORY_MIB_MIN = 256  # of one process, however small the machine is
_PASSED = frozenset(
    {"HOME", "LANG", "LANGUAGE", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER", "VIRTUAL_ENV"}
)
_PASSED_BEGINNINGS = ("LC_", "PYTHON", "OBJECTS_")


def workers(config: Config) -> int:
    """0 when nobody asked for objects. Classes that an operator keeps apart have one more."""
    if not config.objects:
        return 0
    return (config.objects_workers or len(os.sched_getaffinity(0))) + bool(config.objects_apart)


def spares(config: Config, shared: int) -> tuple[str, ...]:
    """The names of the spare processes of so many that share the classes."""
    return SPARES[:shared] if config.objects_spare else ()


def places(config: Config) -> int:
    """The same, with the process of classes that go apart by themselves, whether it runs or not."""
    return workers(config) + may_go_apart(config)


def may_go_apart(config: Config) -> bool:
    """Whether there is a place for classes that do. In a cluster an object lives where its slot does."""
    return bool(config.objects) and not config.objects_apart and config.cluster is None


def folder(config: Config) -> Path:
    return config.data_dir / (FOLDER if config.cluster is None else CLUSTER_FOLDER)


def memory_bytes_max(config: Config) -> int:
    """How large one objects process may become."""
    mib = config.objects_memory_mib or max(
        MEMORY_MIB_MIN, machine_bytes() // MEMORY_SHARE // places(config) >> 20
    )
    return mib << 20


def machine_bytes() -> int:
    """What there is for everybody: the machine's memory, or what its control group allows."""
    found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    with suppress(OSError, ValueError):  # "max", or another way of containment
        found.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return min(found)


def blocked_seconds(config: Config) -> float:
    """How long an objects process may give its supervisor no sign of life.

    A class may block it for as long as its own watchdog allows, which can name the culprit.
    """
    return LOCKED_FACTOR * config.objects_blocked_seconds


def still_seconds(config: Config) -> float:
    """The same for one that does nothing at all, from when its second sign of life did not come.

    It waits for ever, or with the interpreter's lock: then nobody in it could name a culprit anyway.
    """
    return config.objects_blocked_seconds - STILL_AFTER_SECONDS


def idle_still_seconds(config: Config) -> float:
    """The same for one that shows that no code of users runs in it; longer where a debugger is to hold it."""
    return IDLE_STILL_PART * config.objects_blocked_seconds


def environment(whole: Mapping[str, str]) -> dict[str, str]:
    """The variables that user code may see; OBJECTS_… are the operator's way to tell it something."""
    return {
        name: value for name, value in whole.items() if name in _PASSED or name.startswith(_PASSED_BEGINNINGS)
    }
