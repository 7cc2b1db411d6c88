"""Everything that a simulated node has stored, at one moment.

Owns  `Snapshot`: contents of files and namespaces, and what the clock said.
Not   what is in memory: a snapshot is what a process that starts finds.
"""

from typing import NamedTuple

from edgestead.testing.disks import Inode, SimulatedDisk
from edgestead.testing.namespaces import Contents

_TEMPORARY = "/temporary/"


class Snapshot(NamedTuple):
    """Plain data that nothing changes: one may begin any number of nodes, also of later classes."""

    files: dict[str, bytes]
    namespaces: Contents
    time_us: int

    @classmethod
    def of(cls, disk: SimulatedDisk, namespaces: Contents, time_us: int) -> "Snapshot":
        """What a disk and namespaces hold now."""
        kept = {
            path: bytes(inode.data)
            for path, inode in disk.inodes.items()
            if not path.startswith(_TEMPORARY) and path not in disk.locks
        }
        return cls(kept, namespaces, time_us)

    def put_back(self, disk: SimulatedDisk) -> None:
        """Make a disk hold this and nothing else, durably."""
        disk.inodes = {}
        for path, data in self.files.items():
            inode = disk.inodes[path] = Inode()
            inode.data, inode.durable = bytearray(data), data
        disk.durable_names = dict(disk.inodes)
        disk.restart()
