"""The reference page of limits, read from the sources: those that a user can meet, each with its error.

Owns  which numbers are limits, which of them people meet, and the page's words around them.
Not   a number or its reason: they stand in the code.
"""

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import NamedTuple

import edgestead
from edgestead.model import refusals
from edgestead.model.budgets.table import BUDGETS, Budget
from edgestead.model.refusals import EdgeError

# What a user can meet, by subject: what is bounded, the constant, its unit, and the refusal's class by name.
# An answer that is no refusal of the API is said in words.
MET: dict[str, tuple[tuple[str, str, str, str], ...]] = {
    "Records and zones": (
        ("the content of a record", "model.records.table:CONTENT_OCTETS_MAX", "octets", "ContentTooLong"),
        ("a TXT record's text", "model.records.txt:TXT_OCTETS_MAX", "octets", "ContentTooLong"),
        ("all TXT records of a name", "usecases.limits:TXT_OCTETS_PER_NAME_MAX", "octets", "ContentsTooLong"),
        ("all records of a name and type", "usecases.limits:RRSET_OCTETS_MAX", "octets", "ContentsTooLong"),
        ("a TTL", "usecases.limits:TTL_SECONDS_MAX", "seconds", "TtlRefused"),
        ("tags of a record", "usecases.limits:TAGS_MAX", "", "TooManyTags"),
        ("records of a zone file", "usecases.limits:IMPORTED_RECORDS_MAX", "", "ZoneFileTooLarge"),
        ("a zone file", "rest.limits:ZONE_FILE_BYTES_MAX", "bytes", "ZoneFileTooLarge"),
        (
            "items that an undo or restore changes",
            "usecases.limits:RESTORED_ITEMS_MAX",
            "",
            "TooMuchToRestore",
        ),
        ("name servers of an account", "usecases.limits:CUSTOM_NAMESERVERS_MAX", "", "TooManyNameservers"),
        ("TSIG keys of an account", "usecases.limits:TSIG_KEYS_MAX", "", "TooManyTsigs"),
        (
            "uploaded certificates of a zone",
            "usecases.limits:CUSTOM_CERTIFICATES_MAX",
            "",
            "TooManyCertificates",
        ),
        ("ordered certificates of a zone", "usecases.limits:PACKS_MAX", "", "TooManyCertificates"),
        (
            "certificates for a zone's origins",
            "usecases.limits:ORIGIN_CERTIFICATES_MAX",
            "",
            "TooManyCertificates",
        ),
        ("the same, revoked and not ended", "usecases.limits:ORIGIN_REVOKED_MAX", "", "OriginRequestRefused"),
    ),
    "Rules": (
        ("rules of a ruleset", "usecases.limits:RULES_PER_RULESET_MAX", "", "TooManyRules"),
        ("regular expressions of a ruleset", "usecases.limits:REGEXES_PER_RULESET_MAX", "", "TooManyRegexes"),
        ("a ruleset as JSON", "usecases.limits:RULESET_OCTETS_MAX", "octets", "RulesetTooLarge"),
        (
            "custom rulesets of an account in a phase",
            "usecases.limits:CUSTOM_RULESETS_MAX",
            "",
            "RulesetExists",
        ),
        ("a rule's description", "usecases.limits:DESCRIPTION_CHARACTERS_MAX", "characters", "ValueRefused"),
        (
            "a response that a rule answers",
            "usecases.limits:RESPONSE_CHARACTERS_MAX",
            "characters",
            "ValueRefused",
        ),
    ),
    "Tokens and people": (
        ("tokens of a user", "usecases.limits:TOKENS_PER_USER_MAX", "", "TokenQuota"),
        ("tokens of an account", "usecases.limits:TOKENS_PER_ACCOUNT_MAX", "", "TokenQuota"),
        (
            "tokens in a line, each made by the one before",
            "usecases.limits:TOKEN_LINEAGE_MAX",
            "",
            "LineageTooLong",
        ),
        ("policies of a token", "usecases.limits:TOKEN_POLICIES_MAX", "", "TokenPoliciesRefused"),
        ("resources of a token", "usecases.limits:TOKEN_RESOURCES_MAX", "", "TokenPoliciesRefused"),
        ("addresses of a token", "usecases.limits:TOKEN_ADDRESSES_MAX", "", "TokenConditionRefused"),
        ("accounts of a server", "usecases.limits:ACCOUNTS_MAX", "", "AccountQuota"),
        ("members of an account", "usecases.limits:MEMBERS_PER_ACCOUNT_MAX", "", "MemberQuota"),
    ),
    "Values": (
        ("a key", "model.kv:KEY_BYTES_MAX", "bytes", "KeyTooLong"),
        ("a value", "model.kv:VALUE_BYTES_MAX", "bytes", "ValueTooLarge"),
        ("a key's metadata", "model.kv:METADATA_BYTES_MAX", "bytes of JSON", "MetadataTooLarge"),
        ("the time until a key expires, at least", "model.kv:TTL_SECONDS_MIN", "seconds", "TtlInvalid"),
        ("pairs of a bulk write", "model.kv:BULK_PAIRS_MAX", "", "KvBodyInvalid"),
        ("the body of a bulk write", "model.kv:BULK_BYTES_MAX", "bytes", "BodyTooLarge"),
        (
            "an item of a bulk write, without its strings of more than 256 KiB",
            "usecases.kv.values:ITEM_BYTES_MAX",
            "bytes",
            "BulkItemInvalid",
        ),
        ("keys of a bulk read", "model.kv:BULK_GET_KEYS_MAX", "", "KvBodyInvalid"),
        ("a namespace's title", "model.kv:TITLE_CHARACTERS_MAX", "characters", "TitleInvalid"),
        ("namespaces of an account", "model.kv:NAMESPACES_PER_ACCOUNT_MAX", "", "TooManyNamespaces"),
    ),
    "Objects": (
        ("a key", "objects.limits:KEY_BYTES_MAX", "bytes", "`LimitError` in the class"),
        ("a value, encoded", "objects.limits:VALUE_BYTES_MAX", "bytes", "`LimitError` in the class"),
        ("keys of one get, put or delete", "objects.limits:PAIRS_MAX", "", "`LimitError` in the class"),
        ("arguments or the result of a call", "objects.limits:MESSAGE_BYTES_MAX", "bytes", "CallTooLarge"),
        ("a SQL statement", "objects.limits:SQL_BYTES_MAX", "bytes", "`SqlError` in the class"),
        (
            "a SQL statement's time",
            "objects.limits:STATEMENT_SECONDS_MAX",
            "seconds",
            "`SqlError` in the class",
        ),
    ),
    "Requests": (
        (
            "the body of a request, where no route takes more",
            "rest.limits:BODY_BYTES_MAX",
            "bytes",
            "BodyTooLarge",
        ),
        ("arrays and objects of JSON in one another", "rest.limits:JSON_DEPTH_MAX", "", "InvalidBody"),
        ("values of JSON in a body", "rest.limits:JSON_VALUES_MAX", "", "InvalidBody"),
        ("parameters of a query", "rest.limits:QUERY_PARAMETERS_MAX", "", "InvalidQuery"),
        (
            "the time from headers to the end of the body",
            "rest.limits:BODY_SECONDS_MAX",
            "seconds",
            "BodyTooSlow",
        ),
        ("a request's line and headers", "http1.limits:HEAD_BYTES_MAX", "bytes", "HeadTooLarge"),
    ),
}
# Bounds that an operator chooses: the setting has the number.
CHOSEN = (
    ("zones of an account", "quota-zones", "ZoneQuota"),
    ("records of a zone", "quota-zone-records", "RecordQuota"),
    ("values of an account", "quota-account-kv-mib", "SpaceQuota"),
    ("values of a namespace", "quota-namespace-kv-mib", "SpaceQuota"),
    ("requests of a user in five minutes", "api-quota", "RateLimited"),
)

PACKAGE = Path(edgestead.__file__).parent
TOOLS = {"cli", "testing"}  # what they limit is their own reading


class Limit(NamedTuple):
    """A number that bounds something, with its comment. `module` is its place within the room."""

    room: str
    module: str
    name: str
    value: float
    words: str

    @property
    def heading(self) -> str:
        return f"{self.module}.{self.name}" if self.module else self.name


def limits() -> Iterator[Limit]:
    """Every public number of the rooms' `limits.py`, and every other one that says that it is a limit."""
    for path in sorted(PACKAGE.rglob("*.py")):
        room, *module = path.relative_to(PACKAGE).with_suffix("").parts
        if room not in TOOLS:
            lines = path.read_text().splitlines()
            body = ast.parse("\n".join(lines)).body
            for node, following in zip(body, [*body[1:], ast.Pass()], strict=True):
                name = _assigned(node)
                if name and name.isupper() and (name.endswith(("_MAX", "_MIN")) or module[-1:] == ["limits"]):
                    value = getattr(import_module(".".join((edgestead.__name__, room, *module))), name)
                    if isinstance(value, int | float):
                        words = _comment(lines, node) or _text(following)
                        yield Limit(room, ".".join(module), name, value, words)


def _assigned(node: ast.stmt) -> str:
    targets = node.targets if isinstance(node, ast.Assign) else []
    target = node.target if isinstance(node, ast.AnnAssign) else targets[0] if len(targets) == 1 else None
    return target.id if isinstance(target, ast.Name) and not target.id.startswith("_") else ""


def _comment(lines: list[str], node: ast.stmt) -> str:
    """What stands behind the number, else the lines above it."""
    for line in lines[node.lineno - 1 : node.end_lineno]:
        if "  # " in line:
            return line.partition("  # ")[2]
    above: list[str] = []
    for line in reversed(lines[: node.lineno - 1]):
        if not line.startswith("# "):
            break
        above.insert(0, line.removeprefix("# "))
    return " ".join(above)


def _text(node: ast.stmt) -> str:
    """What a text that stands alone below the number says."""
    if (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ):
        return " ".join(node.value.value.split())
    return ""


def _budgets() -> list[str]:
    return [
        "## What one peer may cost\n",
        "The budgets of connections, addresses (an IPv6 one is its network of 64 bits), credentials, zones",
        "and objects, and of all of them in one process. What is over a budget is refused, counted in",
        "`edge_budget_refused_total` under its name, and told in the log. Why these numbers:",
        "[0032](../design/0032-budgets.md).\n",
        "Each process keeps accounts of its own: what is of one address, credentials or zone here is that",
        "of one process, so an address that reaches four edge processes may have four times as much, and a",
        "cluster has them at each node. The quota of requests (`api-quota`) and passwords are control's",
        "alone; an object is in one process, so its budgets are whole.\n",
        "Time of the processor has no budget. It is shared by turns between addresses",
        "([0037](../design/0037-turns.md)), not between tokens or zones: many requests of one token, or for",
        "one zone, that come from many addresses have as many shares. These are bounded by how many wait",
        "(`credentials_requests`, `zone_writes`), by `api-quota`, and for the rules of a zone by the work of",
        "each inspection (`edge_inspection_work`).\n",
        "| budget | of one | resource | at most | over it | why |",
        "|---|---|---|---|---|---|",
        *(_row(budget) for budget in BUDGETS),
        "",
    ]


def _row(budget: Budget) -> str:
    setting = f" ([`{budget.setting}`](configuration.md#{budget.setting}))" if budget.setting else ""
    most = f"{budget.limit:,} {budget.unit}" if budget.limit else f"no limit of {budget.unit}"
    cells = (
        f"`{budget.name}`",
        budget.subject.value,
        budget.resource.value,
        most + setting,
        budget.answer,
        budget.why,
    )
    return f"| {' | '.join(cells)} |"


def _met() -> Iterator[str]:
    for subject, rows in MET.items():
        yield f"## {subject}\n"
        yield "| of | at most | what is more is answered |"
        yield "|---|---|---|"
        for words, constant, unit, refusal in rows:
            yield f"| {words} | {f'{value_of(constant):,.15g} {unit}'.strip()} | {_answer(refusal)} |"
        yield ""
    yield "## What an operator bounds\n"
    yield "| of | setting | what is more is answered |"
    yield "|---|---|---|"
    for words, setting, refusal in CHOSEN:
        yield f"| {words} | [`{setting}`](configuration.md#{setting}) | {_answer(refusal)} |"
    yield ""


def value_of(constant: str) -> float:
    """The number of `module:NAME`."""
    module, _, name = constant.partition(":")
    found: float = getattr(import_module(f"{edgestead.__name__}.{module}"), name)
    return found


def refusal_of(name: str) -> type[EdgeError] | None:
    """The class of a refusal, None: the row says it in words."""
    for module in walk_packages(refusals.__path__, f"{refusals.__name__}."):
        found = getattr(import_module(module.name), name, None)
        if isinstance(found, type) and issubclass(found, EdgeError):
            return found
    assert " " in name, f"there is no refusal {name}"
    return None


def _answer(refusal: str) -> str:
    found = refusal_of(refusal)
    return refusal if found is None else f"{found.status}, [{found.code}](errors.md#{found.code})"


def page() -> str:
    """docs/reference/limits.md: what people meet, with its error; then the budgets."""
    return "\n".join(
        [
            "# Limits\n",
            "<!-- Written by docs/generate.py; change the code instead. -->\n",
            "What a user can meet, with what is answered then. Everything else from outside has a limit,",
            "too: the numbers with their reasons stand in the `limits.py` of each room of the sources. How",
            "much a page of a list may hold is said at its [route](routes.md).\n",
            *_met(),
            *_budgets(),
        ]
    )
