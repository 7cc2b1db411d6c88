"""A server with a dashboard, and a visitor who is a plain HTTP client."""

import http.client
import re
import subprocess
import sys
from html import unescape
from urllib.parse import urlencode, urlsplit

import pytest

from edgestead.testing.server import EdgeServer, environment
from tests.support.patience import patient

BOOKING = """
from edgestead import StatefulObject


class Booking(StatefulObject):
    storage = "sql"

    async def on_start(self):
        self.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS seats (seat TEXT PRIMARY KEY, name TEXT)")

    async def hold(self, seat, name):
        self.ctx.storage.sql.exec("INSERT OR REPLACE INTO seats VALUES (?, ?)", seat, name)
        self.ctx.storage.put("last", {"seat": seat, "name": name})

    async def who(self, seat):
        return self.ctx.storage.sql.exec("SELECT name FROM seats WHERE seat = ?", seat).one()["name"]

    async def alarm(self):
        self.ctx.storage.put("rang", True)
"""


def hold(server, show, seat, name):
    """Have the object `show` of `BOOKING` store a seat."""
    assert server.call_object(f"Booking/{show}/hold", seat, name).status == 200


class Page:
    """An answer: `text` is its HTML, `to` where it leads."""

    def __init__(self, answer, body):
        self.status = answer.status
        self.headers = {name.lower(): value for name, value in answer.getheaders()}
        self.text = body.decode()
        self.to = self.headers.get("location", "")

    @property
    def words(self):
        """What a person reads."""
        return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", self.text))).strip()

    @property
    def form_key(self):
        return re.search(r'name="form_key" value="([^"]+)"', self.text)[1]

    def link(self, words):
        found = re.search(rf'<a href="([^"]+)"[^>]*>{re.escape(words)}</a>', self.text)
        return unescape(found[1])


class Visitor:
    """A browser without script: it keeps cookies, follows no redirect by itself."""

    def __init__(self, server):
        self.server = server
        self.cookie = self._key = ""
        self.others = {}
        self.host = urlsplit(server.ready["api_base"]).netloc

    def ask(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection(self.host, timeout=180)
        sent = {"Accept": "text/html", **self.cookies, **headers}
        if body is not None:
            sent.setdefault("Content-Type", "application/x-www-form-urlencoded")
        connection.request(method, path, body, sent)
        answer = connection.getresponse()
        page = Page(answer, answer.read())
        connection.close()
        return self.kept(page)

    @property
    def cookies(self):
        held = "; ".join(filter(None, (self.cookie, *self.others.values())))
        return {"Cookie": held} if held else {}

    def kept(self, page):
        """The same page, its cookie kept."""
        cookie = page.headers.get("set-cookie", "").partition(";")[0]
        name = cookie.partition("=")[0]
        if name in ("edge_form", "edge_openid"):
            self.others[name] = cookie
        elif cookie:
            self.cookie = cookie
        return page

    def get(self, path, **headers):
        return self.ask("GET", path, **headers)

    def post(self, path, page=None, *, headers=None, **fields):
        """Send a form of `page`, the one at `path` where none is given, and look where that leads."""
        form_key = (page or self.get(path)).form_key
        body = urlencode({"form_key": form_key, **fields})
        done = self.ask("POST", path, body, **{"Origin": f"http://{self.host}", **(headers or {})})
        return self.get(done.to) if done.status == 303 else done

    def send(self, path, *, headers=None, **fields):
        """A form that stands before a session."""
        self._key = self._key or self.get("/ui/sign-in").form_key
        sent = {"Origin": f"http://{self.host}", **(headers or {})}
        return self.ask("POST", path, urlencode({"form_key": self._key, **fields}), **sent)

    def sign_in(self, token):
        return self.send("/ui/sign-in", token=token)


def link_of(server):
    """What `edgecli dashboard` prints, without scheme and host."""
    command = [sys.executable, "-P", "-m", "edgestead", "dashboard", "--data-dir", str(server.data_dir)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True)
    parts = urlsplit(done.stdout.strip())
    return f"{parts.path}?{parts.query}"


@pytest.fixture(scope="session")
def web_server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("web")
    (folder / "booking.py").write_text(BOOKING)
    objects = ("--objects", str(folder / "booking.py"), "--objects-workers", "1")
    flags = (
        *patient(folder),
        *objects,
        "--dashboard-name",
        "Pages.example.com.",
        "--dashboard-name",
        "192.0.2.80",
    )
    server = EdgeServer(folder / "data", *flags)
    try:
        yield server.start()
    finally:
        server.close()


@pytest.fixture
def stranger(web_server):
    return Visitor(web_server)


@pytest.fixture
def visitor(web_server):
    """Signed in by the operator's token."""
    made = Visitor(web_server)
    assert made.sign_in(web_server.ready["api_token"]).status == 303
    return made


@pytest.fixture
def zone(web_server, request):
    name = f"z{abs(hash(request.node.nodeid)) % 10**10}.example"
    id_ = web_server.make_zone(name)
    yield name
    web_server.call("DELETE", f"/zones/{id_}")
