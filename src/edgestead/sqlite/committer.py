"""What makes a group of writes durable elsewhere before it is committed here.

Owns  the seam between the writer and a log, and that there is none.
Not   the log (`sqlite.logged`).
"""


class NoLog:
    """A commit is durable by the disk of this machine alone. Called on the writer's thread."""

    def begin(self) -> None:
        """A transaction is about to begin. Raises NotLeader: none may."""

    def append(self, feed_upto: int) -> None:
        """Make the open transaction durable; it is committed next. `feed_upto` is the feed's newest sequence.

        Raises NotLeader, Unknown, or another error of storage: then the transaction is undone.
        """

    def committed(self) -> None:
        """The transaction is committed."""

    def undone(self) -> bool:
        """The transaction, or what was left of it, was undone; returns whether the log has it still."""
        return False
