"""What does compressing an answer cost at the edge, against nginx and Caddy at the same level of gzip?

    python benchmarks/edge_compression.py [--seconds 5] [--rounds 3] [--kib 64]

A GET of text over kept connections (wrk), with `Accept-Encoding: gzip`; both at the level that the edge has.
Rounds of the sides alternate; medians are printed, with the processor time of the proxy for each answer, and
its size: one level is not the same work in each library. Brotli, which Debian's nginx and Caddy have not, is
printed for the edge alone, zstd for the edge and Caddy. Caddy is as in edge_proxy.py.

Goal: >= 0.8 x nginx by processor time.
"""

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from benchmarks import edge_proxy
from benchmarks.edge_proxy import HOST, LOAD_CORE, Side, _cpu_seconds, _found, _sides, print_ratios
from edgestead.edge.exchanges.packing import GZIP_LEVEL

CODINGS = {
    "nginx": ("gzip", "identity"),
    "edge": ("gzip", "br", "zstd", "identity"),
    "caddy": ("gzip", "zstd", "identity"),
}
WORDS = 2_000  # of a language of our own: texts repeat words, not sentences


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kib", type=int, default=64)
    arguments = parser.parse_args()
    gzip = f"gzip on; gzip_comp_level {GZIP_LEVEL}; gzip_types text/plain; gzip_proxied any;"
    edge_proxy.PROXY = edge_proxy.PROXY.replace("location / {{", gzip + " location / {{", 1)
    encode = f"(proxy) {{{{\n  encode {{{{\n    gzip {GZIP_LEVEL}\n    zstd\n  }}}}\n"
    edge_proxy.CADDY = edge_proxy.CADDY.replace("(proxy) {{\n", encode, 1)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        sides = stack.enter_context(_sides(folder))
        (folder / "big").unlink()
        (folder / "big").mkdir()
        (folder / "big" / "page.txt").write_bytes(text(arguments.kib * 1_024))
        seen: dict[str, list[tuple[float, float, float]]] = {}
        for _ in range(arguments.rounds):
            for side in sides.proxies:
                for coding in CODINGS[side.name]:
                    seen.setdefault(f"{side.name} {coding}", []).append(
                        _load(side, coding, arguments.seconds)
                    )
    found = {name: tuple(map(statistics.median, zip(*rows, strict=True))) for name, rows in seen.items()}
    for name, (rate, cpu, octets) in found.items():
        print(f"  {name:15}{rate:>8,.0f} answers/s  {cpu:8.1f} µs of CPU each  {octets:>9,.0f} bytes")
    gzipped = {name: found[f"{name} gzip"] for name in CODINGS if f"{name} gzip" in found}
    print_ratios({name: (rate, cpu) for name, (rate, cpu, _) in gzipped.items()})


def text(octets: int) -> bytes:
    chance = random.Random(7)
    words = ["".join(chance.choices("etaoinshrdlu", k=chance.randrange(2, 11))) for _ in range(WORDS)]
    weights = [1 / number for number in range(1, WORDS + 1)]
    return " ".join(chance.choices(words, weights, k=octets // 3)).encode()[:octets]


def _load(side: Side, coding: str, seconds: int) -> tuple[float, float, float]:
    command = ["taskset", "-c", str(LOAD_CORE), "wrk", "-c8", "-t1", f"-d{seconds}"]
    command += ["-H", f"Host: {HOST}", "-H", f"Accept-Encoding: {coding}"]
    before = _cpu_seconds(side.pid)
    done = subprocess.run(
        [*command, f"http://{side.plain}/big/page.txt"], capture_output=True, text=True, check=True
    ).stdout
    assert "Non-2xx" not in done, done
    count = int(_found(r"(\d+) requests in", done))
    size = float(_found(r"requests in [\d.]+s, ([\d.]+)[KMG]B read", done))
    scale = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}[_found(r"([KMG])B read", done)]
    return count / seconds, (_cpu_seconds(side.pid) - before) / count * 1e6, size * scale / count


if __name__ == "__main__":
    sys.exit(main())
