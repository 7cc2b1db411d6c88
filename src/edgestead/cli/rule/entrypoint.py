"""The ruleset of a phase of a zone or account, which is there from the phase's first rule on.

Owns  whether there is one, and a further rule in it.
Not   which zone or account (`cli.rule.target`). Imports click and the standard library only.
"""

from typing import TYPE_CHECKING

from edgestead.cli.rule.target import Target
from edgestead.cli.target import Json

if TYPE_CHECKING:
    from edgestead.cli.http import Api

_NAME = "default"  # as the server calls one that it makes by itself
_EXISTS = 20217


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


def add_rule(
    target: Target, phase: str, before: Json | None, rule: Json, place: Json, query: Json | None = None
) -> tuple[Json, Json]:
    """The ruleset, which was `before`, with one more rule; and that rule. Raises Refused.

    A phase's first rule makes the ruleset, and never takes the place of what somebody else began with
    meanwhile: that would go without a word.
    """
    from edgestead.cli.http import Refused

    if before is None:
        body = {"name": _NAME, "kind": target.kind, "phase": phase, "rules": [rule]}
        try:
            after = _post(target, target.path, body, query)
        except Refused as refusal:
            before = ruleset_at(target.api, target.entrypoint(phase)) if _EXISTS in refusal.codes else None
            if before is None:
                raise
    if before is not None:
        after = _post(target, f"{target.path}/{before['id']}/rules", rule | place, query)
    known = {one["id"] for one in (before or {}).get("rules", ())}
    return after, next((one for one in after.get("rules", ()) if one["id"] not in known), rule)


def _post(target: Target, path: str, body: Json, query: Json | None) -> Json:
    """A dry run answers nothing."""
    return target.api.call("POST", path, query=query, json_body=body, repeat=False)["result"] or {}
