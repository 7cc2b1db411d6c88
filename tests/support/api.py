"""A whole REST API in one process, without a socket: real store, real pipeline.

Owns  the assembly, and a client that gives it requests.
Not   DNS, which is not there; bytes on a socket (`http1`).
"""

import asyncio
import itertools
import json
import tempfile
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from edgestead.health.rows import Row
from edgestead.http1.connections import Connections
from edgestead.http1.head import by_name
from edgestead.http1.messages import Body, Request, Response
from edgestead.model.call import Profile
from edgestead.model.counters import private_page, render
from edgestead.model.quotas import Quotas
from edgestead.rest.app import Application
from edgestead.rest.context import AppContext
from edgestead.rest.guesses import Guesses
from edgestead.rest.kv_data import KvData
from edgestead.rest.quota import Quota
from edgestead.rest.request_line import FORMS
from edgestead.server import stores
from edgestead.store.answered import PASSED, Passed
from edgestead.store.changes import Change
from edgestead.store.writes import Barrier, Writes
from edgestead.testing import edge
from edgestead.usecases.access import credentials, identities
from edgestead.usecases.access.credentials import Credentials
from edgestead.usecases.access.identities import FedAccess
from edgestead.usecases.platform import Platform
from edgestead.usecases.ruleset.managed import ManagedRuleset
from tests.support.barrier import StoreBarrier

CREDENTIALS = Credentials(
    account_id="a" * 32,
    email="admin@example.com",
    api_key="0123456789abcdef0123456789abcdef01234",
    api_token="Test-token_0123456789ABCDEFabcdef0123456",
)
BEARER = {"authorization": f"Bearer {CREDENTIALS.api_token}"}
KEY_PAIR = {"x-auth-email": CREDENTIALS.email, "x-auth-key": CREDENTIALS.api_key}
T = TypeVar("T")
FIRST_US = 1_767_323_045_678_901  # 2026-01-02T03:04:05.678901Z


class Answer(edge.Answer):
    """One answer, at any date."""

    @property
    def causes(self) -> list[int]:
        """The codes, looking into the 1004 that older dates put around them."""
        errors = self.json["errors"]
        return [cause["code"] for error in errors for cause in error.get("error_chain", [error])]


@cache
def _new_databases() -> Mapping[str, bytes]:
    """The files of a new server: made once, since each migration waits for the disk, and then copied."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        stores.open_control(folder).close()
        stores.open_kv(folder).close()
        return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


class LocalApi:
    """The API over one store. Each call runs on one event loop; the clock moves a microsecond a request.

    `changes` is what the feed was told of zones and rulesets, `lines` what was logged, `reasons` why the
    server is not ready; `feed` is what a write waits for. Unlike in a server a write is not durable when it
    is answered.
    """

    def __init__(
        self,
        folder: Path,
        *,
        profile: Profile = Profile.SPEC,
        as_of: date | None = None,
        allow_as_of: bool = False,
        nameservers: tuple[str, ...] = ("ns2.edge.internal", "ns1.edge.internal"),
        edge_addresses: tuple[str, ...] = ("203.0.113.1", "2001:db8::1"),
        own_addresses: frozenset[str] = frozenset({"203.0.113.1", "2001:db8::1"}),
        managed: ManagedRuleset | None = None,
        connections: Connections | None = None,
        quota: Quota | None = None,
        feed: Barrier | None = None,
        metrics_open: bool = True,
        guesses_max: int = 0,
        cluster_database: str | None = None,
    ) -> None:
        for name, octets in _new_databases().items():
            if not (folder / name).exists():
                (folder / name).write_bytes(octets)
        # waiting for the disk was nine tenths of the tests' time
        self.store = stores.open_control(folder, synced=False)
        self.changes: list[Change] = []
        self.store.on_commit(self._note)  # before the write is answered: who asks next sees it
        self._kv = (
            stores.open_kv(folder, synced=False)
            if cluster_database is None
            else stores.open_cluster_kv(cluster_database)
        )
        self.kv = KvData(self._kv)
        self.lines: list[bytes] = []
        self.reasons: tuple[str, ...] = ()
        self._fed = FedAccess()
        self.access = self._fed.table
        self.store.on_commit(self._fed.committed)
        self.page = private_page()
        self._ids = itertools.count(1)
        self._clock_us = itertools.count(FIRST_US)
        self._loop = asyncio.new_event_loop()
        self.platform = Platform(
            nameservers=nameservers,
            edge_addresses=edge_addresses,
            own_addresses=own_addresses,
            new_id=lambda: f"{next(self._ids):032x}",
            managed=managed,
        )
        self._connections = connections or Connections()
        self._quota = quota
        self._feed = feed
        self._metrics_open = metrics_open
        self._guesses = Guesses(guesses_max)
        self.events_folder = folder / "events"
        self.install(CREDENTIALS)
        self.app = self._loop.run_until_complete(self._make_app(profile, as_of, allow_as_of))

    def _note(self, changes: Sequence[Change]) -> None:
        self.changes += [change for change in changes if change.kind not in identities.KINDS]

    def install(self, wanted: Credentials, *, revoke_others: bool = False) -> None:
        """Write credentials as a start of the server does."""
        self.store.write(
            lambda tx: credentials.install(
                tx, wanted, revoke_others=revoke_others, now_us=FIRST_US, new_id=self.platform.new_id
            )
        ).result()
        self.read_access()

    def limit(self, **quotas: int) -> None:
        """Have these quotas from now on."""
        object.__setattr__(self.platform, "quotas", Quotas(**quotas))

    def read_access(self) -> None:
        """Know what the tables say of tokens and keys: after a test has written there by itself."""
        self.store.read(self._fed.refresh)

    async def _make_app(self, profile: Profile, as_of: date | None, allow_as_of: bool) -> Application:
        return Application(
            AppContext(
                barrier=StoreBarrier(self.store, Writes(self.store, self._feed)),
                kv=self.kv,
                access=self.access,
                platform=self.platform,
                profile=profile,
                counters=self.page,
                metrics=lambda: render({"control": self.page}),
                health=self._health,
                now_us=self._clock_us.__next__,
                log=lambda line: self.lines.append(FORMS["json"](line)),
                as_of=as_of,
                allow_as_of=allow_as_of,
                connections=self._connections,
                quota=self._quota,
                events_folder=self.events_folder,
                metrics_open=self._metrics_open,
                guesses=self._guesses,
            )
        )

    def _health(self) -> tuple[Row, ...]:
        """`reasons` are failures of the storage, say."""
        return tuple(Row("store", str(n), "fail", words, "Look.", 1) for n, words in enumerate(self.reasons))

    def close(self) -> None:
        self.kv.close()
        self._kv.close()
        self.store.close()
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        auth: Mapping[str, str] = BEARER,
        base: str = "/client/v4",
        meanwhile: Callable[[], None] | None = None,
    ) -> Answer:
        """One request. A `body` that is not bytes is sent as JSON; `meanwhile` is called when half of it is
        there, or what only reads waits for something.
        """
        return self._loop.run_until_complete(
            self.call_async(method, path, body, headers=headers, auth=auth, base=base, meanwhile=meanwhile)
        )

    def together(self, *calls: Coroutine[Any, Any, T]) -> list[T]:
        """Run several, of `call_async` say, at a time."""

        async def run() -> list[T]:
            return await asyncio.gather(*calls)

        return self._loop.run_until_complete(run())

    async def call_async(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        auth: Mapping[str, str] = BEARER,
        base: str = "/client/v4",
        meanwhile: Callable[[], None] | None = None,
        pause: Callable[[], Awaitable[None]] | None = None,
    ) -> Answer:
        """As `call`. `pause` is awaited between the head and each half of the body."""
        octets = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        sent = {"host": "localhost", **auth}
        if octets:
            sent |= {"content-type": "application/json", "content-length": str(len(octets))}
        sent |= headers or {}
        head = [(name.lower().encode(), value.encode()) for name, value in sent.items()]
        incoming = Body(lambda: None)
        is_whole = meanwhile is None and pause is None
        cut = len(octets) if is_whole else len(octets) // 2
        _arrive(incoming, octets[:cut], is_last=is_whole)
        request = Request(method, (base + path).encode("ascii"), head, "127.0.0.1", incoming, by_name(head))
        passed = Passed("1", lambda: True)
        PASSED.set(passed)  # as if another node of a cluster had passed it on
        answer = self.app(request)
        if not isinstance(answer, Response):
            running = asyncio.ensure_future(answer)
            if meanwhile is not None:
                await asyncio.sleep(0)
                if not running.done():
                    meanwhile()
            if pause is not None:
                await pause()
            if not is_whole:
                _arrive(incoming, octets[cut:], is_last=True)
            response = await running
            assert response is not None, "there is no answer"
            answer = response
        found = await received(answer, method)
        if passed.kept:  # what another node would answer (`rest.kept`)
            assert (200, passed.kept) == (found.status, found.body)
        return found

    def get(self, path: str, **options: Any) -> Answer:
        return self.call("GET", path, **options)

    def post(self, path: str, body: Any, **options: Any) -> Answer:
        return self.call("POST", path, body, **options)

    def patch(self, path: str, body: Any, **options: Any) -> Answer:
        return self.call("PATCH", path, body, **options)

    def put(self, path: str, body: Any, **options: Any) -> Answer:
        return self.call("PUT", path, body, **options)

    def delete(self, path: str, **options: Any) -> Answer:
        return self.call("DELETE", path, **options)


def _arrive(body: Body, octets: bytes, *, is_last: bool) -> None:
    if octets:
        body.feed(octets)
    if is_last:
        body.end()


async def received(response: Response, method: str) -> Answer:
    """An answer as it arrives at the client."""
    lines = response.head(keep_alive=not response.close).decode().split("\r\n")[1:-2]
    body = b"" if isinstance(response.body, bytes) and method == "HEAD" else response.body
    if not isinstance(body, bytes):
        body = b"".join([portion async for portion in body]) if method != "HEAD" else b""
        response.done(None)
    return Answer(response.status, dict(line.split(": ", 1) for line in lines), body)
