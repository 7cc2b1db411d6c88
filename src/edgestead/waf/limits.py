"""How much of a request is looked at, and how much work it may cost.

Owns  every named limit of the room, with its unit; the meter of work.
Asks  `transaction` for the refusal.
Tells collections, bodies, engine.
Not   what happens over a limit: the module that meets it says so in its docstring.
"""

from .transaction import Refused

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

# What it may cost. A unit of work is about one byte looked at by one pattern or transformation, and ten to a
# hundred units are a microsecond.
STEP_UNITS = 50_000  # about a millisecond: after so much the inspection gives way
WORK_UNITS_MAX = 20_000_000  # one request; over it the request is refused
LATE_WORK_UNITS_MAX = 100_000_000  # later parts of an upload, all together: each is seen with the head again
RESPONSE_WORK_UNITS_MAX = 100_000_000  # one answer, beside its request: every rule may read all of its body


class Meter:
    """What one request has cost so far, in units of work."""

    __slots__ = ("budget", "units")

    def __init__(self, budget: int = WORK_UNITS_MAX) -> None:
        self.units = 0
        self.budget = budget

    def spend(self, units: int) -> None:
        """Raises: Refused when the budget is used up."""
        self.units += units
        if self.units > self.budget:
            raise Refused("work", 403)
