"""A body without an end, and the longest query, to every route of both faces, made from the table of routes.

A body is fed while it is not full, as a connection would. Each route has to answer, and what body, parser and
handler hold meanwhile, by `tracemalloc`, is within the budget of an address. A query comes with the head, so
no connection lets a longer one through (tests/http1/test_budgets.py has endless heads, chunks and trailers).
"""

import asyncio
import itertools
import re
import tracemalloc

import msgspec
import pytest

from edgestead import Response as ObjectResponse
from edgestead import StatefulObject
from edgestead.http1.head import by_name
from edgestead.http1.limits import HEAD_BYTES_MAX
from edgestead.http1.messages import Body, Request, Response
from edgestead.model.budgets import table
from edgestead.objects.limits import MESSAGE_BYTES_MAX
from edgestead.rest import app as _app  # noqa: F401 - importing it fills the table
from edgestead.rest import body as rest_body
from edgestead.rest.limits import JSON_VALUES_MAX
from edgestead.rest.routing import CONTROL, OBJECTS, rows_of
from tests.objects.hosts import serve
from tests.support.api import BEARER, LocalApi

PORTION_BYTES = 65_536
FED_BYTES_MAX = 256 << 20  # what takes so much takes everything
DEAREST = b'{"":[]},'  # 31 bytes for each octet of it
FILLINGS = {
    "json": b'{"a":' + b'"x",' * 16_000,
    "brackets": b"[" * PORTION_BYTES,
    "text": b"a" * PORTION_BYTES,
}
BODILESS = ("GET", "DELETE")  # but a body may come all the same
ALL_ROUTES = list(rows_of(CONTROL))
ROUTES = [route for route in ALL_ROUTES if route.method not in BODILESS]
QUERIES = {
    "members": b"&".join(b"%x=1" % number for number in range(HEAD_BYTES_MAX // 8)),
    "one value": b"name=" + b"x" * (HEAD_BYTES_MAX - 2_000),
    "escapes": b"order=" + b"%2c" * (HEAD_BYTES_MAX // 3 - 1_000),
    "a filter": b"name.contains=" + b"%28" * (HEAD_BYTES_MAX // 3 - 1_000),
}


def named(route):
    return f"{route.method} {route.path}"


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    made = LocalApi(tmp_path_factory.mktemp("routes"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def known(api):
    """What stands for parameters, so that most routes get as far as their bodies."""
    zone = api.post("/zones", {"name": "endless.test"}).result
    account = zone["account"]["id"]
    namespace = api.post(f"/accounts/{account}/storage/kv/namespaces", {"title": "endless"}).result["id"]
    return {
        "zone_id": zone["id"],
        "account_id": account,
        "namespace": namespace,
        "account_or_zone": "zones",
    }


def path_of(route, known):
    path = route.path
    for parameter in route.parameters:
        name = parameter.rstrip("*")
        value = known.get(name, "e" * 32 if name.endswith("_id") else "x")
        path = path.replace("{" + parameter + "}", value)
    return path


def request_of(route, known, body):
    head = [
        (b"host", b"localhost"),
        (b"transfer-encoding", b"chunked"),
        (b"content-type", b"application/json"),
    ]
    head += [(name.encode(), value.encode()) for name, value in BEARER.items()]
    return Request(route.method, path_of(route, known).encode(), head, "127.0.0.1", body, by_name(head))


async def fed(app, route, known, filling):
    """The answer, how much was fed until it came, and the most that the process held more than before."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        answer, total = await _fed(app, route, known, filling)
        return answer, total, tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


async def _fed(app, route, known, filling):
    body = Body(lambda: None)
    body.feed(bytes(bytearray(filling)))  # each has its own
    answer = app(request_of(route, known, body))
    total = len(filling)
    if isinstance(answer, Response):
        return answer, total
    task = asyncio.ensure_future(answer)
    while not task.done() and total < FED_BYTES_MAX:
        if body.is_full:
            await asyncio.sleep(0.001)  # threads take it
        else:
            body.feed(bytes(bytearray(filling)))
            total += len(filling)
            await asyncio.sleep(0)
    assert task.done(), f"{route.method} {route.path} has taken {total} bytes"
    return task.result(), total


@pytest.mark.parametrize("route", ROUTES, ids=named)
def test_a_body_without_an_end_is_answered_and_held_within_the_budget(api, known, route):
    for name, filling in FILLINGS.items():
        ((answer, total, most),) = api.together(fed(api.app, route, known, filling))

        assert answer.status in range(200, 500), name
        assert b'"code":7003' not in answer.body, name  # the path is the route's
        assert most <= table.HTTP_BYTES_ADDRESS.limit, name
        assert total <= limit_of(route, answer) + table.HTTP_BYTES_ADDRESS.limit, name


def limit_of(route, answer):
    """How long a body may be: as the route's row says, or its refusal where it reads its body itself."""
    said = re.search(rb"larger than (\d+) bytes", answer.body)
    return int(said[1]) if said else max(route.body_bytes_max, PORTION_BYTES)


def filled(frame, again, octets):
    """A frame with as many repetitions of what belongs there as there may be."""
    first, last = frame.split(b"?")
    values = sum(again.count(mark) for mark in (b",", b"[", b"{"))
    times = min((octets - len(first) - len(last)) // len(again) - 1, (JSON_VALUES_MAX - 8) // values)
    return first + again * times + again.rstrip(b",") + last


def whole_bodies(route, octets):
    """Bodies of JSON as dear to hold as may be, from what the route says that it takes."""
    yield "wide", filled(b"[?]", DEAREST, octets)
    yield "unknown", filled(b'{"unknown":[?]}', DEAREST, octets)
    yield "too many values", b"[" + b"[]," * ((octets - 3) // 3) + b"0]"
    for shape in route.takes.values():
        for field in fields_of(shape):
            yield field, filled(b'{"%b":[?]}' % field.encode(), b"{},", octets)


def fields_of(shape):
    """The members that may hold lists."""
    if not (isinstance(shape, type) and issubclass(shape, msgspec.Struct)):
        return []
    types = msgspec.structs.fields(shape)
    return [one.encode_name for one in types if re.search(r"\b(list|tuple|set|Any|Raw)\b", str(one.type))]


async def sent(app, route, known, content):
    """The answer to a whole body, and the most that the process held more than before."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        body, at = Body(lambda: None), 0
        answer = app(request_of(route, known, body))
        task = None if isinstance(answer, Response) else asyncio.ensure_future(answer)
        while task is not None and not task.done():
            if at == len(content):
                body.end()
                answer = await task
            elif body.is_full:
                await asyncio.sleep(0.001)
            else:
                body.feed(content[at : at + PORTION_BYTES])
                at = min(at + PORTION_BYTES, len(content))
                await asyncio.sleep(0)
        answer = answer if task is None else task.result()
        return answer, tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


READERS = {(one.handler, str(one.body)): one for one in ROUTES if not one.has_ended}  # several paths have one


@pytest.mark.parametrize("route", READERS.values(), ids=named)
def test_the_longest_bodies_are_answered_and_held_within_the_budget(api, known, route):
    ((answer, _, _),) = api.together(fed(api.app, route, known, FILLINGS["json"]))
    octets = limit_of(route, answer)
    for name, content in whole_bodies(route, octets):
        assert len(content) <= octets

        ((answer, most),) = api.together(sent(api.app, route, known, content))

        assert answer.status in range(200, 500), name
        assert most <= table.HTTP_BYTES_ADDRESS.limit, name


@pytest.mark.parametrize("route", [one for one in ALL_ROUTES if one not in ROUTES], ids=named)
def test_a_body_without_an_end_that_no_route_asked_for_is_not_waited_for(api, known, route):
    ((answer, total, most),) = api.together(fed(api.app, route, known, FILLINGS["text"]))

    assert answer.status in range(200, 500)
    assert most <= table.HTTP_BYTES_ADDRESS.limit
    assert total <= limit_of(route, answer) + table.HTTP_BYTES_ADDRESS.limit


@pytest.mark.parametrize("route", ALL_ROUTES, ids=named)
def test_the_longest_query_is_answered_within_the_budget(api, known, route):
    async def asked(query):
        body = Body(lambda: None, ended=True)
        request = request_of(route, known, body)
        request.headers = [one for one in request.headers if one[0] != b"transfer-encoding"]
        request.found = by_name(request.headers)
        request.target += b"?" + query
        answer = api.app(request)
        return answer if isinstance(answer, Response) else await answer

    tracemalloc.start()
    try:
        answers = [api.together(asked(query))[0] for query in QUERIES.values()]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert all(answer.status in range(200, 500) for answer in answers)
    assert peak <= table.HTTP_BYTES_ADDRESS.limit


class Fed(StatefulObject):
    async def keep(self, value=None):
        return None

    async def fetch(self, request):
        return ObjectResponse(str(len(await request.body())))


def test_a_body_without_an_end_is_answered_by_every_route_of_objects(tmp_path):
    routes = list(rows_of(OBJECTS))
    known = {"class_name": "Fed", "name": "a", "method": "keep", "path": "x"}

    async def script(client, host):
        await client.call("Fed/a/keep")
        wrong = []
        for route, filling in itertools.product(routes, FILLINGS.values()):
            answer, total, most = await fed(host._server.handler, route, known, filling)
            body_max = max(route.body_bytes_max, MESSAGE_BYTES_MAX)
            if not (
                answer.status in range(200, 504)
                and most <= table.HTTP_BYTES_ADDRESS.limit + table.HTTP_BYTES_ADDRESS.limit // 4
                and total <= body_max + table.HTTP_BYTES_ADDRESS.limit
            ):
                wrong.append((named(route), answer.status, total, most))
            answer.done(None)
        return wrong

    assert serve(tmp_path, script, Fed) == []


@pytest.mark.parametrize("route", ROUTES, ids=named)
def test_a_body_that_stops_is_answered(api, known, route, monkeypatch):
    for name in ("BODY_SECONDS_MAX", "UPLOAD_IDLE_SECONDS_MAX"):
        monkeypatch.setattr(rest_body, name, 0.01)

    async def stopped():
        body = Body(lambda: None)
        body.feed(b"[")
        answer = api.app(request_of(route, known, body))
        return answer if isinstance(answer, Response) else await answer

    (answer,) = api.together(stopped())
    assert answer.status in range(200, 500)
