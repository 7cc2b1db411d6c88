"""The form of what objects processes of a cluster say to one another: two releases understand each other.

Owns  which forms this release reads; in which one it writes to a process.
Not   what a form looks like (`objects.runtime.spread`).

A process says its newest form in its row. What goes to another one is in the newest form that both know; a
release reads that of the release before, so nodes are upgraded one by one. What lies further apart is
refused in words on whichever end notices, before anything has run.

A new form: raise `newest`, write the former one to who knows no other, and raise `oldest` a release later.
"""

from typing import Final, NamedTuple


class Forms(NamedTuple):
    oldest: int
    newest: int

    def for_other(self, newest: int) -> int | None:
        """The form to write to a process whose newest that is; None: there is none that both know."""
        form = min(self.newest, newest)
        return form if form >= self.oldest else None

    def refusal(self, form: int) -> str:
        """Why something in a form is not read; "" when it is."""
        if form > self.newest:
            return (
                f"The call is of a newer release (form {form}, here up to {self.newest}): upgrade this node."
            )
        if form < self.oldest:
            return (
                f"The call is of an older release (form {form}, here from {self.oldest}): upgrade that node."
            )
        return ""


FORMS: Final = Forms(1, 1)
