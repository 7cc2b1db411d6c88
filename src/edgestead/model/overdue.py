"""How long one piece of code may keep a process from everything else.

Owns  the rule, and what one look counts, for those who watch a process from inside and from outside.
Not   when they look, what the kernel knows; whose code it is.

Two times are counted: the process's own, which leaves out what it waited for a processor or a disk, and the
time that has passed for others. On an idle machine they are the same. On a busy one own time alone would let
others wait for ten times the limit and more, and passed time alone would blame who was not let run.

                  own time     < limit / OWN_PART     < limit         >= limit
    passed time
    < PASSED_TIMES × limit     goes on                goes on         OVER
    longer, nobody waits       goes on                goes on         OVER
    longer, somebody waits     goes on                OVER            OVER

So who takes less than an eighth of the limit is never blamed, however busy the machine is; and who computes
without end is over after twice the limit wherever a process gets a sixteenth of a processor or more.
"""

from typing import Final

OWN_PART: Final = 8
PASSED_TIMES: Final = 2
LATE_TIMES: Final = 2


def counted(usual_seconds: float, elapsed_seconds: float, waited_seconds: float) -> tuple[float, float]:
    """Own and passed seconds of one look, of which so many the process waited for a processor.

    Whatever time went by, a look is worth its usual time at most, and passed time LATE_TIMES of that:
    watchers stand still, too, when a machine sleeps. What was waited for is taken from all of the time of a
    late look: else nothing would be left on a busy machine, as if the process had never run.
    """
    own = min(usual_seconds, max(0.0, elapsed_seconds - waited_seconds))
    return own, min(elapsed_seconds, LATE_TIMES * usual_seconds)


def is_over(own_seconds: float, passed_seconds: float, limit_seconds: float, *, somebody_waits: bool) -> bool:
    """Whether it has had its time."""
    if own_seconds >= limit_seconds:
        return True
    has_passed = passed_seconds >= PASSED_TIMES * limit_seconds
    return somebody_waits and has_passed and OWN_PART * own_seconds >= limit_seconds
