"""The managed OWASP ruleset as the API shows it: one entry per scoring rule, the anomaly rule last.

Owns  ids, increments, categories and descriptions of the entries.
Not   JSON (`rest`), overrides (`usecases`), running rules (`waf`).

An entry stands for a rule of a request phase that adds to the inbound anomaly score. Initialisation, paranoia
gates and response rules have none: they cannot be configured.

Source: docs/explanation/crs.md; CRS severities and scores as in the setup file of the rule set.
"""

from hashlib import blake2s

import msgspec

from edgestead.crs.rules import Program, Rule, Severity

RULESET_ID = "4814384a9e5d4991b9815dcfc25d2f1f"
ANOMALY_RULE_ID = "6179ae15870a4bb7b2d480d4843b323c"
NAME = "Edgestead OWASP Core Ruleset"
ANOMALY_DESCRIPTION = "949110: Inbound Anomaly Score Exceeded"
THRESHOLD_DEFAULT = 40  # "medium"; the rule set's own default of 5 is for per-variable scoring
PARANOIA_LEVELS = (1, 2, 3, 4)
INCREMENTS = {  # the rule set itself only uses critical to notice
    Severity.EMERGENCY: 5,
    Severity.ALERT: 5,
    Severity.CRITICAL: 5,
    Severity.ERROR: 4,
    Severity.WARNING: 3,
    Severity.NOTICE: 2,
    Severity.INFO: 2,
    Severity.DEBUG: 2,
}
_SCORE_KEYS = ("anomaly_score_pl", "inbound_anomaly_score_pl")  # 3.x, 4.x
_OUTBOUND_KEYS = ("outbound_anomaly_score_pl",)
_CATEGORY_CHARS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
_PARANOIA_TAG = "paranoia-level/"


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One rule of the managed ruleset.

    `increment` and `paranoia_level` are None for the anomaly rule, `score_threshold` for all others.
    `crs_id` is the rule's number in the rule set.
    """

    id: str
    version: str
    action: str
    description: str
    crs_id: int
    categories: tuple[str, ...] = ()
    increment: int | None = None
    paranoia_level: int | None = None
    score_threshold: int | None = None

    @property
    def ref(self) -> str:
        return self.id


class Catalogue(msgspec.Struct, frozen=True, kw_only=True):
    """The managed ruleset. `version` is digits, and grows with the release: 3.3.4 is 3003004."""

    id: str
    name: str
    description: str
    version: str
    entries: tuple[Entry, ...]

    @property
    def anomaly_rule(self) -> Entry:
        return self.entries[-1]

    @property
    def categories(self) -> frozenset[str]:
        """Every category that an override may name."""
        return frozenset(category for entry in self.entries for category in entry.categories)

    def by_id(self) -> dict[str, Entry]:
        return {entry.id: entry for entry in self.entries}


def build_catalogue(
    program: Program, *, ruleset_id: str = RULESET_ID, anomaly_rule_id: str = ANOMALY_RULE_ID
) -> Catalogue:
    """The catalogue of a program.

    An entry's id only depends on the rule's number, so overrides outlive an upgrade of the rule set.

    Raises: ValueError for a program without scoring rules, such as CRS before 3.1 or no CRS at all.
    """
    release = release_of(program)
    version = version_digits(release)
    entries = [_entry(rule, version) for rule in program.rules if scores(rule)]
    if not entries:
        raise ValueError("no rule adds to an anomaly score of its paranoia level: expected CRS 3.1 or later")
    entries.append(
        Entry(
            id=anomaly_rule_id,
            version=version,
            action="block",
            description=ANOMALY_DESCRIPTION,
            crs_id=949110,
            score_threshold=THRESHOLD_DEFAULT,
        )
    )
    return Catalogue(
        id=ruleset_id,
        name=NAME,
        description=f"OWASP Core Rule Set {release}".rstrip(),
        version=version,
        entries=tuple(entries),
    )


def entry_id(crs_id: int) -> str:
    """The 32 hexadecimal digits of a rule's number.

    >>> entry_id(942100)
    '151fbaf9260f7b1460d307d500451a52'
    """
    return blake2s(b"owasp crs rule %d" % crs_id, digest_size=16).hexdigest()


def release_of(program: Program) -> str:
    """``3.3.4`` from the component signature ``OWASP_CRS/3.3.4``; empty without one."""
    return program.signature.rpartition("/")[2]


def version_digits(release: str) -> str:
    """A release number as digits that sort like it; "1" for a rule set without one.

    >>> version_digits("4.28.0"), version_digits("4.29.0-dev"), version_digits("")
    ('4028000', '4029000', '1')
    """
    parts = [part if part.isdigit() else "0" for part in release.partition("-")[0].split(".")]
    if not release or len(parts) > 3:
        return "1"
    numbers = [int(part) for part in (*parts, "0", "0")[:3]]
    return str(numbers[0] * 1_000_000 + numbers[1] * 1_000 + numbers[2])


def scores(rule: Rule) -> bool:
    """Whether a match of the rule adds to the inbound anomaly score."""
    return rule.phase <= 2 and _score_level(rule) is not None


def paranoia_level(rule: Rule) -> int:
    """The rule's level: its tag, else the score it adds to (a few rules lack the tag), else 1."""
    for tag in rule.tags:
        if tag.startswith(_PARANOIA_TAG) and tag[len(_PARANOIA_TAG) :] in map(str, PARANOIA_LEVELS):
            return int(tag[len(_PARANOIA_TAG) :])
    return _score_level(rule) or 1


def outbound_increment(rule: Rule) -> int:
    """What a rule on answers adds to the outbound anomaly score; 0 for any other rule."""
    if rule.phase not in (3, 4) or _score_level(rule, _OUTBOUND_KEYS) is None:
        return 0
    return _increment(rule)


def _increment(rule: Rule) -> int:
    return INCREMENTS[Severity.CRITICAL if rule.severity is None else rule.severity]


def _score_level(rule: Rule, keys: tuple[str, ...] = _SCORE_KEYS) -> int | None:
    for link in rule.links:
        for change in link.set_vars:
            prefix, level = change.key[:-1].lower(), change.key[-1:]
            if change.op == "+" and prefix in keys and level.isdigit():
                return int(level)
    return None


def _entry(rule: Rule, version: str) -> Entry:
    level = paranoia_level(rule)
    words = (tag for tag in rule.tags if tag and _CATEGORY_CHARS.issuperset(tag))
    return Entry(
        id=entry_id(rule.id),
        version=version,
        action="score",
        description=f"{rule.id}: {_title(rule.message)}",
        crs_id=rule.id,
        categories=tuple(dict.fromkeys((f"paranoia-level-{level}", *words))),
        increment=_increment(rule),
        paranoia_level=level,
    )


def _title(message: str) -> str:
    """The message without its macros, which only a request fills."""
    kept = message
    while (start := kept.find("%{")) >= 0 and (end := kept.find("}", start)) >= 0:
        kept = kept[:start] + kept[end + 1 :]
    return " ".join(kept.replace("()", "").split())
