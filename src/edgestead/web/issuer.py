"""An OpenID provider as the dashboard asks it: over HTTP, on threads, with limits on all that it may do.

Owns  requests, their bounds, what is kept of the provider and for how long.
Not   which answers are taken (`usecases.access.openid`); who signs in (`web.openid`).

    metadata, keys   kept KEPT_SECONDS; keys are asked for anew, once in KEYS_SECONDS, where one is not known
    code, user       asked for each sign-in
    trouble          for RETRY_SECONDS nobody asks again

A request has SECONDS_MAX from its connection to its end, whatever is said meanwhile, in the handshake of TLS
too: a timer cuts the connection. No redirect is followed: who may answer is what the metadata says. Threads
are daemons and few, so a provider that hangs keeps neither the loop nor a stop waiting.
"""

import asyncio
import http.client
import logging
import socket
import ssl
import threading
from base64 import b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec

if TYPE_CHECKING:
    from edgestead.usecases.access.openid import Keys, Metadata

log = logging.getLogger("edgestead.server")

SECONDS_MAX: Final = 10.0  # of one request
OCTETS_MAX: Final = 256 << 10  # of one answer
SECRET_OCTETS_MAX: Final = 4_096  # read of the file
THREADS_MAX: Final = 8  # requests at once: each is somebody who waits
KEPT_SECONDS: Final = 3_600.0
KEYS_SECONDS: Final = 30.0
RETRY_SECONDS: Final = 5.0
TROUBLE_SECONDS: Final = 3_600.0  # as the server's health shows it
_FORM: Final = "application/x-www-form-urlencoded"

T = TypeVar("T")


class Provider(msgspec.Struct, frozen=True):
    """What the server was told of it. `secret_file` and `roots` are paths, "" for none and the system's."""

    issuer: str
    client_id: str
    secret_file: str = ""
    name: str = "single sign-on"
    claim: str = "email"
    roots: str = ""


class Trouble(Exception):
    """The provider did not answer as it should; the words are for the log, with no secret in them."""


class NotRedeemed(Exception):
    """The provider does not take the code: it is none of its, or was used."""


class Redeemed(msgspec.Struct):
    """What a code was worth."""

    id_token: str
    access_token: str = ""


class Issuer:
    """Used by one event loop. Each method raises Trouble; `trouble` is the last one, "" if it is over."""

    def __init__(self, provider: Provider, clock: Callable[[], float] = monotonic) -> None:
        self.provider = provider
        self.trouble = ""
        self._clock = clock
        self._threads = 0
        self._troubled = float("-inf")
        self._metadata: Metadata | None = None
        self._keys: Keys | None = None
        self._asked = self._keys_asked = self._keys_had = float("-inf")

    def trouble_of_late(self) -> str:
        """The trouble that somebody had within TROUBLE_SECONDS: nobody asks without somebody who signs in."""
        return self.trouble if self._clock() - self._troubled < TROUBLE_SECONDS else ""

    async def metadata(self) -> "Metadata":
        from edgestead.usecases.access import openid

        if self._metadata is None or self._clock() - self._asked > KEPT_SECONDS:
            if self._clock() - self._troubled < RETRY_SECONDS:
                raise Trouble(self.trouble)
            url = self.provider.issuer.rstrip("/") + "/.well-known/openid-configuration"
            own = self.provider.issuer
            self._metadata = await self._answered(
                lambda: _believed(lambda: openid.metadata_of(self._fetch(url), own))
            )
            self._asked = self._clock()
        return self._metadata

    async def keys(self, *, anew: bool = False) -> "Keys | None":
        """The provider's keys; `anew` after one was not known, None where it is too soon for that."""
        from edgestead.usecases.access import openid

        now = self._clock()
        if anew and now - self._keys_asked < KEYS_SECONDS:
            return None
        if anew or self._keys is None or now - self._keys_had > KEPT_SECONDS:
            url = (await self.metadata()).keys
            if anew:  # a flood of unknown keys asks once
                self._keys_asked = now
            self._keys = await self._answered(lambda: _believed(lambda: openid.keys_of(self._fetch(url))))
            self._keys_asked = self._keys_had = now
        return self._keys

    async def redeem(self, code: str, verifier: str, redirect: str) -> Redeemed:
        """The tokens of a code (RFC 6749 §4.1.3, RFC 7636 §4.5). Raises NotRedeemed."""
        metadata, own = await self.metadata(), self.provider
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect,
            "client_id": own.client_id,
            "code_verifier": verifier,
        }

        def ask() -> bytes:
            headers, secret = {"Content-Type": _FORM}, self._secret()
            if secret and metadata.sends_secret:
                form["client_secret"] = secret
            elif secret:
                pair = f"{quote(own.client_id, safe='')}:{quote(secret, safe='')}"
                headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
            return self._fetch(metadata.token, urlencode(form).encode(), headers)

        try:
            return msgspec.json.decode(await self._answered(ask), type=Redeemed)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise Trouble("its answer to a code cannot be read") from None

    async def userinfo(self, url: str, access_token: str) -> bytes:
        if not access_token.isascii() or not access_token.isprintable():
            raise Trouble("its access token cannot be sent")
        headers = {"Authorization": f"Bearer {access_token}"}
        return await self._answered(lambda: self._fetch(url, None, headers))

    async def _answered(self, ask: Callable[[], T]) -> T:
        try:
            answer = await self._on_thread(ask)
        except Trouble as trouble:
            self.trouble, self._troubled = str(trouble), self._clock()
            log.warning("the OpenID provider %s: %s", self.provider.issuer, trouble)
            raise
        self.trouble = ""
        return answer

    async def _on_thread(self, ask: Callable[[], T]) -> T:
        """The thread ends in its own time: who waits does not wait for longer than for one request."""
        if self._threads >= THREADS_MAX:
            raise Trouble("too many sign-ins wait for it")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        self._threads += 1

        def tell(result: T | None, error: Exception | None) -> None:
            self._threads -= 1
            if done.done():
                return
            if error is None:
                done.set_result(result)  # type: ignore[arg-type]  # one of the two
            else:
                done.set_exception(error)

        def work() -> None:
            result, error = None, None
            try:
                result = ask()
            except Exception as raised:
                error = (
                    raised if isinstance(raised, Trouble | NotRedeemed) else Trouble(type(raised).__name__)
                )
            with suppress(RuntimeError):  # the loop is over
                loop.call_soon_threadsafe(tell, result, error)

        try:
            threading.Thread(target=work, name="openid", daemon=True).start()
        except RuntimeError:  # the system has no room for one
            self._threads -= 1
            raise Trouble("this machine has no thread left to ask it") from None
        try:
            async with asyncio.timeout(SECONDS_MAX * 1.5):
                return await done
        except TimeoutError:
            raise Trouble("it takes too long to answer") from None

    def _secret(self) -> str:
        """Read for each sign-in, so that another one holds at once."""
        if not self.provider.secret_file:
            return ""
        try:
            with Path(self.provider.secret_file).open("rb") as file:
                return file.read(SECRET_OCTETS_MAX).decode().strip()
        except (OSError, UnicodeDecodeError):
            raise Trouble("the file of the client's secret cannot be read") from None

    def _fetch(self, url: str, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> bytes:
        """Blocks. Raises Trouble."""
        parts = urlsplit(url)
        connection = self._connection(parts.scheme, parts.hostname or "", parts.port)
        timer = threading.Timer(SECONDS_MAX, connection.cut)
        timer.daemon = True
        timer.start()
        try:
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            sent = {"Accept": "application/json", "User-Agent": "edgestead", **(headers or {})}
            connection.request("GET" if body is None else "POST", target, body, sent)
            with connection.getresponse() as answer:
                content, is_short = answer.read(OCTETS_MAX + 1), bool(answer.length)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Trouble(f"it cannot be asked ({type(error).__name__})") from None
        finally:
            timer.cancel()
            connection.close()
        if answer.status == 400 and body is not None:
            raise NotRedeemed("the provider does not take the code")
        if answer.status != 200:
            raise Trouble(f"it answers {answer.status}")
        if len(content) > OCTETS_MAX:
            raise Trouble(f"it answers more than {OCTETS_MAX} bytes")
        if is_short:
            raise Trouble("its answer breaks off")
        return content

    def _connection(self, scheme: str, host: str, port: int | None) -> "_Connection":
        if scheme == "http":  # this machine's: `openid.is_safe`
            return _Connection(host, port or http.client.HTTP_PORT)
        try:
            context = ssl.create_default_context(cafile=self.provider.roots or None)
        except OSError:
            raise Trouble("the file of certificates cannot be read") from None
        return _TlsConnection(host, port or http.client.HTTPS_PORT, context)


class _Connection(http.client.HTTPConnection):
    """One that another thread can end at any moment.

    The library forgets its socket where an answer ends the connection, and has none of TLS before a handshake
    is over: the one to cut is kept here.
    """

    def __init__(self, host: str, port: int) -> None:
        super().__init__(host, port, timeout=SECONDS_MAX)
        self._is_cut = False
        self._held: socket.socket | None = None

    def connect(self) -> None:
        super().connect()
        self._hold(self.sock)

    def cut(self) -> None:
        self._is_cut = True
        if self._held is not None:
            with suppress(OSError):
                self._held.shutdown(socket.SHUT_RDWR)

    def _hold(self, made: socket.socket) -> None:
        """Raises TimeoutError: it was cut before."""
        self._held = made
        if self._is_cut:
            raise TimeoutError


class _TlsConnection(_Connection):
    default_port = http.client.HTTPS_PORT

    def __init__(self, host: str, port: int, context: ssl.SSLContext) -> None:
        super().__init__(host, port)
        self._tls = context

    def connect(self) -> None:
        super().connect()
        made = self._tls.wrap_socket(self.sock, server_hostname=self.host, do_handshake_on_connect=False)
        self.sock = made
        self._hold(made)
        made.do_handshake()


def _believed(read: Callable[[], T]) -> T:
    """On a thread. Raises Trouble for what is not taken."""
    from edgestead.usecases.access.openid import Untrusted

    try:
        return read()
    except Untrusted as refused:
        raise Trouble(str(refused)) from None
