"""Paths and bodies of rulesets, as their tests write them."""

from tests.support.api import CREDENTIALS
from tests.usecases.ruleset_samples import CUSTOM_PHASE

ACCOUNT = f"/accounts/{CREDENTIALS.account_id}/rulesets"
NO_ID = "f" * 32


def new(kind: str, **more: object) -> dict[str, object]:
    """The body of a POST."""
    return {"name": "mine", "kind": kind, "phase": CUSTOM_PHASE, **more}


def entrypoint_of(rulesets: str, phase: str = CUSTOM_PHASE) -> str:
    """The path of a phase's entry point below a path of rulesets."""
    return f"{rulesets}/phases/{phase}/entrypoint"
