"""What an operator grants is what an account, a zone and a namespace can hold, over restarts too."""

import pytest

SETTINGS = """
quota-zones = 2
quota-zone-records = 3
quota-account-kv-mib = 2
quota-namespace-kv-mib = 1
"""
HALF = "x" * 500_000  # of a MiB, and a little room


@pytest.fixture
def server(new_server, tmp_path):
    settings = tmp_path / "quotas.toml"
    settings.write_text(SETTINGS)
    made = new_server("--config", str(settings))
    made.start()
    yield made
    made.close()


def code_of(answer):
    return (answer.status, answer.body["errors"][0]["code"])


def test_what_is_full_takes_no_more_until_something_is_deleted(server):
    spaces = f"/accounts/{server.ready['account_id']}/storage/kv/namespaces"
    a, b, c = (server.call("POST", spaces, {"title": title}).result["id"] for title in "abc")

    def put(namespace, key):
        return server.call("PUT", f"{spaces}/{namespace}/bulk", [{"key": key, "value": HALF}])

    zone = server.make_zone("a.example")
    server.make_zone("b.example")
    assert code_of(server.call("POST", "/zones", {"name": "c.example"})) == (400, 1118)
    for number in range(3):
        server.make_record(zone, "A", f"n{number}", "192.0.2.1")
    assert code_of(server.make_record(zone, "A", "more", "192.0.2.1")) == (400, 81045)
    usage = server.call("GET", f"/zones/{zone}/dns_records/usage").result
    assert usage == {"record_quota": 3, "record_usage": 3}

    assert [put(namespace, key).status for namespace in (a, b) for key in "kl"] == [200] * 4
    assert code_of(put(a, "m")) == (400, 10048)
    server.kill()
    server.start()
    refused = put(c, "k")
    assert code_of(refused) == (400, 10048)
    assert "The account holds 2000004 bytes" in refused.body["errors"][0]["message"]
    assert server.call("DELETE", f"{spaces}/{a}/values/k").status == 200
    assert put(c, "k").status == 200
    assert server.call("DELETE", f"{spaces}/{b}").status == 200
    assert put(c, "l").status == 200
