"""The dashboard as an application in front of the API's.

Owns  which requests are its own, cookies, forms and their keys, headers of every answer, error pages.
Not   pages (`web.pages`); sessions (`web.sessions`); rights: the API's (`web.asker`).

    request                                     answer
    not below /ui, and no browser at /          the API's
    / of a browser                              303 to /ui
    /ui/static/NAME                             a file of ours
    without a session                           303 to /ui/sign-in
    POST that no page of the session sent       403
    credentials that ended                      the session ends, 303 to /ui/sign-in
    else                                        the page, or its data for a path that ends in .json

No page loads anything from elsewhere or runs a script that stands in it (Content-Security-Policy), no other
page may frame it, and the browser stores none. A POST needs the session's cookie, which is SameSite=Strict,
its form key, and an Origin that is this host, where the browser names one.
"""

import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from hashlib import sha256
from importlib.resources import files
from time import gmtime, strftime
from typing import Any, Final
from urllib.parse import parse_qs, quote, urlsplit

import jinja2
import msgspec

from edgestead.http1.head import Headers, by_name
from edgestead.http1.messages import BodyBroken, BodyTooLarge, Request, Response
from edgestead.model.refusals import EdgeError
from edgestead.rest import credentials
from edgestead.rest.context import AppContext
from edgestead.usecases.access.authorise import CONTENTS
from edgestead.web.asker import Application, Asker, Refused
from edgestead.web.pages import PAGES
from edgestead.web.samples import Chart
from edgestead.web.sessions import SESSION_SECONDS, Session, Sessions
from edgestead.web.visit import ROOT, Moved, Pages, Visit

log = logging.getLogger("edgestead.server")

COOKIE: Final = b"edge_session"
FORM_BYTES_MAX: Final = 4 << 20  # a value of a key, escaped
FORM_FIELDS_MAX: Final = 200  # of one form, or one query
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
_OLD_LINK: Final = (
    "This link was used already, or is older than two minutes. `edgecli dashboard` makes another."
)
_NO_TOKEN: Final = "No token is that. `edgecli token create` makes one, and `edgecli dashboard` needs none."
_HTML: Final = b"text/html; charset=utf-8"
_JSON: Final = b"application/json"


class Site:
    """Answers browsers; hands the rest to `application`. Used by one event loop."""

    def __init__(
        self,
        application: Application,
        context: AppContext,
        sessions: Sessions,
        charts: Callable[[], Sequence[Chart]] = tuple,
    ) -> None:
        self._charts = charts
        self._application = application
        self._context = context
        self._sessions = sessions
        self._pages = Pages(PAGES)
        folder = files("edgestead.web") / "static"
        self._static = {name: (folder / name).read_bytes() for name in _STATIC}
        version = sha256(b"".join(self._static.values())).hexdigest()[:12]
        self._templates = _templates(version)

    def __call__(self, request: Request) -> Response | Coroutine[Any, Any, Response | None]:
        path, _, _ = request.target.partition(b"?")
        if path == b"/" and b"text/html" in request.found.get(b"accept", b""):
            return _moved(ROOT)
        if path != ROOT.encode() and not path.startswith(ROOT.encode() + b"/"):
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
        if request.method not in ("GET", "HEAD", "POST"):
            return self._error(405, "A page is looked at, or a form of it is sent.")
        try:
            form = await _form(request) if request.method == "POST" else None
        except (BodyTooLarge, ValueError):
            return self._error(413, "The form is too large, or no form.")
        except BodyBroken:
            return self._error(400, "The form did not come to its end.")
        if form is not None and not _is_same_origin(request):
            return self._error(403, "This form was sent from another site.")
        id_ = _cookie(request)
        session = self._sessions.find(id_) if id_ else None
        if path in (ROOT + "/sign-in", ROOT + "/enter"):
            return self._enter(request, path, form)
        if session is not None and not self._is_known(session):
            self._sessions.end(id_)
            session = None
        if session is None:
            return _moved(f"{ROOT}/sign-in")
        if form is not None and not session.is_own_form(form.get("form_key", "")):
            return self._error(
                403, "This form is too old. Go back, load the page again, and send it once more."
            )
        if path == ROOT + "/sign-out" and form is not None:
            self._sessions.end(id_)
            return _moved(f"{ROOT}/sign-in", _cookie_header("", 0))
        return await self._show(request, session, path, form)

    def _is_known(self, session: Session) -> bool:
        try:
            credentials.identify(by_name(list(session.headers())), self._context.access, CONTENTS)
        except EdgeError:
            return False
        return True

    def _enter(self, request: Request, path: str, form: Mapping[str, str] | None) -> Response:
        """A one-time link asks for a click, because programs that preview links must not use it up."""
        if form is None:
            code = _query(request).get("code", "") if path.endswith("/enter") else ""
            return self._page("sign_in.html", "Sign in", {"code": code}, None, 200)
        if link := form.get("code"):
            id_, words = self._sessions.enter(link), _OLD_LINK
        else:
            id_, words = self._by_token(request, form.get("token", "").strip())
        if id_ is None:
            return self._page("sign_in.html", "Sign in", {"code": "", "error": words}, None, 403)
        return _moved(ROOT, _cookie_header(id_, SESSION_SECONDS))

    def _by_token(self, request: Request, token: str) -> tuple[str | None, str]:
        context = self._context
        headers = ((b"authorization", b"Bearer " + token.encode("utf-8", "replace")),)
        try:
            credentials.identify(by_name(list(headers)), context.access, CONTENTS)
        except EdgeError as refused:
            refusal = context.guesses.refusal(refused, request.client, context.now_us())
            return None, refusal.message if refusal.status == 429 else _NO_TOKEN
        return self._sessions.begin(lambda: headers), ""

    async def _show(
        self, request: Request, session: Session, path: str, form: Mapping[str, str] | None
    ) -> Response:
        wants_json = path.endswith(".json")
        found = self._pages.find(path.removesuffix(".json"))
        if found is None or (form is not None and found[0].act is None):
            return self._error(404, "There is no such page.", session)
        row, parameters = found
        api = Asker(self._application, session.headers(), request.client)
        visit = Visit(session, api, path, _query(request), form, self._charts)
        handler = row.show if form is None else row.act
        assert handler is not None
        try:
            shown = await handler(*parameters, visit)
        except Refused as refused:
            status = refused.status if refused.status in (403, 404, 429, 503, 507) else 400
            return self._error(status, " ".join(refused.messages), session)
        if isinstance(shown, Moved):
            said = f"?said={quote(shown.said)}" if shown.said else ""
            return _moved(shown.to + said)
        if wants_json:
            return Response(shown.status, [(b"content-type", _JSON), *_private()], _encoded(shown.data))
        data = shown.data | {"said": visit.query.get("said", "")[:300]}
        return self._page(shown.template, shown.title, data, session, shown.status)

    def _page(
        self, template: str, title: str, data: Mapping[str, Any], session: Session | None, status: int
    ) -> Response:
        own = {
            "title": title,
            "root": ROOT,
            "signed_in": session is not None,
            "form_key": session.form_key if session else "",
        }
        text = self._templates.get_template(template).render({**data, **own})
        return Response(status, [(b"content-type", _HTML), *_private()], text.encode("utf-8", "replace"))

    def _error(self, status: int, message: str, session: Session | None = None) -> Response:
        return self._page(
            "error.html", "That did not work", {"message": message, "status": status}, session, status
        )

    def _file(self, name: str) -> Response:
        content = self._static.get(name)
        if content is None:
            return self._error(404, "There is no such file.")
        cached = (b"cache-control", b"public, max-age=31536000, immutable")  # its address has its version
        return Response(200, [(b"content-type", _STATIC[name]), cached, *_HEADERS], content)


def _templates(version: str) -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("edgestead.web", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["version"] = version
    made.filters["segment"] = lambda text: quote(str(text), safe="")
    made.filters["when"] = _when
    made.filters["pretty"] = lambda value: msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    return made


def _when(micros: int) -> str:
    return strftime("%Y-%m-%d %H:%M:%S", gmtime(micros // 1_000_000)) + " UTC"


def _encoded(data: object) -> bytes:
    return msgspec.json.encode(data)


def _private() -> Headers:
    return [(b"cache-control", b"no-store"), *_HEADERS]


def _moved(to: str, *more: tuple[bytes, bytes]) -> Response:
    return Response(303, [(b"location", to.encode("ascii")), *_private(), *more], b"")


def _cookie_header(id_: str, seconds: int) -> tuple[bytes, bytes]:
    value = f"{COOKIE.decode()}={id_}; Path={ROOT}; Max-Age={seconds}; HttpOnly; SameSite=Strict"
    return (b"set-cookie", value.encode("ascii"))


def _cookie(request: Request) -> str:
    for part in request.found.get(b"cookie", b"").split(b";"):
        name, _, value = part.strip().partition(b"=")
        if name == COOKIE:
            return value.decode("ascii", "replace")
    return ""


def _is_same_origin(request: Request) -> bool:
    """Browsers name the origin of each POST; a proxy with TLS in front keeps the host."""
    origin = request.found.get(b"origin")
    if origin is None:
        return request.found.get(b"sec-fetch-site", b"same-origin") in (b"same-origin", b"none")
    return urlsplit(origin).netloc == request.found.get(b"host", b"")


def _query(request: Request) -> dict[str, str]:
    return _fields(request.target.partition(b"?")[2])


async def _form(request: Request) -> dict[str, str]:
    """Raises BodyTooLarge, BodyBroken, ValueError."""
    return _fields(await request.body.read(FORM_BYTES_MAX), keep_blank_values=True)


def _fields(octets: bytes, *, keep_blank_values: bool = False) -> dict[str, str]:
    """Raises ValueError: too many."""
    found = parse_qs(
        octets.decode("ascii", "replace"),
        keep_blank_values=keep_blank_values,
        errors="replace",
        max_num_fields=FORM_FIELDS_MAX,
    )
    return {name: values[-1] for name, values in found.items()}
