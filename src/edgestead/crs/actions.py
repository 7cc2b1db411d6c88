"""A rule's actions: pairs of text to the fields of a `Rule`.

Owns  one reader per action, checked values, inheritance from SecDefaultAction.
Not   the source of the text.
"""

from collections.abc import Callable, Iterable
from typing import Any

from edgestead.crs import tables
from edgestead.crs.errors import shown
from edgestead.crs.rules import Control, SetVar, Severity
from edgestead.crs.targets import read_target

Pairs = Iterable[tuple[str, str]]
ID_MAX = (1 << 31) - 1  # fits in 31 bits, as everywhere else ids are kept
SKIP_MAX = 1_000  # rules that one match may jump over
ITEMS_PER_RULE_MAX = 512  # tags, set variables, controls of one rule


def read_actions(text_pairs: Pairs) -> list[tuple[str, str]]:
    """The pairs with canonical names, each with a value exactly where its action has one.

    Raises: ValueError for an unknown action, a missing or a superfluous value.
    """
    pairs = []
    for name, value in text_pairs:
        folded = name.lower()
        if folded in tables.ACTIONS_WITH_VALUE:
            if not value:
                raise ValueError(f"action {shown(name)} needs a value")
            pairs.append((tables.ACTIONS_WITH_VALUE[folded], value))
        elif folded in tables.ACTIONS_ALONE:
            if value:
                raise ValueError(f"action {shown(name)} takes no value")
            pairs.append((tables.ACTIONS_ALONE[folded], ""))
        elif folded in tables.ACTIONS_EITHER:
            pairs.append((tables.ACTIONS_EITHER[folded], value))
        else:
            raise ValueError(f"unknown action {shown(name)}")
    return pairs


def whole_number(text: str, low: int, high: int, what: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and low <= int(text) <= high):
        raise ValueError(f"{what} must be a number from {low} to {high}, not {shown(text)}")
    return int(text)


def _severity(text: str) -> Severity:
    if text.isdigit():
        return Severity(whole_number(text, 0, 7, "severity"))
    try:
        return Severity[text.upper()]
    except KeyError:
        raise ValueError(f"unknown severity {shown(text)}") from None


def _phase(text: str) -> int:
    return tables.PHASE_NAMES.get(text.lower()) or whole_number(text, 1, 5, "phase")


def read_set_var(text: str) -> SetVar:
    """``tx.score=+5``, ``!tx.gone``, ``tx.flag`` (set to 1). Raises: ValueError."""
    removed = text.startswith("!")
    name, equals, value = text.removeprefix("!").partition("=")
    collection, dot, key = name.strip().partition(".")
    if (
        not dot
        or not key
        or collection.upper() not in ("TX", "IP", "GLOBAL", "RESOURCE", "SESSION", "USER", "ENV")
    ):
        raise ValueError(f"setvar needs collection.name, not {shown(text)}")
    if removed:
        return SetVar(collection.upper(), key, "!", "")
    if equals and value[:1] in ("+", "-") and len(value) > 1:
        return SetVar(collection.upper(), key, value[0], value[1:])
    return SetVar(collection.upper(), key, "=", value if equals else "1")


def _expire_var(text: str) -> SetVar:
    read = read_set_var(text)
    if read.op != "=" or not (read.value.isdigit() or "%{" in read.value):
        raise ValueError(f"expirevar needs collection.name=seconds, not {shown(text)}")
    return read


def _init_collection(text: str) -> tuple[str, str]:
    collection, equals, key = text.partition("=")
    if not equals or not key or collection.upper() not in tables.COLLECTIONS.values():
        raise ValueError(f"initcol needs collection=key, not {shown(text)}")
    return collection.upper(), key


def _control(text: str) -> Control:
    name, equals, value = text.partition("=")
    option = tables.CONTROLS.get(name.strip().lower())
    if option is None:
        raise ValueError(f"unknown ctl option {shown(name)}")
    if not equals or not value:
        raise ValueError(f"ctl:{option} needs a value")
    if not option.startswith("ruleRemoveTarget"):
        return Control(option, value)
    chosen, semicolon, target = value.partition(";")
    if not semicolon:
        raise ValueError(f"ctl:{option} needs a rule and a target separated by a semicolon")
    return Control(option, chosen, read_target(target))


def _transformation(text: str) -> str:
    found = tables.TRANSFORMATIONS.get(text.lower())
    if found is None:
        raise ValueError(f"unknown transformation {shown(text)}")
    return found


def _set_id(to: dict[str, Any], value: str) -> None:
    if to.get("id"):
        raise ValueError("a rule has one id")
    to["id"] = whole_number(value, 1, ID_MAX, "id")


def _transform(to: dict[str, Any], value: str) -> None:
    if value.lower() == "none":
        to["transformations"] = []
    else:
        to.setdefault("transformations", []).append(_transformation(value))


def _field(name: str, read: Callable[[str], Any] = str) -> Callable[[dict[str, Any], str], None]:
    return lambda to, value: to.__setitem__(name, read(value))


def _item(name: str, read: Callable[[str], Any] = str) -> Callable[[dict[str, Any], str], None]:
    def add(to: dict[str, Any], value: str) -> None:
        items = to.setdefault(name, [])
        if len(items) == ITEMS_PER_RULE_MAX:
            raise ValueError(f"more than {ITEMS_PER_RULE_MAX} {name.replace('_', ' ')} in one rule")
        items.append(read(value))

    return add


def _constant(name: str, value: object) -> Callable[[dict[str, Any], str], None]:
    return lambda to, _: to.__setitem__(name, value)


# what each action does to the fields of the rule; the rest is kept in `other`
_READERS: dict[str, Callable[[dict[str, Any], str], None]] = {
    "id": _set_id,
    "phase": _field("phase", _phase),
    "severity": _field("severity", _severity),
    "status": _field("status", lambda text: whole_number(text, 100, 599, "status")),
    "msg": _field("message"),
    "logdata": _field("log_data"),
    "ver": _field("version"),
    "rev": _field("revision"),
    "skip": _field("skip", lambda text: whole_number(text, 1, SKIP_MAX, "skip")),
    "skipAfter": _field("skip_after"),
    "t": _transform,
    "tag": _item("tags"),
    "setvar": _item("set_vars", read_set_var),
    "expirevar": _item("expire_vars", _expire_var),
    "initcol": _item("init_collections", _init_collection),
    "ctl": _item("controls", _control),
    "capture": _constant("capture", True),
    "multiMatch": _constant("multi_match", True),
    "log": _constant("log", True),
    "nolog": _constant("log", False),
    "auditlog": _constant("audit_log", True),
    "noauditlog": _constant("audit_log", False),
    "chain": _constant("chained", True),
}


def rule_fields(pairs: Pairs, inherited: Pairs = ()) -> dict[str, Any]:
    """The fields of a `Rule` from its actions, lists as tuples, plus `chained`.

    `inherited` are the pairs of the phase's SecDefaultAction: its transformations come first, the rest is the
    default for actions that the rule lacks. Raises: ValueError.
    """
    to: dict[str, Any] = {}
    for name, value in (*((n, v) for n, v in inherited if n not in tables.DISRUPTIVE_ACTIONS), *pairs):
        if name in tables.DISRUPTIVE_ACTIONS:
            to["disruptive"], to["disruptive_value"] = name, value
        elif name in _READERS:
            _READERS[name](to, value)
        else:
            _item("other")(to, f"{name}:{value}")
    to["other"] = [tuple(text.split(":", 1)) for text in to.get("other", ())]
    return {name: tuple(value) if isinstance(value, list) else value for name, value in to.items()}
