"""Lists, filters and batches of DNS records, next to PowerDNS's API for the same work.

    python benchmarks/api_lists.py [--rounds 5] [--large 100000]

list     a zone of 100 records, as a whole
filter   selective filters over 100,000 records against the same over 1,000 (goal: at most 3 times the time),
         and those that no index leads to, for comparison
batch    1,000 new records in one request, durable when it is answered

Ours on one core, PowerDNS (Debian's pdns-server with its SQLite backend, `synchronous` as it comes: full) on
the same one, this client on another; one request at a time, medians of the rounds, which alternate. PowerDNS
has no paging: its list is the zone, its filter the search over all zones and the question for one name. Its
answers are not kept, so ours are measured with a parameter that makes every query another one; `kept` is the
same question again. What is not in here: the DNS processes that a write waits for (benchmarks/visible.py).
"""

import argparse
import http.client
import json
import os
import secrets
import shutil
import sqlite3
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from processes import free_port, wait_for
from rest import LOAD_CORE, SERVER_CORE, TOKEN, Child

from edgestead.cli.parent import end_with_parent

SMALL = 1_000
BATCH = 1_000
POSTS_A_REQUEST = 2_000
PDNS_KEY = secrets.token_hex(16)
PDNS_SCHEMA = Path("/usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql")

# Filters that an index leads, then those that walk the zone. {} is a number that exists in both zones.
LED = {
    "name.exact": "name.exact=host-{}.{zone}",
    "name.startswith": "name.startswith=host-{}.",
    "content.exact": "content.exact=text-{}",
    "content.startswith": "content.startswith=text-{}",
    "comment.exact": "comment.exact=comment-{}",
    "tag": "tag=number:{}",
    "name and content": "name.exact=host-{}.{zone}&content.exact=text-{}",
}
WALKED = {
    "name.contains": "name.contains=host-{}.",
    "content.contains": "content.contains=text-{}",
    "search": "search=comment-{}",
    "type": "type=TXT",
}


class Api:
    """One connection to one of the two."""

    def __init__(self, base: str, headers: dict[str, str]) -> None:
        host, _, self._path = base.removeprefix("http://").partition("/")
        self._connection = http.client.HTTPConnection(host)
        self._headers = {**headers, "Content-Type": "application/json"}

    def call(self, method: str, path: str, body: object = None) -> bytes:
        data = None if body is None else json.dumps(body)
        self._connection.request(method, f"/{self._path}{path}", data, self._headers)
        answer = self._connection.getresponse()
        octets = answer.read()
        assert answer.status < 300, (answer.status, octets[:500])
        return octets


class PowerDns:
    """A server of its own over a new SQLite database, on SERVER_CORE."""

    def __init__(self, folder: Path) -> None:
        database = folder / "pdns.sqlite3"
        with sqlite3.connect(database) as made:
            made.executescript(PDNS_SCHEMA.read_text())
        made.close()
        dns, api = free_port(), free_port()
        (folder / "pdns.conf").write_text(
            f"launch=gsqlite3\ngsqlite3-database={database}\nlocal-address=127.0.0.1\nlocal-port={dns}\n"
            f"webserver=yes\nwebserver-address=127.0.0.1\nwebserver-port={api}\napi=yes\napi-key={PDNS_KEY}\n"
            f"socket-dir={folder}\nloglevel=0\nsecurity-poll-suffix=\nwebserver-max-bodysize=64\n"
        )
        command = ["pdns_server", f"--config-dir={folder}", "--daemon=no", "--guardian=no"]
        self._process = subprocess.Popen(
            ["taskset", "-c", str(SERVER_CORE), *command],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=end_with_parent,
        )
        self.base = f"http://127.0.0.1:{api}/api/v1/servers/localhost"
        wait_for(api)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()


def ours_posts(numbers: range, prefix: str = "host") -> list[dict[str, object]]:
    return [
        {
            "type": "TXT",
            "name": f"{prefix}-{number}",
            "content": f"text-{number}",
            "ttl": 300,
            "comment": f"comment-{number}",
            "tags": [f"number:{number}"],
        }
        for number in numbers
    ]


def pdns_rrsets(zone: str, numbers: range, prefix: str = "host") -> list[dict[str, object]]:
    return [
        {
            "name": f"{prefix}-{number}.{zone}.",
            "type": "TXT",
            "ttl": 300,
            "changetype": "REPLACE",
            "records": [{"content": f'"text-{number}"'}],
            "comments": [{"content": f"comment-{number}", "account": ""}],
        }
        for number in numbers
    ]


def chunks(count: int) -> list[range]:
    return [range(start, min(start + POSTS_A_REQUEST, count)) for start in range(0, count, POSTS_A_REQUEST)]


def our_zone(api: Api, folder: Path, name: str, count: int) -> str:
    """A zone with `count` records, on a plan that takes the batches; the path of its records."""
    zone_id = json.loads(api.call("POST", "/zones", {"name": name}))["result"]["id"]
    with sqlite3.connect(folder / "control.db") as database:
        database.execute("update zones set plan = 'business' where id = ?", (zone_id,))
    database.close()
    path = f"/zones/{zone_id}/dns_records"
    for numbers in chunks(count):
        api.call("POST", f"{path}/batch", {"posts": ours_posts(numbers)})
    return path


def pdns_zone(api: Api, name: str, count: int) -> str:
    api.call("POST", "/zones", {"name": f"{name}.", "kind": "Native", "nameservers": []})
    for numbers in chunks(count):
        api.call("PATCH", f"/zones/{name}.", {"rrsets": pdns_rrsets(name, numbers)})
    return f"/zones/{name}."


def median_ms(rounds: int, questions: dict[str, Callable[[int], object]], times: int = 1) -> dict[str, float]:
    """Each question `times` times a round, with a number that was not used before."""
    taken: dict[str, list[float]] = {name: [] for name in questions}
    number = 0
    for _ in range(rounds):
        for name, ask in questions.items():
            for _ in range(times):
                number += 1
                began = time.perf_counter()
                ask(number)
                taken[name].append((time.perf_counter() - began) * 1000)
    return {name: statistics.median(values) for name, values in taken.items()}


def report(title: str, medians: dict[str, float]) -> None:
    print(title)
    for name, value in medians.items():
        print(f"  {name:38} {value:10.3f} ms")


def lists(ours: Api, theirs: Api, small: str, their_small: str, rounds: int) -> None:
    medians = median_ms(
        rounds,
        {
            "ours, 100 records": lambda number: ours.call("GET", f"{small}?x={number}"),
            "ours, kept": lambda number: ours.call("GET", small),
            "PowerDNS, 100 records": lambda number: theirs.call("GET", their_small),
        },
        20,
    )
    report("list of 100", medians)
    print(f"  ours / PowerDNS {medians['ours, 100 records'] / medians['PowerDNS, 100 records']:.2f}")


def filters(ours: Api, zones: dict[str, str], rounds: int) -> None:
    def question(zone: str, query: str) -> Callable[[int], object]:
        template = f"{zones[zone]}?x=@&{query.replace('{zone}', zone)}"
        return lambda number: ours.call(
            "GET", template.replace("@", str(number)).replace("{}", str(number % SMALL))
        )

    for title, table, times in (("led by an index", LED, 10), ("walking the zone", WALKED, 1)):
        questions = {
            f"{name}, {zone}": question(zone, query) for name, query in table.items() for zone in zones
        }
        medians = median_ms(rounds, questions, times)
        report(f"filter, {title}", medians)
        small, large = zones
        for name in table:
            print(f"  {name}: large / small {medians[f'{name}, {large}'] / medians[f'{name}, {small}']:.2f}")


def their_filters(theirs: Api, large: str, rounds: int) -> None:
    medians = median_ms(
        rounds,
        {
            "one name": lambda number: theirs.call(
                "GET", f"{large}?rrset_name=host-{number % SMALL}.{large[7:]}&rrset_type=TXT"
            ),
            "search": lambda number: theirs.call("GET", f"/search-data?q=*text-{number % SMALL}*&max=100"),
        },
    )
    report("filter, PowerDNS over the large zone", medians)


def batches(ours: Api, theirs: Api, our_path: str, their_path: str, their_name: str, rounds: int) -> None:
    numbers = range(BATCH)

    def post(number: int) -> None:
        ours.call("POST", f"{our_path}/batch", {"posts": ours_posts(numbers, f"b{number}")})

    def patch(number: int) -> None:
        theirs.call("PATCH", their_path, {"rrsets": pdns_rrsets(their_name, numbers, f"b{number}")})

    medians = median_ms(rounds, {"ours": post, "PowerDNS": patch})
    report(f"batch of {BATCH:,} new records with comments (ours: and tags)", medians)
    print(f"  ours / PowerDNS {medians['ours'] / medians['PowerDNS']:.2f}")


def main(rounds: int, large: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="edgestead-lists-"))
    with ExitStack() as started:
        started.callback(shutil.rmtree, folder)
        child = Child("ours", folder)
        started.callback(child.close)
        pdns = PowerDns(folder)
        started.callback(pdns.close)
        ours = Api(f"{child.base}/client/v4", {"Authorization": f"Bearer {TOKEN}"})
        theirs = Api(pdns.base, {"X-API-Key": PDNS_KEY})
        sizes = {"list.test": 100, "small.test": SMALL, "large.test": large, "batch.test": 0}
        paths = {name: our_zone(ours, folder, name, count) for name, count in sizes.items()}
        their_paths = {name: pdns_zone(theirs, name, count) for name, count in sizes.items()}
        lists(ours, theirs, paths["list.test"], their_paths["list.test"], rounds)
        filters(ours, {name: paths[name] for name in ("small.test", "large.test")}, rounds)
        their_filters(theirs, their_paths["large.test"], rounds)
        batches(ours, theirs, paths["batch.test"], their_paths["batch.test"], "batch.test", rounds)


if __name__ == "__main__":
    os.sched_setaffinity(0, {LOAD_CORE})
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--large", type=int, default=100_000)
    main(**vars(parser.parse_args()))
