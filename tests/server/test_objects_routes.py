"""Every route of the objects' address with each way of saying who calls, at a real server."""

import itertools

import jsonschema_rs
import pytest
import requests

from edgestead.objects import ids
from edgestead.rest import app, openapi  # noqa: F401 - importing the application fills ROUTES
from edgestead.rest.declared import JSON
from edgestead.rest.routing import ANY, OBJECTS, ROUTES, rows_of
from edgestead.testing.server import EdgeServer
from tests.server.test_objects import make_token

ROWS = rows_of(OBJECTS)
DOCUMENT = openapi.document(ROUTES)
LEDGER = """
from edgestead import Request, Response, StatefulObject

class Ledger(StatefulObject):
    storage = "sql"

    async def put(self, value):
        await self.ctx.storage.put("k", value)
        return value

    async def alarm(self):
        pass

    async def fetch(self, request):
        return Response.json({"path": request.path})
"""
FAR_MS = 4_000_000_000_000
CALL = {"args": [1]}
BODIES = {  # by the last part of the path
    "{method}": CALL,
    "call": CALL,
    "sql": {"query": "SELECT 1"},
    "sql-write": {"query": "CREATE TABLE t (a)"},
    "alarm": {"time": FAR_MS},
}
_numbers = itertools.count()


def named(row):
    return f"{row.method} {row.path}"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("objects")
    (folder / "ledger.py").write_text(LEDGER)
    (folder / "edge.toml").write_text("api-guesses = 100_000\n")  # strangers ask from one address
    flags = ("--objects", str(folder / "ledger.py"), "--objects-workers", "2")
    made = EdgeServer(folder / "data", *flags, "--config", str(folder / "edge.toml"))
    try:
        yield made.start()
    finally:
        made.close()


@pytest.fixture(scope="module")
def credentials(server):
    ready = server.ready
    return {
        "token": {"authorization": f"Bearer {ready['api_token']}"},
        "key pair": {"x-auth-email": ready["email"], "x-auth-key": ready["api_key"]},
    }


@pytest.fixture(scope="module")
def ask(server, credentials):
    """Call a route with everything that it needs to succeed, for an object of its own, and these headers."""

    def send(method, path, headers, **options):
        address = server.ready["objects"]
        return requests.request(method, f"http://{address}{path}", headers=headers, timeout=300, **options)

    def call(row, headers):
        name = f"n{next(_numbers)}"
        base = f"/operate/objects/Ledger/{name}"
        mine = credentials["token"]
        send("POST", f"/objects/Ledger/{name}/put", mine, json=CALL)
        send("PUT", f"{base}/alarm", mine, json={"time": FAR_MS})
        bookmark = send("GET", f"{base}/bookmark", mine).json()["result"]
        send("POST", f"{base}/restore", mine, json=bookmark)
        last = row.path.rpartition("/")[2]
        path = row.path.replace("*}", "}").format(
            class_name="Ledger",
            of_class="Ledger",
            name=name,
            id=ids.from_name("Ledger", name).id,
            method="put",
            path="a/b",
        )
        body = bookmark if last == "restore" else BODIES.get(last) if row.takes else None
        query = "?method=put" if last == "call" else ""
        return send("GET" if row.method == ANY else row.method, path + query, headers, json=body)

    return call


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_every_route_takes_both_schemes_and_answers_as_the_document_says(ask, credentials, row):
    for headers in credentials.values():
        answer = ask(row, headers)

        assert answer.status_code == 200, answer.text
        if row.answers.media == JSON:
            operation = DOCUMENT["paths"][row.path][row.method.lower()]
            schema = operation["responses"]["200"]["content"][JSON]["schema"]
            jsonschema_rs.validate({**schema, "components": DOCUMENT["components"]}, answer.json())


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_no_route_takes_nobody_or_a_stranger(ask, credentials, row):
    strangers = {
        9106: {},
        9109: {"authorization": "Bearer " + "x" * 40},
        9103: {**credentials["key pair"], "x-auth-key": "f" * 37},
    }
    for code, headers in strangers.items():
        answer = ask(row, headers)

        assert answer.status_code in (400, 403)
        assert [one["code"] for one in answer.json()["errors"]] == [code]


def test_every_route_asks_for_its_permission_group(server, ask):
    groups = {row.permission for row in ROWS}
    for group in groups:
        _, secret = make_token(server, group)
        for row in ROWS:
            implied = group.replace("Write", "Read")
            expected = 200 if row.permission in (group, implied) else 403
            answer = ask(row, {"authorization": f"Bearer {secret}"})
            assert answer.status_code == expected, (group, named(row), answer.text)
