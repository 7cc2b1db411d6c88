"""UDP: CPU time per answer against NSD, each on the same pinned core, dnsperf on the other.

    PYTHONPATH=src:. python benchmarks/dns_udp.py [word of a load]

Goals: repeated names >= 1.0 x NSD; random NXDOMAIN and random case >= 0.85 x NSD.
"""

import sys
from pathlib import Path

from benchmarks.dns_peer import compare, loads, serve, zone_text


def main(arguments):
    if arguments[:1] == ["--serve"]:
        serve(Path(arguments[1]).read_text(), int(arguments[2]), tcp=False)
        return
    text, questions = zone_text()
    for load, asked in loads(questions).items():
        if not arguments or arguments[0] in load:
            compare(__file__, load, text, asked)


if __name__ == "__main__":
    main(sys.argv[1:])
