"""A real server answers as its own description says, to requests made from it: the same ones on every run."""

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import checks
from schemathesis.generation import GenerationMode

from edgestead.objects import ids
from edgestead.rest import openapi
from edgestead.rest.routing import ANY, BASE_PATH, OBJECTS, ROUTES
from edgestead.testing.server import EdgeServer
from tests.rest.test_matrix import named
from tests.support.patience import patient

EXAMPLES = 6  # of each route and mode
CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]
PHASE = "http_request_firewall_custom"
LEDGER = """
from edgestead import Response, StatefulObject

class Ledger(StatefulObject):
    async def put(self, value=None):
        await self.ctx.storage.put("k", 1)

    async def fetch(self, request):
        return Response.json({"path": request.path})
"""
NAMES = {"class_name", "name", "of_class", "path"}  # of objects: any text is one
GENERATION = {"with-security-parameters": False}  # the session's are sent
schema = schemathesis.openapi.from_dict(
    openapi.document(ROUTES),
    config=schemathesis.Config.from_dict({"generation": GENERATION, "seed": 1}),
)
CASES = [
    (mode, row)
    for row in ROUTES
    if not row.has_ended  # tests/changes asks those
    for mode in GenerationMode
    if mode.is_positive or row.query or row.takes or {*row.parameters} - NAMES  # else nothing can be wrong
]
settled = settings(
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("schemathesis")
    (folder / "ledger.py").write_text(LEDGER)
    made = EdgeServer(folder / "data", *patient(folder), "--objects", str(folder / "ledger.py"))
    try:
        yield made.start()
    finally:
        made.close()


@pytest.fixture(scope="module")
def session(server):
    with requests.Session() as made:
        made.headers["Authorization"] = f"Bearer {server.ready['api_token']}"
        yield made


@pytest.fixture(scope="module")
def there(server):
    """Identifiers of what is there, by the name of the path's parameter, for each of the two scopes."""
    zone_id = server.make_zone("fuzz.example")
    account_id = server.ready["account_id"]
    namespaces = f"/accounts/{account_id}/storage/kv/namespaces"
    server.call_object("Ledger/a/put")
    common = {
        "class_name": "Ledger",
        "name": "a",
        "id": ids.from_name("Ledger", "a").id,
        "method": "put",
        "zone_id": zone_id,
        "account_id": account_id,
        "dns_record_id": server.make_record(zone_id, "A", "www", "192.0.2.1").result["id"],
        "namespace": server.call("POST", namespaces, {"title": "fuzz"}).result["id"],
        "key": "k",
        "phase": PHASE,
        "version": "1",
    }
    return {
        scope: {**common, **_ruleset(server, f"/{scope}/{id_}", kind)}
        for scope, id_, kind in (("zones", zone_id, "zone"), ("accounts", account_id, "custom"))
    }


def _ruleset(server, owner, kind):
    body = {"name": "fuzz", "kind": kind, "phase": PHASE, "rules": [{"action": "log", "expression": "ssl"}]}
    made = server.call("POST", f"{owner}/rulesets", body).result
    return {"ruleset_id": made["id"], "rule_id": made["rules"][0]["id"]}


@pytest.mark.parametrize(("mode", "row"), CASES, ids=lambda one: getattr(one, "value", None) or named(one))
def test_answers_are_as_described(server, session, there, mode, row):
    base_url = server.ready["api_base"].removesuffix(BASE_PATH)
    if row.face is OBJECTS:
        base_url = f"http://{server.ready['objects']}"
    operation = schema[row.path.replace("*}", "}")]["GET" if row.method == ANY else row.method]
    known = there["accounts" if row.account_at is not None else "zones"]

    @settled
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case):
        for name in case.path_parameters or {}:
            if name in known and row.method != "DELETE":  # nothing is taken away from the other routes
                case.path_parameters[name] = known[name]
        response = case.call(base_url=base_url, session=session)
        case.validate_response(response, checks=CHECKS)

    ask()
