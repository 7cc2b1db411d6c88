"""The dashboard as an application in front of the API's.

Owns  which requests are its own, cookies, forms and their keys, headers of every answer, error pages.
Not   pages (`web.pages`); the way in (`web.way_in`); sessions (`web.sessions`); rights: the API's
      (`web.asker`).

    request                                     answer
    not below /ui, and no browser at /          the API's
    / of a browser                              303 to /ui
    /ui/static/NAME                             a file of ours
    /ui/sign-in, /ui/enter, /ui/invite, …       the way in (`web.way_in`)
    by a name that is none of ours              421 (`web.hosts`)
    without a session                           303 to /ui/sign-in
    POST that no page of the session sent       403
    credentials that ended                      the session ends, 303 to /ui/sign-in
    else                                        the page, or its data: for a GET of a path that ends in .json,
                                                for a POST that accepts JSON

No page loads anything from elsewhere or runs a script that stands in it (Content-Security-Policy), no other
page may frame it, and the browser stores none. A POST needs the session's cookie, which is SameSite=Strict,
its form key, and an Origin that is this host, where the browser names one; before a session it needs the
browser's cookie and a key bound to that (`web.form_keys`).
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, Final
from urllib.parse import quote, unquote_to_bytes, urlsplit

import jinja2
import msgspec

from edgestead.health.setup import Setup
from edgestead.http1.head import Headers, by_name
from edgestead.http1.messages import BodyBroken, BodyTooLarge, Request, Response
from edgestead.model.refusals import EdgeError
from edgestead.rest import credentials
from edgestead.rest.context import AppContext
from edgestead.usecases.access.authorise import CONTENTS, check_usable
from edgestead.web import times
from edgestead.web.asker import Application, Asker, Refused
from edgestead.web.charts import Chart, charts
from edgestead.web.form_keys import COOKIE as FORM_COOKIE
from edgestead.web.form_keys import FormKeys
from edgestead.web.hosts import is_known
from edgestead.web.issuer import Provider
from edgestead.web.live import Live
from edgestead.web.openid import COOKIE as OPENID_COOKIE
from edgestead.web.openid import PATH as OPENID_PATH
from edgestead.web.openid import SIGN_IN_SECONDS, Away, OpenId
from edgestead.web.pages import PAGES
from edgestead.web.pages.shared import account_of, accounts_of
from edgestead.web.passkeys import Place
from edgestead.web.people import People
from edgestead.web.samples import Samples, Span
from edgestead.web.sessions import SESSION_SECONDS, Session, Sessions
from edgestead.web.visit import ROOT, LookAtCluster, Moved, Pages, Renewed, Sent, Streamed, Visit, segment
from edgestead.web.way_in import PATHS, Asked, Told, WayIn

log = logging.getLogger("edgestead.server")

COOKIE: Final = b"edge_session"
FORM_BYTES_MAX: Final = 4 << 20  # a value of a key, escaped
STRANGERS_FORM_BYTES_MAX: Final = 64 << 10  # without a session: decoding 4 MiB holds the loop for 0.6 s
FORM_FIELDS_MAX: Final = 200  # of one form, or one query
SLICE_BYTES: Final = 64 << 10  # of a field, decoded at a time
WORDS_MAX: Final = 160  # characters of what others wrote, in a list; its own page has all
_STATIC: Final = {"style.css": b"text/css; charset=utf-8", "page.js": b"text/javascript; charset=utf-8"}
_POLICY: Final = (
    b"default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
    b"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS: Final[Headers] = [
    (b"content-security-policy", _POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),  # under no-referrer, our own forms come with `Origin: null`
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
_ROOTS: Final = (ROOT.encode(), ROOT.encode() + b".json")
_UNKNOWN_NAME: Final = (
    "The dashboard does not answer to the name in your browser's address. Open {named} on its machine."
    " Where a proxy of yours passes this name on, start the server with `--dashboard-name` and the name."
)
ID_DIGITS: Final = 32  # of an account
SESSION_DIGITS: Final = 12  # of the hash that names a session where its secret may not be
_HTML: Final = b"text/html; charset=utf-8"
_JSON: Final = b"application/json"


class Site:
    """Answers browsers; hands the rest to `application`. Used by one event loop."""

    def __init__(
        self,
        application: Application,
        context: AppContext,
        sessions: Sessions,
        samples: Samples,
        *,
        objects: Application | None = None,
        names: Collection[str] = (),
        provider: Provider | None = None,
        setup: Callable[[], Setup | None] = lambda: None,
        cluster: LookAtCluster | None = None,
    ) -> None:
        """`names` are what browsers may call this server beside loopback's names."""
        self._setup, self._cluster = setup, cluster
        self._names = names
        self._samples = samples
        self._drawn: dict[Span, tuple[int, list[Chart]]] = {}
        self._live = Live(samples, context.draws.requests.ledger)
        self._application = application
        self._objects = objects
        self._context = context
        self._sessions = sessions
        self._people = People(context)
        self._openid = openid = OpenId(provider, self._people) if provider is not None else None
        self._form_keys = FormKeys(context.now_us)
        self._way_in = WayIn(context, sessions, self._people, openid)
        self._pages = Pages(PAGES)
        self._templates, self._static = load_templates()

    def __call__(self, request: Request) -> Response | Coroutine[Any, Any, Response | None]:
        path, _, _ = request.target.partition(b"?")
        if path == b"/" and b"text/html" in request.found.get(b"accept", b""):
            return _moved(ROOT)
        if path not in _ROOTS and not path.startswith(ROOT.encode() + b"/"):
            return self._application(request)
        return self._answered(request, path.decode("ascii", "replace"))

    async def _answered(self, request: Request, path: str) -> Response:
        try:
            return await self._answer(request, path)
        except Exception:
            log.exception("the page %s failed", path[:200])
            return self._error(500, "This page failed. The server's log says why.")

    async def _answer(self, request: Request, path: str) -> Response:
        if path.startswith(ROOT + "/static/"):
            return self._file(path.rpartition("/")[2])
        if not is_known(_place(request).host, self._names):
            return self._error(421, _UNKNOWN_NAME.format(named=_place(request).named + ROOT))
        if request.method not in ("GET", "HEAD", "POST"):
            return self._error(405, "A page is looked at, or a form of it is sent.")
        id_ = _cookie(request)
        is_stranger = not (id_ and self._sessions.holds(id_))
        form_bytes_max = STRANGERS_FORM_BYTES_MAX if is_stranger else FORM_BYTES_MAX
        try:
            form = await _form(request, form_bytes_max) if request.method == "POST" else None
        except (BodyTooLarge, ValueError):
            hint = " Sign in first: without a session it may have 64 KiB." if is_stranger else ""
            return self._error(413, f"The form is too large, or no form.{hint}")
        except BodyBroken:
            return self._error(400, "The form did not come to its end.")
        try:
            _query(request)
        except ValueError:
            return self._error(400, "The address has too many parts.")
        if form is not None and not _is_same_origin(request):
            return self._error(403, "This form was sent from another site.")
        session = self._sessions.find(id_) if id_ else None
        if path in PATHS:
            return await self._enter(request, path, form, id_)
        if session is not None and not self._is_let_in(session, request.client):
            self._sessions.end(id_)
            session = None
        if session is None:
            return _moved(f"{ROOT}/sign-in")
        if form is not None and not session.is_own_form(form.get("form_key", "")):
            return self._error(
                403, "This form is too old. Go back, load the page again, and send it once more."
            )
        done = self._of_head(session, id_, path, form) if form is not None else None
        return done or await self._show(request, session, path, form)

    def _of_head(self, session: Session, id_: str, path: str, form: Mapping[str, str]) -> Response | None:
        """What the forms at the top of every page do."""
        if path == ROOT + "/sign-out":
            self._sessions.end(id_)
            self._samples.wake()  # its streams end now
            return _moved(f"{ROOT}/sign-in", _cookie_header("", 0))
        if path == ROOT + "/account":
            session.account = form.get("account", "")[:ID_DIGITS]
            return _moved(ROOT)
        return None

    def _is_let_in(self, session: Session, client: str) -> bool:
        """Whether the API takes its credentials from there now: the overview does not ask it."""
        context = self._context
        try:
            identity = credentials.identify(by_name(list(session.headers())), context.access, CONTENTS)
            check_usable(identity, context.now_us(), client)
        except EdgeError:
            return False
        return True

    async def _enter(
        self, request: Request, path: str, form: Mapping[str, str] | None, before: str
    ) -> Response:
        """A session that begins has a new id, and the one of before is over."""
        sent = _cookie(request, FORM_COOKIE.encode())
        fault = "" if form is None else self._form_keys.fault(sent, form.get("form_key", ""))
        asked = (path, _query(request), form, request.client, _place(request))
        found = await self._way_in.answer(*asked, fault, _cookie(request, OPENID_COOKIE.encode()))
        if isinstance(found, Told):
            return Response(found.status, [(b"content-type", _JSON), *_private()], _encoded(found.data))
        if isinstance(found, Asked):
            browser = self._form_keys.browser(sent)
            key = self._form_keys.key(browser)
            response = self._page(found.template, found.title, found.data, None, found.status, key)
            if browser != sent:
                response.headers.append(_cookie_header(browser, SESSION_SECONDS, FORM_COOKIE))
            return response
        if isinstance(found, Away):
            self._sessions.end(before)  # on the way back its cookie, which is Strict, does not come
            return self._led(found.url, _lax_cookie(found.browser))
        self._sessions.end(before)
        cookie = _cookie_header(found, SESSION_SECONDS)
        return self._led(ROOT, cookie) if path == OPENID_PATH else _moved(ROOT, cookie)

    def _led(self, to: str, cookie: tuple[bytes, bytes]) -> Response:
        """By a page: what may follow a form is our own (form-action), and a redirect from another site would
        go without the session's cookie, which is Strict."""
        response = self._page("led.html", "Signing in", {"to": to, "is_own": to == ROOT}, None, 200)
        response.headers.append(cookie)
        return response

    async def _show(
        self, request: Request, session: Session, path: str, form: Mapping[str, str] | None
    ) -> Response:
        wants_json = _wants_json(request, path)
        found = self._pages.find(path.removesuffix(".json") if form is None else path)
        if found is None or (form is not None and found[0].act is None):
            return self._refusal(404, "There is no such page.", session, wants_json)
        row, parameters = found
        headers, objects = session.headers(), None
        api = Asker(self._application, headers, request.client)
        if self._objects is not None:
            objects = Asker(self._objects, headers, request.client, base="")
        asked = (path, _query(request), form, self._charts, self._people, request.client, _place(request))
        server = (lambda: self._samples.processes, self._setup, self._cluster)
        visit = Visit(session, api, objects, *asked, *server)
        handler = row.show if form is None else row.act
        assert handler is not None
        try:
            shown = await handler(*parameters, visit)
        except Refused as refused:
            status = refused.status if refused.status in (403, 404, 429, 503, 507) else 400
            return self._refusal(status, " ".join(refused.messages), session, wants_json)
        if isinstance(shown, Renewed):
            self._sessions.end(_cookie(request))
            self._samples.wake()  # streams of what ended with it end now
            session_id = shown.headers and self._sessions.begin(lambda: shown.headers)
            cookie = _cookie_header(session_id, SESSION_SECONDS) if session_id else _cookie_header("", 0)
            return _moved(f"{shown.to}?said={quote(shown.said)}", cookie)
        if isinstance(shown, Moved):
            mark = "&" if "?" in shown.to else "?"
            said = f"{mark}said={quote(shown.said)}" if shown.said else ""
            return _moved(shown.to + said)
        if isinstance(shown, Sent):
            kept = b'attachment; filename="%b"' % quote(shown.name).encode()
            about = ((b"content-type", b"application/octet-stream"), (b"content-disposition", kept))
            return Response(200, [*about, *_private()], shown.content)
        if isinstance(shown, Streamed):
            return self._stream(request, session, shown)
        if wants_json:
            return Response(shown.status, [(b"content-type", _JSON), *_private()], _encoded(shown.data))
        data = shown.data | {"said": visit.query.get("said", "")[:300], **await _chooser(visit), "here": path}
        await asyncio.sleep(0)  # a template takes milliseconds: others have their turn before
        return self._page(shown.template, shown.title, data, session, shown.status)

    def _charts(self, span: Span) -> list[Chart]:
        """Drawn once a sample: each look costs 3 ms otherwise, with whole rings."""
        taken, drawn = self._drawn.get(span, (-1, []))
        if taken != self._samples.taken:
            drawn = charts(self._samples, span)
            self._drawn[span] = (self._samples.taken, drawn)
        return drawn

    def _stream(self, request: Request, session: Session, shown: Streamed) -> Response:
        """Nobody uses a session by having a page open, so a stream does not keep it."""
        id_ = _cookie(request)

        async def make() -> str:
            data = {**await shown.data(), "root": ROOT}
            return self._templates.get_template(shown.template).render(data)

        def is_on() -> bool:
            return self._sessions.holds(id_) and self._is_let_in(session, request.client)

        whose = sha256(id_.encode()).hexdigest()[:SESSION_DIGITS]
        try:
            response = self._live.response(whose, shown.name, make, is_on)
        except EdgeError as refused:
            return self._error(refused.status, refused.message)
        response.headers += _private()
        return response

    def sign_in_trouble(self) -> str:
        """What the OpenID provider did not do, "" where that is over."""
        return self._openid.issuer.trouble_of_late() if self._openid is not None else ""

    def end_streams(self) -> None:
        self._live.end()

    def _page(
        self,
        template: str,
        title: str,
        data: Mapping[str, Any],
        session: Session | None,
        status: int,
        form_key: str = "",
    ) -> Response:
        own = {
            "title": title,
            "root": ROOT,
            "signed_in": session is not None,
            "has_cluster": self._cluster is not None,
            "form_key": session.form_key if session else form_key,
        }
        text = self._templates.get_template(template).render({**data, **own})
        return Response(status, [(b"content-type", _HTML), *_private()], text.encode("utf-8", "replace"))

    def _error(self, status: int, message: str, session: Session | None = None) -> Response:
        return self._page(
            "error.html", "That did not work", {"message": message, "status": status}, session, status
        )

    def _refusal(self, status: int, message: str, session: Session, wants_json: bool) -> Response:
        if not wants_json:
            return self._error(status, message, session)
        data = {"message": message, "status": status}
        return Response(status, [(b"content-type", _JSON), *_private()], _encoded(data))

    def _file(self, name: str) -> Response:
        content = self._static.get(name)
        if content is None:
            return self._error(404, "There is no such file.")
        cached = (b"cache-control", b"public, max-age=31536000, immutable")  # its address has its version
        return Response(200, [(b"content-type", _STATIC[name]), cached, *_HEADERS], content)


@cache
def load_templates() -> tuple[jinja2.Environment, dict[str, bytes]]:
    """All templates, compiled, and the files of ours. Takes a third of a second: not for an event loop."""
    folder = files("edgestead.web") / "static"
    static = {name: (folder / name).read_bytes() for name in _STATIC}
    made = _environment(sha256(b"".join(static.values())).hexdigest()[:12])
    for name in made.list_templates():
        made.get_template(name)
    return made, static


def _environment(version: str) -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("edgestead.web", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["version"] = version
    made.filters["segment"] = segment
    made.filters["when"] = times.when
    made.filters["moment"] = times.moment
    made.filters["ago"] = times.ago
    made.filters["cut"] = _cut
    made.filters["pretty"] = lambda value: msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    return made


def _cut(text: str, length: int = WORDS_MAX) -> str:
    """For lists: so, and with as many rows as they have, a page stays below 60 KB with its two files."""
    return text if len(text) <= length else text[: length - 1] + "…"


def _encoded(data: object) -> bytes:
    """`<` stands within strings alone; no reader that takes the answer for HTML finds an element."""
    return msgspec.json.encode(data).replace(b"<", b"\\u003c")


async def _chooser(visit: Visit) -> dict[str, object]:
    """The accounts of the page's head, and the one that is looked at; none where there is no choice."""
    try:
        seen = await accounts_of(visit)
        return {"accounts": seen, "account": await account_of(visit)} if len(seen) > 1 else {}
    except Refused:
        return {}


def _wants_json(request: Request, path: str) -> bool:
    """A form changes what its path says, and nothing that has a part of that name."""
    if request.method == "POST":
        return request.found.get(b"accept", b"") == _JSON
    return path.endswith(".json")


def _private() -> Headers:
    return [(b"cache-control", b"no-store"), *_HEADERS]


def _moved(to: str, *more: tuple[bytes, bytes]) -> Response:
    return Response(303, [(b"location", to.encode("ascii")), *_private(), *more], b"")


def _cookie_header(id_: str, seconds: int, name: str = COOKIE.decode()) -> tuple[bytes, bytes]:
    value = f"{name}={id_}; Path={ROOT}; Max-Age={seconds}; HttpOnly; SameSite=Strict"
    return (b"set-cookie", value.encode("ascii"))


def _lax_cookie(browser: str) -> tuple[bytes, bytes]:
    """For the way back from another site, to one page."""
    lasts = f"Path={OPENID_PATH}; Max-Age={SIGN_IN_SECONDS}; HttpOnly; SameSite=Lax"
    return (b"set-cookie", f"{OPENID_COOKIE}={browser}; {lasts}".encode("ascii"))


def _cookie(request: Request, wanted: bytes = COOKIE) -> str:
    for part in request.found.get(b"cookie", b"").split(b";"):
        name, _, value = part.strip().partition(b"=")
        if name == wanted:
            return value.decode("ascii", "replace")
    return ""


def _is_same_origin(request: Request) -> bool:
    """Browsers name the origin of each POST; a proxy with TLS in front keeps the host."""
    origin = request.found.get(b"origin")
    if origin is None:
        return request.found.get(b"sec-fetch-site", b"same-origin") in (b"same-origin", b"none")
    return urlsplit(origin).netloc == request.found.get(b"host", b"")


def _place(request: Request) -> Place:
    host, origin = (request.found.get(name, b"").decode("ascii", "replace") for name in (b"host", b"origin"))
    return Place(host.lower(), origin)


def _query(request: Request) -> dict[str, str]:
    return _fields(request.target.partition(b"?")[2])


async def _form(request: Request, bytes_max: int) -> dict[str, str]:
    """Raises BodyTooLarge, BodyBroken, ValueError."""
    return _fields(await request.body.read(bytes_max), keep_blank_values=True)


def _fields(octets: bytes, *, keep_blank_values: bool = False) -> dict[str, str]:
    """Raises ValueError: too many."""
    if octets.count(b"&") >= FORM_FIELDS_MAX:
        raise ValueError("too many fields")
    found: dict[str, str] = {}
    for field in octets.decode("ascii", "replace").encode().replace(b"+", b" ").split(b"&"):
        name, _, value = field.partition(b"=")
        if value or (field and keep_blank_values):
            found[_unquoted(name)] = _unquoted(value)
    return found


def _unquoted(octets: bytes) -> str:
    """In slices: the library makes an object of each escape, twenty times as long as that."""
    parts, at = [], 0
    while at < len(octets):
        end = at + SLICE_BYTES
        cut = octets.rfind(b"%", end - 2, end)  # an escape stays whole
        end = cut if at < cut and end < len(octets) else end
        parts.append(unquote_to_bytes(octets[at:end]))
        at = end
    return b"".join(parts).decode("utf-8", "replace")
