"""`self.env`: other objects by class and name, and key-value namespaces (`bindings`).

Owns  classes and stubs, their names in both spellings; what a name in `env` stands for.
Not   where an object lives.

    await self.env.Counter["room-1"].increment(by=2)
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

from edgestead.objects import ids
from edgestead.objects.errors import UnknownClass
from edgestead.objects.runtime.bindings import Ask, KeyValues
from edgestead.objects.runtime.calls import Reply, pack_arguments, unpack
from edgestead.objects.runtime.classes import ClassInfo
from edgestead.objects.runtime.context import ObjectId
from edgestead.store.objectlog import ObjectRef

T = TypeVar("T")


class Caller(Protocol):
    """Delivers a call, after everything that the calling object wrote before is durable."""

    def call(self, ref: ObjectRef, method: str, arguments: bytes) -> Awaitable[Reply]: ...

    async def confirmed(self) -> None:
        """Wait for the same. Raises ObjectReset."""
        ...


class Stub:
    """One object, from outside. Every attribute without a leading underscore is a method to call."""

    __slots__ = ("_caller", "_ref")

    def __init__(self, caller: Caller, ref: ObjectRef) -> None:
        self._caller, self._ref = caller, ref

    @property
    def id(self) -> ObjectId:
        return ObjectId(self._ref)

    @property
    def name(self) -> str | None:
        return self._ref.name

    def __getattr__(self, method: str) -> Callable[..., Awaitable[Any]]:
        if method.startswith("_"):
            raise AttributeError(method)

        async def call(*arguments: Any, **named: Any) -> Any:
            return unpack(await self._caller.call(self._ref, method, pack_arguments(arguments, named)))

        return call

    def __repr__(self) -> str:
        return f"<stub of {self._ref.class_name} {self._ref.name or self._ref.id}>"


class Namespace(Generic[T]):
    """The objects of one class: `env.Counter["name"]`.

    For a type checker they are instances of the class: every method is called as it is declared.
    """

    __slots__ = ("_caller", "_class_name", "_random")

    def __init__(self, caller: Caller, class_name: str, random: Callable[[int], bytes]) -> None:
        self._caller, self._class_name, self._random = caller, class_name, random

    def __getitem__(self, name: str) -> T:
        return self._stub(ids.from_name(self._class_name, name))

    def _stub(self, ref: ObjectRef) -> T:
        return cast(T, Stub(self._caller, ref))

    def get_by_name(self, name: str) -> T:
        """The object of that name."""
        return self[name]

    def get(self, object_id: ObjectId) -> T:
        """The object of that id. Raises TypeError when it is not of this class."""
        ids.from_text(self._class_name, str(object_id))
        return self._stub(object_id._ref)

    def id_from_name(self, name: str) -> ObjectId:
        """The id of that name: always the same."""
        return ObjectId(ids.from_name(self._class_name, name))

    def new_unique_id(self) -> ObjectId:
        """The id of a new object."""
        return ObjectId(ids.unique(self._class_name, self._random))

    def id_from_string(self, text: str) -> ObjectId:
        """An id from its text. Raises TypeError when it is none of this class."""
        return ObjectId(ids.from_text(self._class_name, text))

    getByName = get_by_name
    idFromName = id_from_name
    newUniqueId = new_unique_id
    idFromString = id_from_string


class Bindings(NamedTuple):
    """Key-value namespaces by the name that they have in `env`, and the way to where they are kept."""

    ids: Mapping[str, str]
    ask: Ask


class Env:
    """Everything outside of an object that it may call, as attributes or items: classes and namespaces."""

    def __init__(
        self,
        caller: Caller,
        classes: Mapping[str, ClassInfo],
        random: Callable[[int], bytes],
        bindings: Bindings | None = None,
    ) -> None:
        self._caller, self._classes, self._random, self._bindings = caller, classes, random, bindings

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self._classes:
            return Namespace[Any](self._caller, name, self._random)
        bindings = self._bindings
        if bindings is not None and name in bindings.ids:
            return KeyValues(bindings.ids[name], bindings.ask, self._caller.confirmed)
        raise UnknownClass(f"no class {name!r} was loaded, and no namespace is bound to that name")

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)
