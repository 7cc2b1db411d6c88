"""The bytes of large values on a store that speaks S3: AWS, Ceph, Garage, MinIO, SeaweedFS and others.

Owns  what is asked of the store: PUT, GET, DELETE of whole objects by their own names, and nothing else.
Not   which of them are needed, and which are left over: that is in the database (`postgres.blobs`); whether
      a store that does not answer is asked (`breaker`).

No listing, no conditional write, no multipart upload: what all stores do alike. A name is never written
twice with other bytes, so a request that is sent again does no harm. A body is sent with its SHA-256; stores
that know the header verify it, and readers compare it with the row in any case.

The client library is botocore, an extra of the package (`edgestead[s3]`), loaded by the first request.
"""

import logging
import threading
from base64 import b64encode
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.client import NO_CONTENT
from typing import IO, TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from edgestead.model.refusals import Unavailable
from edgestead.model.seldom import Seldom
from edgestead.s3.breaker import Breaker

if TYPE_CHECKING:
    from botocore.client import BaseClient

CONNECT_SECONDS_MAX = 2  # a store is as near as the database
READ_SECONDS_MAX = 5  # without a byte
TRIES_MAX = 2  # of a request, in all: ten seconds of silence, and then nobody asks for a while (`breaker`)
PUTS_MAX = 6  # at a time: two of the threads that key-values have for what waits stay free for others
CONNECTIONS_MAX = 16  # as many as threads read and write
READ_BYTES = 256 << 10
_GONE = ("NoSuchKey", "404")

_log = logging.getLogger(__name__)
_failures, _lines = Seldom(), threading.Lock()


class NoLibrary(OSError):
    """botocore is not installed."""

    def __str__(self) -> str:
        return "`cluster.s3` needs the client library: install edgestead[s3], or the package python3-botocore"


class StoreAway(Unavailable):
    """Raised at once while the store does not answer."""

    wording = (
        "The store of large values cannot be used right now. Small values, lists and deletions go on."
        " Try again in some seconds."
    )


class Bucket(NamedTuple):
    """`url` is https://HOST[:PORT]/BUCKET[/PREFIX]. `credentials` is a file as AWS's tools have it; None
    where botocore looks: variables, the user's files, the machine's role.
    """

    url: str
    region: str
    credentials: str | None = None


class S3Bodies:
    """`Bodies` on a bucket that is there. Safe to use from any thread. Nothing is connected to before its
    first use. Raises NoLibrary.
    """

    def __init__(self, bucket: Bucket) -> None:
        _library()
        self._where = bucket
        self._name, _, prefix = urlsplit(bucket.url).path.strip("/").partition("/")
        self._prefix = f"{prefix}/" if prefix else ""
        self._client: BaseClient | None = None
        self._door = threading.Lock()
        self._breaker = Breaker()
        self._puts = threading.BoundedSemaphore(PUTS_MAX)

    def put(self, id_: str, content: IO[bytes], length: int, sha256: bytes) -> None:
        if not self._puts.acquire(blocking=False):
            raise StoreAway()
        try:
            with self._asked():
                done = self._asking().put_object(
                    **self._named(id_),
                    Body=content,
                    ContentLength=length,
                    ContentType="application/octet-stream",
                    ChecksumSHA256=b64encode(sha256).decode(),
                )
                _check("ETag" in done)
        finally:
            self._puts.release()

    def read(self, id_: str) -> Iterator[bytes]:
        with self._asked(id_):
            found = self._asking().get_object(**self._named(id_))
            body = found["Body"]
            try:
                _check("ETag" in found)
                yield from iter(lambda: body.read(READ_BYTES), b"")
            finally:
                body.close()

    def remove(self, ids: Iterable[str]) -> None:
        for id_ in ids:
            with self._asked():
                done = self._asking().delete_object(**self._named(id_))
                _check(done["ResponseMetadata"]["HTTPStatusCode"] == NO_CONTENT)

    def close(self) -> None:
        with self._door:
            if self._client is not None:
                self._client.close()
                self._client = None

    @contextmanager
    def _asked(self, id_: str = "") -> Iterator[None]:
        """Turns what the library raises into Unavailable, or into FileNotFoundError of an object that is not
        there.
        """
        from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError
        from botocore.parsers import (
            ResponseParserError,  # of an answer of another program, and no BotoCoreError
        )

        if not self._breaker.may_ask():
            raise StoreAway()
        is_silent = False
        try:
            yield
        except ClientError as error:
            if id_ and error.response.get("Error", {}).get("Code") in _GONE:
                raise FileNotFoundError(id_) from error
            raise _unavailable(error) from error
        except HTTPClientError as error:  # no connection, no answer, or not all of it
            is_silent = True
            raise _unavailable(error) from error
        except (BotoCoreError, ResponseParserError, OSError) as error:
            raise _unavailable(error) from error
        finally:
            (self._breaker.was_silent if is_silent else self._breaker.answered)()

    def _named(self, id_: str) -> dict[str, str]:
        return {"Bucket": self._name, "Key": self._prefix + id_}

    def _asking(self) -> Any:
        with self._door:
            if self._client is None:
                self._client = _client(self._where)
            return self._client


def _library() -> None:
    from importlib.util import find_spec

    if find_spec("botocore") is None:
        raise NoLibrary


def _client(bucket: Bucket) -> "BaseClient":
    from botocore.config import Config
    from botocore.exceptions import NoCredentialsError
    from botocore.session import Session

    session = Session()
    if bucket.credentials is not None:
        session.set_config_variable("credentials_file", bucket.credentials)
        found = session.get_component("credential_provider").get_provider("shared-credentials-file").load()
        if found is None:
            raise NoCredentialsError
        session.set_credentials(found.access_key, found.secret_key, found.token)
    url = urlsplit(bucket.url)
    return session.create_client(
        "s3",
        region_name=bucket.region,
        endpoint_url=f"{url.scheme}://{url.netloc}",
        config=Config(
            signature_version="s3v4",
            connect_timeout=CONNECT_SECONDS_MAX,
            read_timeout=READ_SECONDS_MAX,
            max_pool_connections=CONNECTIONS_MAX,
            retries={"total_max_attempts": TRIES_MAX, "mode": "standard"},
            s3={"addressing_style": "path"},  # a bucket needs no name in DNS, nor in a certificate
            # By default it adds checksums in a form that many stores do not know.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    )


def _check(is_of_a_store: bool) -> None:
    """A proxy's page is no acknowledgement: what every such store says is there. Raises OSError."""
    if not is_of_a_store:
        raise OSError("the answer is not that of a store that speaks S3")


def _unavailable(error: Exception) -> Unavailable:
    with _lines:
        times = _failures.happened()
    if times:
        _log.error("the store of large values (`cluster.s3`): %s (%d since the last line)", error, times)
    return StoreAway()
