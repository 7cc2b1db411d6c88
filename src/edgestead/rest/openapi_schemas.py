"""JSON schemas of the types that routes take and answer.

Owns  one mend of msgspec's schemas: a member that may be UNSET is not required.
Not   which types there are.
"""

from collections.abc import Iterable, Iterator
from typing import Any, get_args, get_type_hints

import msgspec
from msgspec import inspect

Json = dict[str, Any]


def schemas_of(types: list[Any], ref_template: str) -> tuple[list[Json], Json]:
    """A schema for each type, and the components that they refer to by name."""
    schemas, components = msgspec.json.schema_components(
        types, ref_template=ref_template, schema_hook=_of_custom
    )
    absent = {_key(struct.__name__, struct.__struct_encode_fields__): struct for struct in _structs(types)}
    for schema in components.values():
        struct = absent.get(_key(schema.get("title", ""), schema.get("properties", ())))
        if struct is not None:
            optional = frozenset(_may_be_unset(struct))
            schema["required"] = [name for name in schema.get("required", ()) if name not in optional]
    return list(schemas), components


def _of_custom(type_: type) -> Json:
    """Raises NotImplementedError: a type that JSON does not have."""
    if type_ is object:
        return {"description": "Any JSON."}
    raise NotImplementedError


def _key(name: str, members: Iterable[str]) -> tuple[str, frozenset[str]]:
    """Two structs of one name are told apart by their members."""
    return name, frozenset(members)


def _may_be_unset(struct: type[msgspec.Struct]) -> Iterator[str]:
    hints = get_type_hints(struct)
    for field, name in zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True):
        if msgspec.UnsetType in get_args(hints[field]):
            yield name


def _structs(types: list[Any]) -> set[type[msgspec.Struct]]:
    """Every struct that is reached from these types."""
    found: set[type[msgspec.Struct]] = set()
    waiting: list[Any] = list(inspect.multi_type_info(types))
    while waiting:
        node = waiting.pop()
        if isinstance(node, inspect.StructType):
            if node.cls not in found:
                found.add(node.cls)
                waiting += [field.type for field in node.fields]
        elif isinstance(node, inspect.Type):
            for member in ("item_type", "value_type", "types", "item_types", "type"):
                inner = getattr(node, member, ())
                waiting += inner if isinstance(inner, tuple) else [inner]
    return found
