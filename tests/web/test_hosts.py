"""A page of elsewhere has its own name answer 127.0.0.1: it reads nothing and sends nothing."""

import pytest

from edgestead.web.hosts import is_known

NAMES = ("pages.example.com", "192.0.2.80")


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "localhost:8787", "localhost.:8787", "a.localhost:1", "127.0.0.1", "127.1.2.3:8787"),
        *(
            "[::1]",
            "[::1]:8787",
            "pages.example.com",
            "pages.example.com:443",
            "pages.example.com.",
            "192.0.2.80",
        ),
    ],
)
def test_loopback_and_names_that_were_given_are_known(host):
    assert is_known(host, NAMES)


@pytest.mark.parametrize(
    "host",
    [
        *("", ".", ":8787", "evil.example", "evil.example:8787", "localhost.evil.example", "notlocalhost"),
        *("127.0.0.1.evil.example", "127.0.0.1@evil.example", "evil.example#localhost", "localhost:8787:1"),
        *("192.0.2.81", "0.0.0.0", "[::]", "[::1", "::1", "x.pages.example.com", "localhost, evil.example"),
    ],
)
def test_nothing_else_is(host):
    assert not is_known(host, NAMES)


@pytest.mark.parametrize("path", ["/ui", "/ui.json", "/ui/sign-in", "/ui/zones", "/ui/live", "/ui/none"])
def test_another_sites_name_gets_no_page_though_its_browser_has_a_session(visitor, path):
    refused = visitor.get(path, Host="evil.example:8787")

    assert refused.status == 421
    assert "Open http://localhost:8787/ui" in refused.words
    assert "--dashboard-name" in refused.words
    assert "form_key" not in refused.text


def test_neither_does_a_form_of_it(web_server, visitor):
    key = visitor.get("/ui/zones").form_key
    host = "evil.example"
    sent = {"Host": host, "Origin": f"http://{host}"}

    refused = visitor.ask("POST", "/ui/zones", f"form_key={key}&name=rebound.example", **sent)
    signing = visitor.ask("POST", "/ui/sign-in", f"token={web_server.ready['api_token']}", **sent)

    assert (refused.status, signing.status) == (421, 421)
    assert "set-cookie" not in signing.headers
    assert web_server.call("GET", "/zones?name=rebound.example").result == []


@pytest.mark.parametrize("host", ["pages.example.com", "pages.example.com:443", "192.0.2.80", "localhost"])
def test_a_name_that_was_given_gets_pages(visitor, host):
    assert "Health" in visitor.get("/ui", Host=host).words
