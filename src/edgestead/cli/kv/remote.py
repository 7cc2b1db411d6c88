"""One namespace over the REST API.

Owns  the routes of namespaces, keys and values as `edgecli kv` uses them.
Not   options, output. Imports click and the standard library only.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from edgestead.cli.failure import Failed
from edgestead.cli.http import CHUNK_BYTES, Api, Refused, segment
from edgestead.cli.kv.namespace_target import ItemRefused, Write

PAGE_KEYS = 1_000
MEDIA_TYPE = "application/octet-stream"
VALUES_TOO_LARGE = 10047


def namespaces_path(account: str) -> str:
    return f"/accounts/{segment(account)}/storage/kv/namespaces"


class RemoteNamespace:
    """A `Namespace` behind the API."""

    def __init__(self, api: Api, account: str, id_: str) -> None:
        self.id = id_
        self._api = api
        self._account = account
        self._path = f"{namespaces_path(account)}/{segment(id_)}"

    @contextmanager
    def another(self) -> Iterator["RemoteNamespace"]:
        with Api(self._api.source) as api:
            yield RemoteNamespace(api, self._account, self.id)

    def get(self, key: str) -> Iterator[bytes]:
        return self._api.chunks(self._api.request("GET", self._value(key)))

    def put(self, key: str, content: Path | bytes, write: Write) -> None:
        query: dict[str, object] = {}
        if write.ttl_seconds is not None:
            query["expiration_ttl"] = write.ttl_seconds
        elif write.expiration_s is not None:
            query["expiration"] = write.expiration_s
        body = _Body(content)
        media_type = MEDIA_TYPE
        if write.metadata is not None:
            media_type = body.as_form(write.metadata)
        headers = {"Content-Type": media_type, **body.headers}
        self._api.request("PUT", self._value(key), query=query, headers=headers, body=body.chunks).read()

    def delete(self, key: str) -> None:
        self._api.call("DELETE", self._value(key))

    def entries(self, prefix: str) -> Iterator[dict[str, Any]]:
        cursor = ""
        while True:
            query: dict[str, object] = {"limit": PAGE_KEYS}
            if prefix:
                query["prefix"] = prefix
            if cursor:
                query["cursor"] = cursor
            answer = self._api.call("GET", f"{self._path}/keys", query=query)
            yield from answer["result"]
            cursor = (answer.get("result_info") or {}).get("cursor") or ""
            if not cursor:
                return

    def put_batch(self, items: list[bytes]) -> list[str]:
        return self._bulk("PUT", "/bulk", items)

    def delete_batch(self, items: list[bytes]) -> list[str]:
        return self._bulk("POST", "/bulk/delete", items)

    def get_batch(self, keys: list[str]) -> dict[str, Any]:
        try:
            answer = self._api.call("POST", f"{self._path}/bulk/get", json_body={"keys": keys})
        except Refused as refusal:
            if VALUES_TOO_LARGE in refusal.codes and len(keys) > 1:
                half = len(keys) // 2
                return self.get_batch(keys[:half]) | self.get_batch(keys[half:])
            raise _of_item(refusal, "/keys/") from None
        values = answer["result"]["values"]
        assert isinstance(values, dict)
        return values

    def _bulk(self, method: str, route: str, items: list[bytes]) -> list[str]:
        body = b"[" + b",".join(items) + b"]"
        try:
            answer = self._api.call(method, self._path + route, json_body=body)
        except Refused as refusal:
            raise _of_item(refusal, "/") from None
        result = answer.get("result") or {}
        return [str(key) for key in result.get("unsuccessful_keys") or []]

    def _value(self, key: str) -> str:
        if not key:
            raise Failed("The key is empty.")  # there is no such path, and the server would only say that
        return f"{self._path}/values/{segment(key)}"


def _of_item(refusal: Refused, array: str) -> Failed:
    """The refusal, as one of the item that its pointer names, if it names one of the array."""
    index = refusal.pointer.removeprefix(array).split("/", 1)[0]
    if not refusal.pointer.startswith(array) or not index.isdigit():
        return refusal
    # The server counts in the batch, and its reader in the file.
    messages = [message.replace(f"item {index}: ", "", 1) for message in refusal.messages]
    return ItemRefused(int(index), messages)


class _Body:
    """A value as a request's body, raw or in a form; read anew each time it is sent."""

    def __init__(self, content: Path | bytes) -> None:
        self._content = content
        self._before = self._behind = b""
        self._length = len(content) if isinstance(content, bytes) else content.stat().st_size

    @property
    def headers(self) -> dict[str, str]:
        return {"Content-Length": str(len(self._before) + self._length + len(self._behind))}

    def as_form(self, metadata: str) -> str:
        """Send it as multipart/form-data with its metadata (RFC 7578); returns the media type."""
        import secrets

        boundary = secrets.token_hex(16)
        part = f"--{boundary}\r\nContent-Disposition: form-data; name="
        self._before = (
            f'{part}"metadata"\r\n\r\n{metadata}\r\n{part}"value"; filename="value"\r\n'
            f"Content-Type: {MEDIA_TYPE}\r\n\r\n"
        ).encode()
        self._behind = f"\r\n--{boundary}--\r\n".encode()
        return f"multipart/form-data; boundary={boundary}"

    def chunks(self) -> Iterator[bytes]:
        yield self._before
        if isinstance(self._content, bytes):
            yield self._content
        else:
            yield from self._file_chunks(self._content)
        yield self._behind

    def _file_chunks(self, path: Path) -> Iterator[bytes]:
        missing = self._length
        with path.open("rb") as file:
            while missing and (chunk := file.read(min(CHUNK_BYTES, missing))):
                missing -= len(chunk)
                yield chunk
        if missing:
            raise Failed(f"{path} became shorter while it was read. The value is not written.")
