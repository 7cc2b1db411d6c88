"""What a write does to the room on the disk.

Owns  the three kinds of writes.
Not   how much room there is.
"""

import enum


class Adds(enum.Enum):
    MUCH = "room on the disk"
    VALUES = "small values: what deleted ones left in their database will do"
    NOTHING = "it frees some, or takes rights away"
