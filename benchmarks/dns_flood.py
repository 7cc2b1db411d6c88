"""What a flood of random missing names does to known names: their rate, and their CPU time.

    PYTHONPATH=src:. python benchmarks/dns_flood.py [--quick]

One worker on one core; two dnsperf, niced, on the other.
By rate: known names at 30 % of what the worker can answer of them, and how much of that is still answered
while a second dnsperf sends as many random missing names. Both together fit into the worker, so what is lost
is lost to what a flood does to caches and queues, not to a core that is full. Needs a quiet machine.
By CPU: of known names alone, of missing names alone, and of both in turn. What the missing ones cost is taken
off the third; the rest is what the known ones cost beside a flood.
Goal: known names keep >= 80 % of their rate.
"""

import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from benchmarks.dns_peer import RUNS, dnsperf, loads, measure, ours, outcome, serve, write_queries, zone_text

SHARE = 0.3


def main(arguments):
    if arguments[:1] == ["--serve"]:
        serve(Path(arguments[1]).read_text(), int(arguments[2]), tcp=False)
        return
    text, questions = zone_text()
    asked = loads(questions)
    known, missing = asked["repeated names"], asked["random NXDOMAIN"]
    both = [one for pair in zip(known, missing[: len(known)], strict=True) for one in pair]
    with ExitStack() as stack:
        place = stack.enter_context(ours(__file__, text))
        files = []
        for load in (known, missing, both):
            files.append(stack.enter_context(tempfile.NamedTemporaryFile()))
            write_queries(files[-1], load, place)
        names = [file.name for file in files]
        by_rate(place, *names[:2])
        by_cpu(place, names)


def by_rate(place, known, missing):
    _, most = measure(place, known)
    wanted = "-Q", str(int(most * SHARE))
    runs = []
    for _ in range(RUNS):
        _, alone = outcome(dnsperf(place, known, *wanted, nice=True))
        beside = dnsperf(place, missing, *wanted, nice=True)
        _, together = outcome(dnsperf(place, known, *wanted, nice=True))
        runs.append((alone, together, outcome(beside)[1]))
    alone, together, flood_rate = (median(run[at] for run in runs) for at in range(3))
    print(
        f"by rate: known names alone {alone / 1000:.0f}k/s, beside {flood_rate / 1000:.0f}k/s missing ones"
        f" {together / 1000:.0f}k/s; they keep {together / alone:.0%}"
    )


def by_cpu(place, files):
    runs = [[measure(place, file)[0] for file in files] for _ in range(1 + RUNS)][1:]
    alone, flood, together = (median(run[at] for run in runs) for at in range(3))
    beside = 2 * together - flood
    print(
        f"by CPU: a known name alone {alone:.2f} us, beside a flood {beside:.2f} us;"
        f" a missing one {flood:.2f} us; it keeps {alone / beside:.0%}"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
