"""What is counted beside requests: keys and values, commits and syncs, what waits."""

from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def sample(server, name, **labels):
    """The sum of a metric over the processes."""
    wanted = [f'{key}="{value}"' for key, value in labels.items()]
    lines = [
        line for line in server.call("GET", "//metrics").body.splitlines() if line.startswith(name + "{")
    ]
    return sum(int(line.split()[-1]) for line in lines if all(part in line for part in wanted))


@pytest.mark.parametrize(
    ("operation", "method", "path", "body"),
    [
        ("get", "GET", "values/a", None),
        ("put", "PUT", "bulk", [{"key": "a", "value": "1"}]),
        ("delete", "DELETE", "values/a", None),
        ("list", "GET", "keys", None),
    ],
)
def test_operations_of_the_key_value_store_are_counted(edge_server, operation, method, path, body):
    base = f"/accounts/{edge_server.ready['account_id']}/storage/kv/namespaces"
    namespace = edge_server.call("POST", base, {"title": "one"}).result["id"]

    edge_server.call(method, f"{base}/{namespace}/{path}", body)

    counts = {
        one: sample(edge_server, "edge_kv_operations_total", operation=one)
        for one in ("get", "put", "delete", "list")
    }
    assert counts == {one: int(one == operation) for one in counts}


def test_commits_of_objects_and_their_syncs_are_counted(new_server):
    server = new_server("--objects", str(EXAMPLES)).start()

    for seat in range(3):
        assert server.call_object("Booking/friday/hold", f"1{seat}", "ann").status == 200

    server.wait_until(lambda: sample(server, "edge_objects_log_records_total") >= 3, 30)
    assert (
        0
        < sample(server, "edge_objects_log_groups_total")
        <= sample(server, "edge_objects_log_records_total")
    )
    server.wait_until(lambda: sample(server, "edge_objects_log_waiting") == 0, 30)
