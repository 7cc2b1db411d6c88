"""What one inspection costs here and in libmodsecurity, in the same run, on the same requests.

    python benchmarks/waf_inspect.py [--crs FOLDER] [--levels 1,4] [--rounds 9] [--no-scan]

Every request differs from all others in each value. Both run the request phases only, and block nothing.
Times are processor time, so that other work on the machine counts little; each is the median of rounds in
which the two take turns. Without --crs the system's rules are used. The library is built without a database
of places, so the file of rules 910xxx is left out for it. --no-scan: as on a
machine without Hyperscan.
"""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from statistics import median
from time import process_time_ns

sys.path.insert(0, str(Path(__file__).parent.parent))

from edgestead.waf.engine import Engine, finish
from edgestead.waf.transaction import Header, Request
from tests.waf.conftest import engine_of
from tests.waf.witness import RULES, SETUP, Witness

WORDS = (
    "summer winter shoes red blue price size green black street garden light paper cotton small large".split()
)
GOALS = {"GET": 3.0, "JSON 2 KB": 6.0, "upload 100 KB": 7.0, "SQL injection": 2.0}
HOSTILE_GOAL = 1 / 3
PUNCTUATION = b"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"


class Maker:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def words(self, count: int) -> str:
        chosen = (f"{self.random.choice(WORDS)}{self.random.randrange(1000)}" for _ in range(count))
        return " ".join(chosen)

    def head(self) -> list[Header]:
        token = f"{self.random.getrandbits(128):032x}"
        cookies = f"session={token}; theme=dark; cart={self.random.randrange(10_000)}"
        version = (
            f"{self.random.randrange(100, 130)}.0.{self.random.randrange(9_999)}.{self.random.randrange(200)}"
        )
        engine = "AppleWebKit/537.36 (KHTML, like Gecko)"
        agent = f"Mozilla/5.0 (X11; Linux x86_64) {engine} Chrome/{version} Safari/537.36"
        return [
            (b"Host", b"shop.example"),
            (b"User-Agent", agent.encode()),
            (
                b"Accept",
                b"text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
            ),
            (b"Accept-Language", b"en-US,en;q=0.5"),
            (b"Accept-Encoding", b"gzip, deflate, br"),
            (b"Referer", f"https://shop.example/list/{self.random.randrange(10_000)}".encode()),
            (b"Connection", b"keep-alive"),
            (b"Cookie", cookies.encode()),
        ]

    def get(self, query: str | None = None) -> Request:
        number = self.random.randrange(100_000)
        if query is None:
            query = f"q={self.words(2).replace(' ', '+')}&page={number}&sort=price"
        target = f"/shop/items/{number}?{query}".encode()
        return Request(method=b"GET", target=target, headers=tuple(self.head()))

    def post(self, kind: bytes, body: bytes) -> Request:
        headers = (*self.head(), (b"Content-Type", kind), (b"Content-Length", b"%d" % len(body)))
        return Request(method=b"POST", target=b"/api/items", headers=headers, body=body)

    def sql(self) -> Request:
        number = self.random.randrange(10_000)
        return self.get(f"id={number}%27+UNION+SELECT+username%2Cpassword+FROM+users{number}--+-")

    def json(self) -> Request:
        items = []
        while len(json.dumps(items)) < 1_950:
            items.append(
                {
                    "id": self.random.randrange(100_000),
                    "name": self.words(3),
                    "tags": [self.words(1), self.words(1)],
                    "price": self.random.randrange(1, 9_999) / 100,
                    "note": self.words(6),
                }
            )
        return self.post(b"application/json", json.dumps({"items": items}).encode())

    def upload(self) -> Request:
        boundary = b"----x%032x" % self.random.getrandbits(128)
        file = self.random.randbytes(100_000).replace(boundary, b"")
        parts = [
            b'--%b\r\nContent-Disposition: form-data; name="title"\r\n\r\n%b\r\n'
            % (boundary, self.words(3).encode()),
            b'--%b\r\nContent-Disposition: form-data; name="file"; filename="photo.jpg"\r\n'
            b"Content-Type: image/jpeg\r\n\r\n%b\r\n--%b--\r\n" % (boundary, file, boundary),
        ]
        return self.post(b"multipart/form-data; boundary=" + boundary, b"".join(parts))

    def form(self, values: list[bytes]) -> Request:
        safe = bytes(b for b in range(256) if chr(b).isalnum() and b < 128)
        body = b"&".join(
            b"a%d=" % n + b"".join(bytes((b,)) if b in safe else b"%%%02x" % b for b in value)
            for n, value in enumerate(values)
        )
        return self.post(b"application/x-www-form-urlencoded", body)

    def text(self, alphabet: bytes, size: int) -> bytes:
        return bytes(self.random.choices(alphabet, k=size))

    def from_words(self, words: list[str], size: int) -> bytes:
        out = ""
        while len(out) < size:
            out += self.random.choice(words) + " "
        return out[:size].encode()


SHAPES: dict[str, Callable[[Maker], Request]] = {
    "GET": Maker.get,
    "JSON 2 KB": Maker.json,
    "upload 100 KB": Maker.upload,
    "SQL injection": Maker.sql,
}
HOSTILE: dict[str, Callable[[Maker], Request]] = {
    "20 KB punctuation": lambda m: m.form([m.text(PUNCTUATION, 20_000)]),
    "40 KB punctuation": lambda m: m.form([m.text(PUNCTUATION, 40_000)]),
    "900 random values": lambda m: m.form([m.random.randbytes(20) for _ in range(900)]),
    "250 plain words": lambda m: m.form([m.words(1).encode() for _ in range(250)]),
    "20 KB backslashes": lambda m: m.form([m.text(b"\\ux0123abc", 20_000)]),
    "20 KB of SQL": lambda m: m.form(
        [m.from_words("select from where and or union ' -- ( ) 1 = , like /* */".split(), 20_000)]
    ),
    "20 KB of HTML": lambda m: m.form(
        [m.from_words("<b> <script </a> on = \" ' href style img > javascript :".split(), 20_000)]
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--crs", type=Path)
    parser.add_argument("--levels", default="1,4")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--short", action="store_true", help="without the hostile requests")
    parser.add_argument("--no-scan", action="store_true", help="each rule looks by itself")
    given = parser.parse_args()
    engine = engine_of(given.crs)
    if given.no_scan:
        engine = Engine(engine.rule_set)
    print(f"rules: {engine.rule_set.catalogue.description}; microseconds, medians of {given.rounds} rounds")
    gets: dict[int, float] = {}
    for level in map(int, given.levels.split(",")):
        rules = (given.crs / "rules", _setup(given.crs)) if given.crs else (RULES, SETUP)
        witness, policy = Witness(level, *rules), engine.level_policy(level, None)

        def ours(request: Request, policy: object = policy) -> None:
            finish(engine.inspect(request, policy).request())  # type: ignore[arg-type]

        print(f"\nparanoia level {level:<22}{'peer':>10}{'own':>10}{'ratio':>8}   goal")
        for shapes, each in ((SHAPES, 10), ({} if given.short else HOSTILE, 1)):
            for name, make in shapes.items():
                peer, own = compare(witness.matches, ours, make, given.rounds, each)
                goal = GOALS.get(name, HOSTILE_GOAL)
                print(f"{name:<37}{peer:>10.0f}{own:>10.0f}{peer / own:>8.1f}   {goal:.1f}")
                if name == "GET":
                    gets[level] = own
    if len(gets) > 1:
        low, high = min(gets), max(gets)
        print(f"\nGET at level {high} costs {gets[high] / gets[low]:.2f} times level {low} (goal 2.1)")


def _setup(crs: Path) -> Path:
    return next(
        path for name in ("crs-setup.conf", "crs-setup.conf.example") if (path := crs / name).exists()
    )


def compare(
    peer: Callable[[Request], object],
    own: Callable[[Request], object],
    make: Callable[[Maker], Request],
    rounds: int,
    each: int,
) -> tuple[float, float]:
    """Microseconds of processor time for one request: of the peer, of ours."""
    maker = Maker(7)
    for _ in range(3):
        request = make(maker)
        peer(request)
        own(request)
    peers, owns = [], []
    for _ in range(rounds):
        requests = [make(maker) for _ in range(each)]
        for run, times in ((peer, peers), (own, owns)):
            start = process_time_ns()
            for request in requests:
                run(request)
            times.append((process_time_ns() - start) / 1_000 / each)
    return median(peers), median(owns)


if __name__ == "__main__":
    main()
