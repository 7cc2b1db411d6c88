"""How much of a request is looked at, and how much work it may cost.

Owns  every named limit of the room, with its unit; the meter of work.
Not   what happens over a limit: the module that meets it says so in its docstring.
"""

from collections.abc import Generator
from typing import Any, TypeVar

from edgestead.model.budgets.table import EDGE_INSPECTION_WORK
from edgestead.waf.transaction import Refused

T = TypeVar("T")

# What is read of a request. The defaults of ModSecurity's recommended configuration, where it has one.
BODY_BYTES_MAX = 131_072  # inspected body without files (SecRequestBodyNoFilesLimit); more is refused, 413
UPLOAD_BYTES_MAX = 1 << 20  # inspected prefix of multipart: file contents after it are not looked at
ARGUMENTS_MAX = 1_000  # arguments of query and body together (SecArgumentsLimit)
COOKIES_MAX = 256  # RFC 6265 §6.1 asks browsers for 50 of one domain
PARTS_MAX = 256  # parts of a multipart body
PART_HEADER_BYTES_MAX = 8_192  # headers of one part
BOUNDARY_BYTES_MAX = 70  # RFC 2046 §5.1.1
JSON_DEPTH_MAX = 64  # arrays and objects inside one another
XML_DEPTH_MAX = 64  # elements inside one another
XML_NODES_MAX = 10_000  # elements and attributes

# What may be kept of what was found.
HITS_MAX = 256  # rules named in a verdict; the score counts all
MATCHED_BYTES_MAX = 128  # of the matched part in a hit
TX_KEYS_MAX = 4_096  # variables that rules may set in one transaction
TX_VALUE_BYTES_MAX = 65_536  # of one of them
CAPTURES_MAX = 10  # TX:0 to TX:9
MACRO_BYTES_MAX = 65_536  # what one text with macros may expand to

# What it may cost. A unit of work is about one byte looked at by one pattern or transformation: 10 ns, on a
# quiet machine (`benchmarks/waf_portions.py` prints how near that is).
STEP_UNITS = 25_000  # a quarter of a millisecond: after so much the inspection gives way at its next chance
PORTION_UNITS_MAX = 300_000  # between two chances, counted for the worst; two milliseconds, as measured
PART_BYTES = 8_192  # of values that are transformed together; a larger value is taken in portions
PART_VALUES = 256  # the same, in values
SMALL_BYTES = 1_024  # values of no more are transformed in one go, under all chains
SLICE_BYTES = 8_192  # that are scanned at once
CALL_UNITS = 30  # of a function of Python, called for a value or an escape
WORK_UNITS_MAX = EDGE_INSPECTION_WORK.limit  # one request; over it the request is refused
TOO_MUCH_WORK = "work"  # the reason of a refusal over it
LATE_WORK_UNITS_MAX = 100_000_000  # later parts of an upload, all together: each is seen with the head again
RESPONSE_WORK_UNITS_MAX = 100_000_000  # one answer, without its request: every rule may read all of its body


def at_once(steps: Generator[Any, None, T]) -> T:
    """The result of steps, without yielding to other tasks."""
    try:
        while True:
            next(steps)
    except StopIteration as stop:
        outcome: T = stop.value
        return outcome


class Meter:
    """What one request has cost so far, in units of work, and how much of it since other tasks ran."""

    __slots__ = ("_beside", "_mark", "budget", "units")

    def __init__(self, budget: int = WORK_UNITS_MAX) -> None:
        self.units = 0
        self.budget = budget
        self._beside = 0
        self._mark = 0

    def spend(self, units: int) -> None:
        """Raises: Refused when the budget is used up."""
        self.units += units
        if self.units > self.budget:
            raise Refused(TOO_MUCH_WORK, EDGE_INSPECTION_WORK.status)

    def toil(self, units: int) -> None:
        """Work that counts for the portion alone, as the request's size bounds it anyway."""
        self._beside += units

    def toiling(self, steps: Generator[int, None, T]) -> Generator[None, None, T]:
        """Steps that tell the units of work of each portion; gives way between them."""
        while True:
            try:
                self.toil(next(steps))
            except StopIteration as stop:
                outcome: T = stop.value
                return outcome
            if self.is_due():
                yield

    def is_due(self) -> bool:
        """Whether to yield to other tasks; if so, the caller yields and a new portion begins."""
        done = self.units + self._beside
        if done - self._mark < STEP_UNITS:
            return False
        self._mark = done
        return True
