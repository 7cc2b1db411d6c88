"""A node that follows in a real cluster of three, for tests that know only `LocalApi`.

Owns  the cluster, emptying it between tests; asking it over a socket as `LocalApi` is asked.
Not   which tests do (`follower`); starting nodes (`cluster_nodes`).

A test that looks into the process which answers it (its store, its clock, its log) is skipped. Whichever node
leads, another one is asked: when the office has moved, the next test asks elsewhere.
"""

import http.client
import json
import re
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from edgestead.model.call import Profile
from edgestead.server.cluster.gate import NotNow
from edgestead.server.credentials import Credentials
from edgestead.store.controllog import NotLeader
from edgestead.testing.edge import CALL_SECONDS_MAX, Edge
from edgestead.testing.emptying import Contents
from edgestead.testing.server import EdgeServer, wait_until
from tests.support.api import BEARER, CREDENTIALS, Answer
from tests.support.cluster_nodes import ClusterNodes

LEASE_MS = 20_000  # of nodes on a busy machine, whose death nobody waits for
SECONDS_MAX = 300
AS_LOCAL = (
    "--nameserver=ns2.edge.internal",
    "--nameserver=ns1.edge.internal",
    "--edge-address=203.0.113.1",
    "--edge-address=2001:db8::1",
    "--allow-as-of",
)
_NOTHING_DONE = re.compile(rf"{re.escape(NotLeader.wording)}|{re.escape(NotNow.wording)}")


class FollowerCluster:
    """Three nodes, of which one that follows is asked."""

    def __init__(self, folder: Path, dsn: str, profile: Profile) -> None:
        as_local = folder.with_name("edge.toml")
        as_local.write_text("api-guesses = 0\ncontrol-spare = false\n")  # nobody dies
        self._nodes = ClusterNodes(
            folder,
            dsn,
            ("a", "b", "c"),
            "--profile",
            profile.value,
            *AS_LOCAL,
            f"--config={as_local}",
            known=Credentials(**msgspec.structs.asdict(CREDENTIALS)),
            settings=f"lease-ms = {LEASE_MS}\n",
        )
        try:
            self._nodes.start(in_turn=True)
            self._contents = Contents(Edge(self.server.ready))
        except BaseException:
            self._nodes.close()
            raise

    @property
    def server(self) -> EdgeServer:
        return self._nodes.servers[self._nodes.followers[0]]

    def empty(self) -> None:
        """Again where a node could not answer for a moment."""

        def is_empty() -> bool:
            try:
                self._contents.restore()
            except AssertionError as error:
                if not str(error).startswith("(503"):
                    raise
                return False
            return True

        wait_until(is_empty, SECONDS_MAX)

    def close(self) -> None:
        if hasattr(self, "_contents"):
            self._contents.close()
        self._nodes.close()


class FollowerApi:
    """Has of `LocalApi` what a client can do; a test that wants more is skipped."""

    def __init__(self, server: EdgeServer, as_of: date | None = None) -> None:
        self._base = urlsplit(server.ready["api_base"]).netloc
        self._as_of = {} if as_of is None else {"edge-as-of": as_of.isoformat()}

    def __getattr__(self, name: str) -> Any:
        pytest.skip(f"it looks into the process that answers: api.{name}")

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):
            pytest.skip(f"it changes the process that answers: api.{name}")
        super().__setattr__(name, value)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        auth: Mapping[str, str] = BEARER,
        base: str = "/client/v4",
        **inside: Any,
    ) -> Answer:
        """As `LocalApi.call`. What is not done because no node leads for a moment is asked again."""
        if (method, path) == ("POST", "/accounts"):
            pytest.skip("an account stays, and the next test would find it")
        if inside:
            pytest.skip(f"it looks into the process that answers: {', '.join(inside)}")
        octets = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        sent = {"content-type": "application/json"} if octets else {}
        sent |= {**self._as_of, **auth, **{k.lower(): v for k, v in (headers or {}).items()}}
        answers: list[Answer] = []

        def is_done() -> bool:
            answers.append(self._ask(method, base + path, octets, sent))
            return answers[-1].status != 503 or not _NOTHING_DONE.search(answers[-1].body.decode())

        wait_until(is_done, SECONDS_MAX)
        return answers[-1]

    def _ask(self, method: str, target: str, octets: bytes, headers: Mapping[str, str]) -> Answer:
        connection = http.client.HTTPConnection(self._base, timeout=CALL_SECONDS_MAX)
        try:
            connection.putrequest(method, target, skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name, value)
            if octets and "content-length" not in headers:
                connection.putheader("content-length", str(len(octets)))
            connection.endheaders(octets or None)
            found = connection.getresponse()
            names = {name.lower(): value for name, value in found.getheaders()}
            return Answer(found.status, names, found.read())
        finally:
            connection.close()

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
