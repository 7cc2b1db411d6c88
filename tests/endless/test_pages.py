"""A form without an end, and the dearest that is one, to every page of the dashboard; queries to DoH as well.

Pages are made from their table. What body, parser and handler hold is within the budget of an address.
"""

import asyncio
import base64
import tracemalloc

import pytest

from edgestead.dns.counters import Tally
from edgestead.dns.https import MEDIA_TYPE, PATH, QUERY_OCTETS_MAX, Https
from edgestead.dns.keyring import Keyring
from edgestead.dns.settings import DEFAULTS
from edgestead.dns.watch import Watch
from edgestead.http1.head import by_name
from edgestead.http1.limits import HEAD_BYTES_MAX
from edgestead.http1.messages import Body, Request, Response
from edgestead.model.budgets import table
from edgestead.web.pages import PAGES
from edgestead.web.site import COOKIE, FORM_BYTES_MAX, FORM_FIELDS_MAX, STRANGERS_FORM_BYTES_MAX, _fields
from tests.dns.serving import Counts, table_of
from tests.endless.test_routes import FED_BYTES_MAX, PORTION_BYTES
from tests.web.local import HOST, LocalSite

SIGN_IN = "/ui/sign-in"
PATHS = sorted({row.path for row in PAGES} | {SIGN_IN, "/ui/enter", "/ui/none", "/ui.json"})
FORMS = {
    "fields": b"&".join(b"%d=a" % number for number in range(FORM_FIELDS_MAX)),
    "too many fields": b"a=&" * (FORM_BYTES_MAX // 3),
    "a value": b"a=" + b"x" * (FORM_BYTES_MAX - 2),
    "escapes": b"a=" + b"%F0%9F%98%80" * ((FORM_BYTES_MAX - 2) // 12),
    "no field": b"x" * FORM_BYTES_MAX,
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    made = LocalSite(tmp_path_factory.mktemp("pages"))
    yield made
    made.close()


def posted(path, body, session, media_type=b"application/x-www-form-urlencoded"):
    head = [
        (b"host", HOST.encode()),
        (b"origin", b"http://" + HOST.encode()),
        (b"transfer-encoding", b"chunked"),
        (b"content-type", media_type),
        (b"cookie", COOKIE + b"=" + session.encode()),
    ]
    return Request("POST", path.encode(), head, "127.0.0.1", body, by_name(head))


async def fed(app, request, portions):
    """The answer, how much was taken until it came, and the most that the process held more than before."""
    body, total = request.body, 0
    tracemalloc.start()
    try:
        answer = app(request)
        task = None if isinstance(answer, Response) else asyncio.ensure_future(answer)
        while task is not None and not task.done():
            assert total <= FED_BYTES_MAX, "it goes on taking that"
            if body.is_full:
                await asyncio.sleep(0.001)
                continue
            if not body.ended:
                portion = next(portions, None)
                if portion is None:
                    body.end()
                else:
                    total += len(portion)
                    body.feed(bytes(bytearray(portion)))
            await asyncio.sleep(0)
        answer = answer if task is None else task.result()
        return answer, total, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def portions_of(content):
    return (content[at : at + PORTION_BYTES] for at in range(0, len(content), PORTION_BYTES))


def without_end(filling):
    while True:
        yield filling


@pytest.mark.parametrize("path", PATHS)
def test_a_form_without_an_end_is_refused_by_every_page(site, path):
    request = posted(path, Body(lambda: None), "")

    ((answer, total, most),) = site.api.together(fed(site.site, request, without_end(b"a" * PORTION_BYTES)))

    assert answer.status == 413
    assert total <= FORM_BYTES_MAX + table.HTTP_BYTES_ADDRESS.limit
    assert most <= table.HTTP_BYTES_ADDRESS.limit


@pytest.mark.parametrize("name", FORMS)
def test_the_dearest_forms_of_a_session_are_answered_within_the_budget(site, name):
    """All pages read a form in one way."""
    assert len(FORMS[name]) <= FORM_BYTES_MAX
    session = site.sessions.begin(list)
    request = posted(SIGN_IN, Body(lambda: None), session)

    ((answer, _, most),) = site.api.together(fed(site.site, request, portions_of(FORMS[name])))

    assert answer.status == (413 if name == "too many fields" else 403), "of no page of ours"
    assert most <= table.HTTP_BYTES_ADDRESS.limit


@pytest.mark.parametrize(
    ("octets", "status"), [(STRANGERS_FORM_BYTES_MAX, 403), (STRANGERS_FORM_BYTES_MAX + 1, 413)]
)
def test_who_has_no_session_sends_no_long_form(site, octets, status):
    request = posted(SIGN_IN, Body(lambda: None), "another")

    ((answer, _, _),) = site.api.together(fed(site.site, request, portions_of(b"a" * octets)))

    assert answer.status == status


@pytest.mark.parametrize("path", PATHS)
def test_the_longest_query_of_a_page_is_answered_within_the_budget(site, path):
    question = "&".join(f"{number:x}=1" for number in range(HEAD_BYTES_MAX // 8))
    tracemalloc.start()
    try:
        answer = site.ask("GET", f"{path}?{question}", None, {"Accept": "text/html"}, "127.0.0.1")
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert answer.status in range(200, 500)
    assert most <= table.HTTP_BYTES_ADDRESS.limit


@pytest.fixture
def https():
    served = table_of({"example.test.": "example.test. 3600 SOA a.test. b.test. 1 7200 900 86400 600\n"})
    return Https(served, Tally(Counts()), DEFAULTS, Watch(), Keyring())


def asked(https, request, portions):
    return asyncio.run(fed(https, request, portions))


def test_a_query_without_an_end_over_https_is_refused(https):
    request = posted(PATH.decode(), Body(lambda: None), "", MEDIA_TYPE)

    answer, total, most = asked(https, request, without_end(b"\0" * 1_024))

    assert answer.status == 413
    assert total <= 4 * QUERY_OCTETS_MAX
    assert most <= 1 << 20


@pytest.mark.parametrize("octets", [0, QUERY_OCTETS_MAX, HEAD_BYTES_MAX * 3 // 4 - 1_000])
def test_the_longest_query_in_a_path_over_https_is_answered(https, octets):
    text = base64.urlsafe_b64encode(b"\1" * octets).decode().rstrip("=")
    request = posted(f"{PATH.decode()}?dns={text}", Body(lambda: None, ended=True), "")
    request.method = "GET"

    answer, _, most = asked(https, request, iter(()))

    assert answer.status in (200, 400, 413)
    assert most <= 1 << 20


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"a=%41+b%", "A b%"),
        (b"a=%zz", "%zz"),
        (b"a=1&a=2&=3&&b", "2"),
        (b"a=" + b"%C3%A9" * 100_000, "é" * 100_000),
        (b"a=x" + b"%C3%A9" * 100_000, "x" + "é" * 100_000),
        (b"a=xx" + b"%C3%A9" * 100_000, "xx" + "é" * 100_000),
        (b"a=" + b"%" * 200_000, "%" * 200_000),
    ],
    ids=range(7),
)
def test_a_field_is_decoded_in_slices_as_if_it_were_whole(text, value):
    assert _fields(text)["a"] == value
