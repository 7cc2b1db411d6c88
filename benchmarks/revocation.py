"""What does it cost that every request looks whether its caller still may?

    python benchmarks/revocation.py [--seconds 0.03] [--rounds 200]

In one process, without a socket, over an unsynced store: a GET of one record, which is stamped at its head,
and a PATCH of it, which is looked at in its transaction too. Short rounds alternate between the product and
the product without stamps and looks; the ratio of the two medians of processor time is printed. Next to it
the parts: a look at an admission that holds, and the search for a token in the table.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from edgestead.rest import rights
from edgestead.usecases.access.admission import Admission
from tests.support.api import BEARER, LocalApi


@contextmanager
def without_looks(api: LocalApi) -> Iterator[None]:
    """Stamp nobody, look at nobody."""
    kept = rights.Admission, rights.look_again
    identity = api.access.by_token(BEARER["authorization"].removeprefix("Bearer ").encode())
    assert identity is not None
    stamped = Admission(identity, api.access.epoch)
    rights.Admission = lambda identity, epoch: stamped  # type: ignore[assignment, misc]
    rights.look_again = lambda exchange, tx=None: None  # type: ignore[assignment]
    try:
        yield
    finally:
        rights.Admission, rights.look_again = kept  # type: ignore[misc]


def seconds_each(act: Callable[[], object], seconds: float) -> float:
    """Processor time of all threads: others on this machine count for less."""
    done, end, began = 0, time.perf_counter() + seconds, time.process_time()
    while time.perf_counter() < end:
        for _ in range(20):
            act()
        done += 20
    return (time.process_time() - began) / done


def compare(api: LocalApi, name: str, act: Callable[[], object], seconds: float, rounds: int) -> None:
    looked, plain = [], []
    for _ in range(rounds):
        looked.append(seconds_each(act, seconds))
        with without_looks(api):
            plain.append(seconds_each(act, seconds))
    middle = statistics.median(looked)
    print(f"{name}: {middle * 1e6:.1f} µs, with looks / without: {middle / statistics.median(plain):.3f}")


def parts() -> None:
    with tempfile.TemporaryDirectory() as folder:
        api = LocalApi(Path(folder))
        token = BEARER["authorization"].removeprefix("Bearer ").encode()
        identity = api.access.by_token(token)
        assert identity is not None
        admission, epoch, clock = Admission(identity, 1), 1, time.time_ns
        holds = seconds_each(lambda: admission.holds(epoch, clock), 0.3)
        again = seconds_each(lambda: api.access.by_token(token), 0.3)
        nothing = seconds_each(lambda: None, 0.3)
        print(f"an admission that holds {(holds - nothing) * 1e9:.0f} ns,", end=" ")
        print(f"the hash and the table {(again - nothing) * 1e9:.0f} ns")
        api.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=0.03)
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    parts()
    with tempfile.TemporaryDirectory() as folder:
        api = LocalApi(Path(folder))
        zone_id = api.post("/zones", {"name": "example.com"}).result["id"]
        records = f"/zones/{zone_id}/dns_records"
        one = api.post(records, {"type": "A", "name": "www", "content": "192.0.2.1"}).result["id"]
        number = count()
        compare(api, "GET", lambda: api.get(f"{records}/{one}"), options.seconds, options.rounds)
        compare(
            api,
            "PATCH",
            lambda: api.patch(f"{records}/{one}", {"comment": str(next(number))}),
            options.seconds,
            options.rounds,
        )
        api.close()


if __name__ == "__main__":
    main()
