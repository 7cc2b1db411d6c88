"""The ruleset of a phase of a zone or account, which is there from the phase's first rule on.

Owns  whether there is one.
Not   which zone or account (`cli.rule.target`). Imports click and the standard library only.
"""

from typing import TYPE_CHECKING

from edgestead.cli.target import Json

if TYPE_CHECKING:
    from edgestead.cli.http import Api


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
