"""The REST API as a command line client sees it.

Owns  one connection, its time limits and repetitions, and how a refusal reads.
Not   which routes there are. Imports click and the standard library only; redirects are not followed,
      because a credential goes to its own host only.
"""

import http.client
import select
import socket
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from itertools import count
from typing import Any, Self
from urllib.parse import quote, urlencode, urlsplit

from edgestead.cli.dry_run import READS, is_dry_run, tell_unsent
from edgestead.cli.failure import Failed, warn
from edgestead.cli.source import Source

SECONDS_MAX = 60  # for one connection attempt, one send; and one receive, where a command says nothing else
ANSWER_BYTES_MAX = 256 << 20  # a bulk get of 100 values as JSON
REFUSAL_BYTES_MAX = 1 << 20
ATTEMPTS_MAX = 5
REFUSED_MAX = 9  # connections to a server that answered before, over its restart: 51 s of pauses
_KEPT_ALIVE = {  # a machine that is gone is known 25 s later, however long its answer may take
    socket.TCP_KEEPIDLE: 10,
    socket.TCP_KEEPINTVL: 5,
    socket.TCP_KEEPCNT: 3,
}
RETRY_AFTER_SECONDS_MAX = 30
CHUNK_BYTES = 65_536
REPEATED_ALWAYS = frozenset({429})
REPEATED = REPEATED_ALWAYS | {500, 502, 503, 504}

BASE_PATH = "/client/v4"
ELSEWHERE = "--from"  # the source's name of somebody else's server
_HERE = frozenset({"127.0.0.1", "::1", "localhost"})
PERHAPS = "It may have been done all the same: look before you run it again."
_NO_ROUTE = 7003
_BAD_CREDENTIALS = frozenset({6003, 9109, 10000})

Body = Callable[[], Iterable[bytes] | bytes]


class Refused(Failed):
    """The API said no. `errors` are its error objects, `pointer` the first one's place in the body."""

    def __init__(
        self, request: str, status: int, errors: list[dict[str, Any]], text: str, source: Source
    ) -> None:
        self.status = status
        self.errors = errors
        self.codes = {error.get("code") for error in errors}
        place = errors[0].get("source") if errors else None
        self.pointer = str(place.get("pointer", "")) if isinstance(place, dict) else ""
        self.messages = [_worded(error) for error in errors] or [text]
        lines = [f"  {line}" for error in errors for line in _chain(error)] or [f"  {text}"]
        if _NO_ROUTE in self.codes and not urlsplit(source.api_base).path.rstrip("/").endswith(BASE_PATH):
            lines.append(f"{source.name} is {source.api_base}: the paths of this API begin at {BASE_PATH}.")
        elif status in (401, 403) or self.codes & _BAD_CREDENTIALS:
            lines.append(f"The address and the credentials come from {source.name}.")
        super().__init__(f"{request} failed with status {status}.", *lines)


def _worded(error: Mapping[str, Any]) -> str:
    text = f"{error.get('message')} [code: {error.get('code')}]"
    # A stranger's server may say what steers a terminal.
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _chain(error: Mapping[str, Any]) -> Iterator[str]:
    """An error, and below it what led to it."""
    yield _worded(error)
    causes = error.get("error_chain")
    for cause in causes if isinstance(causes, list) else ():
        if isinstance(cause, dict):
            yield f"  because: {_worded(cause)}"


class _Silent(TimeoutError):
    """A server that has the whole request did not answer in time."""


class Api:
    """One keep-alive connection to the API, for one thread. Raises Failed, Refused."""

    def __init__(
        self,
        source: Source,
        *,
        answer_seconds: float = SECONDS_MAX,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.source = source
        self._answer_seconds = answer_seconds
        self._sleep = sleep
        self._has_answered = False
        try:
            parts = urlsplit(source.api_base)
            self._host, self._port = parts.hostname or "", parts.port
        except ValueError:
            raise Failed(f"{source.name}: {source.api_base!r} is not an address.") from None
        if parts.scheme not in ("http", "https") or not self._host or parts.query or parts.username:
            raise Failed(
                f"{source.name}: {source.api_base!r} is not an address like http://HOST:PORT/client/v4."
            )
        self._secure = parts.scheme == "https"
        self._base_path = parts.path.rstrip("/")
        self._connection: http.client.HTTPConnection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        json_body: bytes | object = None,
        repeat: bool = True,
    ) -> dict[str, Any]:
        """The whole answer's envelope. `json_body` is sent as it is when it is bytes."""
        import json

        content = json_body if isinstance(json_body, bytes) else json.dumps(json_body).encode()
        answer = self.request(
            method,
            path,
            query=query,
            headers={"Content-Type": "application/json"} if json_body is not None else None,
            body=(lambda: content) if json_body is not None else None,
            repeat=repeat,
        )
        try:
            envelope = json.loads(self._all_of(answer, ANSWER_BYTES_MAX))
        except ValueError:
            envelope = None
        if not isinstance(envelope, dict) or envelope.get("success") is not True:
            raise Failed(f"{method} {path}: the answer of {self.source.api_base} is not one of this API.")
        if method != "GET":
            for message in envelope.get("messages") or ():
                warn(str(message["message"]) if isinstance(message, dict) else str(message))
        return envelope

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Body | None = None,
        repeat: bool = True,
    ) -> http.client.HTTPResponse:
        """The answer to a request, when it is a good one.

        A body that is not bytes needs its Content-Length in `headers`. `repeat` False is for what must not
        happen twice; a 429 is repeated always, because then nothing has happened. A server that is silent may
        be at what takes long, and is asked again only for a read where nothing is known to take so long.
        """
        path_and_query = path + ("?" + urlencode(query, quote_via=quote) if query else "")
        if method not in READS and is_dry_run():
            content = body() if body else b""
            tell_unsent(method, path_and_query, content if isinstance(content, bytes) else b"".join(content))
        url = self._base_path + path_and_query
        sent = {**self.source.headers, "User-Agent": "edgecli", **(headers or {})}
        reads_quickly = method in READS and self._answer_seconds <= SECONDS_MAX
        for attempt in count(1):
            perhaps: tuple[str, ...] = ()
            try:
                connection = self._connected()
                perhaps = () if repeat else (PERHAPS,)  # from here on, something may have been sent
                answer = self._send(connection, method, url, sent, body)
            except (OSError, http.client.HTTPException) as error:
                self.close()
                is_silent = isinstance(error, _Silent)
                is_refused = isinstance(error, ConnectionRefusedError)  # `_connected` waited for that
                is_final = is_refused or (is_silent and not reads_quickly)
                if is_final or not repeat or attempt >= ATTEMPTS_MAX:
                    failed = self._silent() if is_silent else Failed(*self._unreachable(error), *perhaps)
                    raise failed from None
                self._sleep(_pause_seconds(attempt, None))
                continue
            self._has_answered = True
            if answer.status == 200:
                return answer
            if attempt >= ATTEMPTS_MAX or answer.status not in (REPEATED if repeat else REPEATED_ALWAYS):
                break
            pause_seconds = _pause_seconds(attempt, answer.headers.get("Retry-After"))
            self.close()
            self._sleep(pause_seconds)
        raise self._refusal(f"{method} {path}", answer)

    def chunks(self, answer: http.client.HTTPResponse) -> Generator[bytes, None, None]:
        """The body; raises Failed when the connection ends before the body does."""
        missing = answer.length
        try:
            while chunk := answer.read(CHUNK_BYTES):
                missing = None if missing is None else missing - len(chunk)
                yield chunk
        except (OSError, http.client.HTTPException) as error:
            failed = self._silent() if _ran_out(error) else Failed(*self._unreachable(error))
            raise failed from None
        if missing:
            raise Failed(f"The connection to {self.source.api_base} ended {missing} bytes too early.")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connected(self) -> http.client.HTTPConnection:
        """The open connection, or a new one: nothing is sent. A server that starts again is waited for."""
        if self._connection is not None and _has_ended(self._connection):
            self.close()
        if self._connection is None:
            kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
            self._connection = kind(self._host, self._port, timeout=SECONDS_MAX)
            for attempt in count(1):
                try:
                    self._connection.connect()
                    break
                except ConnectionRefusedError:
                    if not self._has_answered or attempt >= REFUSED_MAX:
                        raise
                self._sleep(_pause_seconds(attempt, None))
            self._connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for option, value in _KEPT_ALIVE.items():
                self._connection.sock.setsockopt(socket.IPPROTO_TCP, option, value)
        self._connection.sock.settimeout(SECONDS_MAX)
        return self._connection

    def _send(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: Body | None,
    ) -> http.client.HTTPResponse:
        """Raises _Silent, OSError, HTTPException."""
        try:
            connection.request(method, url, body() if body else None, dict(headers))
        except (BrokenPipeError, ConnectionResetError):
            # A server that refuses a body answers before it has read it: its reason is worth reading.
            if body is None:
                raise
        connection.sock.settimeout(self._answer_seconds)
        try:
            return connection.getresponse()
        except TimeoutError as error:
            if _ran_out(error):
                raise _Silent from None
            raise

    def _all_of(self, answer: http.client.HTTPResponse, bytes_max: int) -> bytes:
        content, length = [], 0
        for chunk in self.chunks(answer):
            length += len(chunk)
            if length > bytes_max:
                raise Failed(f"The answer of {self.source.api_base} is larger than {bytes_max} bytes.")
            content.append(chunk)
        return b"".join(content)

    def _refusal(self, request: str, answer: http.client.HTTPResponse) -> Refused:
        import json

        content = self._all_of(answer, REFUSAL_BYTES_MAX)
        try:
            errors = json.loads(content)["errors"]
            errors = [error for error in errors if isinstance(error, dict)]
        except (ValueError, KeyError, TypeError):
            errors = []
        self.close()
        return Refused(request, answer.status, errors, answer.reason, self.source)

    def _silent(self) -> Failed:
        self.close()
        where = f"The server at {self.source.api_base} ({self.source.name})"
        return Failed(f"{where} did not answer within {self._answer_seconds:g} s. It may still be at it.")

    def _unreachable(self, error: Exception) -> tuple[str, ...]:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        where = f"The server at {self.source.api_base} ({self.source.name}) cannot be reached: {reason}."
        if self._host in _HERE and self.source.name != ELSEWHERE:
            return (where, "Is it running? `edgecli serve` starts one.")
        return (where, "Is the address right, and is that server running?")


def _has_ended(connection: http.client.HTTPConnection) -> bool:
    """Whether the server gave it up: nothing else makes an idle connection readable between two requests.

    Commands that compute for minutes between two requests meet that, and what must not happen twice could
    not be sent again afterwards.
    """
    if connection.sock is None:  # the last answer said so
        return True
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN)
    return bool(poll.poll(0))


def _ran_out(error: Exception) -> bool:
    """Whether our own time limit passed. The system says by number that the other machine is gone."""
    return isinstance(error, TimeoutError) and error.errno is None


def _pause_seconds(attempt: int, retry_after: str | None) -> float:
    if retry_after is not None and retry_after.isdigit():
        return min(int(retry_after), RETRY_AFTER_SECONDS_MAX)
    return 0.1 * 2.0**attempt


def segment(text: str) -> str:
    """Text as one segment of a path, whatever it holds."""
    return quote(text, safe="")


def account_of(api: Api, configured: str | None) -> str:
    """The account: the configuration's, the source's, or the only one there is. Raises Failed."""
    account = configured or api.source.account_id
    if account:
        return account
    accounts = api.call("GET", "/accounts")["result"]
    if isinstance(accounts, list) and len(accounts) == 1:
        return str(accounts[0]["id"])
    raise Failed(
        f"These credentials see {len(accounts)} accounts.",
        "Choose one with account_id in the configuration, or EDGE_ACCOUNT_ID.",
    )
