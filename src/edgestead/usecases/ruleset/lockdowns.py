"""Zone lockdowns: pages that only some addresses may ask for.

Owns  what each is as a custom rule, and reading it from one again; their order; filters of their list.
Not   the entry point that they stand in (`usecases.ruleset.views`); HTTP.

A lockdown stands behind the access rules, whose whitelist lets by, and before all custom rules. Its `ref` is
`PREFIX`, a word of its own and its priority; it is one only while everything of it is what would be written
here.
"""

import re
from collections.abc import Sequence

import msgspec

from edgestead.model.addresses import plain, plain_network
from edgestead.model.call import Call
from edgestead.model.refusals.firewall import OlderRuleNotFound, OlderRuleRefused
from edgestead.store.control import Reader, Transaction
from edgestead.usecases.limits import DESCRIPTION_CHARACTERS_MAX, LOCKDOWN_ITEMS_MAX
from edgestead.usecases.ruleset import access_rules, url_patterns, views
from edgestead.usecases.ruleset.managed import Platform
from edgestead.usecases.ruleset.merge import Rule
from edgestead.usecases.ruleset.scope import Scope

FAMILY = "zonelockdown"
PREFIX = "lockdown/"
TARGETS = ("ip", "ip_range")
PRIORITY_MAX = 2**31 - 1  # as of firewall rules
_EXPRESSION = re.compile(r"\((.*)\) and not ip\.src in \{([^{}]*)\}")
_REF = re.compile(PREFIX + r"([0-9a-f]{1,32})/([0-9]{0,10})")
_ASIDE = frozenset(("id", "version", "last_updated"))


class Configuration(msgspec.Struct, frozen=True):
    """Who may still ask. `target` is one of TARGETS."""

    target: str
    value: str


class LockdownSent(msgspec.Struct, frozen=True):
    """`urls` are hosts with paths, in which a star is any text. Lower priorities are asked first."""

    urls: list[str]
    configurations: list[Configuration]
    description: str | None = None
    paused: bool = False
    priority: int | None = None


class LockdownView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Both times are those of the last change."""

    id: str
    created_on: str
    modified_on: str
    paused: bool
    description: str
    urls: tuple[str, ...]
    configurations: tuple[Configuration, ...]
    priority: int | None = None


class Wanted(msgspec.Struct, frozen=True):
    """What a list asks for; "" and None ask for everything. Texts are parts of what is found, in any case."""

    description: str = ""
    url: str = ""
    address: str = ""
    priority: int | None = None


def read(sent: LockdownSent) -> LockdownSent:
    """With its addresses in their one spelling. Raises OlderRuleRefused."""
    for holds, reason in (
        (0 < len(sent.urls) <= LOCKDOWN_ITEMS_MAX, f"urls are 1 to {LOCKDOWN_ITEMS_MAX}"),
        (all(map(url_patterns.is_pattern, sent.urls)), f"a url is {url_patterns.FORM}"),
        (0 < len(sent.configurations) <= LOCKDOWN_ITEMS_MAX, f"configurations are 1 to {LOCKDOWN_ITEMS_MAX}"),
        (
            len(sent.description or "") <= DESCRIPTION_CHARACTERS_MAX,
            f"the description has at most {DESCRIPTION_CHARACTERS_MAX} characters",
        ),
        (
            sent.priority is None or 0 <= sent.priority <= PRIORITY_MAX,
            f"priority is 0 to {PRIORITY_MAX}, or null",
        ),
    ):
        if not holds:
            raise OlderRuleRefused(family=FAMILY, reason=reason)
    return msgspec.structs.replace(sent, configurations=[_spelled(one) for one in sent.configurations])


def as_rule(sent: LockdownSent, word: str) -> Rule:
    """The custom rule that enforces it, as a client of rulesets would send it."""
    pages = " or ".join(map(url_patterns.as_test, sent.urls))
    allowed = " ".join(one.value for one in sent.configurations)
    return {
        "action": "block",
        "expression": f"({pages}) and not ip.src in {{{allowed}}}",
        "description": sent.description or "",
        "enabled": not sent.paused,
        "ref": f"{PREFIX}{word}/{'' if sent.priority is None else sent.priority}",
    }


def from_rule(stored: Rule) -> LockdownView | None:
    """The lockdown that a custom rule stands for, None for any other rule."""
    ref, expression = _REF.fullmatch(stored["ref"]), _EXPRESSION.fullmatch(stored["expression"])
    if ref is None or expression is None:
        return None
    urls = [url_patterns.from_test(one) or "" for one in expression[1].split(" or ")]
    allowed = [Configuration("ip_range" if "/" in one else "ip", one) for one in expression[2].split()]
    priority = int(ref[2]) if ref[2] else None
    sent = LockdownSent(urls, allowed, stored["description"], not stored["enabled"], priority)
    if {name: one for name, one in stored.items() if name not in _ASIDE} != as_rule(sent, ref[1]):
        return None
    return LockdownView(
        id=stored["id"],
        created_on=stored["last_updated"],
        modified_on=stored["last_updated"],
        paused=sent.paused,
        description=stored["description"],
        urls=tuple(urls),
        configurations=tuple(allowed),
        priority=priority,
    )


def create(call: Call, tx: Transaction, platform: Platform, scope: Scope, sent: LockdownSent) -> LockdownView:
    """Raises ZoneNotFound, OlderRuleRefused, TooManyRules."""
    wanted = read(sent)
    index = _index(views.stored(tx, scope), wanted.priority)
    body = as_rule(wanted, platform.new_id()[-12:])
    return _view(views.add(call, tx, platform, scope, body, index))


def replace(
    call: Call, tx: Transaction, platform: Platform, scope: Scope, rule_id: str, sent: LockdownSent
) -> LockdownView:
    """Raises ZoneNotFound, OlderRuleNotFound, OlderRuleRefused."""
    old, wanted = show(tx, scope, rule_id), read(sent)
    stored = views.stored(tx, scope)
    word = next(one["ref"].split("/")[1] for one in stored if one["id"] == rule_id)
    index = None
    if wanted.priority != old.priority:
        index = _index([one for one in stored if one["id"] != rule_id], wanted.priority)
    return _view(views.change(call, tx, platform, scope, rule_id, as_rule(wanted, word), index))


def delete(call: Call, tx: Transaction, platform: Platform, scope: Scope, rule_id: str) -> None:
    """Raises ZoneNotFound, OlderRuleNotFound."""
    show(tx, scope, rule_id)
    views.remove(call, tx, platform, scope, rule_id)


def show(reader: Reader, scope: Scope, rule_id: str) -> LockdownView:
    """Raises ZoneNotFound, OlderRuleNotFound."""
    for one in listed(reader, scope, Wanted()):
        if one.id == rule_id:
            return one
    raise OlderRuleNotFound(family=FAMILY)


def listed(reader: Reader, scope: Scope, wanted: Wanted) -> list[LockdownView]:
    """Those that a list asks for, in the order in which the edge asks them. Raises ZoneNotFound."""
    every = [found for one in views.stored(reader, scope) if (found := from_rule(one)) is not None]
    return [
        one
        for one in every
        if wanted.description.casefold() in one.description.casefold()
        and any(wanted.url.casefold() in url.casefold() for url in one.urls)
        and any(wanted.address in ("", allowed.value) for allowed in one.configurations)
        and wanted.priority in (None, one.priority)
    ]


def _spelled(sent: Configuration) -> Configuration:
    """Raises OlderRuleRefused."""
    reason = "a configuration has the target ip and an address, or ip_range and a network"
    if sent.target not in TARGETS or "%" in sent.value:
        raise OlderRuleRefused(family=FAMILY, reason=reason)
    try:
        if sent.target == "ip":
            return Configuration("ip", str(plain(sent.value)))
        return Configuration("ip_range", str(plain_network(sent.value)))
    except ValueError:
        raise OlderRuleRefused(family=FAMILY, reason=reason) from None


def _index(stored: Sequence[Rule], priority: int | None) -> int:
    """Its place, counted from 1: behind access rules and the lockdowns that are asked before it."""
    mine, index = (priority is None, priority or 0), 1
    for at, one in enumerate(stored, 1):
        found = from_rule(one)
        before = found is not None and (found.priority is None, found.priority or 0) <= mine
        if before or one["ref"].startswith(access_rules.PREFIX):
            index = at + 1
    return index


def _view(stored: Rule) -> LockdownView:
    found = from_rule(stored)
    assert found is not None
    return found
