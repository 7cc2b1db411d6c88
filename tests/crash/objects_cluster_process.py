"""A process that appends numbers to lists in a cluster's database and prints each that was acknowledged.

python -m tests.crash.objects_cluster_process DSN FOLDER NUMBER
"""

import sys
import time
from functools import partial

import msgspec

from edgestead.cluster.placement import SLOTS
from edgestead.postgres.connection import Link
from edgestead.postgres.objectlog.log import PostgresObjectLog
from edgestead.sqlite.objectlog.files import LocalFiles
from edgestead.store.objectlog import UNCHANGED, LogError
from edgestead.store.runner import InlineRunner
from tests.store.contract.object_stores import acquired, keys, ref

NAMES = "abc"


class Owner:
    def __init__(self, number: int) -> None:
        self.number = number

    def owns(self, slot: int) -> bool:
        return True

    def may_answer(self) -> bool:
        return True


def tell(told: list[int], number: int, error: LogError | None) -> None:
    if error is None:
        told.append(number)


def main(dsn: str, folder: str, number: int) -> None:
    link = Link(dsn)
    link.run("DELETE FROM incarnations")
    link.run(
        "INSERT INTO incarnations (number, node, kind, address, renewed) VALUES (%b, 'a', 'objects', '', 0)",
        (number,),
    )
    log = PostgresObjectLog(
        dsn,
        folder,
        owner=Owner(number),
        files=LocalFiles(),
        writer=InlineRunner(),
        reader=InlineRunner(),
        upkeep=InlineRunner(),
        now_us=lambda: time.time_ns() // 1_000,
        fatal=lambda error: sys.exit(f"fatal: {error}"),
        base_bytes=2_000,
    )
    log.gained(range(SLOTS))
    leases = {name: acquired(log.store, ref(name)) for name in NAMES}
    lists = {
        name: msgspec.msgpack.decode(lease.tail.get("list") or b"\x90") for name, lease in leases.items()
    }
    sys.stdout.write("begins\n")
    sys.stdout.flush()
    step = number * 1_000_000
    while True:
        told: list[int] = []
        for name in NAMES:
            step += 1
            lists[name].append(step)
            commit = keys(list=msgspec.msgpack.encode(lists[name]))
            group = leases[name].append([commit], UNCHANGED)
            group.on_done(partial(tell, told, step))
        log.flush()
        sys.stdout.write(" ".join(map(str, told)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
