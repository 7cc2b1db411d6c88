"""Challenged requests: who gets a page, who is refused, what an answer earns."""

import re
from html import unescape
from urllib.parse import quote

import pytest

from edgestead.edge.tools.clearance import KINDS
from tests.edge.made import BROWSER, NOW_US, ZONE_ID, ask, rule
from tests.edge.test_clearance import solved

PATH = "/edge-cgi/challenge"


def token_of(page):
    return re.search(r"token=([0-9a-f.]+)", page.body.decode()).group(1)


def solve(edge, kind, headers=BROWSER, target=None, **about):
    """Get the page, solve it, and send the answer."""
    token = token_of(edge.ask("/wanted", headers=headers))
    query = f"kind={kind}&token={token}&solution={solved(token, KINDS[kind].bits).decode()}"
    if target is not None:
        query += f"&target={quote(target, safe='')}"
    return edge.ask(f"{PATH}?{query}", method=b"POST", headers=headers, **about)


def cookie_of(found):
    return dict(found.headers)[b"set-cookie"].partition(b";")[0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_browser_is_challenged_and_let_on_when_it_has_answered(edge, kind):
    edge.serve(zone=[rule(kind), rule("log")])

    page = edge.ask(headers=BROWSER)
    solution = solve(edge, kind)
    exchange = edge.send("/wanted", headers=[*BROWSER, (b"cookie", b"a=1; " + cookie_of(solution))])

    assert page.status == 403
    assert dict(page.headers)[b"edge-mitigated"] == b"challenge"
    assert dict(page.headers)[b"cache-control"] == b"private, no-store"
    assert solution.status == 204
    assert exchange.to_send == [*BROWSER, (b"cookie", b"a=1")]
    assert edge.seen.actions == [kind, kind, "challenge_solved", "log"]


def test_a_clearance_ends_with_challenge_ttl(edge):
    edge.serve(zone=[rule("challenge")], settings={"challenge_ttl": 900})
    found = solve(edge, "challenge")
    cookie = [*BROWSER, (b"cookie", cookie_of(found))]

    assert b"; Max-Age=900;" in dict(found.headers)[b"set-cookie"]
    assert edge.ask(headers=cookie, arrived_us=NOW_US + 899_000_000) is None
    assert edge.ask(headers=cookie, arrived_us=NOW_US + 900_000_000).status == 403


def test_a_shorter_challenge_ttl_holds_for_clearances_that_were_given_before(edge):
    edge.serve(zone=[rule("challenge")], settings={"challenge_ttl": 31_536_000})
    cookie = [*BROWSER, (b"cookie", cookie_of(solve(edge, "challenge")))]
    assert edge.ask(headers=cookie) is None

    edge.serve(zone=[rule("challenge")], settings={"challenge_ttl": 300})

    assert edge.ask(headers=cookie).status == 403


def test_the_cookie_is_for_this_site_alone_and_no_script(edge):
    edge.serve(zone=[rule("challenge")])
    plain = dict(solve(edge, "challenge").headers)[b"set-cookie"]
    assert plain.endswith(b"; Path=/; Max-Age=1800; HttpOnly; SameSite=Lax")
    assert plain.startswith(b"edge_clearance_challenge=00000001.")
    over_tls = dict(solve(edge, "challenge", scheme=b"https").headers)[b"set-cookie"]
    assert over_tls.endswith(b"; Secure")


NOT_BROWSERS = [
    [],
    [(b"accept", b"*/*"), (b"user-agent", b"curl/8")],
    [(b"accept", b"application/json")],
    [*BROWSER, (b"sec-fetch-dest", b"empty")],
    [*BROWSER, (b"sec-fetch-dest", b"image")],
]


@pytest.mark.parametrize("headers", NOT_BROWSERS)
def test_a_program_gets_403_with_the_reason_and_no_page(edge, headers):
    refused = edge.serve(zone=[rule("managed_challenge")]).ask(headers=headers)
    assert refused.status == 403
    assert dict(refused.headers)[b"edge-mitigated"] == b"challenge"
    assert b"only a browser can answer" in refused.body
    assert b"<script" not in refused.body


@pytest.mark.parametrize("destination", [b"document", b"iframe"])
def test_a_browser_that_opens_a_page_says_so(edge, destination):
    edge.serve(zone=[rule("managed_challenge")])
    assert b"<script" in edge.ask(headers=[*BROWSER, (b"sec-fetch-dest", destination)]).body


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_needs_nothing_from_anywhere(edge, kind):
    page = edge.serve(zone=[rule(kind)]).ask("/x", headers=BROWSER)
    text = page.body.decode()

    assert "http:" not in text
    assert "https:" not in text
    assert "src=" not in text
    policy = dict(page.headers)[b"content-security-policy"].decode()
    nonce = re.search(r"'nonce-([^']+)'", policy).group(1)
    assert policy.startswith("default-src 'none'; ")
    assert text.count(f'nonce="{nonce}"') == (2 if KINDS[kind].bits else 1)
    assert nonce not in edge.ask("/x", headers=BROWSER).body.decode()


def test_a_page_shows_a_strangers_bytes_as_text(edge):
    page = edge.serve(zone=[rule("challenge")]).ask(
        '/"><script>alert(1)</script>', headers=BROWSER, host=b"<b>", ray=b"<i>"
    )
    assert b"<script" not in page.body
    assert b"<b>" not in page.body
    assert b"<i>" not in page.body


def test_a_click_goes_on_to_what_was_asked_for(edge):
    page = edge.serve(zone=[rule("challenge")]).ask("/a?b=c&d", headers=BROWSER)
    action = unescape(re.search(r'action="([^"]+)"', page.body.decode()).group(1))

    found = edge.ask(action, method=b"POST", headers=BROWSER)

    assert found.status == 303
    assert dict(found.headers)[b"location"] == b"/a?b=c&d"


TARGETS = [
    ("/a?b", b"/a?b"),
    ("//evil.test/", b"/"),
    ("/\\evil.test/", b"/"),
    ("https://evil.test/", b"/"),
    ("", b"/"),
    ("/a\r\nset-cookie: x=1", b"/a%0D%0Aset-cookie:%20x=1"),
]


@pytest.mark.parametrize(("target", "location"), TARGETS)
def test_an_answer_goes_on_to_this_host_alone(edge, target, location):
    edge.serve(zone=[rule("challenge")])
    assert dict(solve(edge, "challenge", target=target).headers)[b"location"] == location


WRONG = [
    {"query": ""},
    {"query": "kind=challenge"},
    {"query": "kind=nothing&token={token}&solution=0"},
    {"query": "kind=js_challenge&token={token}&solution=0"},
    {"query": "kind=challenge&token={token}&solution="},
    {"query": "kind=challenge&token={token}x&solution=0"},
    {"query": "kind=challenge&token={token}&solution=0", "method": b"GET"},
    {"query": "kind=challenge&token={token}&solution=0", "client": "198.51.100.1"},
    {"query": "kind=challenge&token={token}&solution=0", "headers": []},
    {"query": "kind=challenge&token={token}&solution=0", "arrived_us": NOW_US + 300_000_000},
]


@pytest.mark.parametrize("about", WRONG)
def test_a_wrong_answer_earns_nothing_and_is_an_event(edge, about):
    edge.serve(zone=[rule("challenge")])
    token = token_of(edge.ask(headers=BROWSER))
    query = about["query"].format(token=token)
    more = {"method": b"POST", "headers": BROWSER, **{k: v for k, v in about.items() if k != "query"}}

    found = edge.ask(f"{PATH}?{query}", **more)

    assert found.status == 403
    assert b"set-cookie" not in dict(found.headers)
    assert edge.seen.actions == ["challenge", "challenge_failed"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_clearance_of_one_kind_is_not_one_of_another(edge, kind):
    edge.serve(zone=[rule(kind)])
    cookie = cookie_of(solve(edge, kind))
    passed = {
        other
        for other in KINDS
        if edge.serve(zone=[rule(other)]).ask(headers=[*BROWSER, (b"cookie", cookie)]) is None
    }
    assert passed == {name for name, other in KINDS.items() if kind in other.accepts}


def test_forged_cookies_do_not_clear_and_do_not_reach_the_origin(edge):
    forged = b"edge_clearance_challenge=00000001.9999999999." + b"0" * 32
    assert edge.serve(zone=[rule("challenge")]).ask(headers=[*BROWSER, (b"cookie", forged)]).status == 403
    assert edge.serve(zone=[]).send(headers=[(b"cookie", forged), (b"cookie", b"a=1")]).to_send == [
        (b"cookie", b"a=1")
    ]


def test_a_rule_cannot_bring_the_cookie_back(edge):
    copy = {"cookie": {"operation": "set", "expression": "http.cookie"}}
    edge.serve("http_request_transform", zone=[rule("rewrite", action_parameters={"headers": copy})])
    exchange = edge.send(headers=[(b"cookie", b"a=1; edge_clearance_js=x")])
    assert exchange.to_send == [(b"cookie", b"a=1")]


def test_requests_without_such_cookies_are_not_copied(edge):
    exchange = edge.serve(zone=[]).send(headers=[(b"cookie", b"a=1")])
    assert exchange.to_send is exchange.headers


def test_under_attack_whoever_comes_is_challenged_once(edge):
    edge.serve(zone=[], settings={"security_level": "under_attack"})
    assert edge.ask(headers=BROWSER).status == 403
    cookie = cookie_of(solve(edge, "managed_challenge"))
    assert edge.ask(headers=[*BROWSER, (b"cookie", cookie)]) is None
    assert edge.seen.decisions[0].phase == "security_level"


def test_a_rule_can_skip_the_security_level(edge):
    skip = rule("skip", 'http.request.uri.path eq "/hook"', action_parameters={"products": ["securityLevel"]})
    edge.serve(zone=[skip], settings={"security_level": "under_attack"})
    assert edge.ask("/hook") is None
    assert edge.ask("/").status == 403


def test_a_challenge_of_a_form_says_that_it_has_to_be_sent_again(edge):
    edge.serve(zone=[rule("js_challenge")])
    assert b'"again": true' in edge.ask(headers=BROWSER).body
    assert b'"again": false' in edge.ask(headers=BROWSER, method=b"POST").body


def test_answers_are_taken_before_any_rule(edge):
    edge.serve(zone=[rule("challenge"), rule("block")], settings={"always_use_https": "on"})
    exchange = ask(f"{PATH}?kind=challenge", method=b"POST")
    assert exchange.zone.id == ZONE_ID
    assert edge.pipeline.request(exchange).status == 403
    assert edge.seen.actions == ["challenge_failed"]
