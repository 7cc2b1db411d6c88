"""Forms before a session come from a page of ours in that browser, and not from an old one."""

import re

import pytest

from edgestead.web.form_keys import COOKIE, KEY_SECONDS, NO_COOKIE, TOO_OLD, UNKNOWN, FormKeys
from tests.web.local import LocalSite
from tests.web.local import LocalVisitor as Visitor
from tests.web.test_sessions import Clock

S = 1_000_000
PASSWORD = "a long enough sentence"


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def keys(clock):
    return FormKeys(clock)


@pytest.mark.parametrize(("seconds", "fault"), [(0, ""), (KEY_SECONDS, ""), (KEY_SECONDS + 1, TOO_OLD)])
def test_a_key_holds_for_a_while(keys, clock, seconds, fault):
    browser = keys.browser("")
    key = keys.key(browser)
    clock.us += seconds * S

    assert keys.browser(browser) == browser
    assert keys.fault(browser, key) == fault


def test_a_key_is_of_one_browser_one_process_and_one_end(keys, clock):
    browser, other = keys.browser(""), keys.browser("x")
    key = keys.key(browser)
    end, _, mac = key.partition(".")

    assert other != browser
    assert keys.fault(other, key) == UNKNOWN
    assert FormKeys(clock).fault(browser, key) == UNKNOWN
    for forged in (f"{int(end) + 1}.{mac}", f"{end}.{mac[:-1]}x", mac, "", ".", "ä", f"{end}.", "9" * 400):
        assert keys.fault(browser, forged) == UNKNOWN, forged
    for cookie in ("", "x", browser + "x", "ä" * 32):
        assert keys.fault(cookie, key) == NO_COOKIE, cookie


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    held = LocalSite(tmp_path_factory.mktemp("keys"))
    yield held
    held.close()


@pytest.fixture
def old(server, clock, monkeypatch):
    """Has the forms of a browser, and whatever it opened before the call is too old behind it."""
    keys = FormKeys(clock)
    monkeypatch.setattr(server.site, "_form_keys", keys)

    def later():
        clock.us += (KEY_SECONDS + 1) * S

    return later


def invite(server, email):
    role = server.call("GET", f"{server.account}/roles").result[0]["id"]
    body = {"email": email, "roles": [role]}
    return server.call("POST", f"{server.account}/members", body).result["code"]


def test_an_old_form_is_shown_again_with_words_and_what_was_typed(server, old):
    person, code = Visitor(server), invite(server, "late@example.com")
    person.get(f"/ui/invite?code={code}")
    typed = {"code": code, "password": PASSWORD, "again": PASSWORD, "first_name": "Ann"}
    person._key = person.get("/ui/sign-in").form_key
    old()

    page = person.send("/ui/invite", **typed)
    assert (page.status, person.cookie) == (403, "")
    assert TOO_OLD in page.words
    assert 'value="Ann"' in page.text
    assert PASSWORD not in page.text
    person._key = page.form_key
    assert person.send("/ui/invite", **typed).status == 303, "the invitation was not used up"

    old()
    page = person.send("/ui/sign-in", email="late@example.com", password=PASSWORD)
    assert (page.status, TOO_OLD in page.words, 'value="late@example.com"' in page.text) == (403, True, True)
    person._key = page.form_key
    assert person.send("/ui/sign-in", email="late@example.com", password=PASSWORD).status == 303
    assert server.guesses == 0


def test_an_old_click_uses_no_link_up(server, old):
    secret = server.site._sessions.make_link(tuple)
    person = Visitor(server)
    person._key = person.get(f"/ui/enter?code={secret}").form_key
    old()
    page = person.send("/ui/enter", code=secret)
    assert (page.status, TOO_OLD in page.words) == (403, True)
    person._key = page.form_key

    assert person.send("/ui/enter", code=secret).status == 303


def test_a_script_is_told_too(server, old):
    person = Visitor(server)
    person.get("/ui/sign-in")
    person._key = "0.x"

    refused = person.send("/ui/challenge")
    assert (refused.status, UNKNOWN in refused.text) == (403, True)


@pytest.mark.parametrize("path", ["/ui/sign-in", "/ui/enter", "/ui/invite", "/ui/challenge"])
def test_what_was_opened_by_somebody_else_signs_nobody_in(server, path):
    """As somebody would who wants others to work in their session: with a key of their own."""
    attacker, victim = Visitor(server), Visitor(server)
    secret = server.site._sessions.make_link(tuple)
    code = invite(server, "victim@example.com") if path == "/ui/invite" else secret
    sent = {"token": server.ready["api_token"], "code": code}
    victim._key = attacker.get("/ui/sign-in").form_key

    for without in (victim.send(path, **sent), Visitor(server).ask("POST", path, f"code={code}")):
        assert (without.status, NO_COOKIE in without.text) == (403, True)
    victim.get("/ui/sign-in")
    with_own = victim.send(path, **sent)
    assert (with_own.status, victim.cookie) == (403, "")
    assert server.site._sessions.enter(secret) is not None


def test_every_form_before_a_session_has_the_key_and_the_cookie_is_no_scripts(server):
    person = Visitor(server)
    first = person.get("/ui/sign-in")
    cookie = first.headers["set-cookie"]
    assert cookie.startswith(f"{COOKIE}=")
    assert all(part in cookie for part in ("HttpOnly", "SameSite=Strict", "Path=/ui"))
    code = invite(server, "forms@example.com")
    for path in ("/ui/sign-in", "/ui/enter?code=x", f"/ui/invite?code={code}"):
        page = person.get(path)
        assert "set-cookie" not in page.headers, "other tabs keep their forms"
        forms, keys = re.findall("<form ", page.text), re.findall('name="form_key" value="[0-9]', page.text)
        assert len(forms) == len(keys) > 0
