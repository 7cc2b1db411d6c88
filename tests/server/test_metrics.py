"""What is counted beside requests: keys and values, commits and syncs, what waits."""

import http.client
import json
from pathlib import Path

import pytest

from edgestead.model.counters import slot
from edgestead.server.edge import main

EXAMPLES = Path(__file__).parents[2] / "examples"
NOISE = """
import os
from edgestead import StatefulObject


class Noise(StatefulObject):
    async def make(self):
        self.ctx.storage.put("noise", os.urandom(100_000))
"""


def sample(server, name, **labels):
    """The sum of a metric over the processes."""
    wanted = [f'{key}="{value}"' for key, value in labels.items()]
    lines = [
        line for line in server.call("GET", "//metrics").body.splitlines() if line.startswith(name + "{")
    ]
    return sum(int(line.split()[-1]) for line in lines if all(part in line for part in wanted))


OPERATIONS = {  # of the key-value store: by the name in the metric, how each is asked for
    "get": ("GET", "values/a", None),
    "put": ("PUT", "bulk", [{"key": "a", "value": "1"}]),
    "delete": ("DELETE", "values/a", None),
    "list": ("GET", "keys", None),
}


def operations(server):
    return {one: sample(server, "edge_kv_operations_total", operation=one) for one in OPERATIONS}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_operations_of_the_key_value_store_are_counted(lent, operation):
    base = f"/accounts/{lent.ready['account_id']}/storage/kv/namespaces"
    namespace = lent.call("POST", base, {"title": "one"}).result["id"]
    before = operations(lent)
    method, path, body = OPERATIONS[operation]

    lent.call(method, f"{base}/{namespace}/{path}", body)

    assert operations(lent) == before | {operation: before[operation] + 1}


def test_commits_of_objects_and_their_syncs_are_counted(new_server):
    server = new_server("--objects", str(EXAMPLES), "--objects-workers", "1").start()

    for seat in range(3):
        assert server.call_object("Booking/friday/hold", f"1{seat}", "ann").status == 200

    server.wait_until(lambda: sample(server, "edge_objects_log_records_total") >= 3, 300)
    assert (
        0
        < sample(server, "edge_objects_log_groups_total")
        <= sample(server, "edge_objects_log_records_total")
    )
    server.wait_until(lambda: sample(server, "edge_objects_log_waiting") == 0, 300)


def test_the_past_of_objects_is_counted_and_stays_within_its_quota(new_server, tmp_path):
    (tmp_path / "noise.py").write_text(NOISE)
    settings = tmp_path / "edge.toml"
    settings.write_text(f'objects-history-mib = 1\nobjects = ["{tmp_path}/noise.py"]\n')
    server = new_server("--config", str(settings)).start()
    first = None
    for _ in range(20):
        assert server.call_object("Noise/one/make").status == 200
        moments = operate(server, "timeline?limit=1000")  # now the past is as new as the object
        first = first or moments[0]["bookmark"]

    # The metric may still be one from before the object was full: the timeline comes first.
    server.wait_until(lambda: 0 < len(operate(server, "timeline?limit=1000")) < 20, 300)
    server.wait_until(lambda: 0 < sample(server, "edge_objects_history_bytes") <= 1024 * 1024, 300)
    left = operate(server, "timeline?limit=1000")

    assert first not in {moment["bookmark"] for moment in left}


def operate(server, what):
    connection = http.client.HTTPConnection(server.ready["objects"], timeout=300)
    headers = {"authorization": f"Bearer {server.ready['api_token']}"}
    connection.request("GET", f"/operate/objects/Noise/one/{what}", headers=headers)
    answer = json.loads(connection.getresponse().read())
    connection.close()
    return answer["result"]


@pytest.mark.parametrize(("status", "value"), [(101, "1xx"), (204, "2xx"), (599, "5xx"), (999, "5xx")])
def test_a_code_that_no_standard_has_is_counted_as_a_fault(status, value):
    """An origin may say it, and the cells behind are those of another metric."""
    assert main.cell_of(status) == slot("edge_http_requests_total", value)
