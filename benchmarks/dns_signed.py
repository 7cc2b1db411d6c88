"""Signed answers: CPU time of each beside NSD, and servers that sign as they answer; what changes cost.

    PYTHONPATH=src:. python benchmarks/dns_signed.py [--quick]

All questions have DO set. Repeated names and random missing names are asked of the same signed zone (NSEC,
ECDSAP256SHA256) here and in NSD; the missing ones also of Knot with mod-onlinesign, whose denials are
compact, of PowerDNS with its live signing, and here of the same zone with NSEC3. Missing names are others in
each run: PowerDNS keeps whole replies, and would answer those of the run before without signing. Then what a
question without DO costs here, in the signed zone and in the same one without signatures.
Last a whole server: from POST to the first answer in a signed zone and in one that is not; what signing a
large zone takes of control's CPU, what an API call waits meanwhile, and what an answer costs DNS.
Goals: repeated names >= 0.9 x NSD; missing names >= 0.5 x Knot's online signing, >= 5 x PowerDNS's; a change
visible within 2 x the unsigned time; 100,000 names signed in <= 20 s of CPU that cost answers <= 10 %.
"""

import dataclasses
import random
import struct
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

import dns.rdatatype

from benchmarks import visible
from benchmarks.dns_peer import APEX, RUNS, Place, cpu_seconds, measure, ours, peer, serve, zone_text
from benchmarks.zone_import import import_file
from edgestead.testing.server import EdgeServer
from tests.dns import peers
from tests.dns.random_zones import wire

NAMES = 2_000  # reading a signed zone takes a while
QUESTIONS = 100_000
QUICK = "--quick" in sys.argv
VISIBLE_CHANGES = 50 if QUICK else 200
LARGE_NAMES = 10_000 if QUICK else 100_000
FILE_RECORDS = 50_000
SIGNING_SECONDS_MAX = 200
ONLINE = """
mod-onlinesign:
  - id: all
"""


def signed(text, *options):
    """The zone's text with signatures, made by BIND's signer; `-3 -` as `options` makes NSEC3 of RFC 9276."""
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.run(
            ["dnssec-keygen", "-q", "-K", folder, "-a", "ECDSAP256SHA256", "-f", "KSK", APEX],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        file = Path(folder, "zone")
        file.write_text(text + Path(folder, made + ".key").read_text())
        command = ["dnssec-signzone", "-q", "-z", *options, "-O", "full", "-K", folder, "-o", APEX, str(file)]
        subprocess.run(command, check=True, capture_output=True, cwd=folder)  # where it leaves the DS
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
    """Print the medians of all servers, asked in turn. `questions` makes those of a run."""
    runs = []
    for _ in range(1 + RUNS):
        with tempfile.NamedTemporaryFile(suffix=".queries") as file:
            write(file, questions(), do=do)
            runs.append({who: measure(place, file.name) for who, place in places.items()})
    runs = runs[1:]
    cost = {who: median(run[who][0] for run in runs) for who in places}
    rate = {who: median(run[who][1] for run in runs) for who in places}
    columns = [f"{who} {cost[who]:.2f} us {rate[who] / 1000:.0f}k/s" for who in places]
    ratios = [f"{cost[who] / cost['ours']:.2f} x {who}" for who in places if who != "ours"]
    print(f"{title:30} {'   '.join(columns)}   |   {'  '.join(ratios)}", flush=True)


@contextmanager
def powerdns_live(text):
    """PowerDNS that signs each answer that it has not in its packet cache.

    Without its cache of signatures: with it, missing names cost the same (104 us each, busy).
    """
    with tempfile.TemporaryDirectory() as home:
        keys = Path(home, "dnssec.db")
        before = peers.PEERS["PowerDNS"]
        config = before.config + f"bind-dnssec-db={keys}\nmax-signature-cache-entries=0\n"
        Path(home, "pdns.conf").write_text(f"launch=bind\nbind-config={home}/zones\nbind-dnssec-db={keys}\n")
        Path(home, "zone").write_text(text)
        Path(home, "zones").write_text(f'zone "{APEX}" {{ type master; file "{home}/zone"; }};\n')
        for words in (["create-bind-db", str(keys)], ["secure-zone", APEX]):
            subprocess.run(["pdnsutil", f"--config-dir={home}", *words], check=True, capture_output=True)
        peers.PEERS["PowerDNS"] = dataclasses.replace(before, config=config)
        try:
            with peer("PowerDNS", text) as place:
                yield place
        finally:
            peers.PEERS["PowerDNS"] = before


def whole_server():
    with tempfile.TemporaryDirectory() as folder:
        server = EdgeServer(Path(folder, "data"), "--profile", "clients").start()
        try:
            visibility(server)
            background(server)
        finally:
            server.close()


def visibility(server):
    """Changes in turn, so that both zones meet the same machine."""
    plain, signed_zone = (server.make_zone(f"{name}.{visible.APEX}") for name in ("plain", "signed"))
    server.call("PATCH", f"/zones/{signed_zone}/dnssec", {"status": "active"})
    clients = [visible.Client(server, zone) for zone in (plain, signed_zone)]
    took = ([], [])
    for number in range(VISIBLE_CHANGES):
        for client, kind, times_ms in zip(clients, ("plain", "signed"), took, strict=True):
            ms, shown = client.change(f"n{number}.{kind}")
            assert shown
            times_ms.append(ms)
    one, other = map(median, took)
    print(
        f"POST to answer: unsigned {one:.2f} ms, signed {other:.2f} ms   |   {other / one:.2f} x", flush=True
    )


def background(server):
    zone_id = server.make_zone(APEX.rstrip("."))
    for start in range(0, LARGE_NAMES, FILE_RECORDS):
        numbers = range(start, min(start + FILE_RECORDS, LARGE_NAMES))
        import_file(server, zone_id, "".join(f"n{number:06d} 300 IN A 192.0.2.1\n" for number in numbers))
    children = server.children()
    host, _, port = server.ready["dns"].rpartition(":")
    place = Place(host, int(port), children["dns-0"])
    with tempfile.NamedTemporaryFile(suffix=".queries") as file:
        write(file, [(f"n{number:06d}.{APEX}", "A") for number in range(0, LARGE_NAMES, 7)], do=0)
        measure(place, file.name)  # fills caches
        alone = [measure(place, file.name)[0] for _ in range(RUNS)]
        began, cpu = time.monotonic(), cpu_seconds(children["control"])
        server.call("PATCH", f"/zones/{zone_id}/dnssec", {"status": "active"})
        costs, waits_ms = [], []
        asking = threading.Event()

        def ask():
            while not asking.wait(0.05):
                start = time.perf_counter()
                server.call("GET", f"/zones/{zone_id}")
                waits_ms.append((time.perf_counter() - start) * 1000)

        thread = threading.Thread(target=ask)
        thread.start()
        try:
            while not server.call("GET", f"/zones/{zone_id}/dnssec").result["ds"]:
                assert time.monotonic() - began < SIGNING_SECONDS_MAX
                costs.append(measure(place, file.name)[0])
        finally:
            asking.set()
            thread.join()
        cpu = cpu_seconds(children["control"]) - cpu
        measure(place, file.name)
        alone += [measure(place, file.name)[0] for _ in range(RUNS)]
    before = median(alone)
    print(
        f"signing {LARGE_NAMES} names: {cpu:.1f} s of control's CPU in {time.monotonic() - began:.0f} s; "
        f"GET meanwhile p50 {median(waits_ms):.1f} ms, longest {max(waits_ms):.0f} ms; "
        f"an answer {before:.2f} us before and after, {median(costs):.2f} us meanwhile   |   "
        f"{median(costs) / before:.2f} x",
        flush=True,
    )


def main(arguments):
    if arguments[:1] == ["--serve"]:
        serve(Path(arguments[1]).read_text(), int(arguments[2]), tcp=False)
        return
    chosen = random.Random(3)
    plain, known = zone_text(NAMES)
    text = signed(plain)
    repeated = [chosen.choice(known) for _ in range(QUESTIONS)]

    def hits():
        return repeated

    def missing():
        return [(f"x{chosen.getrandbits(48):012x}.{APEX}", "A") for _ in range(QUESTIONS)]

    with ExitStack() as stack:
        places = {"ours": stack.enter_context(ours(__file__, text))}
        if peers.is_installed("NSD"):
            places["NSD"] = stack.enter_context(peer("NSD", text))
        row("repeated names, DO", places, hits)
        row("random NXDOMAIN, DO", places, missing)
        hashed = stack.enter_context(ours(__file__, signed(plain, "-3", "-")))
        row("random NXDOMAIN, DO", {"ours": places["ours"], "with NSEC3": hashed}, missing)
        if peers.is_installed("Knot"):
            online = {"ours": places["ours"], "Knot online": stack.enter_context(knot_online(plain))}
            row("random NXDOMAIN, DO", online, missing)
        if peers.is_installed("PowerDNS"):
            live = {"ours": places["ours"], "PowerDNS live": stack.enter_context(powerdns_live(plain))}
            row("random NXDOMAIN, DO", live, missing)
        unsigned = {"ours": places["ours"], "unsigned": stack.enter_context(ours(__file__, plain))}
        row("repeated names, no DO", unsigned, hits, do=0)
        row("random NXDOMAIN, no DO", unsigned, missing, do=0)
    whole_server()


if __name__ == "__main__":
    main(sys.argv[1:])
