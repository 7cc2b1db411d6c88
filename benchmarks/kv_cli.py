"""How long do `edgecli kv` commands take as whole processes, against wrangler on the same server?

    python benchmarks/kv_cli.py [--runs 7]

get     `kv key get` of one small value.
bulk    `kv bulk put` of 10,000 pairs of 100 bytes.

Fresh processes of both, in turn, after one of each that is not counted; medians of the wall-clock time.
`edgecli` has its bytecode, as pip leaves it behind. wrangler comes with tests/clients/install.py wrangler_kv,
and is told to stay quiet: no metrics, no banner, no update check.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from edgestead.testing.server import EdgeServer, environment

PAIRS = 10_000
VALUE_BYTES = 100
HARNESS_HOME = Path(os.environ.get("HARNESS_HOME", Path.home() / ".cache" / "edge-clients"))
WRANGLER = HARNESS_HOME / "npm" / "main" / "node_modules" / ".bin" / "wrangler"
EDGECLI = [sys.executable, "-P", "-c", "from edgestead.cli.main import main; main()"]


def seconds(command: list[str], environ: Mapping[str, str], folder: Path) -> float:
    began = time.perf_counter()
    done = subprocess.run(command, env=environ, cwd=folder, capture_output=True, text=True)
    took = time.perf_counter() - began
    assert done.returncode == 0, done.stdout + done.stderr
    return took


def make_namespace(ready: Mapping[str, str]) -> str:
    url = f"{ready['api_base']}/accounts/{ready['account_id']}/storage/kv/namespaces"
    headers = {"Authorization": f"Bearer {ready['api_token']}"}
    made = urllib.request.urlopen(urllib.request.Request(url, b'{"title":"bench"}', headers))
    id_ = json.load(made)["result"]["id"]
    put = urllib.request.Request(f"{url}/{id_}/values/k", b"value", headers, method="PUT")
    urllib.request.urlopen(put).read()
    return str(id_)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=7)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        server = EdgeServer(folder / "data").start()
        try:
            measure(server.ready, folder, runs)
        finally:
            server.close()


def measure(ready: Mapping[str, str], folder: Path, runs: int) -> None:
    pairs = [{"key": f"key-{i:06d}", "value": "x" * VALUE_BYTES} for i in range(PAIRS)]
    (folder / "pairs.json").write_text(json.dumps(pairs))
    (folder / "wrangler.toml").write_text('name = "bench"\ncompatibility_date = "2024-01-01"\n')
    ours = environment() | {"EDGE_API_BASE": ready["api_base"], "EDGE_TOKEN": ready["api_token"]}
    ours |= {"EDGE_ACCOUNT_ID": ready["account_id"], "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    ours.pop("PYTHONDONTWRITEBYTECODE", None)
    theirs = os.environ | {
        "CLOUDFLARE_API_BASE_URL": ready["api_base"],
        "CLOUDFLARE_API_TOKEN": ready["api_token"],
        "CLOUDFLARE_ACCOUNT_ID": ready["account_id"],
        "WRANGLER_SEND_METRICS": "false",
        "WRANGLER_HIDE_BANNER": "true",
        "CI": "1",
        "HOME": str(folder),
    }
    where = ["--namespace-id", make_namespace(ready)]
    for what, command in (("get", ["key", "get", "k"]), ("bulk", ["bulk", "put", "pairs.json"])):
        sides = {"edgecli": ([*EDGECLI, "kv", *command, *where], ours)}
        if WRANGLER.exists():
            sides["wrangler"] = ([str(WRANGLER), "kv", *command, *where, "--remote"], theirs)
        found: dict[str, list[float]] = {who: [] for who in sides}
        for _ in range(1 + runs):
            for who, (line, environ) in sides.items():
                found[who].append(seconds(line, environ, folder))
        medians = {who: statistics.median(times[1:]) for who, times in found.items()}
        for who, median in medians.items():
            print(
                f"{what:5} {who:9} {median * 1000:7.0f} ms"
                f"   {median / medians['edgecli']:.1f} times edgecli's"
            )


if __name__ == "__main__":
    main()
