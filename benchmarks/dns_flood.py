"""What a known name costs while just as many random missing names are asked for, beside what it costs alone.

    PYTHONPATH=src:. python benchmarks/dns_flood.py [--quick]

CPU time of one worker on one core: of known names alone, of missing names alone, and of both in turn. What
the missing ones cost is taken off the third; the rest is what the known ones cost beside a flood, which may
push them out of caches. Goal: they keep >= 80 % of their rate per CPU second.
"""

import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from benchmarks.dns_peer import RUNS, loads, measure, ours, serve, write_queries, zone_text


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
        runs = [[measure(place, file.name)[0] for file in files] for _ in range(1 + RUNS)][1:]
    alone, flood, together = (median(run[at] for run in runs) for at in range(3))
    beside = 2 * together - flood
    print(
        f"a known name: alone {alone:.2f} us, beside a flood {beside:.2f} us; it keeps {alone / beside:.0%}"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
