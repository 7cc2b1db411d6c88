"""One request to the dashboard, and what a page answers.

Owns  `Visit`, `Shown`, `Moved`, `Renewed`, the table of pages and how a path finds its row.
Not   any page; sessions.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from edgestead.health.setup import Setup
from edgestead.web.asker import Asker
from edgestead.web.charts import Chart
from edgestead.web.passkeys import Place
from edgestead.web.people import People
from edgestead.web.samples import ProcessRow, Span
from edgestead.web.sessions import Headers, Session

ROOT = "/ui"
SEGMENTS_MAX = 12  # of a path
Data = dict[str, Any]
LookAtCluster = Callable[[], Awaitable[Data]]


def segment(text: object) -> str:
    """A text as one segment of a path. An `.json` at its end is the text's own, and asks for no data."""
    quoted = quote(str(text), safe="")
    return quoted.removesuffix(".json") + "%2Ejson" if quoted.endswith(".json") else quoted


class Shown(NamedTuple):
    """A page: `data` fills its template, and is what the same path with `.json` answers."""

    template: str
    title: str
    data: Data
    status: int = 200


class Moved(NamedTuple):
    """Look there: after something was done. `said` is shown once, on the page that follows."""

    to: str
    said: str = ""


class Sent(NamedTuple):
    """A file for the browser to keep."""

    name: str
    content: bytes


class Streamed(NamedTuple):
    """A template that is sent again when `data` has changed; for all visits of one `name` it is the same."""

    name: str
    template: str
    data: Callable[[], Awaitable[Data]]


class Renewed(NamedTuple):
    """As Moved, with a session of these headers in the place of this one; of none, it only ends."""

    headers: Headers
    to: str
    said: str = ""


class Visit(NamedTuple):
    """`form` is None for a GET; its values are what the browser sent, the last of each name.

    `objects` is the objects' address, None where no classes are served; `cluster` is None outside of one.
    """

    session: Session
    api: Asker
    objects: Asker | None
    path: str
    query: Mapping[str, str]
    form: Mapping[str, str] | None = None
    charts: Callable[[Span], Sequence[Chart]] = lambda span: ()
    people: People | None = None
    client: str = ""
    place: Place = Place("")
    processes: Callable[[], Sequence[ProcessRow]] = tuple
    setup: Callable[[], Setup | None] = lambda: None
    cluster: LookAtCluster | None = None

    @property
    def page(self) -> int:
        text = self.query.get("page", "1")
        return int(text) if text.isdigit() and 0 < len(text) <= 6 else 1

    def field(self, name: str) -> str:
        """What a form's field holds, "" where it is not there."""
        return (self.form or {}).get(name, "").strip()


Handler = Callable[..., Awaitable[Shown | Moved | Renewed | Streamed | Sent]]


class Row(NamedTuple):
    """A page, and what its forms do. Parameters of the path come first, then the visit."""

    path: str
    show: Handler
    act: Handler | None = None


class Pages:
    """The table by path; a parameter is one segment, and decoded."""

    def __init__(self, rows: tuple[Row, ...]) -> None:
        self._rows = [(row.path.strip("/").split("/"), row) for row in rows]

    def find(self, path: str) -> tuple[Row, list[str]] | None:
        parts = path.strip("/").split("/")
        if len(parts) > SEGMENTS_MAX:
            return None
        for pattern, row in self._rows:
            if len(pattern) == len(parts) and all(
                one == part or one[0] == "{" for one, part in zip(pattern, parts, strict=True)
            ):
                return row, [unquote(part) for one, part in zip(pattern, parts, strict=True) if one[0] == "{"]
        return None
