"""An object store for tests: moto's server on loopback, one a worker of pytest, a bucket for each test.

Owns  the fixture, and looking into a bucket.
Not   what is put there (`edgestead.s3`).
"""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import pytest

from edgestead.s3.bodies import Bucket, S3Bodies

CREDENTIALS = "[default]\naws_access_key_id = tests\naws_secret_access_key = of-no-worth\n"


class Store:
    """`bucket` makes one that is empty."""

    def __init__(self, url: str, credentials: Path) -> None:
        self._url, self._credentials = url, str(credentials)
        credentials.write_text(CREDENTIALS)
        self._numbers = count(1)

    def bucket(self, prefix: str = "") -> Bucket:
        made = Bucket(f"{self._url}/values-{next(self._numbers)}{prefix}", "us-east-1", self._credentials)
        client_of(made).create_bucket(Bucket=name_of(made))
        return made


class Shared(S3Bodies):
    """On the one client of a store: making one takes a tenth of a second."""

    clients: ClassVar[dict[str, Any]] = {}

    def _asking(self) -> Any:
        where = urlsplit(self._where.url).netloc
        if where not in self.clients:
            self.clients[where] = super()._asking()
        return self.clients[where]

    def close(self) -> None: ...


def client_of(bucket: Bucket) -> Any:
    return Shared(bucket)._asking()


def name_of(bucket: Bucket) -> str:
    return urlsplit(bucket.url).path.split("/")[1]


def held(bucket: Bucket) -> dict[str, bytes]:
    """Every object of a bucket."""
    client, name = client_of(bucket), name_of(bucket)
    keys = [one["Key"] for one in client.list_objects_v2(Bucket=name).get("Contents", ())]
    return {key: client.get_object(Bucket=name, Key=key)["Body"].read() for key in keys}


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield Store(f"http://{host}:{port}", tmp_path_factory.mktemp("s3") / "credentials")
    finally:
        server.stop()
