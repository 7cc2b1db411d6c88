"""SecLang rules as typed, frozen structs: what `waf` runs and the catalogue lists.

Owns  the shapes.
Not   reading text (`parser`); meaning of operators and transformations (`waf`).

Names are in their canonical spelling (`tables`), collections and variables upper-case, keys of setvar and
macros as written. Text that came from a file keeps bytes that are not UTF-8 as surrogate escapes.
"""

from enum import IntEnum

import msgspec


class Severity(IntEnum):
    EMERGENCY = 0
    ALERT = 1
    CRITICAL = 2
    ERROR = 3
    WARNING = 4
    NOTICE = 5
    INFO = 6
    DEBUG = 7


class Variable(msgspec.Struct, frozen=True):
    """One target: ``ARGS``, ``&ARGS:id`` (count), ``!REQUEST_COOKIES:/^__utm/`` (excluded, by pattern).

    `selector` is the key, the pattern without its slashes, or the XPath of ``XML``; empty for the whole.
    """

    name: str
    selector: str = ""
    pattern: bool = False
    count: bool = False
    excluded: bool = False


class Operator(msgspec.Struct, frozen=True):
    """`argument` as written, quotes resolved; `phrases` for pm, pmFromFile and ipMatchFromFile."""

    name: str
    argument: str = ""
    negated: bool = False
    phrases: tuple[str, ...] = ()


class SetVar(msgspec.Struct, frozen=True):
    """`op` is "=" (set), "+" or "-" (count) or "!" (remove). `key` and `value` may hold macros."""

    collection: str
    key: str
    op: str
    value: str


class Control(msgspec.Struct, frozen=True):
    """``ctl:option=value``; `target` for the ruleRemoveTarget… options."""

    option: str
    value: str
    target: Variable | None = None


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """A SecRule, SecAction (without variables, always matching) or chain link (id 0).

    `disruptive` is pass, block, deny, drop, allow, redirect or proxy; empty where none is given.
    `transformations` are those after the last ``t:none``, with the default action's where there is none.
    """

    id: int
    phase: int
    variables: tuple[Variable, ...]
    operator: Operator
    file: str
    line: int
    transformations: tuple[str, ...] = ()
    disruptive: str = ""
    disruptive_value: str = ""
    status: int | None = None
    severity: Severity | None = None
    message: str = ""
    log_data: str = ""
    tags: tuple[str, ...] = ()
    version: str = ""
    revision: str = ""
    set_vars: tuple[SetVar, ...] = ()
    expire_vars: tuple[SetVar, ...] = ()
    init_collections: tuple[tuple[str, str], ...] = ()
    controls: tuple[Control, ...] = ()
    skip: int = 0
    skip_after: str = ""
    capture: bool = False
    multi_match: bool = False
    log: bool | None = None
    audit_log: bool | None = None
    other: tuple[tuple[str, str], ...] = ()
    chain: tuple["Rule", ...] = ()

    @property
    def links(self) -> tuple["Rule", ...]:
        """The rule itself and its chain."""
        return (self, *self.chain)


class Marker(msgspec.Struct, frozen=True):
    """The target of `skip_after`."""

    name: str
    file: str
    line: int


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a set of files, in order.

    `defaults` are the actions of SecDefaultAction by phase; `settings` the other directives by name.
    """

    items: tuple[Rule | Marker, ...]
    signature: str = ""
    collection_timeout_seconds: int = 3_600
    defaults: dict[int, tuple[tuple[str, str], ...]] = {}
    settings: dict[str, tuple[str, ...]] = {}

    @property
    def rules(self) -> tuple[Rule, ...]:
        return tuple(item for item in self.items if isinstance(item, Rule))
