"""What good objects feel of a bad class: `python benchmarks/objects_chaos.py [OBJECTS] [SECONDS]`.

Two runs of one server: calls of good objects alone, then with a class (`tests/crash/objects_chaos.py`) that
at random blocks, loops, allocates, exits, crashes, forks, floods its storage, one deed a second. The figures
are the p99 of both and their ratio (goal: 2), and the longest time that an object was unreachable (goal: the
block limit of a second, the tick that notices it, and one start from the spare process).
"""

import random
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from edgestead.testing.server import EdgeServer
from tests.crash.objects_chaos import ENDING, HARMLESS

SOURCE = str(Path(__file__).parents[1] / "tests" / "crash" / "objects_chaos.py")
CALLERS = 4
BETWEEN_DEEDS_SECONDS = 1.0


def call(server: EdgeServer, name: str) -> tuple[float, int]:
    """Milliseconds until the object answered, and how many tries that took."""
    began, tries = time.perf_counter(), 0
    while True:
        tries += 1
        try:
            if server.call_object(f"Good/{name}/add").status == 200:
                return (time.perf_counter() - began) * 1e3, tries
        except OSError:
            pass
        time.sleep(0.001)


def load(server: EdgeServer, names: list[str], seconds: float) -> list[float]:
    """Milliseconds of each call of some callers at once."""
    until, took = time.perf_counter() + seconds, [[] for _ in range(CALLERS)]

    def run(mine: list[float], chance: random.Random) -> None:
        while time.perf_counter() < until:
            mine.append(call(server, chance.choice(names))[0])

    threads = [
        threading.Thread(target=run, args=(mine, random.Random(seed))) for seed, mine in enumerate(took)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [one for mine in took for one in mine]


def chaos(server: EdgeServer, over: threading.Event, done: list[str]) -> None:
    chance = random.Random(1)
    while not over.wait(BETWEEN_DEEDS_SECONDS):
        deed = chance.choice(ENDING + HARMLESS)
        try:
            answer = server.call_object(f"Chaos/{len(done)}/do", deed=deed)
            if answer.status == 503 and answer.body["errors"][0]["code"] == 10476:
                done.append("refused")
                continue
        except OSError:
            pass
        done.append(deed)


def report(name: str, took: list[float]) -> float:
    ordered = sorted(took)
    p99 = ordered[len(ordered) * 99 // 100]
    print(
        f"{name:8} {len(took):7} calls   median {ordered[len(ordered) // 2]:7.2f} ms   p99 {p99:7.2f} ms   "
        f"worst {ordered[-1]:7.1f} ms"
    )
    return p99


def main() -> None:
    objects = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 60.0
    with tempfile.TemporaryDirectory() as folder:
        server = EdgeServer(Path(folder) / "data", "--objects", SOURCE).start()
        names = [f"n{number}" for number in range(objects)]
        for name in names:
            call(server, name)
        alone = report("alone", load(server, names, seconds / 2))
        over, done = threading.Event(), []
        beside = threading.Thread(target=chaos, args=(server, over, done))
        beside.start()
        p99 = report("chaos", load(server, names, seconds))
        over.set()
        beside.join()
        server.stop()
    refused = done.count("refused")
    print(f"{len(done)} deeds, {refused} refused by quarantine; p99 is {p99 / alone:.1f} x; goal 2")


if __name__ == "__main__":
    main()
