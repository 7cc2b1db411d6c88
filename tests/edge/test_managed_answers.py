"""Answers of origins under the managed ruleset: inspected where the operator said so, and told."""

import gzip

import pytest

from edgestead.crs import ANOMALY_RULE_ID
from tests.edge.conftest import Site
from tests.edge.talk import connected, read_answer
from tests.edge.test_managed_server import RULES, deployed, events

PHASE = "http_response_firewall_managed"
LIMIT = 4_096
ANSWER_RULES = r"""
SecRule RESPONSE_BODY "@contains ORA-0" "id:951001,phase:4,block,t:none,msg:'SQL errors',severity:CRITICAL,\
    setvar:'tx.outbound_anomaly_score_pl1=+%{tx.critical_anomaly_score}'"
SecRule RESPONSE_HEADERS:X-Debug "@contains trace" "id:950001,phase:3,block,t:none,msg:'Debugging',\
    severity:ERROR,setvar:'tx.outbound_anomaly_score_pl1=+%{tx.error_anomaly_score}'"
SecRule RESPONSE_BODY "@contains hint" "id:951002,phase:4,block,t:none,msg:'Hints',severity:NOTICE,\
    setvar:'tx.outbound_anomaly_score_pl1=+%{tx.notice_anomaly_score}'"
"""
LEAK = b"<p>ORA-01756: quoted string not properly terminated</p>"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("answers")
    (folder / "crs" / "rules").mkdir(parents=True)
    (folder / "crs" / "crs-setup.conf").write_text('SecComponentSignature "OWASP_CRS/4.0.0"\n')
    (folder / "crs" / "rules" / "one.conf").write_text(RULES + ANSWER_RULES)
    config = folder / "edge.toml"
    config.write_text(f"managed-response-bytes = {LIMIT}\n")
    made = Site(folder, "--crs", str(folder / "crs"), "--config", str(config))
    made.set("compression", "off")
    yield made
    made.close()


def answer(body, *lines, status="200 OK", length=True):
    framing = [f"content-length: {len(body)}"] if length else []
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, *framing, "", ""]).encode() + body


def chunked(*chunks):
    body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in (*chunks, b""))
    return answer(body, HTML, "transfer-encoding: chunked", length=False)


HTML = "content-type: text/html; charset=utf-8"
# an origin's answer, the status that its client sees, the body where that is the origin's
ANSWERS = {
    "clean": (answer(b"fine", HTML), 200, b"fine"),
    "leak": (answer(LEAK, HTML), 403, None),
    "json": (answer(LEAK, "content-type: application/problem+json"), 403, None),
    "no type": (answer(LEAK), 403, None),
    "chunked": (chunked(LEAK[:5], LEAK[5:]), 403, None),
    "clean chunks": (chunked(b"fine ", b"and well"), 200, b"fine and well"),
    "header": (answer(b"fine", "x-debug: trace", "content-type: image/png"), 403, None),
    "error page": (answer(LEAK, HTML, status="500 Oh"), 403, None),
    "clean error": (answer(b"oh", HTML, status="500 Oh"), 500, b"oh"),
    "too little": (answer(b"a hint", HTML), 200, b"a hint"),
    "empty": (answer(b"", HTML), 200, b""),
    "no body": (answer(b"", HTML, status="204 None", length=False), 204, b""),
    "picture": (answer(LEAK, "content-type: image/png"), 200, LEAK),
    "events": (answer(LEAK, "content-type: text/event-stream"), 200, LEAK),
    "packed": (answer(gzip.compress(LEAK), HTML, "content-encoding: gzip"), 200, gzip.compress(LEAK)),
    "at the limit": (answer(b"x" * (LIMIT - len(LEAK)) + LEAK, HTML), 403, None),
    "behind it": (answer(b"x" * LIMIT + LEAK, HTML), 200, b"x" * LIMIT + LEAK),
    "large": (answer(b"y" * 1_000_000, HTML), 200, b"y" * 1_000_000),
}


@pytest.fixture(scope="module")
def place(site):
    return deployed(site)


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_is_inspected_before_its_client_sees_it(site, place, name):
    host, origin = place
    origin.answer, status, body = ANSWERS[name]

    got = site.get(host, "/", "Accept-Encoding: gzip")

    assert got.status == status
    assert body is None or got.body == body
    assert b"ORA-" not in got.body or body is not None
    assert b"accept-encoding" not in origin.heads[-1].lower()


def test_what_was_inspected_is_compressed_for_its_client(site, place):
    host, origin = place
    origin.answer, status, body = ANSWERS["large"]
    site.set("compression", "careful")
    try:
        got = site.get(host, "/", "Accept-Encoding: gzip")
    finally:
        site.set("compression", "off")
    assert (got.status, got.headers[b"content-encoding"]) == (status, b"gzip")
    assert gzip.decompress(got.body) == body


def test_a_connection_goes_on_behind_inspected_answers(site, place):
    host, origin = place
    asked = f"GET / HTTP/1.1\r\nhost: {host}\r\n\r\n".encode()
    with connected(site.http) as connection, connection.makefile("rb") as stream:
        for name in ("clean", "leak", "large", "clean chunks", "leak", "empty"):
            origin.answer, status, body = ANSWERS[name]
            connection.sendall(asked)
            got = read_answer(stream)
            assert (name, got.status) == (name, status)
            assert body is None or got.body == body


def test_an_answer_to_head_is_looked_at_without_a_body(site, place):
    host, origin = place
    origin.answer = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 99\r\n\r\n"
    assert site.get(host, method="HEAD").status == 200

    origin.answer = b"HTTP/1.1 200 OK\r\nx-debug: trace\r\ncontent-length: 99\r\n\r\n"
    assert site.get(host, method="HEAD").status == 403


def test_an_answer_that_ends_with_its_connection_is_held_until_then(site, place):
    host, origin = place

    def sent(body):
        def reply(head, sent_body, connection):
            connection.sendall(answer(body, HTML, length=False))

        return reply

    origin.answer = sent(LEAK)
    assert site.get(host).status == 403
    origin.answer = sent(b"fine")
    assert site.get(host).body == b"fine"


def test_an_answer_that_breaks_off_while_it_is_held_is_an_error_page(site, place):
    host, origin = place

    def reply(head, body, connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 9\r\n\r\nfine")

    origin.answer = reply

    assert site.get(host, method="POST").status in (502, 520)


def test_one_event_says_what_the_answer_scored_and_where(site):
    host, origin = deployed(site)
    origin.answer = answer(LEAK, HTML, "x-debug: trace")

    assert site.get(host).status == 403

    site.server.wait_until(lambda: events(site, host=host, phase=PHASE), 180)
    (event,) = events(site, host=host, phase=PHASE)
    assert (event["action"], event["status"], event["rule_id"]) == ("block", 403, ANOMALY_RULE_ID)
    assert event["description"] == "959100: Outbound Anomaly Score Exceeded"
    assert (event["score"], event["threshold"]) == (9, 4)
    assert [(one["variable"].lower(), one["score"]) for one in event["contributions"]] == [
        ("response_headers:x-debug", 4),
        ("response_body", 5),
    ]


def test_what_only_logs_lets_the_answer_pass_and_says_so(site):
    host, origin = deployed(site, action="log")
    origin.answer = answer(LEAK, HTML)

    assert site.get(host).body == LEAK

    site.server.wait_until(lambda: events(site, host=host, phase=PHASE), 180)
    assert [(one["action"], one["status"]) for one in events(site, host=host, phase=PHASE)] == [("log", 0)]


def test_answers_are_not_looked_at_without_the_setting(tmp_path):
    (tmp_path / "crs" / "rules").mkdir(parents=True)
    (tmp_path / "crs" / "crs-setup.conf").write_text("")
    (tmp_path / "crs" / "rules" / "one.conf").write_text(RULES + ANSWER_RULES)
    plain = Site(tmp_path, "--crs", str(tmp_path / "crs"))
    try:
        host, origin = deployed(plain)
        origin.answer = answer(LEAK, HTML)
        got = plain.get(host, "/", "Accept-Encoding: gzip")
        assert (got.status, got.body) == (200, LEAK)
        assert b"accept-encoding: gzip" in origin.heads[-1].lower()
    finally:
        plain.close()
