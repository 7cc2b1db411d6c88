"""The managed ruleset of this machine.

Owns  what happens when there is no rule set, or one that is not understood.
Not   reading rules.
"""

import logging
from pathlib import Path

from edgestead.crs import ANOMALY_RULE_ID, RULESET_ID, RulesMissing, RulesUnreadable
from edgestead.crs.loader import SYSTEM_RULES, SYSTEM_SETUP
from edgestead.server.errors import StartError
from edgestead.usecases.ruleset.managed import HOW_TO_LOAD, ManagedRuleset, load_managed
from edgestead.waf.terms import libinjection

_log = logging.getLogger(__name__)


def load(
    path: str | None, *, ruleset_id: str | None = None, anomaly_rule_id: str | None = None
) -> ManagedRuleset | None:
    """The rule set at `path`, or the system's; None where the system has none that can be used.

    An upgrade of the system's package must not take DNS away, so a rule set that nobody named and that cannot
    be used is an error in the log and no reason not to start.

    Raises StartError: somebody named a path, and what is there cannot be used.
    """
    try:
        return load_managed(
            None if path is None else Path(path),
            ruleset_id=ruleset_id or RULESET_ID,
            anomaly_rule_id=anomaly_rule_id or ANOMALY_RULE_ID,
            remarks=tuple(filter(None, [libinjection.state()])),
        )
    except RulesMissing as error:
        _log.warning("no managed ruleset: %s. To have one, %s", error, HOW_TO_LOAD)
    except (RulesUnreadable, ValueError) as error:
        if path is not None:
            raise StartError(f"--crs: {error}") from None
        _log.error(
            "no managed ruleset: the rule set in %s, with its setup in %s, cannot be used: %s."
            " Mend that file, or start the server with another rule set, --crs PATH",
            SYSTEM_RULES,
            SYSTEM_SETUP,
            error,
        )
    return None
