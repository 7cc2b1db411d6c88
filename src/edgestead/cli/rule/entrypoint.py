"""The ruleset of a phase of a zone or account, which is there from the phase's first rule on.

Owns  whether there is one, making it, and a further rule in it.
Not   which zone or account (`cli.rule.target`). Imports click and the standard library only.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from edgestead.cli.failure import changed_meanwhile
from edgestead.cli.rule.target import Target
from edgestead.cli.target import Json

if TYPE_CHECKING:
    from edgestead.cli.http import Api

_NAME = "default"  # as the server calls one that it makes by itself
_EXISTS = 20217


class Begun(Exception):
    """Somebody else has made the phase's ruleset meanwhile."""

    def __init__(self, ruleset: Json) -> None:
        super().__init__(ruleset["id"])
        self.ruleset = ruleset


def ruleset_at(server: "Api", path: str) -> Json | None:
    """A ruleset with its rules; None while there is none."""
    from edgestead.cli.http import Refused

    try:
        found: Json = server.call("GET", path)["result"]
    except Refused as refusal:
        if refusal.status != 404:
            raise
        return None
    return found


def begin(
    server: "Api", path: str, kind: str, phase: str, rules: Sequence[Json], query: Json | None = None
) -> Json:
    """The ruleset of a phase that had none, among the rulesets at `path`. Raises Begun, Refused.

    It never takes the place of what somebody else began with meanwhile: that would go without a word.
    """
    from edgestead.cli.http import Refused, segment

    body = {"name": _NAME, "kind": kind, "phase": phase, "rules": rules}
    try:
        return _post(server, path, body, query)
    except Refused as refusal:
        # The code is also that of too many rules.
        entrypoint = f"{path}/phases/{segment(phase)}/entrypoint"
        there = ruleset_at(server, entrypoint) if _EXISTS in refusal.codes else None
        if there is None:
            raise
    raise Begun(there)


def add_rule(
    target: Target,
    phase: str,
    before: Json | None,
    rule: Json,
    place: Json,
    query: Json | None = None,
    *,
    rivals: Callable[[Json], bool] = lambda other: False,
) -> tuple[Json, Json]:
    """The ruleset, which was `before`, with one more rule; and that rule. A phase's first makes the ruleset.

    Raises Refused; Failed: a rule that `rivals` the new one is there already.
    """
    after: Json = {}
    if before is None:
        try:
            after = begin(target.api, target.path, target.kind, phase, [rule], query)
        except Begun as begun:
            before = begun.ruleset
    known = {one["id"] for one in (before or {}).get("rules", ())}
    if before is not None:
        if any(map(rivals, before.get("rules", ()))):
            raise changed_meanwhile(f"The phase {phase} of {target.name}")
        after = _post(target.api, f"{target.path}/{before['id']}/rules", rule | place, query)
    return after, next((one for one in after.get("rules", ()) if one["id"] not in known), rule)


def _post(server: "Api", path: str, body: Json, query: Json | None) -> Json:
    """A dry run answers nothing."""
    return server.call("POST", path, query=query, json_body=body, repeat=False)["result"] or {}
