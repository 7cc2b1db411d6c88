"""A whole REST API in one process, without a socket: real store, real pipeline.

Owns  the assembly, and a client that speaks ASGI to it.
Asks  `api`, `services`, `store.sqlite`.
Tells tests of the API, ours and users'.
Not   DNS: nobody serves what is written.
"""

import asyncio
import itertools
import json
import tempfile
from collections.abc import Mapping, Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from edgestead.api.app import Application, create_app
from edgestead.api.barrier import StoreBarrier
from edgestead.api.connections import Connections
from edgestead.api.context import AppContext
from edgestead.api.kv_data import KvData
from edgestead.api.quota import Quota
from edgestead.api.request_line import encode
from edgestead.model.call import Profile
from edgestead.model.counters import private_page, render
from edgestead.services import credentials, identities
from edgestead.services.access import AccessTable
from edgestead.services.credentials import Credentials
from edgestead.services.platform import Platform
from edgestead.services.rulesets_managed import ManagedRuleset
from edgestead.store.changes import Change
from edgestead.store.sqlite.connection import pragma
from edgestead.store.sqlite.control import SqliteControlStore
from edgestead.store.sqlite.kv import SqliteKvStore
from edgestead.store.writes import Writes
from edgestead.tables.schema import MIGRATIONS
from edgestead.testing import edge

CREDENTIALS = Credentials(
    account_id="a" * 32,
    email="admin@example.com",
    api_key="0123456789abcdef0123456789abcdef01234",
    api_token="Test-token_0123456789ABCDEFabcdef0123456",
)
BEARER = {"authorization": f"Bearer {CREDENTIALS.api_token}"}
KEY_PAIR = {"x-auth-email": CREDENTIALS.email, "x-auth-key": CREDENTIALS.api_key}
_CONTROL = "control.db"
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
        SqliteControlStore(folder / _CONTROL, MIGRATIONS).close()
        SqliteKvStore(folder).close()
        return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


class LocalApi:
    """The API over one store. Each call runs on one event loop; the clock moves a microsecond a request.

    `changes` is what the feed was told of zones and rulesets, `lines` what was logged, `reasons` why the
    server is not ready. Unlike in a server a write is not durable when it is answered.
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
    ) -> None:
        for name, octets in _new_databases().items():
            if not (folder / name).exists():
                (folder / name).write_bytes(octets)
        self.store = SqliteControlStore(folder / _CONTROL, MIGRATIONS)
        self.changes: list[Change] = []
        self.store.on_group(self._note)
        kv = SqliteKvStore(folder)
        self.kv = KvData(kv)
        for db in (self.store._db, kv._db):
            pragma(db, "synchronous", "OFF")  # waiting for the disk was nine tenths of the tests' time
        self.lines: list[bytes] = []
        self.reasons: tuple[str, ...] = ()
        self.access = AccessTable()
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
        self.store.read(self.access.refresh)

    async def _make_app(self, profile: Profile, as_of: date | None, allow_as_of: bool) -> Application:
        return create_app(
            AppContext(
                barrier=StoreBarrier(self.store, Writes(self.store)),
                kv=self.kv,
                access=self.access,
                platform=self.platform,
                profile=profile,
                counters=self.page,
                metrics=lambda: render({"control": self.page}),
                not_ready=lambda: self.reasons,
                now_us=self._clock_us.__next__,
                log=lambda line: self.lines.append(encode(line)),
                as_of=as_of,
                allow_as_of=allow_as_of,
                connections=self._connections,
                quota=self._quota,
                events_folder=self.events_folder,
            )
        )

    def close(self) -> None:
        self.kv.close()
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
    ) -> Answer:
        """One request. A `body` that is not bytes is sent as JSON."""
        return self._loop.run_until_complete(
            self.call_async(method, path, body, headers=headers, auth=auth, base=base)
        )

    async def call_async(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        auth: Mapping[str, str] = BEARER,
        base: str = "/client/v4",
    ) -> Answer:
        octets = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        sent = {"host": "localhost", **auth}
        if octets:
            sent |= {"content-type": "application/json", "content-length": str(len(octets))}
        sent |= headers or {}
        raw_path, _, query = (base + path).partition("?")
        scope = {
            "type": "http",
            "method": method,
            "raw_path": raw_path.encode("ascii"),
            "query_string": query.encode("ascii"),
            "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
            "client": ("127.0.0.1", 1),
        }
        answered: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": octets, "more_body": False}

        async def send(message: Any) -> None:
            answered.append(message)

        await self.app(scope, receive, send)
        start, *parts = answered
        return Answer(
            start["status"],
            {name.decode(): value.decode() for name, value in start["headers"]},
            b"".join(part.get("body", b"") for part in parts),
        )

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
