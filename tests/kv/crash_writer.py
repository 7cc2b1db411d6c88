"""A process that writes under load until it is killed; each acknowledged write is a line on stdout.

Run as a program by test_kv_crash: FOLDER ROUND. Several threads write small and large values, replace and
delete them, and write in bulk; a line is printed only after the store's future has resolved.
"""

import sys
import threading
from itertools import count
from pathlib import Path

from edgestead.sqlite.kv import SqliteKvStore
from edgestead.store.kv import INLINE_BYTES_MAX, Incoming, Pair

NAMESPACE = "c" * 32
THREADS = 4
KEYS_PER_THREAD = 5

say_lock = threading.Lock()


def content_of(turn: int) -> bytes:
    """Every third one is large. The text says which write it was."""
    text = b"%d " % turn
    return text * ((INLINE_BYTES_MAX // len(text) + 1) if turn % 3 == 0 else 1)


def say(*words: object) -> None:
    with say_lock:
        sys.stdout.write(" ".join(map(str, words)) + "\n")
        sys.stdout.flush()


def pair(store: SqliteKvStore, key: str, turn: int) -> Pair:
    incoming = Incoming(store.blobs)
    incoming.write(content_of(turn))
    return Pair(key, incoming.finish())


def work(store: SqliteKvStore, thread: int, first_turn: int) -> None:
    for turn in count(first_turn):
        key = f"t{thread}-{turn % KEYS_PER_THREAD}"
        say("begin", key, turn)
        if turn % 7 == 6:
            store.delete(NAMESPACE, [key]).result()
            say("deleted", key, turn)
        else:
            store.put(NAMESPACE, [pair(store, key, turn), Pair(f"{key}-twin", b"%d" % turn)]).result()
            say("written", key, turn)


def main() -> None:
    store = SqliteKvStore(Path(sys.argv[1]))
    first_turn = int(sys.argv[2]) * 1_000_000
    for thread in range(THREADS):
        threading.Thread(target=work, args=(store, thread, first_turn), daemon=True).start()
    threading.Event().wait()


if __name__ == "__main__":
    main()
