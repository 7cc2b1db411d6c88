"""The API's description says what the routes do: everything is declared, and handlers keep to it."""

import inspect
import json
from typing import Any

import jsonschema_rs
import pytest

from edgestead.config_options import OPTIONS
from edgestead.model.envelope import Page
from edgestead.rest import examples, openapi, openapi_page, pipeline
from edgestead.rest.declared import JSON, page_of
from edgestead.rest.query import Query
from edgestead.rest.routing import ANY, BASE_PATH, OBJECTS, ROUTES
from edgestead.usecases.zone.zones import ZoneView
from tests.rest.test_matrix import PRIVATE, ask, ask_async, known, named
from tests.support.api import BEARER

__all__ = ["ask", "ask_async", "known"]  # fixtures

DOCUMENT = openapi.document(ROUTES)
ASKING = [row for row in PRIVATE if row.wants_query]
ANY_JSON = {"show_metadata", "call_method", "call_object"}  # of results


class Recorder(Query):
    """A query that is asked for everything, and writes down what was read of it."""

    def __init__(self, raw):
        super().__init__(raw or b"x=1")
        self.read = {}

    def text(self, *names):
        for name in names:
            self.read.setdefault(name, {"kind": "string"})
        return super().text(*names)

    def every(self, name):
        self.read.setdefault(name, {"kind": "string", "repeated": True})
        return super().every(name)

    def flag(self, name):
        self.read[name] = {"kind": "boolean"}
        return super().flag(name)

    def choice(self, name, choices, default):
        self.read[name] = {"kind": "string", "choices": tuple(choices)}
        return super().choice(name, choices, default)

    def whole(self, name):
        found = super().whole(name)
        self.read[name] = {"kind": "integer"}
        return found

    def _number(self, name, default):
        self.read[name] = {"kind": "integer"}
        return super()._number(name, default)


@pytest.fixture
def recorded(monkeypatch):
    """Every query that is made in the test."""
    made = []

    def make(raw):
        made.append(Recorder(raw))
        return made[-1]

    monkeypatch.setattr(pipeline, "Query", make)
    return made


@pytest.mark.parametrize("row", ASKING, ids=named)
def test_a_handler_reads_the_parameters_that_its_route_declares(ask, known, recorded, row):
    recorded.clear()

    ask(row, BEARER)

    declared = {one.name: one for one in row.query}
    read = recorded[-1].read
    assert set(read) <= set(declared), "add it to `query=` of @route"
    for name, facts in read.items():
        for fact, value in facts.items():
            assert getattr(declared[name], fact) == value, (name, fact)
    assert set(read) == set(declared)


@pytest.mark.parametrize("row", PRIVATE, ids=named)
def test_a_success_is_as_the_document_says(ask, row):
    answer = ask(row, BEARER)

    if answer.status == 204:
        assert described(row)["204"]
    elif answer.status == 200:
        content = described(row)["200"]["content"]
        media = answer.headers["content-type"].partition(";")[0]
        assert media in content
        if media == JSON:
            schema = {**content[JSON]["schema"], "components": DOCUMENT["components"]}
            jsonschema_rs.validate(schema, answer.json)


def described(row):
    return DOCUMENT["paths"][row.path][row.method.lower()]["responses"]


def test_each_route_says_what_it_answers():
    def is_unsaid(row):
        return row.answers.result is Any and row.answers.media == JSON and row.answers.status == 200

    unsaid = [row for row in ROUTES if is_unsaid(row)]
    assert [named(row) for row in unsaid if row.handler.__name__ not in ANY_JSON] == [], "add `answers=`"
    assert [named(row) for row in ROUTES if row.answers.result is Page] == []


def test_each_route_says_what_it_takes():
    """An object's `fetch` takes anything; what a GET brings has no meaning of its own (RFC 9110 §9.3.1)."""

    def reads_a_body(row):
        bodies = {"body", "upload", "request"} if row.method not in (ANY, "GET") else set()
        return bool(bodies & set(inspect.signature(row.handler).parameters))

    assert [named(row) for row in ROUTES if bool(row.takes) != reads_a_body(row)] == [], "add `takes=`"


def test_every_route_has_a_summary_and_a_name_of_its_own():
    found = [one for path in DOCUMENT["paths"].values() for one in path.values()]

    assert len(found) == sum(len(openapi.METHODS) if row.method == ANY else 1 for row in ROUTES)
    assert all(one["summary"] for one in found)
    assert len({one["operationId"] for one in found}) == len(found)


def test_the_document_is_served_to_everybody(api):
    answer = api.get("/openapi.json", base="", auth={})

    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json == json.loads(json.dumps(DOCUMENT))
    assert answer.json["openapi"] == "3.1.0"


def test_every_reference_in_it_leads_somewhere():
    def references(value):
        if isinstance(value, dict):
            if "$ref" in value:
                yield value["$ref"]
            for inner in value.values():
                yield from references(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from references(inner)

    found = set(references(DOCUMENT))

    assert found
    for reference in found:
        node = DOCUMENT
        for part in reference.removeprefix("#/").split("/"):
            node = node[part]


def test_what_a_route_needs_is_in_the_document():
    records = DOCUMENT["paths"][BASE_PATH + "/zones/{zone_id}/dns_records"]
    order = next(one for one in records["get"]["parameters"] if one["name"] == "order")

    assert records["post"]["x-permission"] == "DNS Write"
    assert records["post"]["security"] == [{"token": []}, {"email": [], "key": []}]
    assert "name" in order["schema"]["enum"]
    assert DOCUMENT["paths"]["/health/live"]["get"]["security"] == []
    assert DOCUMENT["paths"][BASE_PATH + "/zones/{zone_id}/rulesets/{ruleset_id}"]["delete"]["responses"][
        "204"
    ] == {"description": "Done. There is no body."}


def test_routes_of_objects_name_the_address_that_serves_them():
    for row in ROUTES:
        operation = DOCUMENT["paths"][row.path.replace("*}", "}")][row.method.lower().replace(ANY, "get")]
        assert ("servers" in operation) == (row.face is OBJECTS), named(row)
    (option,) = [one for one in OPTIONS if one.key == "objects-http"]
    assert openapi.OBJECTS_ADDRESS == option.default


def test_a_member_that_may_be_absent_is_not_required():
    record = DOCUMENT["components"]["schemas"]["RecordView"]

    assert {"id", "content", "comment"} <= set(record["required"])
    assert not {"priority", "data", "comment_modified_on"} & set(record["required"])


def test_a_list_says_its_paging():
    answers = page_of(ZoneView)
    zones = DOCUMENT["paths"][BASE_PATH + "/zones"]["get"]["responses"]["200"]
    members = zones["content"][JSON]["schema"]["properties"]

    assert answers.result == list[ZoneView]
    assert members["result"] == {"type": "array", "items": {"$ref": "#/components/schemas/ZoneView"}}
    assert members["result_info"] == {"$ref": "#/components/schemas/ResultInfo"}


def test_the_page_shows_every_route_and_loads_nothing(api):
    answer = api.get("/docs", base="", auth={})
    page = answer.body.decode()

    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    operations = [one for path in DOCUMENT["paths"].values() for one in path.values()]
    assert page.count('<span class="m">') == len(operations)
    assert "<script" not in page
    assert "http://" not in page
    assert "https://" not in page
    assert "src=" not in page
    assert '<link rel="icon" href="data:,">' in page  # else browsers ask for /favicon.ico, a 404 in the log


def test_parts_of_the_api_have_names_for_people():
    tags = [one["name"] for one in DOCUMENT["tags"]]

    assert "DNS records" in tags
    assert "ended by a date" in tags
    assert not {"custom", "ended", "zone", "kv", "dns", "openapi"} & set(tags)


def test_a_route_that_only_refuses_announces_no_success():
    for path, method in (
        ("/client/v4/zones/{zone_id}/firewall/rules", "post"),
        ("/client/v4/zones/{zone_id}/firewall/rules", "get"),
    ):
        assert list(DOCUMENT["paths"][path][method]["responses"]) == ["4XX", "503"]


def test_text_on_the_page_is_escaped():
    shown = {**DOCUMENT, "info": {**DOCUMENT["info"], "description": "<b>`x<y`</b>"}}

    assert "&lt;b&gt;<code>x&lt;y</code>&lt;/b&gt;" in openapi_page.render(shown)


EXAMPLES = [
    (path, method, content["application/json"])
    for path, operations in DOCUMENT["paths"].items()
    for method, operation in operations.items()
    if "example"
    in (content := operation.get("requestBody", {}).get("content", {})).get("application/json", {})
]


@pytest.mark.parametrize(("path", "method", "content"), EXAMPLES, ids=lambda one: str(one)[:60])
def test_an_example_of_a_body_is_one(path, method, content):
    schema = {**content["schema"], "components": DOCUMENT["components"]}

    jsonschema_rs.validate(schema, content["example"])


def test_every_body_in_json_has_an_example_and_every_example_a_route():
    bodies = [row for row in ROUTES if "application/json" in row.takes and not row.has_ended]
    used = {examples.key_of(row) for row in ROUTES} | {"PATCH setting"}

    assert [row.path for row in bodies if examples.body_of(row) is None] == []
    assert examples.BODIES.keys() - used == set()
