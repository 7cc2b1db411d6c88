"""How much of its rate a client of known names keeps while another floods with random missing names.

    PYTHONPATH=src:. python benchmarks/dns_flood.py [--quick]

Both clients offer the same fixed rate to one worker on one core, first the one of known names alone. Goal: it
keeps >= 80 % of its answers per second.
"""

import sys
import tempfile
from pathlib import Path
from statistics import median

from benchmarks.dns_peer import RUNS, dnsperf, loads, ours, outcome, serve, write_queries, zone_text

OFFERED_PER_SECOND = 60_000


def main(arguments):
    if arguments[:1] == ["--serve"]:
        serve(Path(arguments[1]).read_text(), int(arguments[2]), tcp=False)
        return
    text, questions = zone_text()
    asked = loads(questions)
    rate = ("-Q", str(OFFERED_PER_SECOND))
    alone, flooded = [], []
    with (
        ours(__file__, text) as place,
        tempfile.NamedTemporaryFile() as known,
        tempfile.NamedTemporaryFile() as unknown,
    ):
        write_queries(known, asked["repeated names"], place)
        write_queries(unknown, asked["random NXDOMAIN"], place)
        for _ in range(RUNS):
            alone.append(outcome(dnsperf(place, known.name, *rate))[1])
            flood = dnsperf(place, unknown.name, *rate)
            flooded.append(outcome(dnsperf(place, known.name, *rate))[1])
            flood.wait()
    share = median(flooded) / median(alone)
    print(f"known names alone {median(alone):.0f}/s, beside the flood {median(flooded):.0f}/s: {share:.0%}")


if __name__ == "__main__":
    main(sys.argv[1:])
