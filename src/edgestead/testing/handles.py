"""Objects of a test's node, from outside: every method called as it is, without `await`.

Owns  `Handles` (a class), `Handle` (one object), `StorageAccess` (what one object has stored).
Not   time, kills, snapshots (`node`).
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from edgestead.objects import ids
from edgestead.objects.runtime.context import ObjectId
from edgestead.store.objectlog import ObjectRef

if TYPE_CHECKING:
    from edgestead.testing.node import ObjectNode

Rows = list[dict[str, Any]]


class Handle:
    """One object. Every attribute without a leading underscore is a method to call.

    A call gives the method's result, a fresh copy, or raises what a caller would see. It stays the same
    object over kills and rollbacks.
    """

    __slots__ = ("_node", "_ref")

    def __init__(self, node: "ObjectNode", ref: ObjectRef) -> None:
        self._node, self._ref = node, ref

    @property
    def id(self) -> ObjectId:
        return ObjectId(self._ref)

    @property
    def name(self) -> str | None:
        return self._ref.name

    def __getattr__(self, method: str) -> Callable[..., Any]:
        if method.startswith("_"):
            raise AttributeError(method)
        return lambda *arguments, **named: self._node._call(self._ref, method, arguments, named)

    def __repr__(self) -> str:
        return f"<{self._ref.class_name} {self._ref.name or self._ref.id} of a test's node>"


class Handles:
    """The objects of one class."""

    __slots__ = ("_class_name", "_node")

    def __init__(self, node: "ObjectNode", class_name: str) -> None:
        self._node, self._class_name = node, class_name

    def __getitem__(self, name: str) -> Handle:
        return Handle(self._node, ids.from_name(self._class_name, name))

    def get(self, object_id: ObjectId | str) -> Handle:
        """The object of an id. Raises TypeError when it is not of this class."""
        found = ids.from_text(self._class_name, str(object_id))
        return Handle(self._node, object_id._ref if isinstance(object_id, ObjectId) else found)

    def new(self) -> Handle:
        """An object without a name, which nobody has called yet."""
        return Handle(self._node, ids.unique(self._class_name, self._node._life.random.randbytes))


class StorageAccess:
    """`ctx.storage` of one object, each call for itself and durable when it returns."""

    __slots__ = ("_node", "_ref")

    def __init__(self, node: "ObjectNode", ref: ObjectRef) -> None:
        self._node, self._ref = node, ref

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key."""
        return self._node._on_storage(self._ref, lambda storage: storage.get(key, default=default))

    def put(self, key: str | Mapping[str, Any], value: Any = None) -> None:
        """Store a value under a key, or each pair of a mapping."""
        given = (key,) if isinstance(key, Mapping) else (key, value)
        self._node._on_storage(self._ref, lambda storage: storage.put(*given))

    def delete(self, key: str) -> bool:
        """Delete a key: whether it existed."""
        return bool(self._node._on_storage(self._ref, lambda storage: storage.delete(key)))

    def list(self, **options: Any) -> dict[str, Any]:
        """The pairs of a range; without options all of them."""
        found: dict[str, Any] = self._node._on_storage(self._ref, lambda storage: storage.list(**options))
        return found

    def delete_all(self) -> None:
        """Delete all keys and tables. The alarm stays."""
        self._node._on_storage(self._ref, lambda storage: storage.delete_all())

    def sql(self, query: str, *bindings: Any) -> Rows:
        """Run SQL, and give the rows of the last statement. Raises SqlError, BackendError."""
        found: Rows = self._node._on_storage(
            self._ref, lambda storage: storage.sql.exec(query, *bindings).to_list()
        )
        return found

    def get_alarm(self) -> int | None:
        """When the alarm is due, in milliseconds since the epoch."""
        due: int | None = self._node._on_storage(self._ref, lambda storage: storage.get_alarm())
        return due

    def set_alarm(self, time: int | datetime) -> None:
        """Set the alarm."""
        self._node._on_storage(self._ref, lambda storage: storage.set_alarm(time))

    def delete_alarm(self) -> None:
        """Delete the alarm, if there is one."""
        self._node._on_storage(self._ref, lambda storage: storage.delete_alarm())
