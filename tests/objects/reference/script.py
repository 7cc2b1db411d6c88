"""What a script for both subjects is made of.

A step is `[operation, *arguments]`, as the camelCase names of storage have it. `txn.` and `kept.` address
the transaction in progress and one that is over; `sql…` are in both subjects. `differs(step, reason)` marks a
step whose outcomes are not the same.
"""

from typing import Any

Steps = list[Any]


class Differs(list[Any]):
    """A step with another outcome here than there."""

    reason: str


def differs(step: Steps, reason: str) -> Differs:
    marked = Differs(step)
    marked.reason = reason
    return marked


# What docs/differences.md says of each reason, word for word.
REASONS = {
    "limits": "limits of keys, values and pairs hold on both backends",
    "types": "keys, options, queries and bindings of a wrong type are a `TypeError`",
    "options": "an option that a method does not take is a `TypeError`",
    "numbers": "int and float stay apart in SQL, and an int keeps its 64 bits",
    "booleans": "a bool is bound to SQL as 0 or 1",
    "moments": "a time that is no moment, and an int of more than 64 bits, are refused as beyond a limit",
    "past": "an alarm at or before 1970 is soon, as every time that is past",
    "raw": "`raw()` has `one()` too",
    "comments": "a comment behind the last statement is no statement",
    "modules": "rtree and geopoly tables may be made",
    "async": "an async callback of `transaction_sync` is a `TypeError`",
    "hidden": "`dbstat` is refused, not unknown",
    "counters": "`rows_read` and `rows_written` are lower bounds",
}


def outcomes_of(steps: Steps) -> list[Steps]:
    """The steps in the order in which their outcomes are logged: inner ones first, none behind a throw."""
    ended: list[Steps] = []
    for step in steps:
        if step[0] == "throw":
            break
        if step[0] in ("transaction", "transactionSync"):
            ended += outcomes_of(step[1])
        ended.append(step)
    return ended
