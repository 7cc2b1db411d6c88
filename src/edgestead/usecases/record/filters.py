"""A list's filters, from what a caller sent to what rows hold.

Owns  the folding of each kind of value.
Not   SQL (`tables.record_lists`); query strings (`rest.routes.record_query`).

Filters ignore case, and fold white space as the rows do. TXT is compared decoded, names in punycode; a tag's
name stands before its first colon, its value behind it.
"""

from collections.abc import Callable, Mapping

from edgestead.model import names
from edgestead.model.names import InvalidName
from edgestead.model.records import fold, folded_query
from edgestead.tables.record_lists import Condition, Filter
from edgestead.usecases.change.records import split_tag


def folded(wanted: Filter, zone_name: str) -> Filter:
    """The filter with its values as rows have them; names may be relative to the zone."""
    if wanted.is_everything:
        return wanted
    return wanted._replace(
        conditions=tuple([_condition(one, zone_name) for one in wanted.conditions]),
        tags=tuple([_tag(one) for one in wanted.tags]),
        search=fold(wanted.search),
    )


def _condition(condition: Condition, zone_name: str) -> Condition:
    if condition.key == "name.exact":
        return condition._replace(value=_stored_name(condition.value, zone_name))
    return condition._replace(value=_FOLDS[condition.key.partition(".")[0]](condition.value))


def _tag(condition: Condition) -> Condition:
    """The text is in `value`, as sent. `name:` or `name` alone compares with no value."""
    name, value = split_tag(condition.value)
    return condition._replace(name=name, value=value)


def _stored_name(text: str, zone_name: str) -> str:
    """A name as rows hold it. What cannot be a name finds nothing, as the empty text does."""
    try:
        return names.text_from_wire(names.owner_from_text(text.strip(), names.wire_from_text(zone_name)))
    except InvalidName:
        return ""


def _name_part(text: str) -> str:
    try:
        return names.ascii_part(text.strip())
    except InvalidName:
        return text.strip().lower()


_FOLDS: Mapping[str, Callable[[str], object]] = {
    "name": _name_part,
    "content": folded_query,
    "comment": fold,
    "type": str.upper,
    "proxied": lambda flag: int(flag == "true"),
}
