"""Every page of the dashboard, found by its links and by the forms that only look, from `/ui` on.

A page that is linked from another is walked without being named anywhere.
"""

from html.parser import HTMLParser
from typing import NamedTuple
from urllib.parse import urlencode, urljoin, urlsplit

from edgestead.web.pages import PAGES
from edgestead.web.visit import Pages

LEADS = {"a": ("href",), "button": ("formaction",), "form": ("data-path",)}  # to a page
ALIKE_MAX = 3  # pages of one row of the table, asked with the same names in the query
_ROWS = Pages(PAGES)


class Read(HTMLParser):
    """A page as a browser reads it."""

    def __init__(self, text):
        super().__init__()
        self.elements = []  # (tag, attributes), as they come
        self.words = []
        self.links = []
        self.forms = []  # (action, fields, buttons) of those that only look
        self.sent = []  # the same of those that do something
        self._form = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        held = dict(attrs)
        self.elements.append((tag, held))
        self.links += [held[name] for name in LEADS.get(tag, ()) if held.get(name)]
        if tag == "form":
            self._form = (held.get("action", ""), [], [])
            (self.sent if held.get("method") == "post" else self.forms).append(self._form)
        if self._form and tag in ("input", "select", "textarea") and "name" in held:
            self._form[1].append(held)
        if self._form and tag == "button":
            self._form[2].append(held)

    def handle_endtag(self, tag):
        if tag == "form":
            self._form = None

    def handle_data(self, data):
        self.words.append(data)

    @property
    def everything(self):
        """All that was written by anybody: texts and values of attributes."""
        values = (value or "" for _, attributes in self.elements for value in attributes.values())
        return "\n".join((*self.words, *values))


class Walked(NamedTuple):
    target: str
    row: str  # of the table of pages
    page: object
    read: Read


def walk(visitor, typed):
    """Every page that there is; `typed` is written into each field of a form that only looks."""
    found, seen, counts, waiting = [], set(), {}, ["/ui"]
    while waiting:
        target = waiting.pop(0)
        shape = _shape(target)
        if target in seen or shape is None or counts.get(shape, 0) >= ALIKE_MAX:
            continue
        seen.add(target)
        counts[shape] = counts.get(shape, 0) + 1
        page = visitor.get(target)
        if page.status == 303:
            waiting.append(page.to)
            continue
        read = Read(page.text)
        found.append(Walked(target, shape[0], page, read))
        waiting += [urljoin(target, link).partition("#")[0] for link in read.links]
        waiting += [_asked(target, action, fields, typed) for action, fields, _ in read.forms]
    return found


def _shape(target):
    """The row, and the names of the query; None for no page of the table."""
    parts = urlsplit(target)
    row = _ROWS.find(parts.path)
    if parts.netloc or row is None:
        return None
    return row[0].path, tuple(sorted(one.partition("=")[0] for one in parts.query.split("&")))


def _asked(target, action, fields, typed):
    kept = ("hidden", "range")
    query = {
        one["name"]: one.get("value", "") if one.get("type") in kept or "id" not in one else typed
        for one in fields
    }
    return urljoin(target, action or urlsplit(target).path) + "?" + urlencode(query)


def one_of_each(walked):
    """The first page of each shape."""
    return list({_shape(one.target): one for one in reversed(walked)}.values())[::-1]
