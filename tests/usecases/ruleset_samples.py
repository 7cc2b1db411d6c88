"""A managed ruleset small enough to know by heart, and rules for every phase."""

from edgestead.crs import ANOMALY_RULE_ID, RULESET_ID, Catalogue, Entry
from edgestead.usecases.ruleset.managed import ManagedRuleset

MANAGED_US = 1_700_000_000_000_000
MANAGED_PHASE = "http_request_firewall_managed"
CUSTOM_PHASE = "http_request_firewall_custom"


def scoring(number: int, level: int, increment: int, *tags: str) -> Entry:
    return Entry(
        id=f"{number:032x}",
        version="7",
        action="score",
        description=f"{number}: Sample",
        crs_id=number,
        categories=(f"paranoia-level-{level}", *tags),
        increment=increment,
        paranoia_level=level,
    )


ENTRIES = (
    scoring(942100, 1, 5, "attack-sqli"),
    scoring(942200, 2, 3, "attack-sqli"),
    scoring(941300, 3, 4, "attack-xss"),
    scoring(920400, 4, 2, "attack-protocol"),
)
ANOMALY = Entry(
    id=ANOMALY_RULE_ID,
    version="7",
    action="block",
    description="949110: Inbound Anomaly Score Exceeded",
    crs_id=949110,
    score_threshold=40,
)
MANAGED = ManagedRuleset(
    Catalogue(
        id=RULESET_ID,
        name="Edgestead OWASP Core Ruleset",
        description="OWASP Core Rule Set 3.9",
        version="7",
        entries=(*ENTRIES, ANOMALY),
    ),
    MANAGED_US,
)


def block(expression: str = 'http.host eq "a.example.com"', **more: object) -> dict[str, object]:
    """A rule of the custom phase."""
    return {"action": "block", "expression": expression, **more}


def skip(**parameters: object) -> dict[str, object]:
    return {"action": "skip", "expression": "true", "action_parameters": parameters}


def execute(ruleset_id: str = RULESET_ID, **parameters: object) -> dict[str, object]:
    return {"action": "execute", "expression": "true", "action_parameters": {"id": ruleset_id, **parameters}}
