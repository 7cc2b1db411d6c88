"""What a query string asks of a list of records.

Owns  the names of the parameters of GET /zones/{zone_id}/dns_records.
Not   how values are compared (`usecases.record.filters`).

Contract "List query". Parameters that are sent empty count as not sent, but for `comment.present` and
`comment.absent`, whose presence is what they say. The old forms `name=contains:x` and comma lists are taken
literally.
"""

from edgestead.rest.declared import DIRECTION, Parameter, choice, flag, pages, text
from edgestead.rest.limits import RECORDS_PAGE_SIZE_DEFAULT, RECORDS_PAGE_SIZE_MAX
from edgestead.rest.query import Query
from edgestead.usecases.record.records import ORDERS, Condition, Filter, Wanted

_OPERATORS = ("exact", "contains", "startswith", "endswith")
# Parameter and the condition that it makes; what has no operator asks for the exact value.
_TEXTS = (
    *(
        (f"{field}.{operator}", f"{field}.{operator}")
        for field in ("name", "content", "comment")
        for operator in _OPERATORS
    ),
    ("type", "type"),
)
_SHORT = {"name.exact": "name", "content.exact": "content", "comment.exact": "comment"}
_FLAGS = ("comment.present", "comment.absent")
_TAGS = tuple(f"tag.{operator}" for operator in (*_OPERATORS, "present", "absent"))
_ANY = ("all", "any")
_WORDS = {
    "exact": "is exactly this",
    "contains": "holds this text",
    "startswith": "begins with this",
    "endswith": "ends with this",
    "present": "is there",
    "absent": "is not there",
}

PARAMETERS: tuple[Parameter, ...] = (
    *pages(RECORDS_PAGE_SIZE_DEFAULT, RECORDS_PAGE_SIZE_MAX),
    *(text(short, f"Short for `{parameter}`.") for parameter, short in _SHORT.items()),
    *(
        text(f"{field}.{operator}", f"Only records whose {field} {_WORDS[operator]}.")
        for field in ("name", "content", "comment")
        for operator in _OPERATORS
    ),
    text("type", "Only records of this type."),
    *(text(key, f"Only records whose comment {_WORDS[key.partition('.')[2]]}; any value.") for key in _FLAGS),
    Parameter("tag", "Only records with this tag, `name` or `name:value`.", repeated=True),
    *(
        Parameter(key, f"Only records of which a tag {_WORDS[key.partition('.')[2]]}.", repeated=True)
        for key in _TAGS
    ),
    flag("proxied", "Only records that are, or are not, proxied."),
    text("search", "Only records that hold this text anywhere."),
    choice("match", _ANY, "all", "Whether a record has to meet all conditions or any."),
    choice("tag_match", _ANY, "all", "The same for conditions on tags."),
    choice("tag-match", _ANY, "all", "Another spelling of `tag_match`."),
    choice("order", ORDERS, "type", "What the records are ordered by."),
    DIRECTION,
)


def wanted(query: Query) -> Wanted:
    """Raises InvalidQuery."""
    paging = query.paging(RECORDS_PAGE_SIZE_DEFAULT, RECORDS_PAGE_SIZE_MAX)
    return Wanted(
        _filter(query) if query else Filter(),
        query.choice("order", ORDERS, "type"),
        query.descending(),
        paging.per_page,
        paging.offset,
    )


def _filter(query: Query) -> Filter:
    conditions = []
    for parameter, key in _TEXTS:
        if text := query.text(parameter, _SHORT.get(parameter, parameter)):
            conditions.append(Condition(key, text))
    proxied = None if query.text("proxied") == "" else query.flag("proxied")
    if proxied is not None:
        conditions.append(Condition("proxied", "true" if proxied else "false"))
    conditions += [Condition(key) for key in _FLAGS if query.text(key) is not None]
    return Filter(
        tuple(conditions),
        tuple(_tags(query)),
        query.choice("match", _ANY, "all") == "any",
        query.choice("tag_match", _ANY, query.choice("tag-match", _ANY, "all")) == "any",
        query.text("search") or "",
    )


def _tags(query: Query) -> list[Condition]:
    """`tag` is `name:value`, or `name` with any value."""
    found = [Condition("tag.exact" if ":" in text else "tag.present", text) for text in query.every("tag")]
    for key in _TAGS:
        found += [Condition(key, text) for text in query.every(key)]
    return [condition for condition in found if condition.value]
