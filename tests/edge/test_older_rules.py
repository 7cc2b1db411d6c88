"""A migration rehearsed: what ended on 2025-06-15 decides at the edge, seen on the day before."""

import pytest

from tests.edge.conftest import Site
from tests.edge.test_rules_live import CUSTOM

BEFORE = ("--as-of", "2025-06-14")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    made = Site(tmp_path_factory.mktemp("older"), *BEFORE)
    yield made
    made.close()


@pytest.fixture
def call(site):
    def ask(method, path, body=None):
        answer = site.server.call(method, f"/zones/{site.zone_id}{path}", body)
        assert answer.status == 200, answer
        return answer.result

    return ask


def test_a_firewall_rule_blocks_and_today_s_face_undoes_it(site, call):
    host, _ = site.origin()
    expression = f'http.host eq "{host}" and http.request.uri.path eq "/admin"'
    (made,) = call("POST", "/firewall/rules", [{"action": "block", "filter": {"expression": expression}}])
    assert [site.get(host, path).status for path in ("/admin", "/")] == [403, 200]

    call("PUT", f"/filters/{made['filter']['id']}", {"expression": f'http.host eq "{host}"'})
    assert [site.get(host, path).status for path in ("/admin", "/")] == [403, 403]

    ruleset = f"/rulesets/{call('GET', f'/rulesets/phases/{CUSTOM}/entrypoint')['id']}"
    call("PUT", ruleset, {"rules": call("GET", f"{ruleset}/versions/1")["rules"]})
    assert [site.get(host, path).status for path in ("/admin", "/")] == [403, 200]
    assert call("GET", f"/firewall/rules/{made['id']}")["filter"]["expression"] == expression
    call("PUT", ruleset, {"rules": []})
    assert site.get(host, "/admin").status == 200


def test_an_allowing_rule_lets_by_and_a_filter_alone_does_nothing(site, call):
    host, _ = site.origin()
    (filter_,) = call("POST", "/filters", [{"expression": f'http.host eq "{host}"'}])
    assert site.get(host).status == 200
    rules = call(
        "POST",
        "/firewall/rules",
        [
            {"action": "block", "filter": {"id": filter_["id"]}},
            {"action": "allow", "filter": {"expression": 'http.request.uri.path eq "/open"'}},
        ],
    )
    assert [site.get(host, path).status for path in ("/open", "/")] == [200, 403]
    call("DELETE", "/firewall/rules?" + "&".join(f"id={one['id']}" for one in rules))
    call("DELETE", f"/filters/{filter_['id']}")
    assert site.get(host).status == 200


def test_a_rate_limit_limits(site, call):
    host, _ = site.origin()
    made = call(
        "POST",
        "/rate_limits",
        {
            "match": {"request": {"methods": ["GET"], "schemes": ["HTTP"], "url": f"{host}/login*"}},
            "threshold": 2,
            "period": 60,
            "action": {"mode": "ban", "timeout": 60},
        },
    )
    assert [site.get(host, path).status for path in ("/login", "/login", "/login", "/")] == [
        200,
        200,
        429,
        200,
    ]
    call("DELETE", f"/rate_limits/{made['id']}")
    assert site.get(host, "/login").status == 200


def test_a_lockdown_keeps_everybody_else_out(site, call):
    host, _ = site.origin()
    body = {"urls": [f"{host}/admin*"], "configurations": [{"target": "ip", "value": "192.0.2.7"}]}
    made = call("POST", "/firewall/lockdowns", body)
    assert [site.get(host, path).status for path in ("/admin/x", "/%61dmin", "/")] == [403, 403, 200]
    body["configurations"] = [{"target": "ip_range", "value": "127.0.0.0/8"}]
    call("PUT", f"/firewall/lockdowns/{made['id']}", body)
    assert site.get(host, "/admin/x").status == 200
