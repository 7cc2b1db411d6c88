"""User agent rules: programs that are kept out or challenged by the name that they give themselves.

Owns  what each is as a custom rule, and reading it from one again; filters of their list.
Not   the entry point that they stand in (`usecases.ruleset.views`); HTTP.

Such a rule stands at the end of the entry point, so that a custom rule may let a request by. Its `ref` is
`PREFIX` and a digest of the agent; it is one only while everything of it is what would be written here.
"""

import re
from collections.abc import Sequence
from hashlib import sha256

import msgspec

from edgestead.model.call import Call
from edgestead.model.refusals.firewall import AgentRuleExists, AgentRuleNotFound, AgentRuleRefused
from edgestead.store.control import Reader, Transaction
from edgestead.usecases.limits import AGENT_CHARACTERS_MAX, DESCRIPTION_CHARACTERS_MAX
from edgestead.usecases.ruleset import views
from edgestead.usecases.ruleset.managed import Platform
from edgestead.usecases.ruleset.merge import Rule
from edgestead.usecases.ruleset.phases import CHALLENGES
from edgestead.usecases.ruleset.scope import Scope

PREFIX = "ua_rule/"
MODES = ("block", *CHALLENGES)
TARGET = "ua"
_BEFORE, _BEHIND = 'http.user_agent eq "', '"'
_ESCAPED = re.compile(r"\\(.)")
_ASIDE = frozenset(("id", "version", "last_updated"))


class Agent(msgspec.Struct, frozen=True):
    """`target` is always "ua"; `value` is the whole of the header User-Agent, in its own case."""

    target: str
    value: str


class AgentRuleSent(msgspec.Struct, frozen=True):
    """`mode` is one of MODES. A paused rule does nothing."""

    mode: str
    configuration: Agent
    description: str | None = None
    paused: bool = False


class AgentRuleView(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    description: str
    mode: str
    configuration: Agent
    paused: bool


class Wanted(msgspec.Struct, frozen=True):
    """What a list asks for; "" and None ask for everything. Texts are parts of what is found, in any case."""

    description: str = ""
    agent: str = ""
    paused: bool | None = None


def check(sent: AgentRuleSent) -> None:
    """Raises AgentRuleRefused."""
    description, value = sent.description or "", sent.configuration.value
    for holds, reason, pointer in (
        (sent.mode in MODES, "mode is one of " + ", ".join(MODES), "/mode"),
        (sent.configuration.target == TARGET, f"target is {TARGET}", "/configuration/target"),
        (
            0 < len(value) <= AGENT_CHARACTERS_MAX and value.isprintable(),
            f"the value is one line of 1 to {AGENT_CHARACTERS_MAX} characters",
            "/configuration/value",
        ),
        (
            len(description) <= DESCRIPTION_CHARACTERS_MAX,
            f"the description has at most {DESCRIPTION_CHARACTERS_MAX} characters",
            "/description",
        ),
    ):
        if not holds:
            raise AgentRuleRefused(reason=reason, pointer=pointer)


def as_rule(sent: AgentRuleSent) -> Rule:
    """The custom rule that enforces it, as a client of rulesets would send it."""
    value = sent.configuration.value
    quoted = value.replace("\\", "\\\\").replace('"', '\\"')
    return {
        "action": sent.mode,
        "expression": f"{_BEFORE}{quoted}{_BEHIND}",
        "description": sent.description or "",
        "enabled": not sent.paused,
        "ref": PREFIX + sha256(value.encode()).hexdigest()[:32],
    }


def from_rule(stored: Rule) -> AgentRuleView | None:
    """The user agent rule that a custom rule stands for, None for any other rule."""
    if not stored["ref"].startswith(PREFIX) or stored["action"] not in MODES:
        return None
    quoted = stored["expression"].removeprefix(_BEFORE).removesuffix(_BEHIND)
    agent = Agent(TARGET, _ESCAPED.sub(r"\1", quoted))
    found = AgentRuleSent(stored["action"], agent, stored["description"], not stored["enabled"])
    if {name: one for name, one in stored.items() if name not in _ASIDE} != as_rule(found):
        return None
    return AgentRuleView(
        id=stored["id"],
        description=stored["description"],
        mode=found.mode,
        configuration=agent,
        paused=found.paused,
    )


def create(
    call: Call, tx: Transaction, platform: Platform, scope: Scope, sent: AgentRuleSent
) -> AgentRuleView:
    """Raises ZoneNotFound, AgentRuleRefused, AgentRuleExists, TooManyRules."""
    stored, body = _checked(tx, scope, sent, "")
    return _view(views.add(call, tx, platform, scope, body, len(stored) + 1))


def replace(
    call: Call, tx: Transaction, platform: Platform, scope: Scope, rule_id: str, sent: AgentRuleSent
) -> AgentRuleView:
    """Raises ZoneNotFound, AgentRuleNotFound, AgentRuleRefused, AgentRuleExists."""
    show(tx, scope, rule_id)
    _, body = _checked(tx, scope, sent, rule_id)
    return _view(views.change(call, tx, platform, scope, rule_id, body, None))


def delete(call: Call, tx: Transaction, platform: Platform, scope: Scope, rule_id: str) -> None:
    """Raises ZoneNotFound, AgentRuleNotFound."""
    show(tx, scope, rule_id)
    views.remove(call, tx, platform, scope, rule_id)


def show(reader: Reader, scope: Scope, rule_id: str) -> AgentRuleView:
    """Raises ZoneNotFound, AgentRuleNotFound."""
    for one in listed(reader, scope, Wanted()):
        if one.id == rule_id:
            return one
    raise AgentRuleNotFound


def listed(reader: Reader, scope: Scope, wanted: Wanted) -> list[AgentRuleView]:
    """Those that a list asks for, in the order in which the edge asks them. Raises ZoneNotFound."""
    every = [found for one in views.stored(reader, scope) if (found := from_rule(one)) is not None]
    return [
        one
        for one in every
        if wanted.description.casefold() in one.description.casefold()
        and wanted.agent.casefold() in one.configuration.value.casefold()
        and wanted.paused in (None, one.paused)
    ]


def _checked(reader: Reader, scope: Scope, sent: AgentRuleSent, own_id: str) -> tuple[Sequence[Rule], Rule]:
    """What is stored, and the rule to write. Raises AgentRuleRefused, AgentRuleExists."""
    check(sent)
    stored, body = views.stored(reader, scope), as_rule(sent)
    for one in stored:
        if one["ref"] == body["ref"] and one["id"] != own_id:
            raise AgentRuleExists(rule_id=one["id"])
    return stored, body


def _view(stored: Rule) -> AgentRuleView:
    found = from_rule(stored)
    assert found is not None
    return found
