"""Users' classes: the base they derive from, and what the platform may know of one.

Owns  `StatefulObject`; which methods can be called from outside.
Not   instances.

Callable are public `async def` methods that the class itself declares: not `fetch`, `alarm` and `on_start`,
which the platform calls, nor inherited or `_private` ones.
"""

import inspect
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import msgspec

if TYPE_CHECKING:
    from edgestead.objects.runtime.context import Context

Backend = Literal["kv", "sql"]
Durability = Literal["log", "sqlite"]
REGION_MAX = 100  # characters of a region's name
_EVENTS = frozenset({"fetch", "alarm", "on_start"})


class StatefulObject:
    """An object that lives once per name, with storage of its own.

    `storage` is the backend: "kv" (keys only) or "sql" (keys and a SQL database). `durability` says what
    makes its commits durable: the "log" that all objects of a process share, or "sqlite", a sync of its own
    for each commit. `region` names that of a cluster's nodes where its objects live, and nowhere else; one
    machine alone does not ask for it. `on_start` runs before the first event of each life, `alarm` (with or
    without a parameter for its `AlarmInfo`) when the alarm is due, `fetch` for HTTP; every other public
    `async def` is a method that others may call.
    """

    storage: ClassVar[Backend] = "kv"
    durability: ClassVar[Durability] = "log"
    region: ClassVar[str] = ""

    def __init__(self, ctx: "Context", env: Any) -> None:
        self.ctx = ctx
        self.env = env


class ClassInfo(msgspec.Struct, frozen=True):
    """One loaded class."""

    name: str
    kind: type[StatefulObject]
    backend: Backend
    methods: frozenset[str]
    has_alarm: bool
    has_fetch: bool
    has_start: bool
    durability: Durability = "log"
    alarm_takes_info: bool = False
    region: str = ""


def describe(kind: type[StatefulObject]) -> ClassInfo:
    """What there is to know of a class. Raises TypeError when it breaks a rule, with the rule."""
    if kind.storage not in ("kv", "sql"):
        raise TypeError(f'{kind.__name__}.storage must be "kv" or "sql", not {kind.storage!r}')
    if kind.durability not in ("log", "sqlite"):
        raise TypeError(f'{kind.__name__}.durability must be "log" or "sqlite", not {kind.durability!r}')
    if not isinstance(kind.region, str) or len(kind.region) > REGION_MAX:
        raise TypeError(f"{kind.__name__}.region must be a text of at most {REGION_MAX} characters")
    for event in _EVENTS:
        found = getattr(kind, event, None)
        if found is not None and not inspect.iscoroutinefunction(found):
            raise TypeError(f"{kind.__name__}.{event} must be an async method")
    return ClassInfo(
        name=kind.__name__,
        kind=kind,
        backend=kind.storage,
        methods=frozenset(name for name, member in vars(kind).items() if _is_method(name, member)),
        has_alarm=hasattr(kind, "alarm"),
        has_fetch=hasattr(kind, "fetch"),
        has_start=hasattr(kind, "on_start"),
        durability=kind.durability,
        alarm_takes_info=_takes_info(getattr(kind, "alarm", None)),
        region=kind.region,
    )


def why_not_callable(info: ClassInfo, name: str) -> str:
    """Why a name that is not among `info.methods` cannot be called though it is there; empty if it is not."""
    member = inspect.getattr_static(info.kind, name, None)
    if member is None or name.startswith("__"):
        return ""
    if name in _EVENTS:
        return "it is an event, which only the platform begins"
    if name.startswith("_"):
        return "its name begins with an underscore, so it is private"
    if not inspect.iscoroutinefunction(member):
        return "it is not an `async def`"
    return f"it is inherited, and only what {info.name} declares itself can be called"


def _takes_info(handler: Any) -> bool:
    """Whether `alarm` is declared as `alarm(self, info)`."""
    return handler is not None and len(inspect.signature(handler).parameters) > 1


def _is_method(name: str, member: object) -> bool:
    return not name.startswith("_") and name not in _EVENTS and inspect.iscoroutinefunction(member)
