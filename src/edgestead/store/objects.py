"""All that one process stores its objects with.

Owns  what belongs together: one log, the past of the same objects, their alarms, the room for all of it.
Not   opening and closing it, which takes an implementation.
"""

from typing import NamedTuple

from edgestead.store.alarms import Alarms
from edgestead.store.files import Room
from edgestead.store.objectlog import Log
from edgestead.store.past import Past


class ObjectStore(NamedTuple):
    log: Log
    past: Past
    alarms: Alarms
    room: Room
