"""Keys and values: what a page shows and writes is the key that was meant, octet for octet."""

import json
from html.parser import HTMLParser
from urllib.parse import quote

import pytest

from edgestead.web.pages.values import SHOWN_BYTES, SHOWN_BYTES_MAX
from tests.web.local import LocalSite
from tests.web.local import LocalVisitor as Visitor
from tests.web.test_rows import PAGE_BYTES_MAX
from tests.web.walking import Read


@pytest.fixture
def server(tmp_path):
    made = LocalSite(tmp_path)
    spaces = f"{made.account}/storage/kv/namespaces"
    made.id = made.api.post(spaces, {"title": "things"}).result["id"]
    made.base = f"{spaces}/{made.id}"
    yield made
    made.close()


@pytest.fixture
def visitor(server):
    made = Visitor(server)
    assert made.sign_in(server.ready["api_token"]).status == 303
    return made


def put(server, key, octets):
    assert server.api.call("PUT", f"{server.base}/values/{quote(key, safe='')}", octets).status == 200


def stored(server, key):
    answer = server.api.get(f"{server.base}/values/{quote(key, safe='')}")
    return answer.body if answer.status == 200 else None


def page_of(server, key):
    """Where the list leads to."""
    return f"/ui/values/{server.id}/{key}"


class Typed(HTMLParser):
    """What is in the fields of the form that writes, as a browser has it and sends it."""

    def __init__(self, text):
        super().__init__()
        self.fields, self._in = {}, ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        held = dict(attrs)
        if tag == "textarea":
            self._in, self.fields[held["name"]] = held["name"], ""
        elif tag == "input" and held.get("name") in ("expiration", "expiration_ttl", "as"):
            self.fields[held["name"]] = held.get("value", "")

    def handle_data(self, data):
        if self._in:
            self.fields[self._in] += data

    def handle_endtag(self, tag):
        if tag == "textarea":
            # a browser drops the first line break of the element, and sends each as two characters
            text = self.fields[self._in].removeprefix("\n")
            self.fields[self._in], self._in = text.replace("\n", "\r\n"), ""


VALUES = {
    "json": json.dumps({f"k{i}": "v<" * 20 for i in range(1000)}).encode(),
    "quotes": json.dumps([""] * 13_000).encode(),
    "deep": b"[" * 400 + b"]" * 400,
    "few": json.dumps([""] * 700).encode(),
    "text": ("ü" * 30_000).encode()[:50_000],
    "cut": b"a" + ("ü" * 30_000).encode(),
}


@pytest.mark.parametrize("key", VALUES)
def test_a_page_of_a_large_value_is_light_and_a_link_shows_more(server, visitor, key):
    put(server, key, VALUES[key])
    page = visitor.get(page_of(server, key))
    files = [visitor.get(f"/ui/static/{name}") for name in ("page.js", "style.css")]

    sizes = [len(one.text.encode()) for one in (page, *files)]
    assert sum(sizes) < PAGE_BYTES_MAX, sizes
    is_text = "textarea" in page.text
    assert is_text is (len(VALUES[key]) <= SHOWN_BYTES)
    if not is_text:
        assert "The first 8192 bytes are shown" in page.words
        more = visitor.get(page_of(server, key) + "?as=all")
        assert ("textarea" in more.text) is (len(VALUES[key]) <= SHOWN_BYTES_MAX)
        assert page.link("Show more, to edit it").endswith("?as=all")


def test_a_key_that_ends_in_json_is_not_the_one_beside_it(server, visitor):
    put(server, "config", b"the plain one")
    put(server, "config.json", b'{"a": 1}')
    there = visitor.get(f"/ui/values/{server.id}").link("config.json")

    assert "&#34;a&#34;: 1" in visitor.get(there).text
    assert json.loads(visitor.get(there + ".json").text)["key"] == "config.json"
    visitor.post(there, value="2")
    assert (stored(server, "config"), stored(server, "config.json")) == (b"the plain one", b"2")
    assert "The key is deleted" in visitor.post(there, what="delete").words
    assert (stored(server, "config"), stored(server, "config.json")) == (b"the plain one", None)


def test_a_form_never_means_the_data_of_a_page(server, visitor):
    """Whoever types the address by hand deletes what it says."""
    put(server, "config", b"the plain one")
    put(server, "config.json", b"2")

    visitor.post(page_of(server, "config.json"), visitor.get("/ui"), what="delete")

    assert (stored(server, "config"), stored(server, "config.json")) == (b"the plain one", None)


def test_a_key_that_is_alone_and_ends_in_json(server, visitor):
    written = visitor.post(f"/ui/values/{server.id}", key="only.json", value="1")

    assert (written.status, "The value is written" in written.words) == (200, True)
    assert visitor.get(f"/ui/values/{server.id}").link("only.json").endswith("/only%2Ejson")


@pytest.mark.parametrize("octets", [b"\na: 1\nb: 2\n", b"a", b"", b"\n", b"\n\n\n", b"<a>&amp;\n"])
def test_a_value_that_is_written_as_it_was_shown_stays(server, visitor, octets):
    put(server, "k", octets)
    page = visitor.get(page_of(server, "k"))

    visitor.post(page_of(server, "k"), page, **Typed(page.text).fields)

    assert stored(server, "k") == octets


def test_a_value_with_returns_is_edited_as_hexadecimal_alone(server, visitor):
    """A form has no way to say which line breaks were which."""
    put(server, "dos", b"a\r\nb\r\n")

    page = visitor.get(page_of(server, "dos"))

    assert "textarea" not in {tag for tag, _ in Read(page.text).elements}
    assert "a" in page.words
    editor = visitor.get(page_of(server, "dos") + page.link("edit it as hexadecimal"))
    visitor.post(page_of(server, "dos"), editor, **Typed(editor.text).fields)
    assert stored(server, "dos") == b"a\r\nb\r\n"


BINARY = bytes(range(256)) * 32


@pytest.mark.parametrize("octets", [BINARY, b"\x00", b"\xff\xfe", b"\0" * 17], ids=len)
def test_a_binary_value_is_edited_as_hexadecimal(server, visitor, octets):
    pair = {"key": "k", "value": "1", "metadata": {"by": "Ann"}}
    server.api.call("PUT", f"{server.base}/bulk", [pair])
    put(server, "k", octets)
    path, page = page_of(server, "k"), visitor.get(page_of(server, "k"))
    fields = Typed(page.text).fields
    files = [visitor.get(f"/ui/static/{name}") for name in ("page.js", "style.css")]
    assert sum(len(one.text.encode()) for one in (page, *files)) < PAGE_BYTES_MAX

    visitor.post(path, page, **fields)
    assert stored(server, "k") == octets, "as it was shown, it stays"
    visitor.post(path, page, **{**fields, "value": fields["value"] + "\r\n0aFF"})
    assert stored(server, "k") == octets + b"\n\xff"


@pytest.mark.parametrize("typed", ["0", "zz", "0x00", "00,01", "é"])
def test_what_is_no_hexadecimal_is_refused_and_still_in_its_form(server, visitor, typed):
    put(server, "there", b"\0before")
    for path, more in ((page_of(server, "there"), {}), (f"/ui/values/{server.id}", {"key": "new"})):
        refused = visitor.post(path, value=typed, **{"as": "hex"}, **more)
        assert (refused.status, "Hexadecimal is two digits" in refused.words) == (400, True)
        assert Typed(refused.text).fields["value"] == typed
    assert (stored(server, "there"), stored(server, "new")) == (b"\0before", None)


def test_a_new_value_is_typed_as_hexadecimal(server, visitor):
    visitor.post(f"/ui/values/{server.id}", key="new", value="00 ff\r\n0A", **{"as": "hex"})

    assert stored(server, "new") == b"\x00\xff\n"


def test_a_value_that_is_written_again_keeps_its_metadata(server, visitor):
    pair = {"key": "k", "value": "1", "metadata": {"by": "Ann"}}
    server.api.call("PUT", f"{server.base}/bulk", [pair])

    visitor.post(page_of(server, "k"), value="2")

    assert stored(server, "k") == b"2"
    assert server.api.get(f"{server.base}/metadata/k").result == {"by": "Ann"}


@pytest.mark.parametrize("below", ["", "/there"])
def test_a_value_that_is_refused_is_still_in_its_form(server, visitor, below):
    put(server, "there", b"before")
    path = f"/ui/values/{server.id}{below}"

    refused = visitor.post(path, key="k", value="\nlong\r\ntyped", expiration_ttl="30")

    assert (refused.status, "must be at least 60" in refused.words) == (400, True)
    typed = Typed(refused.text).fields
    assert (typed["value"], typed["expiration_ttl"]) == ("\r\nlong\r\ntyped", "30")
    assert stored(server, "there") == b"before"
