"""A ruleset as it travels to the processes that enforce it.

Owns  the shape of the feed's documents of kind `ruleset`, and their bytes.
Not   what a rule means.

The scope of a document is the zone's or account's id, its key the ruleset's id. A version that a rule
executes by its number has a document too, with `pinned_key`. It holds what the rules are compiled from, as
the API answers it, and nothing derived: the edge compiles expressions and resolves `execute` by itself.
Managed rulesets are not in the feed: each process reads the rule files.
"""

import msgspec

KIND_RULESET = "ruleset"


class RulesetDocument(msgspec.Struct, frozen=True):
    """`rules` is the JSON array of the API, disabled rules included."""

    id: str
    kind: str
    phase: str
    version: str
    rules: msgspec.Raw


def pinned_key(ruleset_id: str, version: int | str) -> str:
    """The key of one version's document. No ruleset's id has an @."""
    return f"{ruleset_id}@{version}"


encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(RulesetDocument).decode
