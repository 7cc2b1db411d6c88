"""The edge with the managed ruleset beside nginx with ModSecurity, end to end: requests a second on one core.

    python benchmarks/waf_proxy.py [--crs FOLDER] [--seconds N] [--rounds N]

Both proxies stand before the same origin and run the same rules at paranoia level 1: GETs with headers and
cookies of a browser, and JSON bodies of 2 KB, every one with other values. Each proxy has the second core for
itself; wrk and the origin share the first. Prints medians, and the ratio of the two in the same run.

Needs nginx, libnginx-mod-http-modsecurity, modsecurity-crs and wrk (scripts/debian-packages), and two cores.
"""

import argparse
import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from edgestead.cli.parent import end_with_parent
from edgestead.crs import ANOMALY_RULE_ID, RULESET_ID
from edgestead.server.places import private_place
from edgestead.testing.server import EdgeServer

PHASE = "http_request_firewall_managed"
CONNECTIONS = 32
MODULE = "/usr/lib/nginx/modules/ngx_http_modsecurity_module.so"
NGINX = """{module}
worker_processes 1;
daemon off;
pid {folder}/{name}.pid;
error_log {folder}/{name}.log crit;
events {{ worker_connections 512; }}
http {{
  access_log off;
  client_body_temp_path {folder}/{name}-body;
  proxy_temp_path {folder}/{name}-proxy;
  fastcgi_temp_path {folder}/{name}-f; uwsgi_temp_path {folder}/{name}-u; scgi_temp_path {folder}/{name}-s;
  keepalive_requests 1000000;
  {upstream}
  server {{
    listen {listen};
    {server}
  }}
}}
"""
MODSECURITY = """
SecRuleEngine On
SecRequestBodyAccess On
SecRequestBodyLimit 13107200
SecRequestBodyNoFilesLimit 131072
SecArgumentsLimit 1000
SecResponseBodyAccess Off
SecAuditEngine Off
SecRule REQUEST_HEADERS:Content-Type "^application/json" "id:200001,phase:1,t:none,t:lowercase,pass,nolog,\\
ctl:requestBodyProcessor=JSON"
Include {setup}
Include {rules}/*.conf
"""
GET = """
local n = 0
request = function()
  n = n + 1
  return wrk.format("GET", "/shop/list?q=red+shoes+" .. n .. "&page=" .. n % 90 .. "&sort=price", {{
    ["Host"] = "{host}",
    ["User-Agent"] = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0",
    ["Accept"] = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    ["Accept-Language"] = "en-GB,en;q=0.9,de;q=0.7",
    ["Accept-Encoding"] = "gzip, deflate, br",
    ["Cookie"] = "session=8f14e45fceea167a5a36dedd4bea" .. n .. "; theme=dark; cart=a" .. n,
    ["Referer"] = "https://{host}/shop/" .. n }})
end
"""
JSON = """
local n = 0
request = function()
  n = n + 1
  local items = {{}}
  for i = 1, 30 do
    items[i] = '{{"id":' .. n * 100 + i .. ',"name":"red shoe ' .. n + i ..
      '","price":' .. (n % 977) / 10 .. ',"left":true}}'
  end
  return wrk.format("POST", "/api/order?n=" .. n, {{
    ["Host"] = "{host}", ["Content-Type"] = "application/json", ["Accept"] = "application/json",
    ["User-Agent"] = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0" }},
    '{{"order":' .. n .. ',"items":[' .. table.concat(items, ",") .. ']}}')
end
"""


@contextlib.contextmanager
def nginx(folder: Path, name: str, core: int, **parts: str) -> Iterator[str]:
    host, port = private_place()
    conf = folder / f"{name}.conf"
    fill = {"module": "", "upstream": "", **parts}
    conf.write_text(NGINX.format(folder=folder, name=name, listen=f"{host}:{port}", **fill))
    process = subprocess.Popen(
        ["taskset", "-c", str(core), "nginx", "-c", str(conf), "-e", f"{folder}/start.log"],
        preexec_fn=end_with_parent,
    )
    try:
        yield f"{host}:{port}"
    finally:
        process.terminate()
        process.wait()


def rate(script: Path, address: str, seconds: int) -> tuple[float, int]:
    """(requests a second, answers that are no 2xx)."""
    wrk = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "-s", str(script), f"http://{address}"]
    out = subprocess.run(["taskset", "-c", "0", *wrk], capture_output=True, text=True, check=True).stdout
    lines = {line.partition(":")[0].strip(): line.partition(":")[2].strip() for line in out.splitlines()}
    return float(lines["Requests/sec"]), int(lines.get("Non-2xx or 3xx responses", "0"))


def deploy(server: EdgeServer, origin: str) -> str:
    zone = server.make_zone("bench.example")
    assert (
        server.make_record(zone, "A", "bench.example", origin.partition(":")[0], proxied=True).status == 200
    )
    overrides = {
        "categories": [{"category": f"paranoia-level-{level}", "enabled": False} for level in (2, 3, 4)],
        "rules": [{"id": ANOMALY_RULE_ID, "score_threshold": 5}],
    }
    rule = {
        "action": "execute",
        "expression": "true",
        "action_parameters": {"id": RULESET_ID, "overrides": overrides},
    }
    path = f"/zones/{zone}/rulesets/phases/{PHASE}/entrypoint"
    assert server.call("PUT", path, {"rules": [rule]}).status == 200
    server.wait_until(lambda: list((server.data_dir / "rules").glob("*.patterns")), 300)
    time.sleep(2)  # until the patterns are loaded; nothing outside tells
    for name, pid in server.children().items():
        os.sched_setaffinity(pid, {1 if name.startswith("edge") else 0})
    return server.ready["http"]


def measure(scripts: dict[str, Path], proxies: dict[str, str], seconds: int, rounds: int) -> None:
    for kind, script in scripts.items():
        found: dict[str, list[float]] = {name: [] for name in proxies}
        for _ in range(rounds):
            for name, address in proxies.items():
                speed, others = rate(script, address, seconds)
                if others:
                    raise SystemExit(f"{name}: {others} answers of {kind} were no success")
                found[name].append(speed)
        medians = {name: median(speeds) for name, speeds in found.items()}
        words = ", ".join(f"{name} {speed:,.0f}/s" for name, speed in medians.items())
        ratio = medians["edge + rules"] / medians["nginx + ModSecurity"]
        print(f"{kind:<5} {words}; edge / ModSecurity {ratio:.1f}x")


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--crs", type=Path)
    options.add_argument("--seconds", type=int, default=4)
    options.add_argument("--rounds", type=int, default=3)
    asked = options.parse_args()
    for program in ("nginx", "wrk", "taskset"):
        if shutil.which(program) is None:
            raise SystemExit(f"{program} is not installed")
    setup, rules = Path("/etc/modsecurity/crs/crs-setup.conf"), Path("/usr/share/modsecurity-crs/rules")
    if asked.crs:
        setup, rules = asked.crs / "crs-setup.conf.example", asked.crs / "rules"
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        answer = f'default_type text/plain; location / {{ return 200 "{"x" * 1_000}"; }}'
        origin = stack.enter_context(nginx(folder, "origin", 0, server=answer))
        (folder / "modsecurity.rules").write_text(MODSECURITY.format(setup=setup, rules=rules))
        upstream = f"upstream origin {{ server {origin}; keepalive 64; }}"
        passing = (
            'location / { proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection ""; }'
        )
        plain = stack.enter_context(nginx(folder, "plain", 1, upstream=upstream, server=passing))
        guarded = stack.enter_context(
            nginx(
                folder,
                "modsecurity",
                1,
                module=f"load_module {MODULE};",
                upstream=upstream,
                server=f"modsecurity on; modsecurity_rules_file {folder}/modsecurity.rules; {passing}",
            )
        )
        flags = ("--crs", str(asked.crs)) if asked.crs else ()
        server = EdgeServer(folder / "data", "--origin-port", origin.partition(":")[2], *flags)
        stack.callback(server.close)
        server.start()
        edge = deploy(server, origin)
        scripts = {}
        for kind, text in (("GET", GET), ("JSON", JSON)):
            scripts[kind] = folder / f"{kind}.lua"
            scripts[kind].write_text(text.format(host="bench.example"))
        time.sleep(2)  # nginx reads its rules
        proxies = {"nginx": plain, "nginx + ModSecurity": guarded, "edge + rules": edge}
        measure(scripts, proxies, asked.seconds, asked.rounds)


if __name__ == "__main__":
    main()
