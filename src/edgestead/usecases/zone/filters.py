"""What a list of zones asks for: query parameters read into conditions of SQL.

Owns  the operators of `name` and `account.name`, lists of states and types.
Not   who may see what; order and paging.

Contract "List query". `op:value` compares the ASCII form of names, without regard to case unless the operator
ends in `_case_sensitive`; zone names are lower case, so a value with a capital letter finds nothing then.
"""

from collections.abc import Callable, Mapping, Sequence

from edgestead.model import names
from edgestead.model.names import InvalidName
from edgestead.store.control import Reader
from edgestead.tables import accounts
from edgestead.tables.zones import Condition, Wanted

FILTERS = ("name", "account.id", "account.name", "status", "type")
VALUES_MAX = 100  # of one parameter
_SENSITIVE = "_case_sensitive"
_EQUAL = "equal"
_COMPARE: Mapping[str, Callable[[str, str], bool]] = {
    _EQUAL: lambda text, value: text == value,
    "not_equal": lambda text, value: text != value,
    "starts_with": str.startswith,
    "ends_with": str.endswith,
    "contains": lambda text, value: value in text,
}
_NOTHING = Condition("nothing", ("",))


def read(reader: Reader, parameters: Mapping[str, Sequence[str]], *, any_: bool) -> Wanted:
    """The conditions of parameters that are in FILTERS; others, and empty ones, ask for nothing."""
    found = []
    for key in FILTERS:
        texts = [text for text in parameters.get(key, ()) if text]
        if not texts:
            continue
        if key == "name":
            condition = _name(texts)
        elif key == "account.name":
            condition = _account_name(reader, texts[-1])
        else:
            condition = Condition(key, _split(texts))
        if condition is not None:
            found.append(condition)
    return Wanted(tuple(found), any_)


def _split(texts: Sequence[str]) -> tuple[str, ...]:
    """A repeated parameter and one with commas are the same list."""
    parts = [part.strip() for text in texts for part in text.split(",", VALUES_MAX)]
    return tuple(part for part in parts if part)[:VALUES_MAX]


def _operator(text: str) -> tuple[str, str, bool]:
    """Operator, value, and whether case matters; text without a known operator is the value."""
    head, colon, value = text.partition(":")
    name = head.removesuffix(_SENSITIVE)
    if colon and name in _COMPARE:
        return name, value.strip(), head.endswith(_SENSITIVE)
    return _EQUAL, text.strip(), False


def _name(texts: Sequence[str]) -> Condition | None:
    operator, value, sensitive = _operator(texts[-1])
    if not value:
        return None
    if operator == _EQUAL:
        values = _split(texts) if len(texts) > 1 or ":" not in texts[-1] else _split([value])
        return Condition("name", tuple(_stored(one, sensitive) for one in values))
    if operator == "not_equal":
        return Condition("name.not_equal", (_stored(value, sensitive),))
    if not sensitive:
        value = value.lower()
    return Condition(f"name.{operator}", (value,))


def _stored(text: str, sensitive: bool) -> str:
    """A name as rows hold it. What cannot be a name finds nothing, as the empty text does."""
    try:
        stored = names.text_from_wire(names.wire_from_text(text))
    except InvalidName:
        return ""
    return "" if sensitive and text != text.lower() else stored


def _account_name(reader: Reader, text: str) -> Condition | None:
    operator, value, sensitive = _operator(text)
    if not value:
        return None
    fold = (lambda one: one) if sensitive else str.casefold
    compare = _COMPARE[operator]
    ids = [row.id for row in accounts.all_accounts(reader) if compare(fold(row.name), fold(value))]
    return Condition("account.id", tuple(ids)) if ids else _NOTHING
