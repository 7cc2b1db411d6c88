"""Ten custom rules cost at most 15 % of a proxied request.

One edge process, one origin that answers 1 KB, one client with kept connections. The same zone with no rules,
and with ten that look at different fields and do not match, in turns in the same run; medians of the rounds.
The ratio of the edge's processor time for a request is hardly moved by other programs on the machine, that of
requests a second is. Beside it the processor time of the ten rules alone.

    .venv/bin/python benchmarks/edge_rules.py [--rounds N] [--seconds S]
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from processes import processor_seconds

from edgestead.cli.parent import end_with_parent
from edgestead.edge.tools.phase import local_tools
from tests.edge.conftest import Site
from tests.edge.made import BROWSER, Edge, Seen, ask

PHASE = "http_request_firewall_custom"
BODY = b"x" * 1_024
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 1024\r\n\r\n" + BODY
EXPRESSIONS = (
    'http.request.uri.path eq "/admin"',
    'starts_with(http.request.uri.path, "/wp-") or ends_with(http.request.uri.path, ".php")',
    'http.user_agent contains "sqlmap"',
    "ip.src in {198.51.100.0/24 203.0.113.0/24 2001:db8::/32}",
    'http.request.method in {"TRACE" "TRACK" "DEBUG"}',
    'http.request.uri.query contains "union select"',
    'http.host ne "n0.edge.example" and http.host contains "evil"',
    'any(http.request.headers["x-api-key"][*] eq "none")',
    'http.referer matches "^https?://spam[0-9]+\\\\.test/"',
    'http.request.uri.path matches "(?i)/\\\\.(git|env|svn)"',
)
RULES = [{"id": f"{n:032x}", "action": "block", "expression": text} for n, text in enumerate(EXPRESSIONS)]


def requests_of(address: str, host: str, seconds: int) -> int:
    done = subprocess.run(
        ["wrk", "-t1", "-c32", f"-d{seconds}s", "-H", f"Host: {host}", f"http://{address}/shop/cart?item=7"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "Non-2xx" not in done.stdout, done.stdout
    return int(done.stdout.split(" requests in ")[0].split()[-1])


def through_the_proxy(rounds: int, seconds: int) -> None:
    nginx = (
        "daemon off; worker_processes 1; pid {0}/pid; error_log /dev/null; events {{}} http {{"
        " access_log off;"
        " client_body_temp_path {0}; proxy_temp_path {0}; fastcgi_temp_path {0}; uwsgi_temp_path {0};"
        " scgi_temp_path {0}; keepalive_requests 1000000;"
        ' server {{ listen {1}:{2}; location / {{ return 200 "{3}"; }} }} }}'
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        site = Site(folder)
        path = f"/zones/{site.zone_id}/rulesets/phases/{PHASE}/entrypoint"
        address = site.address()
        (folder / "nginx.conf").write_text(nginx.format(folder, address, site.first.port, BODY.decode()))
        command = ["/usr/sbin/nginx", "-c", str(folder / "nginx.conf"), "-p", name]
        origin = subprocess.Popen(command, preexec_fn=end_with_parent)
        try:
            host = site.name(address)
            while (answer := site.get(host)) is None or answer.status != 200:
                time.sleep(0.1)
            found: dict[int, list[float]] = {0: [], len(RULES): []}
            rates: dict[int, list[float]] = {0: [], len(RULES): []}
            edge = site.server.children()["edge-0"]
            for _ in range(rounds):
                for count in found:
                    sent = [{k: v for k, v in rule.items() if k != "id"} for rule in RULES[:count]]
                    assert site.server.call("PUT", path, {"rules": sent}).status == 200
                    before = processor_seconds(edge)
                    requests = requests_of(site.http, host, seconds)
                    found[count].append((processor_seconds(edge) - before) / requests * 1e6)
                    rates[count].append(requests / seconds)
            none, ten = (statistics.median(found[count]) for count in found)
            print(
                f"processor time of a request: no rules {none:.1f} µs, ten rules {ten:.1f} µs: "
                f"{ten / none - 1:.1%} more"
            )
            none, ten = (statistics.median(rates[count]) for count in rates)
            print(f"requests a second: no rules {none:,.0f}, ten rules {ten:,.0f}: {1 - ten / none:.1%} less")
        finally:
            origin.terminate()
            origin.wait()
            site.close()


def alone(rounds: int) -> None:
    edge = Edge(local_tools(Seen()), Seen()).serve(PHASE, zone=RULES)
    costs = []
    for _ in range(rounds):
        exchanges = [ask("/shop/cart?item=7", headers=BROWSER) for _ in range(20_000)]
        start = time.process_time()
        for exchange in exchanges:
            assert edge.pipeline.request(exchange) is None
        costs.append((time.process_time() - start) / len(exchanges))
    empty = Edge(local_tools(Seen()), Seen()).serve(PHASE, zone=[])
    exchanges = [ask("/shop/cart?item=7", headers=BROWSER) for _ in range(20_000)]
    start = time.process_time()
    for exchange in exchanges:
        empty.pipeline.request(exchange)
    bare = (time.process_time() - start) / len(exchanges)
    print(f"ten rules alone: {(statistics.median(costs) - bare) * 1e6:.1f} µs a request")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    told = parser.parse_args()
    alone(told.rounds)
    through_the_proxy(told.rounds, told.seconds)
