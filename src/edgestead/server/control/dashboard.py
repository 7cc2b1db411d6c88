"""The dashboard's part of control: its sessions, samples and pages, made when somebody first looks.

Owns  when they are made and end; who signs in by a link.
Not   pages (`web`).
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from importlib import import_module
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from edgestead.http1.messages import Request, Response
from edgestead.rest.app import Application
from edgestead.server.control.samples_file import SamplesFile
from edgestead.server.credentials import Credentials
from edgestead.server.errors import StartError
from edgestead.server.health import machine
from edgestead.server.messages import ControlStart
from edgestead.web.issuer import Provider
from edgestead.web.samples import Samples
from edgestead.web.sessions import Headers, Sessions
from edgestead.web.visit import LookAtCluster

log = logging.getLogger("edgestead.server")
_NOT_MADE = b"The dashboard could not be made. The server's log says why.\n"

if TYPE_CHECKING:
    from edgestead.web.site import Site


class Dashboard:
    """In front of the API's application. `credentials` gives the first user's, as they are now.

    What is no page costs a look at the path's first octets. Templates are loaded for the first page.
    """

    def __init__(
        self,
        application: Application,
        credentials: Callable[[], Credentials],
        *,
        enabled: bool,
        objects: tuple[str, int] | None = None,
        names: tuple[str, ...] = (),
        provider: Provider | None = None,
        data_dir: Path,
        cluster: LookAtCluster | None = None,
    ) -> None:
        self._application = application
        self._credentials = credentials
        self._enabled = enabled
        self._objects, self._names, self._provider = objects, names, provider
        self._data_dir, self._cluster = data_dir, cluster
        self._sessions = Sessions(application.context.now_us)
        self._samples = Samples(application.context.metrics, monotonic)
        self._file = SamplesFile(self._samples, data_dir, application.context.now_us)
        self._site: Site | None = None
        self._making: asyncio.Task[Site] | None = None
        self._sampling: list[asyncio.Task[None]] = []

    def __call__(self, request: Request) -> Response | Coroutine[Any, Any, Response | None]:
        target = request.target
        if self._enabled and (target.startswith(b"/ui") or target == b"/"):
            return self._site(request) if self._site is not None else self._first(request)
        return self._application(request)

    async def _first(self, request: Request) -> Response | None:
        """Templates are read and compiled on a thread: calls of the API do not wait for them."""
        try:
            if self._making is None:
                self._making = asyncio.create_task(self._make())
            site = await asyncio.shield(self._making)
        except Exception:
            log.exception("the dashboard could not be made")
            self._making = None  # the next one tries again
            return Response(500, [(b"content-type", b"text/plain; charset=utf-8")], _NOT_MADE)
        answer = site(request)
        return answer if isinstance(answer, Response) else await answer

    def open(self) -> None:
        if self._enabled:
            self._file.read()
            self._sampling = [asyncio.create_task(one.run()) for one in (self._samples, self._file)]

    def close(self) -> None:
        """Streams end, so that no connection waits for them; samples are kept."""
        if self._sampling:
            for task in self._sampling:
                task.cancel()
            self._sampling = []
            self._file.write()
        if self._site is not None:
            self._site.end_streams()

    def sign_in_trouble(self) -> str:
        """Of the OpenID provider, "" where there is none, or nobody met it lately."""
        return self._site.sign_in_trouble() if self._site is not None else ""

    async def make_link(self) -> str:
        """The secret of a one-time link for this machine's operator. Raises StartError: there is none."""
        if not self._enabled:
            raise StartError(
                "the dashboard is off (--no-dashboard), or the API listens on more than loopback"
            )
        return self._sessions.make_link(self._operator)

    def _operator(self) -> Headers:
        now = self._credentials()
        return ((b"x-auth-email", now.email.encode()), (b"x-auth-key", now.api_key.encode()))

    async def _make(self) -> "Site":
        await asyncio.to_thread(_load)
        from edgestead.web.remote import Remote
        from edgestead.web.site import Site

        context = self._application.context
        objects = Remote(self._objects, context) if self._objects is not None else None
        self._site = Site(
            self._application,
            context,
            self._sessions,
            self._samples,
            objects=objects,
            names=self._names,
            provider=self._provider,
            setup=lambda: machine.setup(self._data_dir),
            cluster=self._cluster,
        )
        return self._site


def provider_of(start: ControlStart) -> Provider | None:
    """By whom members may sign in, as the server was told."""
    if start.openid_issuer is None or start.openid_client_id is None:
        return None
    return Provider(
        start.openid_issuer,
        start.openid_client_id,
        start.openid_secret_file or "",
        start.openid_name,
        start.openid_claim,
        start.openid_ca or "",
    )


def _load() -> None:
    """What the pages are made of: a third of a second, which a start has not to wait for."""
    import_module("edgestead.web.site").load_templates()
