"""The table of record types, and what every row can do.

Owns  `TYPES`, the decorator that enters a class in it, and rdata's way between `content`, `data`, zone text
      and octets, driven by the annotations of the class.
Not   a record's name, TTL, proxy status or neighbours.

    content ──┐                  ┌──▶ content, data      answers
    data    ──┼──▶ Rdata ────────┼──▶ to_wire()          identity, DNS
    wire    ──┘                  └──▶ to_zone_text()     export

A class is one row: its annotations are the fields in the order of the wire, and each annotation is the check.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeVar, get_type_hints

import msgspec

from edgestead.model.call import Profile
from edgestead.model.names import InvalidName, InvalidValue, check_any_name
from edgestead.model.records.kinds import Integer, Kind, TextKind
from edgestead.model.records.wire import WireReader
from edgestead.model.records.words import words
from edgestead.model.refusals.record import (
    ContentRefused,
    ContentTooLong,
    FieldMissing,
    FieldRefused,
    NameRefused,
    RecordRefused,
)

CONTENT_OCTETS_MAX = 4_096  # of rdata in wire form; contract of the v4 API, code 9015

NameRule = Callable[[bytes, Profile, bytes], None]


class Field(NamedTuple):
    """One field of rdata; `default` is JSON, and None means that it must be sent."""

    name: str
    kind: TextKind[Any]
    default: object = None


@dataclass(frozen=True, slots=True)
class RecordType:
    """One row of the table.

    `form` is the member of the body that carries the rdata; the other one is ignored, except that `content`
    alone is also read for a `data` type. `priority` says where the field of that name is answered: `top` at
    the record's top level, `both` there and in `data`; None means that a type has no top-level priority.
    `is_extension`: the specification does not have it, and the profile `spec` refuses it.
    `fields` stand in the order of the wire; `content_fields` and `data_fields`, the latter by
    alphabet, are those of an answer. `octets` are the fields that have octets of their own.
    """

    name: str
    number: int
    source: str
    form: Literal["content", "data"]
    proxiable: bool
    priority: Literal["top", "both"] | None
    rdata: "type[Rdata]"
    fields: tuple[Field, ...]
    octets: tuple[tuple[str, Kind[Any]], ...]
    content_fields: tuple[Field, ...]
    data_fields: tuple[Field, ...]
    name_rule: NameRule
    refusal: type[RecordRefused]
    is_extension: bool = False

    def check_name(self, name: bytes, profile: Profile, apex: bytes) -> None:
        """Whether a record of this type may stand at `name` in the zone `apex`.

        Raises: NameRefused.
        """
        try:
            self.name_rule(name, profile, apex)
        except InvalidName as error:
            raise NameRefused(type=self.name, field="name", reason=error.reason) from None


_types: dict[str, RecordType] = {}
_types_by_number: dict[int, RecordType] = {}
TYPES: Mapping[str, RecordType] = _types
TYPES_BY_NUMBER: Mapping[int, RecordType] = _types_by_number


class Rdata(msgspec.Struct, frozen=True, gc=False):
    """The part of a record that depends on its type.

    Equality includes the spelling that the caller chose; two records are the same for DNS when `to_wire()`
    is the same. Every reading method raises a RecordRefused and nothing else.
    """

    row: ClassVar[RecordType]

    @classmethod
    def from_content(cls, content: str, priority: object = None) -> Self:
        """Read content text. SRV and URI may begin with their priority, which then counts.

        Raises: ContentRefused (or the type's own), ContentTooLong, FieldMissing, FieldRefused.
        """
        row = cls.row
        fields = row.content_fields
        try:
            if len(fields) == 1:
                found = [content]
            else:
                found = _fit(cls.content_words(content), row, fields)
            if len(found) == len(row.fields):
                fields = row.fields
            values = [field.kind.from_word(word) for field, word in zip(fields, found, strict=True)]
            if len(values) < len(row.fields):
                values.insert(0, _priority(row, priority))
            return cls(*values)._checked()
        except InvalidValue as error:
            raise row.refusal(type=row.name, field="content", reason=error.reason) from None

    @classmethod
    def from_data(cls, data: object, priority: object = None) -> Self:
        """Read the members of `data`. None means not sent, unknown members are ignored, numbers may be text.

        Raises: FieldMissing, FieldRefused, ContentRefused, ContentTooLong.
        """
        row = cls.row
        if not isinstance(data, Mapping):
            raise FieldRefused(type=row.name, field="data", reason="must be an object")
        values = []
        for field in row.fields:
            raw = data.get(field.name)
            if raw is None and row.priority and field is row.fields[0]:
                values.append(_priority(row, priority))
                continue
            raw = field.default if raw is None else raw
            if raw is None:
                raise FieldMissing(type=row.name, field=f"data/{field.name}")
            try:
                values.append(field.kind.from_json(raw))
            except InvalidValue as error:
                raise FieldRefused(type=row.name, field=f"data/{field.name}", reason=error.reason) from None
        try:
            return cls(*values)._checked()
        except InvalidValue as error:
            raise ContentRefused(type=row.name, field="data", reason=error.reason) from None

    @classmethod
    def from_wire(cls, wire: bytes) -> Self:
        """Read uncompressed rdata. Spellings that octets do not keep come out in their usual form.

        Raises: ContentRefused, ContentTooLong.
        """
        reader = WireReader(wire)
        try:
            rdata = cls.unpack(reader)
            if not reader.is_done:
                raise InvalidValue("the rdata has octets behind its end")
            return rdata._checked()
        except InvalidValue as error:
            raise ContentRefused(type=cls.row.name, reason=error.reason) from None

    def to_wire(self) -> bytes:
        """Uncompressed rdata, names in lower case: what DNS serves, and the identity of the record."""
        return b"".join([kind.pack(getattr(self, name)) for name, kind in self.row.octets])

    def to_content(self) -> str:
        """The `content` of an answer. `from_content` with `top_priority` reads it back."""
        return " ".join(
            [field.kind.to_word(getattr(self, field.name)) for field in self.row.content_fields]
        ).rstrip()

    def to_data(self) -> dict[str, object] | None:
        """The `data` of an answer, members in alphabetical order; None when the type has none."""
        fields = self.row.data_fields
        return {field.name: field.kind.to_json(getattr(self, field.name)) for field in fields} or None

    def to_zone_text(self) -> str:
        """Presentation form for a zone file: ASCII, absolute names (RFC 1035 §5.1)."""
        return " ".join(
            [field.kind.to_zone_word(getattr(self, field.name)) for field in self.row.fields]
        ).rstrip()

    @property
    def top_priority(self) -> int | None:
        """The record's top-level `priority`, or None when its type has none."""
        return getattr(self, self.row.fields[0].name) if self.row.priority else None

    # What a type may do differently.

    @classmethod
    def content_words(cls, content: str) -> list[str]:
        """One word per field of the content."""
        return words(content)

    @classmethod
    def unpack(cls, reader: WireReader) -> Self:
        return cls(*[kind.unpack(reader) for _, kind in cls.row.octets])

    def check(self) -> None:
        """What must hold between fields. Raises: InvalidValue."""

    def _checked(self) -> Self:
        self.check()
        if not self.row.fields[-1].kind.is_bounded and (size := len(self.to_wire())) > CONTENT_OCTETS_MAX:
            raise ContentTooLong(
                type=self.row.name, field=self.row.form, octets=size, octets_max=CONTENT_OCTETS_MAX
            )
        return self


R = TypeVar("R", bound=Rdata)


def record_type(
    number: int,
    source: str,
    *,
    form: Literal["content", "data"] = "content",
    proxiable: bool = False,
    priority: Literal["top", "both"] | None = None,
    name_rule: NameRule = check_any_name,
    refusal: type[RecordRefused] = ContentRefused,
    defaults: Mapping[str, object] | None = None,
    is_extension: bool = False,
) -> Callable[[type[R]], type[R]]:
    """Enter a class in the table under its own name. `source` is the text that defines the fields."""

    def enter(cls: type[R]) -> type[R]:
        hints = get_type_hints(cls, include_extras=True)
        fields = tuple(
            Field(name, hints[name].__metadata__[0], (defaults or {}).get(name))
            for name in cls.__struct_fields__
        )
        answered = fields[1:] if priority == "top" else fields
        row = RecordType(
            name=cls.__name__,
            number=number,
            source=source,
            form=form,
            proxiable=proxiable,
            priority=priority,
            rdata=cls,
            fields=fields,
            octets=tuple((field.name, field.kind) for field in fields if isinstance(field.kind, Kind)),
            content_fields=fields[1:] if priority else fields,
            data_fields=tuple(sorted(answered)) if form == "data" else (),
            name_rule=name_rule,
            refusal=refusal,
            is_extension=is_extension,
        )
        cls.row = _types[row.name] = _types_by_number[number] = row
        return cls

    return enter


_PRIORITY = Integer(2)


def _priority(row: RecordType, raw: object) -> int:
    if raw is None:
        raise FieldMissing(type=row.name, field="priority")
    try:
        return _PRIORITY.from_json(raw)
    except InvalidValue as error:
        raise FieldRefused(type=row.name, field="priority", reason=error.reason) from None


def _fit(found: list[str], row: RecordType, fields: tuple[Field, ...]) -> list[str]:
    """Make the number of words right, or raise InvalidValue."""
    last = fields[-1]
    if last.kind.takes_rest and len(found) > len(fields):
        found[len(fields) - 1 :] = [" ".join(found[len(fields) - 1 :])]
    if isinstance(last.default, str) and len(found) == len(fields) - 1:
        found.append(last.default)
    if len(found) == len(fields) or (row.priority and len(found) == len(row.fields)):
        return found
    names = " ".join(field.name for field in fields)
    raise InvalidValue(f"it has {len(found)} words instead of {len(fields)}: {names}")
