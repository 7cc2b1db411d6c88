"""What the edge says itself, in the place of what a client or an origin says or forgets."""

from pathlib import Path

import pytest

from edgestead.edge.exchanges.heads import SPOKEN_FOR_CLIENTS
from tests.edge.bench import HEAD_200, Bench
from tests.edge.http2_server import Http2Server
from tests.edge.made import rule
from tests.edge.origin import headers_of

# Published lists of headers that frameworks and servers believe.
FORGED = (
    *("X-Client-IP", "X-Cluster-Client-IP", "Fastly-Client-IP", "X-Originating-IP", "X-Remote-Addr"),
    *("WL-Proxy-Client-IP", "X-Envoy-External-Address", "Front-End-Https", "X-Forwarded-Ssl"),
    *("X-Forwarded-Scheme", "X-Original-URL", "X-Rewrite-URL", "Remote-User", "Proxy"),
    *("Client-IP", "X-Real-IP", "Forwarded", "X-Forwarded-Host", "True-Client-IP"),
    *("X-Forwarded-Email", "X-Forwarded-Groups", "X-Forwarded-Client-Cert", "Remote-Groups"),
    *("X-Forwarded-Preferred-Username", "X-Forwarded-Access-Token", "X-Auth-Request-User"),
)
SIGNS = "_.!#$%&'*+^`|~"  # of a name, beside letters, digits and the hyphen (RFC 9110 §5.6.2)
LATER = {"http_request_transform": [rule("rewrite", action_parameters={"headers": {
    "X-Client-IP": {"operation": "set", "value": "by a rule"}}})]}  # fmt: skip


def asked(bench, *lines, start="GET / HTTP/1.1"):
    """The head that the origin gets."""
    head = "".join(f"{line}\r\n" for line in (start, "Host: www.example.com", *lines))
    bench.connection.data_received(head.encode() + b"\r\n")
    return bench.server.written


@pytest.mark.parametrize("name", FORGED)
def test_nobody_speaks_for_clients_but_the_edge(name):
    head = asked(Bench(), f"{name}: forged", f"{name.lower()}: forged", "X-Other: kept")

    assert b"forged" not in head
    assert b"x-other: kept" in head


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("name", [name for name in FORGED if "-" in name])
def test_nor_with_another_sign_for_the_hyphen(name, sign):
    for imitation in (name.replace("-", sign), name.replace("-", sign, 1)):
        bench = Bench()
        assert asked(bench, f"{imitation}: forged") == b""
        assert bench.client.status == 400


@pytest.mark.parametrize("name", ["X_Own", "X.Own", "sec_ch_ua", "X!", "A.B-C_D"])
def test_other_names_may_have_such_signs(name):
    assert name.lower().encode() + b": kept" in asked(Bench(), f"{name}: kept")


def test_a_rule_of_the_zone_may_say_it():
    head = asked(Bench(LATER), "X-Client-IP: forged")

    assert headers_of(head)[b"x-client-ip"] == b"by a rule"


def test_the_list_has_every_name_once_in_lower_case_and_the_docs_have_it():
    names = [name for group in SPOKEN_FOR_CLIENTS.values() for name in group]

    assert len(set(names)) == len(names)
    page = Path("docs/explanation/edge.md").read_text().lower()
    assert [name for name in names if f"`{name.decode()}`" not in page] == []
    assert [name for name in names if name != name.lower()] == []


@pytest.mark.parametrize("version", ["1.1", "1.0"])
def test_an_origin_hears_that_a_gateway_was_there_behind_those_before(version):
    head = asked(Bench(), "Via: 1.0 first", start=f"GET / HTTP/{version}")

    vias = [line for line in head.split(b"\r\n") if line.startswith(b"via:")]
    assert vias == [b"via: 1.0 first", b"via: %b here" % version.encode()]


def answered(bench, lines):
    bench.connection.data_received(b"GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n")
    bench.origin.data_received(lines)
    return [line for line in bench.client.written.split(b"\r\n") if line.lower().startswith(b"date:")]


def test_an_answer_without_a_date_gets_one():
    (date,) = answered(Bench(), HEAD_200 + b"body")

    assert date.endswith(b" GMT")


def test_an_answer_keeps_its_own_date():
    own = b"Date: Sun, 06 Nov 1994 08:49:37 GMT"

    assert answered(Bench(), HEAD_200[:-2] + own + b"\r\n\r\nbody") == [own.lower()[:5] + own[5:]]


def test_an_interim_answer_gets_none():
    assert answered(Bench(), b"HTTP/1.1 103 X\r\nlink: </a>\r\n\r\n") == []


@pytest.mark.parametrize("h2c", ["off", "on"])
def test_a_trace_goes_on_as_it_came(h2c):
    """W3C Trace Context §2: who takes no part in a trace passes it on."""
    trace = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    bench = Bench(settings={"origin_h2c": h2c})
    origin = Http2Server(bench) if h2c == "on" else None
    bench.connection.data_received(
        b"GET / HTTP/1.1\r\nHost: www.example.com\r\ntraceparent: %b\r\ntracestate: a=1,b=2\r\n\r\n" % trace
    )
    if origin is None:
        assert b"\r\ntraceparent: %b\r\ntracestate: a=1,b=2\r\n" % trace in bench.server.written
    else:
        asked = origin.last[1]
        assert (asked[b"traceparent"], asked[b"tracestate"]) == (trace, b"a=1,b=2")
