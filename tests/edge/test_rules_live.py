"""Rules from the API's answer on: through real processes and sockets, with two edge workers."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from edgestead.testing.server import environment, wait_until
from tests.edge.conftest import Site
from tests.edge.origin import headers_of
from tests.edge.talk import say
from tests.edge.test_clearance import solved

CUSTOM, RATES = "http_request_firewall_custom", "http_ratelimit"
BROWSER = ("User-Agent: Browser/1.0", "Accept: text/html")
PATIENCE_SECONDS = 180


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    made = Site(tmp_path_factory.mktemp("site"), "--edge-workers", "2")
    yield made
    made.close()


@pytest.fixture
def put(site):
    """Set a phase's rules, of the zone or the account; all of them are gone after the test."""
    written = []

    def call(phase, *rules, account=False):
        place = f"/accounts/{site.server.ready['account_id']}" if account else f"/zones/{site.zone_id}"
        path = f"{place}/rulesets/phases/{phase}/entrypoint"
        written.append(path)
        return site.server.call("PUT", path, {"rules": list(rules)}).result

    yield call
    for path in written:
        site.server.call("PUT", path, {"rules": []})


def on(host, action, more="", **parameters):
    expression = f'http.host eq "{host}"' + (f" and {more}" if more else "")
    return {"action": action, "expression": expression, **parameters}


def events(site, query=""):
    return site.server.call("GET", f"/zones/{site.zone_id}/security/events?{query}").result


def eventually(site, query, count=1):
    """The events, as soon as there are as many: workers write a moment after they answer."""
    wait_until(lambda: len(events(site, query)) >= count, PATIENCE_SECONDS)
    return events(site, query)


def test_a_rule_holds_from_the_apis_answer_on_and_no_longer(site, put):
    host, origin = site.origin()
    for _ in range(5):
        put(CUSTOM, on(host, "block", 'http.request.uri.path eq "/admin"'))
        assert [site.get(host, path).status for path in ("/admin", "/%61dmin", "/")] == [403, 403, 200]
        put(CUSTOM)
        assert site.get(host, "/admin").status == 200
    assert len(origin.heads) == 10


def test_a_decision_is_an_event_with_its_rule_and_its_request(site, put):
    host, _ = site.origin()
    made = put(CUSTOM, on(host, "block", description="no admins"))
    answer = site.get(host, "/admin?token=abc&a=1", "User-Agent: curl/8", "Cookie: secret=1")

    ray = re.search(rb"Ray ID: ([0-9a-f]+)", answer.body).group(1).decode()
    (event,) = eventually(site, f"ray_id={ray}")
    assert (event["rule_id"], event["ruleset_id"]) == (made["rules"][0]["id"], made["id"])
    assert (event["action"], event["status"], event["description"]) == ("block", 403, "no admins")
    assert (event["host"], event["path"], event["query"]) == (host, "/admin", "token=***&a=1")
    assert (event["client"], event["method"], event["user_agent"]) == ("127.0.0.1", "GET", "curl/8")


def test_the_accounts_rules_come_first(site, put):
    host, _ = site.origin()
    custom = {"name": "c", "kind": "custom", "phase": CUSTOM,
              "rules": [on(host, "block", action_parameters={"response": {
                  "status_code": 418, "content": "account", "content_type": "text/plain"}})]}  # fmt: skip
    made = site.server.call("POST", f"/accounts/{site.server.ready['account_id']}/rulesets", custom).result
    put(
        CUSTOM,
        {"action": "execute", "expression": "true", "action_parameters": {"id": made["id"]}},
        account=True,
    )
    put(CUSTOM, on(host, "block"))
    answer = site.get(host)
    assert (answer.status, answer.body, answer.headers[b"content-type"]) == (418, b"account", b"text/plain")


def test_an_address_is_kept_out_and_let_in_again(site, put):
    host, _ = site.origin()
    put(CUSTOM, on(host, "block", 'http.request.uri.path eq "/admin"'))
    rules = f"/zones/{site.zone_id}/firewall/access_rules/rules"

    def make(mode, target, value):
        body = {"mode": mode, "configuration": {"target": target, "value": value}}
        return site.server.call("POST", rules, body).result["id"]

    made = [make("block", "ip_range", "127.0.0.0/8"), make("block", "ip", "192.0.2.7")]
    assert site.get(host).status == 403
    made.append(make("whitelist", "ip", "127.0.0.1"))
    assert [site.get(host, path).status for path in ("/", "/admin")] == [200, 200]
    for rule_id in made:
        site.server.call("DELETE", f"{rules}/{rule_id}")
    assert [site.get(host, path).status for path in ("/", "/admin")] == [200, 403]


@pytest.mark.parametrize("place", ["/accounts/{}", "/user"])
def test_an_address_is_kept_out_of_every_zone_of_the_account(site, place):
    host, _ = site.origin()
    rules = f"{place.format(site.server.ready['account_id'])}/firewall/access_rules/rules"
    body = {"mode": "block", "configuration": {"target": "ip_range", "value": "127.0.0.0/8"}}
    made = site.server.call("POST", rules, body).result
    assert site.get(host).status == 403
    site.server.call("DELETE", f"{rules}/{made['id']}")
    assert site.get(host).status == 200


def test_requests_are_changed_on_their_way_and_answers_on_theirs(site, put):
    host, origin = site.origin(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx-powered-by: x\r\n\r\nok")
    headers = {
        "X-From": {"operation": "set", "expression": "cf.zone.name"},
        "x-gone": {"operation": "remove"},
    }
    uri = {"path": {"expression": 'concat("/new", http.request.uri.path)'}}
    put("http_request_transform", on(host, "rewrite", action_parameters={"uri": uri, "headers": headers}))
    away = {"x-powered-by": {"operation": "remove"}, "x-by": {"operation": "set", "value": "edge"}}
    put("http_response_headers_transform", on(host, "rewrite", action_parameters={"headers": away}))

    answer = site.get(host, "/a?b=1", "X-Gone: 1", "X-From: me")

    head = origin.heads[0]
    assert head.startswith(b"GET /new/a?b=1 HTTP/1.1\r\n")
    assert headers_of(head)[b"x-from"] == site.zone.encode()
    assert b"x-gone" not in headers_of(head)
    assert (answer.body, answer.headers[b"x-by"]) == (b"ok", b"edge")
    assert b"x-powered-by" not in answer.headers


def test_a_route_asks_another_origin_with_another_host_header(site, put):
    host, origin = site.origin()
    _, other = site.origin(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nother")
    parameters = {"origin": {"host": other.host}, "host_header": "inside.test"}
    put("http_request_origin", on(host, "route", action_parameters=parameters))
    assert site.get(host).body == b"other"
    assert headers_of(other.heads[0])[b"host"] == b"inside.test"
    assert origin.heads == []


def test_a_redirect_answers_without_the_origin(site, put):
    host, origin = site.origin()
    target = {"target_url": {"expression": 'concat("https://new.test", http.request.uri.path)'},
              "status_code": 308, "preserve_query_string": True}  # fmt: skip
    put("http_request_dynamic_redirect", on(host, "redirect", action_parameters={"from_value": target}))
    answer = site.get(host, "/a?b=1")
    assert (answer.status, answer.headers[b"location"]) == (308, b"https://new.test/a?b=1")
    assert origin.heads == []


def limit(host, requests, **more):
    told = {"characteristics": ["http.host"], "period": 86_400, "requests_per_period": requests,
            "mitigation_timeout": 86_400, **more}  # fmt: skip
    return on(host, "block", ratelimit=told)


def test_a_limit_is_exact_over_workers_and_connections(site, put):
    host, origin = site.origin()
    put(RATES, limit(host, 50))
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda _: site.get(host).status, range(200)))
    assert statuses.count(200) == len(origin.heads) == 50
    assert statuses.count(429) == 150


def test_a_worker_that_dies_does_not_forget(site, put):
    host, _ = site.origin()
    put(RATES, limit(host, 3))
    assert [site.get(host).status for _ in range(4)] == [200, 200, 200, 429]
    for name in ("edge-0", "edge-1"):
        pid = site.server.wait_for_life(name)
        os.kill(pid, signal.SIGKILL)
        site.server.wait_for_life(name, pid)
    wait_until(lambda: status_of(site, host) is not None, PATIENCE_SECONDS)
    assert {status_of(site, host) for _ in range(8)} - {None} == {429}  # the second may not answer yet


def status_of(site, host):
    try:
        return site.get(host).status
    except (OSError, AttributeError):  # refused, or closed without an answer
        return None


def test_failed_logins_are_counted_by_their_answers(site, put):
    host, origin = site.origin(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\n\r\nno")
    put(RATES, limit(host, 2, counting_expression="http.response.code eq 401"))
    assert [site.get(host).status for _ in range(4)] == [401, 401, 429, 429]
    assert len(origin.heads) == 2


def test_a_rule_sees_a_body_that_comes_in_pieces(site, put):
    host, origin = site.origin()
    put(CUSTOM, on(host, "block", 'http.request.body.form["user"][0] eq "root"'))

    def post(body):
        head = f"POST / HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        return say(site.http, f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body).status

    assert post(b"user=root&a=1") == 403
    assert post(b"user=me&a=" + b"x" * 300_000) == 200
    assert len(origin.requests) == 1
    assert len(origin.requests[0][1]) == 300_010


def test_a_challenge_is_answered_with_one_worker_and_good_for_all(site, put):
    host, origin = site.origin()
    put(CUSTOM, on(host, "js_challenge"))
    page = site.get(host, "/wanted", *BROWSER)
    assert (page.status, page.headers[b"edge-mitigated"]) == (403, b"challenge")

    token = re.search(rb"token=([0-9a-f.]+)", page.body).group(1).decode()
    bits = int(
        re.search(rb'"bits": ?(\d+)', page.body).group(1)
    )  # more of an address that left many unanswered
    path = f"/edge-cgi/challenge?kind=js_challenge&token={token}&solution={solved(token, bits).decode()}"
    answer = site.get(host, path, *BROWSER, "Content-Length: 0", method="POST")
    cookie = answer.headers[b"set-cookie"].partition(b";")[0].decode()

    assert answer.status == 204
    for _ in range(8):  # connections of their own: both workers are asked
        assert site.get(host, "/wanted", *BROWSER, f"Cookie: a=1; {cookie}").status == 200
        assert headers_of(origin.heads[-1])[b"cookie"] == b"a=1"
    assert site.get(host, "/wanted", "Accept: text/html", f"Cookie: {cookie}").status == 403
    assert eventually(site, f"host={host}&action=challenge_solved")


def test_clearances_outlive_a_restart_of_the_server(tmp_path):
    made = Site(tmp_path)
    try:
        host, _ = made.origin()
        path = f"/zones/{made.zone_id}/rulesets/phases/{CUSTOM}/entrypoint"
        made.server.call("PUT", path, {"rules": [on(host, "challenge")]})
        page = made.get(host, "/", *BROWSER)
        token = re.search(rb"token=([0-9a-f.]+)", page.body).group(1).decode()
        solution = f"/edge-cgi/challenge?kind=challenge&token={token}&solution=0"
        answer = made.get(host, solution, *BROWSER, "Content-Length: 0", method="POST")
        cookie = answer.headers[b"set-cookie"].partition(b";")[0].decode()
        assert made.server.stop() == 0
        made.server.start()
        assert made.get(host, "/", *BROWSER, f"Cookie: {cookie}").status == 200
        assert made.get(host, "/", *BROWSER).status == 403
        challenges = made.server.call("GET", f"/zones/{made.zone_id}/security/events?action=challenge")
        assert challenges.result  # and the events of the life before
    finally:
        made.close()


def test_requests_that_cannot_be_read_are_events_of_the_zone_they_name(site):
    host, _ = site.origin()
    say(
        site.http,
        f"GET / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n".encode(),
    )
    (event,) = eventually(site, f"host={host}")
    metrics = site.server.call("GET", "//metrics").body
    counts = re.findall(r'edge_events_total\{process="edge-\d",action="refuse"\} (\d+)', metrics)
    assert sum(map(int, counts)) >= 1
    assert (event["phase"], event["action"], event["status"]) == ("http", "refuse", 400)
    assert event["reason"]


def test_an_origin_that_does_not_answer_is_an_event(site):
    host = site.name(site.address())
    assert site.get(host).status in (521, 522)
    (event,) = eventually(site, f"host={host}")
    assert (event["phase"], event["action"]) == ("origin", "fail")


def test_edgecli_shows_events_and_follows_them(site, put):
    host, _ = site.origin()
    put(CUSTOM, on(host, "block", description="by a rule"))
    site.get(host, "/first")
    eventually(site, f"host={host}")
    ready = site.server.ready
    told = {**environment(), "EDGE_API_BASE": ready["api_base"], "EDGE_TOKEN": ready["api_token"],
            "PYTHONUNBUFFERED": "1"}  # fmt: skip
    command = [sys.executable, "-P", "-m", "edgestead", "waf", "events", "--zone", site.zone, "--host", host]

    listed = subprocess.run(command, env=told, capture_output=True, text=True, check=True).stdout
    assert "block" in listed
    assert f"GET {host}/first" in listed
    with subprocess.Popen([*command, "--follow"], env=told, stdout=subprocess.PIPE, text=True) as following:
        lines = []
        reading = threading.Thread(target=lambda: lines.extend(following.stdout), daemon=True)
        reading.start()
        try:
            for number in range(3):
                site.get(host, f"/next/{number}")
                eventually(site, f"host={host}", 2 + number)
            deadline = time.monotonic() + PATIENCE_SECONDS
            while time.monotonic() < deadline and len(lines) < 4:
                reading.join(0.05)
        finally:
            following.send_signal(signal.SIGINT)
            reading.join()  # to the pipe's end, before it is closed
    shown = [line.split("  by a rule")[0].split()[-1] for line in lines if "by a rule" in line]
    assert shown == [f"{host}/first", *(f"{host}/next/{number}" for number in range(3))]
