"""The storage of one process's objects.

Owns  the parts of it: one log, the past of its objects, their alarms, the disk space for all of it.
Not   opening and closing it: that is up to an implementation.
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
