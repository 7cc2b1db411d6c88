"""Loaded behind the examples: what a test cannot wait for is shorter, and slots move faster."""

import sys

from edgestead import StatefulObject
from edgestead.cluster import slots

sys.modules["edgestead_objects_work_queue"].LEASE_SECONDS = 3  # type: ignore[attr-defined]
slots.GIVE_MS, slots.GIVING_MAX = 1, 64  # type: ignore[misc]  # 32 a second is for objects that are large and many


class Nothing(StatefulObject):
    """A file of objects has one."""
