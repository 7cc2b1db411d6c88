"""A body without an end, and the longest query, to every route of both faces, made from the table of routes.

A body is fed while it is not full, as a connection would. Each route has to answer, and what its body holds
meanwhile is within the budget of an address. A query comes with the head, so no connection lets a longer one
through (tests/http1/test_budgets.py has endless heads, chunks and trailers).
"""

import asyncio
import itertools
import tracemalloc

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
from edgestead.rest.routing import CONTROL, OBJECTS, rows_of
from tests.objects.hosts import serve
from tests.support.api import BEARER, LocalApi

PORTION_BYTES = 65_536
FED_BYTES_MAX = 256 << 20  # what takes so much takes everything
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
        "namespace_id": namespace,
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
    """The answer, how much was fed until it came, and the most that the body held."""
    body = Body(lambda: None)
    body.feed(filling)
    answer = app(request_of(route, known, body))
    total, most = len(filling), body.held_bytes
    if isinstance(answer, Response):
        return answer, total, most
    task = asyncio.ensure_future(answer)
    while not task.done() and total < FED_BYTES_MAX:
        if body.is_full:
            await asyncio.sleep(0.001)  # threads take it
        else:
            body.feed(filling)
            total += len(filling)
            await asyncio.sleep(0)
        most = max(most, body.held_bytes)
    assert task.done(), f"{route.method} {route.path} has taken {total} bytes"
    return task.result(), total, most


@pytest.mark.parametrize("filling", FILLINGS)
@pytest.mark.parametrize("route", ROUTES, ids=named)
def test_a_body_without_an_end_is_answered_and_held_within_the_budget(api, known, route, filling):
    (found,) = api.together(fed(api.app, route, known, FILLINGS[filling]))
    answer, total, most = found

    assert answer.status in range(200, 500)
    assert b'"code":7003' not in answer.body  # the path is the route's
    assert most <= table.HTTP_BYTES_ADDRESS.limit
    assert total <= max(route.body_bytes_max, PORTION_BYTES) + table.HTTP_BYTES_ADDRESS.limit


@pytest.mark.parametrize("route", [one for one in ALL_ROUTES if one not in ROUTES], ids=named)
def test_a_body_without_an_end_that_no_route_asked_for_is_not_waited_for(api, known, route):
    ((answer, total, most),) = api.together(fed(api.app, route, known, FILLINGS["text"]))

    assert answer.status in range(200, 500)
    assert most <= table.HTTP_BYTES_ADDRESS.limit
    assert total <= max(route.body_bytes_max, PORTION_BYTES) + table.HTTP_BYTES_ADDRESS.limit


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
