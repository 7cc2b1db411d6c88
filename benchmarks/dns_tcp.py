"""TCP with pipelining: CPU time per answer beside other servers on the same core, dnsperf on the other.

    PYTHONPATH=src:. python benchmarks/dns_tcp.py

Goal: >= 2.5 x NSD.
"""

import sys
from pathlib import Path

from benchmarks.dns_peer import compare, loads, serve, zone_text


def main(arguments):
    if arguments[:1] == ["--serve"]:
        serve(Path(arguments[1]).read_text(), int(arguments[2]), tcp=True)
        return
    text, questions = zone_text()
    for load, asked in loads(questions).items():
        if "repeated" in load:
            compare(__file__, load, text, asked, tcp=True)


if __name__ == "__main__":
    main(sys.argv[1:])
