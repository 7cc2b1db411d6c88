"""Every field that the edge knows, asked by expressions."""

import pytest

from docs.writers import edge_fields
from edgestead.edge.exchanges.exchange import TlsFacts
from edgestead.edge.rules.fields import BODY_OCTETS_SEEN_MAX, KNOWN, view_of
from edgestead.language import FIELDS, compile_filter
from tests.edge.made import answer, ask, rule

HEADERS = [
    (b"user-agent", b"Tester/1"),
    (b"cookie", b"a=1; b=2"),
    (b"cookie", b"a=3"),
    (b"accept-language", b"en;q=0.5, de"),
    (b"x-forwarded-for", b"192.0.2.1"),
    (b"x-forwarded-for", b"192.0.2.2"),
    (b"referer", b"https://other.test/"),
    (b"content-type", b"Application/X-WWW-Form-Urlencoded; charset=utf-8"),
]
HOLD = [
    'http.host eq "www.example.com"',
    'http.cookie eq "a=1; b=2; a=3"',
    'http.referer eq "https://other.test/"',
    'http.user_agent eq "Tester/1"',
    'http.x_forwarded_for eq "192.0.2.1, 192.0.2.2"',
    'http.request.method eq "POST" and http.request.version eq "HTTP/1.1"',
    'http.request.full_uri eq "https://www.example.com/admin/login.PHP?q=1&q=2&r"',
    'http.request.uri eq "/admin/login.PHP?q=1&q=2&r"',
    'http.request.uri.path eq "/admin/login.PHP" and http.request.uri.path.extension eq "php"',
    'http.request.uri.query eq "q=1&q=2&r"',
    'http.request.uri.args["q"][1] eq "2" and any(http.request.uri.args.names[*] eq "r")',
    'any(http.request.uri.args.values[*] eq "2")',
    'raw.http.request.uri.path eq "//x/../%61dmin/login.PHP"',
    'raw.http.request.uri eq "//x/../%61dmin/login.PHP?q=1&q=2&r"',
    'raw.http.request.full_uri contains "/../" and raw.http.request.uri.query eq "q=1&q=2&r"',
    'raw.http.request.uri.args["q"][0] eq "1" and raw.http.request.uri.path.extension eq "php"',
    'http.request.headers["cookie"][1] eq "a=3" and any(http.request.headers.names[*] eq "cookie")',
    'any(http.request.headers.values[*] contains "other.test")',
    'http.request.cookies["a"][1] eq "3" and http.request.cookies["b"][0] eq "2"',
    'http.request.accepted_languages[0] eq "de"',
    "http.request.timestamp.sec eq 1700000000 and http.request.timestamp.msec eq 250",
    'http.request.body.raw eq "user=me&pass=x" and http.request.body.size eq 14',
    'http.request.body.mime eq "application/x-www-form-urlencoded"',
    'http.request.body.form["user"][0] eq "me" and any(http.request.body.form.names[*] eq "pass")',
    'any(http.request.body.form.values[*] eq "x") and not http.request.body.truncated',
    "ip.src in {192.0.2.0/24} and ssl and cf.edge.client_tcp",
    'cf.zone.name eq "example.com" and cf.zone.plan eq "free" and cf.ray_id eq "ray-1"',
    "cf.edge.server_ip in {198.51.100.0/24 2001:db8::/32}",
    "cf.edge.server_port eq 8443 and len(cf.random_seed) eq 16",
    'cf.tls_version eq "TLSv1.3" and cf.tls_cipher eq "AES"',
    # What this platform does not compute has its neutral value.
    "cf.threat_score eq 0 and cf.waf.score eq 100 and not cf.client.bot",
    'ip.src.country ne "DE" and not ip.src.is_in_european_union',
]
SEEN = ('http.request.body.raw contains "y"', "http.request.body.truncated")
RESPONSE = [
    "http.response.code eq 404",
    'http.response.headers["server"][0] eq "nginx"',
    'any(http.response.headers.names[*] eq "content-type")',
    'any(http.response.headers.values[*] eq "nginx")',
    'http.response.content_type.media_type eq "text/html"',
    'raw.http.response.headers["server"][0] eq "nginx"',
    'http.request.uri.path eq "/admin/login.PHP"',
]


@pytest.fixture
def request_view():
    exchange = ask(
        "//x/../%61dmin/login.PHP?q=1&q=2&r",
        method=b"POST",
        scheme=b"https",
        port=8443,
        server="198.51.100.4",
        headers=HEADERS,
        body=b"user=me&pass=x",
        tls=TlsFacts(b"TLSv1.3", b"AES", b"www.example.com"),
    )
    answer(exchange, 404, [(b"server", b"nginx"), (b"content-type", b"Text/HTML; charset=utf-8")])
    return view_of(exchange)


@pytest.mark.parametrize("text", HOLD)
def test_a_field_has_the_requests_value(request_view, text):
    assert compile_filter(text, "http_request_firewall_custom")(request_view)


@pytest.mark.parametrize("text", RESPONSE)
def test_a_response_field_has_the_answers_value(request_view, text):
    assert compile_filter(text, "http_response_headers_transform")(request_view)


def test_the_tables_above_ask_for_every_field_that_the_edge_knows():
    asked = {name for name in FIELDS for text in (*HOLD, *RESPONSE) if name in text}
    # Those of a ClientHello are asked for in tests/edge/test_fingerprints.py.
    assert KNOWN.keys() - asked == {
        "raw.http.request.uri.args.names",
        "raw.http.request.uri.args.values",
        "raw.http.response.headers.names",
        "raw.http.response.headers.values",
        *(name for name in FIELDS if ".multipart" in name),  # tests/edge/test_parts.py
        *(name for name in KNOWN if name.startswith(("cf.tls_client", "cf.tls_ciphers", "cf.bot"))),
    }


def test_what_a_request_lacks_is_missing():
    view = view_of(ask())
    assert not compile_filter("cf.edge.server_ip in {0.0.0.0/0 ::/0}", "http_request_firewall_custom")(view)
    for text in ('http.request.headers["user-agent"][0] eq ""', 'cf.tls_version eq ""'):
        assert not compile_filter(text, "http_request_firewall_custom")(view)
    assert not compile_filter("http.response.code eq 200", "http_response_headers_transform")(view)
    assert not compile_filter('http.request.body.form["a"][0] eq ""', "http_request_firewall_custom")(view)


@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize("is_complete", [True, False])
def test_a_body_is_shown_to_its_limit_and_called_truncated_where_there_is_more(more, is_complete):
    exchange = ask(method=b"POST", body=b"x" * BODY_OCTETS_SEEN_MAX + b"y" * more)
    exchange.body_complete = is_complete
    view = view_of(exchange)
    holds = {text: compile_filter(text, "http_request_firewall_custom")(view) for text in SEEN}
    assert holds == dict(zip(SEEN, (False, more > 0 or not is_complete), strict=True))


def test_a_rewritten_uri_is_what_later_expressions_see():
    exchange = ask("/old?a=1")
    view_of(exchange)
    exchange.rewrite(path=b"/new", query=b"")
    assert compile_filter(
        'http.request.uri eq "/new" and raw.http.request.uri eq "/old?a=1"', "http_request_firewall_custom"
    )(view_of(exchange))


def test_the_reference_says_of_every_field_without_a_value_why():
    page = edge_fields.page()
    without = page.partition("## With a default only")[2]
    for name in FIELDS.keys() - KNOWN.keys():
        (row,) = (line for line in without.splitlines() if line.startswith(f"| `{name}` |"))
        assert row.count("|") == 5
        assert row.split("|")[4].strip()


OWN_FIELDS = {
    "http.user_agent": b"user-agent",
    "http.referer": b"referer",
    "http.cookie": b"cookie",
    "http.x_forwarded_for": b"x-forwarded-for",
}
OF_NOTHING = (
    '{} eq ""',
    "len({}) eq 0",
    'not {} contains "x"',
    '{} ne "x"',
    '{} in {{"" "y"}}',
    'lower({}) eq ""',
)


@pytest.mark.parametrize("text", OF_NOTHING)
@pytest.mark.parametrize(("field", "name"), OWN_FIELDS.items())
def test_a_header_with_a_field_of_its_own_is_empty_where_it_is_absent(edge, field, name, text):
    """The closures and the one function of a ruleset (`language.inline`) say the same."""
    text = text.format(field)
    edge.serve(zone=[rule("block", text)])
    condition = compile_filter(text, "http_request_firewall_custom")

    for headers, holds in (([], True), ([(name, b"")], True), ([(name, b"x")], False)):
        assert condition(view_of(ask(headers=headers))) is holds, headers
        assert (edge.ask(headers=headers) is not None) is holds, headers
