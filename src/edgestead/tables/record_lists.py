"""Lists of a zone's records: which ones, in which order, which page.

Owns  the SQL of every filter, and the choice of the one that leads to the rows.
Not   the tables (`records`, `record_notes`); how a filter's value is folded.

A filter has a test, which one row passes or not, and may have a lead, which finds its rows by an index. A
statement has at most one lead, the most selective by LEADS, and tests for the rest: a planner without
statistics would rather walk the zone in the order of the page. Without a lead the zone is walked.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from string import Formatter
from typing import Any, NamedTuple

from edgestead.store.control import Reader
from edgestead.tables.record_notes import COMMENT

HEAD_CHARACTERS = 64  # of the content: what `records_by_content` keeps
STATEMENTS_CACHED_MAX = 256  # shapes of lists; a caller may make any number of them

ORDERS: Mapping[str, tuple[str, str]] = {
    "type": (
        "type, name, created_us desc, id",
        "type desc, name desc, created_us, id desc",
    ),
    "name": ("name, type, created_us desc, id", "name desc, type desc, created_us, id desc"),
    "content": (
        "content_folded, type, name, created_us desc, id",
        "content_folded desc, type desc, name desc, created_us, id desc",
    ),
    "ttl": (
        "ttl, type, name, created_us desc, id",
        "ttl desc, type desc, name desc, created_us, id desc",
    ),
    "proxied": (
        "proxied, type, name, created_us desc, id",
        "proxied desc, type desc, name desc, created_us, id desc",
    ),
}
_FROM = "from records where"

# {value} is what is compared with, {after} what follows everything that begins with it, {head} and
# {after_head} the same of its first characters, {name} a tag's name (or COMMENT), {zone} the zone's id.
_EXACT, _CONTAINS, _STARTS, _ENDS = "exact", "contains", "startswith", "endswith"
_OPERATORS: Mapping[str, str] = {
    _EXACT: "{0} = {{value}}",
    _CONTAINS: "instr({0}, {{value}}) > 0",
    _STARTS: "{0} >= {{value}} and {0} < {{after}}",
    _ENDS: "substr({0}, length({0}) - length({{value}}) + 1) = {{value}}",
}
_HEAD = f"substr(content_folded, 1, {HEAD_CHARACTERS})"
_IN_RECORDS = "id in (select id from records where zone_id = {{zone}} and {0})"
_IN_NOTES = "id in (select record_id from record_notes where zone_id = {{zone}} and name = {{name}}{0})"
_NOTE = "exists (select 1 from record_notes n where n.record_id = records.id and n.name = {{name}}{0})"


def _each_operator(key: str, template: str, column: str, before: str = "") -> Iterator[tuple[str, str]]:
    for operator, sql in _OPERATORS.items():
        yield f"{key}.{operator}", template.format(before + sql.format(column))


TESTS: Mapping[str, str] = {
    "type": "type = {value}",
    "proxied": "proxied = {value}",
    **dict(_each_operator("name", "{0}", "name")),
    **dict(_each_operator("content", "{0}", "content_folded")),
    **dict(_each_operator("comment", _NOTE, "n.value", " and ")),
    "comment.present": "comment is not null",
    "comment.absent": "comment is null",
    **dict(_each_operator("tag", _NOTE, "n.value", " and ")),
    "tag.present": _NOTE.format(""),
    "tag.absent": "not " + _NOTE.format(""),
}
# Most selective first.
LEADS: Mapping[str, str] = {
    "name.exact": "zone_id = {zone} and name = {value}",
    "content.exact": _IN_RECORDS.format(f"{_HEAD} = {{head}} and content_folded = {{value}}"),
    "comment.exact": _IN_NOTES.format(" and value = {value}"),
    "tag.exact": _IN_NOTES.format(" and value = {value}"),
    "name.startswith": _IN_RECORDS.format("name >= {value} and name < {after}"),
    "content.startswith": _IN_RECORDS.format(
        f"{_HEAD} >= {{head}} and {_HEAD} < {{after_head}}"
        " and content_folded >= {value} and content_folded < {after}"
    ),
    "comment.startswith": _IN_NOTES.format(" and value >= {value} and value < {after}"),
    "tag.startswith": _IN_NOTES.format(" and value >= {value} and value < {after}"),
    "tag.contains": _IN_NOTES.format(" and instr(value, {value}) > 0"),
    "tag.endswith": _IN_NOTES.format(" and " + _OPERATORS[_ENDS].format("value")),
    "tag.present": _IN_NOTES.format(""),
    "comment.contains": _IN_NOTES.format(" and instr(value, {value}) > 0"),
    "comment.endswith": _IN_NOTES.format(" and " + _OPERATORS[_ENDS].format("value")),
}
_RANKS = {key: rank for rank, key in enumerate(LEADS)}
_SEARCH = (
    "(instr(name, {value}) > 0 or instr(content_folded, {value}) > 0 or id in (select record_id"
    " from record_notes where zone_id = {zone} and instr(name || ':' || value, {value}) > 0))"
)
_IN_ZONE = "zone_id = {zone}"
_LAST_CHARACTER = "\U0010ffff"  # not a character, and behind all of them


class Condition(NamedTuple):
    """One filter: a key of TESTS, and what it compares with, folded as rows are. `name` is a tag's."""

    key: str
    value: Any = ""
    name: str = COMMENT


class Filter(NamedTuple):
    """Which records. Conditions on tags are one group, whose result counts as one of the conditions.

    `any_condition` and `any_tag`: one of them is enough. `search` must be found besides.
    """

    conditions: tuple[Condition, ...] = ()
    tags: tuple[Condition, ...] = ()
    any_condition: bool = False
    any_tag: bool = False
    search: str = ""

    @property
    def is_everything(self) -> bool:
        return not (self.conditions or self.tags or self.search)

    @property
    def is_of_one_name(self) -> bool:
        """Whether the rows of one name are all that has to be read."""
        together = not self.any_condition or len(self.conditions) + bool(self.tags) == 1
        return together and any(condition.key == "name.exact" for condition in self.conditions)


class _Shape(NamedTuple):
    """What the text of a statement depends on."""

    conditions: tuple[str, ...]
    tags: tuple[str, ...]
    any_condition: bool
    any_tag: bool
    search: bool


class _Where(NamedTuple):
    """SQL, and for each of its parameters which condition it is from and which of its texts it takes."""

    sql: str
    slots: tuple[tuple[int, str], ...]


def bodies(
    reader: Reader, zone_id: str, wanted: Filter, order: str, descending: bool, limit: int, offset: int
) -> list[bytes]:
    """The bodies of the records that pass the filter, one page of them, in order."""
    where = _where(_shape(wanted))
    sql = _page(where.sql, ORDERS[order][descending])
    return [found[0] for found in reader.rows(sql, (*_parameters(where, zone_id, wanted), limit, offset))]


def count(reader: Reader, zone_id: str, wanted: Filter) -> int:
    where = _where(_shape(wanted))
    found = reader.row(_count(where.sql), _parameters(where, zone_id, wanted))
    return int(found[0]) if found else 0


def statements() -> Iterator[str]:
    """Every filter by itself and behind a lead, in groups of both kinds, and every order."""
    plain = [key for key in TESTS if not key.startswith("tag.")]
    tags = [key for key in TESTS if key.startswith("tag.")]
    shapes = [_Shape((), (), False, False, False), _Shape((), (), False, False, True)]
    shapes += [_Shape((key,), (), False, False, False) for key in plain]
    shapes += [_Shape((), (key,), False, False, False) for key in tags]
    for any_condition in (False, True):
        shapes.append(_Shape(("name.exact", "content.exact"), (), any_condition, False, True))
        shapes += [_Shape(tuple(plain), tuple(tags), any_condition, any_, True) for any_ in (False, True)]
    wheres = [_where(shape).sql for shape in shapes]
    yield from (_count(where) for where in wheres)
    yield from (_page(where, ORDERS["type"][0]) for where in wheres)
    for both in ORDERS.values():
        yield from (_page(wheres[0], order) for order in both)


def _page(where: str, order: str) -> str:
    return f"select body {_FROM} {where} order by {order} limit ? offset ?"


def _count(where: str) -> str:
    return f"select count(*) {_FROM} {where}"


def _shape(wanted: Filter) -> _Shape:
    return _Shape(
        tuple([condition.key for condition in wanted.conditions]),
        tuple([condition.key for condition in wanted.tags]),
        wanted.any_condition,
        wanted.any_tag,
        bool(wanted.search),
    )


@lru_cache(STATEMENTS_CACHED_MAX)
def _where(shape: _Shape) -> _Where:
    groups: list[list[int]] = [[position] for position in range(len(shape.conditions))]
    tags = list(range(len(shape.conditions), len(shape.conditions) + len(shape.tags)))
    groups += [tags] if shape.any_tag and tags else [[tag] for tag in tags]
    keys = (*shape.conditions, *shape.tags)
    if shape.any_condition:
        return _any_of(shape, keys, tags)
    lead = _best_lead(keys, [group[0] for group in groups if len(group) == 1])
    parts = [_fill(_IN_ZONE if lead is None else LEADS[keys[lead]], 0 if lead is None else lead)]
    parts += [
        _joined(" or ", [_fill(TESTS[keys[one]], one) for one in group])
        for group in groups
        if group != [lead]
    ]
    if shape.search:
        parts.append(_fill(_SEARCH, len(keys)))
    return _joined(" and ", parts)


def _any_of(shape: _Shape, keys: Sequence[str], tags: Sequence[int]) -> _Where:
    """One condition is enough. When each has a lead, the rows are what the leads find together."""
    led = not (shape.tags and not shape.any_tag and len(tags) > 1) and all(key in LEADS for key in keys)
    texts = LEADS if led else TESTS
    parts = [_fill(texts[keys[one]], one) for one in range(len(shape.conditions))]
    if tags:
        parts.append(
            _joined(" or " if shape.any_tag else " and ", [_fill(texts[keys[one]], one) for one in tags])
        )
    whole = [_joined(" or ", parts)] if parts else []
    if not led or not parts:
        whole.insert(0, _fill(_IN_ZONE, 0))
    if shape.search:
        whole.append(_fill(_SEARCH, len(keys)))
    return _joined(" and ", whole)


def _best_lead(keys: Sequence[str], candidates: Sequence[int]) -> int | None:
    leading = [position for position in candidates if keys[position] in _RANKS]
    return min(leading, key=lambda position: _RANKS[keys[position]], default=None)


def _fill(template: str, position: int) -> _Where:
    sql, slots = "", []
    for text, field, _, _ in Formatter().parse(template):
        sql += text
        if field is not None:
            sql += "?"
            slots.append((position, field))
    return _Where(sql, tuple(slots))


def _joined(word: str, parts: Sequence[_Where]) -> _Where:
    if len(parts) == 1:
        return parts[0]
    sql = word.join([f"({part.sql})" for part in parts])
    return _Where(sql, tuple([slot for part in parts for slot in part.slots]))


def _parameters(where: _Where, zone_id: str, wanted: Filter) -> tuple[Any, ...]:
    conditions = (*wanted.conditions, *wanted.tags, Condition("", wanted.search))
    return tuple([_parameter(field, conditions[position], zone_id) for position, field in where.slots])


def _parameter(field: str, condition: Condition, zone_id: str) -> Any:
    if field == "zone":
        return zone_id
    if field == "name":
        return condition.name
    value = condition.value
    if field.endswith("head"):
        value = value[:HEAD_CHARACTERS]
    return value + _LAST_CHARACTER if field.startswith("after") else value
