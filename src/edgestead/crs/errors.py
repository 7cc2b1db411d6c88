"""The refusals of this room.

Owns  `RuleError`, with file and line, and `RulesUnreadable` for rule sets that cannot be loaded or are
      missing.
Not   the REST API: these errors never reach a client.
"""

SHOWN_CHARS_MAX = 60  # of what a message quotes


def shown(text: str) -> str:
    """Text from a rule file as a refusal quotes it: printable and short."""
    return repr(text if len(text) <= SHOWN_CHARS_MAX else text[:SHOWN_CHARS_MAX] + "…")


class RuleError(ValueError):
    """Rule text that cannot be parsed. Prints as ``file:line: reason``."""

    def __init__(self, file: str, line: int, reason: str) -> None:
        self.file = file
        self.line = line
        self.reason = reason
        super().__init__(f"{file}:{line}: {reason}")


class RulesUnreadable(OSError):
    """A folder or archive without usable rules; the text names the path and the cause."""


class RulesMissing(RulesUnreadable):
    """No path was given, and the system has no rule set installed: not an error of the operator."""
