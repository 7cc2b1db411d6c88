"""Writes to a control store as fast as it can, and says what was acknowledged, until it is killed.

Run as `python store_writer.py DATABASE ROUND`. Each line of the standard output is one acknowledged write:
`KEY VALUE SEQUENCE`. A key belongs to one thread, and its values grow; value 0 means deleted.
"""

import os
import sys
import threading
from itertools import count
from pathlib import Path
from random import Random

from edgestead.model.refusals import BadRequest
from edgestead.sqlite.control import SqliteControlStore
from tests.crash.store_state import MIGRATIONS, put, remove

THREADS = 8
KEYS = 20  # of one thread


def refused(tx):
    put(tx, "refused", 1)
    raise BadRequest(reason="no")


def work(store, number, round_):
    random = Random(f"{number} {round_}")
    for step in count(1):
        key = f"{number}-{random.randrange(KEYS)}"
        value = 0 if random.random() < 0.2 else round_ * 1_000_000 + step
        done = store.write(lambda tx: remove(tx, key) if value == 0 else put(tx, key, value))  # noqa: B023
        if random.random() < 0.1:
            assert isinstance(store.write(refused).exception(), BadRequest)
        os.write(1, f"{key} {value} {done.result().sequence}\n".encode())


def main(path, round_):
    store = SqliteControlStore(Path(path), MIGRATIONS)
    for number in range(THREADS):
        threading.Thread(target=work, args=(store, number, int(round_))).start()


if __name__ == "__main__":
    main(*sys.argv[1:])
