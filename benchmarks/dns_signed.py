"""Signed answers: CPU time per answer beside NSD with the same zone, and Knot that signs as it answers.

    PYTHONPATH=src:. python benchmarks/dns_signed.py [--quick]

All questions have DO set. Repeated names and random missing names are asked of the same signed zone (NSEC,
ECDSAP256SHA256) here and in NSD; the missing ones also of Knot with mod-onlinesign, whose denials are
compact.
Last what a question without DO costs here, in the signed zone and in the same one without signatures.
Goals: repeated names >= 0.9 x NSD; missing names >= 0.5 x Knot's online signing.
"""

import dataclasses
import random
import struct
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

import dns.rdatatype

from benchmarks.dns_peer import APEX, RUNS, measure, ours, peer, serve, zone_text
from tests.dns import peers
from tests.dns.random_zones import wire

NAMES = 2_000  # reading a signed zone takes a while
QUESTIONS = 100_000
ONLINE = """
mod-onlinesign:
  - id: all
"""


def signed(text):
    """The zone's text with signatures, made by BIND's signer."""
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.run(
            ["dnssec-keygen", "-q", "-K", folder, "-a", "ECDSAP256SHA256", "-f", "KSK", APEX],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        file = Path(folder, "zone")
        file.write_text(text + Path(folder, made + ".key").read_text())
        command = ["dnssec-signzone", "-q", "-z", "-O", "full", "-K", folder, "-o", APEX, str(file)]
        subprocess.run(command, check=True, capture_output=True)
        return Path(folder, "zone.signed").read_text()


def write(file, questions, *, do):
    """Queries as dnsperf reads them with -B."""
    for name, kind in questions:
        body = wire(name) + struct.pack("!HH", dns.rdatatype.from_text(kind), 1)
        opt = struct.pack("!BHHBBHH", 0, 41, 1232, 0, 0, do << 15, 0)
        query = struct.pack("!6H", 0, 0, 1, 0, 0, 1) + body + opt
        file.write(struct.pack("!H", len(query)) + query)
    file.flush()


@contextmanager
def knot_online(text):
    """Knot that signs each answer of the zone without signatures."""
    config = peers.KNOT_CONFIG.replace("template:", ONLINE + "template:")
    config = config.replace("    {modules}\n", "    module: mod-onlinesign/all\n    {modules}\n")
    before = peers.PEERS["Knot"]
    peers.PEERS["Knot"] = dataclasses.replace(before, config=config)
    try:
        with peer("Knot", text) as place:
            yield place
    finally:
        peers.PEERS["Knot"] = before


def row(title, places, questions, *, do=1):
    """Print the medians of all servers, asked in turn."""
    with tempfile.NamedTemporaryFile(suffix=".queries") as file:
        write(file, questions, do=do)
        runs = [{who: measure(place, file.name) for who, place in places.items()} for _ in range(1 + RUNS)][
            1:
        ]
    cost = {who: median(run[who][0] for run in runs) for who in places}
    rate = {who: median(run[who][1] for run in runs) for who in places}
    columns = [f"{who} {cost[who]:.2f} us {rate[who] / 1000:.0f}k/s" for who in places]
    ratios = [f"{cost[who] / cost['ours']:.2f} x {who}" for who in places if who != "ours"]
    print(f"{title:30} {'   '.join(columns)}   |   {'  '.join(ratios)}", flush=True)


def main(arguments):
    if arguments[:1] == ["--serve"]:
        serve(Path(arguments[1]).read_text(), int(arguments[2]), tcp=False)
        return
    chosen = random.Random(3)
    plain, known = zone_text(NAMES)
    text = signed(plain)
    hits = [chosen.choice(known) for _ in range(QUESTIONS)]
    missing = [(f"x{chosen.getrandbits(48):012x}.{APEX}", "A") for _ in range(QUESTIONS)]
    with ExitStack() as stack:
        places = {"ours": stack.enter_context(ours(__file__, text))}
        if peers.is_installed("NSD"):
            places["NSD"] = stack.enter_context(peer("NSD", text))
        row("repeated names, DO", places, hits)
        row("random NXDOMAIN, DO", places, missing)
        if peers.is_installed("Knot"):
            online = {"ours": places["ours"], "Knot online": stack.enter_context(knot_online(plain))}
            row("random NXDOMAIN, DO", online, missing)
        unsigned = {"ours": places["ours"], "unsigned": stack.enter_context(ours(__file__, plain))}
        row("repeated names, no DO", unsigned, hits, do=0)
        row("random NXDOMAIN, no DO", unsigned, missing, do=0)


if __name__ == "__main__":
    main(sys.argv[1:])
