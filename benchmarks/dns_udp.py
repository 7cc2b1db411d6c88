"""UDP: CPU time per answer beside other servers, each on the same pinned core, dnsperf on the other.

    PYTHONPATH=src:. python benchmarks/dns_udp.py [word of a load] [--quick]

Goals: mix (40 % plain, 30 % with cookies, 15 % random case, 15 % random missing names) >= 0.8 x NSD; repeated
names >= 1.0 x NSD.
"""

import sys
from pathlib import Path

from benchmarks.dns_peer import compare, loads, serve, zone_text


def main(arguments):
    if arguments[:1] == ["--serve"]:
        serve(Path(arguments[1]).read_text(), int(arguments[2]), tcp=False)
        return
    words = [word for word in arguments if not word.startswith("--")]
    text, questions = zone_text()
    for load, asked in loads(questions).items():
        if not words or words[0] in load:
            compare(__file__, load, text, asked)


if __name__ == "__main__":
    main(sys.argv[1:])
