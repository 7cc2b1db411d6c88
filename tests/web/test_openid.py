"""Signing in with an OpenID provider: who is let in, and what a hostile provider or browser gets."""

import asyncio
import contextlib
import json
import re
import select
import socket
import threading
from html import unescape
from urllib.parse import urlencode

import pytest

from edgestead.usecases.access import openid
from edgestead.web import issuer
from edgestead.web.issuer import Provider
from edgestead.web.openid import COOKIE
from tests.web.local import LocalSite
from tests.web.local import LocalVisitor as Visitor
from tests.web.provider import CLIENT, SECRET, Fake, b64, ec_key, public, rsa_key, token
from tests.web.test_members import ROLE_IDS, accept, invite, is_in, members_path, sign_in

NOBODYS = "This sign-in is nobody's here"


@pytest.fixture(scope="module")
def fake():
    held = Fake()
    yield held
    held.close()


@pytest.fixture
def server(tmp_path, fake):
    fake.answers.clear()
    fake.claims = {}
    fake.keys, fake.hangs = [public(fake.key, "k1")], False
    fake.token = lambda claims: token(claims, fake.key)
    (tmp_path / "secret").write_text(SECRET + "\n")
    held = LocalSite(tmp_path, Provider(fake.issuer, CLIENT, str(tmp_path / "secret"), name="Example SSO"))
    fake.now = lambda: held.api.app.context.now_us() / 1_000_000
    yield held
    held.close()


@pytest.fixture
def ann(server):
    return invite(server, "ann@example.com")[0]


def leave(server, person=None):
    """A browser at the provider, and its address there."""
    person = person or Visitor(server)
    page = person.send("/ui/openid")
    found = re.search(r'content="0;url=([^"]+)"', page.text)
    person.answer = page
    return person, unescape(found[1]) if found else ""


def come_back(person, query):
    person.answer = person.get(f"/ui/openid?{urlencode(query)}")
    return person


def go(server, fake, **claims):
    fake.claims = claims
    person, url = leave(server)
    return come_back(person, fake.approve(url))


def audit(server):
    return [
        (one["interface"], one["action"]["type"], one["resource"]["type"])
        for one in server.api.get("/user/audit_logs?per_page=50").result
    ]


def test_who_was_invited_is_let_in_and_bound(server, fake, ann):
    person = go(server, fake)

    assert person.answer.status == 200
    assert 'content="0;url=/ui"' in person.answer.text
    assert is_in(person)
    flags = person.answer.headers["set-cookie"]
    assert flags.startswith("edge_session=")
    assert "SameSite=Strict" in flags
    assert is_in(go(server, fake, email="ann@other.example")), "the subject is who it is, not the address"
    other = go(server, fake, sub="s2")
    assert (other.answer.status, other.cookie, NOBODYS in other.answer.words) == (403, "", True)
    assert server.guesses == 1
    rows = server.api.store.read(
        lambda reader: reader.rows("select actor_email, action, resource_type from audit")
    )
    assert ("ann@example.com", "register", "openid") in rows
    assert rows.count(("ann@example.com", "login", "session")) == 2


def test_nobody_is_made_and_who_is_removed_is_out(server, fake, ann):
    assert go(server, fake, email="bob@example.com", sub="b").answer.status == 403
    person = go(server, fake)
    server.call("DELETE", f"{members_path(server)}/{ann['id']}")

    assert not is_in(person)
    assert go(server, fake).answer.status == 403
    assert server.api.store.read(lambda reader: reader.rows("select * from openid_subjects")) == []
    assert server.guesses == 2


def test_an_invitation_that_ended_lets_nobody_in(server, fake, ann):
    server.api.store.write(lambda tx: tx.run("update invitations set expires_us = 1")).result()

    assert go(server, fake).answer.status == 403


def test_a_member_with_a_password_has_both_ways(server, fake):
    _, link = invite(server, "ann@example.com")
    accept(server, link)
    assert is_in(go(server, fake))
    assert is_in(sign_in(server, "ann@example.com"))


def test_an_address_that_signed_in_elsewhere_is_not_let_in_here(server, fake):
    """Somebody else opened the link of another account first; who has the address comes later."""
    second = server.api.post("/accounts", {"name": "Second"}).result["id"]
    body = {"email": "ann@example.com", "roles": [ROLE_IDS["DNS"]]}
    theirs = server.api.post(f"/accounts/{second}/members", body).result
    squatter = accept(server, f"/ui/invite?code={theirs['code']}")
    assert is_in(squatter)

    made, link = invite(server, "ann@example.com")
    assert "this address is in another account" in accept(server, link).answer.words
    answer = squatter.post("/ui/profile", what="accepted", id=made["id"], code=theirs["code"])
    assert answer.status == 400

    assert is_in(go(server, fake))
    assert not is_in(squatter)
    assert not is_in(sign_in(server, "ann@example.com"))
    joined = server.api.get(f"{members_path(server)}/{made['id']}").result
    assert joined["status"] == "accepted"


def test_a_member_of_one_account_accepts_another_on_their_page(server):
    _, link = invite(server, "ann@example.com")
    ann = accept(server, link)
    second = server.api.post("/accounts", {"name": "Second"}).result["id"]
    body = {"email": "ann@example.com", "roles": [ROLE_IDS["DNS"]]}
    made = server.api.post(f"/accounts/{second}/members", body).result

    said = ann.post("/ui/profile", what="accepted", id=made["id"], code=f"x/ui/invite?code={made['code']}")

    assert "The membership is accepted" in said.words
    assert server.api.get(f"/accounts/{second}/members/{made['id']}").result["status"] == "accepted"
    assert is_in(sign_in(server, "ann@example.com"))


def test_the_session_of_before_ends_when_another_sign_in_begins(server, fake, ann):
    _, link = invite(server, "bob@example.com")
    bob = accept(server, link)
    old = bob.cookie
    leave(server, bob)
    bob.cookie = old

    assert not is_in(bob)


@pytest.mark.parametrize("email", ["mi\u212ae@example.com", "\u00a0ann@example.com", "ann@example.com\n"])
def test_an_address_that_folds_into_a_members_is_not_theirs(email):
    with pytest.raises(openid.Untrusted):
        openid.email_of({"email": email, "email_verified": True}, "email")


@pytest.mark.parametrize("verified", [False, "false", 0])
def test_an_address_that_is_said_to_be_unverified_is_not_taken_from_any_claim(verified):
    with pytest.raises(openid.Untrusted):
        openid.email_of({"upn": "ann@example.com", "email_verified": verified}, "upn")


def test_another_browser_another_time_and_another_code_are_refused(server, fake, ann):
    person, url = leave(server)
    query = fake.approve(url)
    thief = come_back(Visitor(server), query)
    assert (thief.answer.status, "another browser" in thief.answer.words) == (403, True)
    assert come_back(person, query).answer.status == 403, "the thief has used the state up"

    person, url = leave(server)
    query = fake.approve(url)
    assert is_in(come_back(person, query))
    again = come_back(Visitor(server), query)
    assert again.answer.status == 403
    person, url = leave(server)
    assert come_back(person, fake.approve(url) | {"code": "made-up"}).answer.status == 403
    person, url = leave(server)
    assert come_back(person, fake.approve(url) | {"iss": "https://evil.example"}).answer.status == 403
    person, url = leave(server)
    denied = come_back(person, {"error": "access_denied<b>", "state": fake.approve(url)["state"]})
    assert "Example SSO did not sign you in: access_denied<b>." in denied.answer.words
    assert "<b>" not in denied.answer.text


def test_the_way_there_needs_a_form_of_ours_and_tells_no_secret(server, fake):
    assert Visitor(server).ask("POST", "/ui/openid", "").status == 403
    person, url = leave(server)
    cookie = person.answer.headers["set-cookie"]
    assert cookie.startswith(f"{COOKIE}=")
    assert all(part in cookie for part in ("HttpOnly", "SameSite=Lax", "Path=/ui/openid"))
    assert url.startswith(f"{fake.issuer}/authorize?")
    assert SECRET not in person.answer.text
    browser = cookie.partition("=")[2].partition(";")[0]
    assert browser not in person.answer.text
    without = Visitor(server)
    assert "Example SSO" in without.get("/ui/sign-in").words


def test_keys_that_change_are_asked_for_once(server, fake, ann):
    assert is_in(go(server, fake))
    server.site._way_in._openid.issuer._keys_asked -= issuer.KEYS_SECONDS
    fake.asked.clear()
    newer = rsa_key()
    fake.keys = [public(newer, "k2"), public(fake.key, "k1")]
    fake.token = lambda claims: token(claims, newer, kid="k2")
    assert is_in(go(server, fake))
    fake.token = lambda claims: token(claims, newer, kid="k3")
    for _ in range(3):
        assert go(server, fake).answer.status == 403
    assert fake.asked.count("/keys") == 1


def test_user_information_is_asked_for_where_the_token_has_no_address(server, fake, ann):
    fake.answers["/.well-known/openid-configuration"] = (
        200,
        fake.metadata(userinfo_endpoint=f"{fake.issuer}/me"),
    )
    fake.answers["/me"] = (200, {"sub": "s1", "email": "ann@example.com", "email_verified": True})
    assert is_in(go(server, fake, email=None, email_verified=None))
    fake.answers["/me"] = (200, {"sub": "s9", "email": "ann@example.com", "email_verified": True})
    assert go(server, fake, email=None, email_verified=None).answer.status == 403


DOCUMENT = "/.well-known/openid-configuration"


@pytest.mark.parametrize(
    "answer",
    [
        (200, b"<html>"),
        (200, []),
        (302, {}),
        (500, {}),
        (404, {}),
        (200, b'{"a": "' + b"x" * issuer.OCTETS_MAX + b'"}'),
        (200, {"issuer": "https://evil.example"}),
        (200, {"token_endpoint": "http://evil.example/token"}),
        (200, {"authorization_endpoint": "javascript:alert(1)"}),
        (200, {"jwks_uri": "file:///etc/passwd"}),
        (200, b"[" * 100_000),
    ],
)
def test_a_provider_that_is_broken_leaves_the_other_ways(server, fake, answer):
    status, body = answer
    fake.answers[DOCUMENT] = (status, fake.metadata() | body if isinstance(body, dict) else body)

    person, url = leave(server)

    assert (person.answer.status, url, "Example SSO does not answer" in person.answer.words) == (
        503,
        "",
        True,
    )
    assert server.site.sign_in_trouble() != ""
    _, link = invite(server, "eve@example.com")
    assert is_in(accept(server, link))


def test_a_provider_that_hangs_is_given_up(server, fake, monkeypatch):
    monkeypatch.setattr(issuer, "SECONDS_MAX", 0.2)
    monkeypatch.setattr(issuer, "RETRY_SECONDS", 3_600)  # a busy machine must not end it
    fake.hangs = True

    person, _ = leave(server)
    assert person.answer.status == 503
    fake.asked.clear()
    assert leave(server)[0].answer.status == 503
    assert fake.asked == [], "for a while nobody asks again"


DRIPS = {
    "a handshake": ("https", bytes((22, 3, 3, 0x40, 0))),  # the head of a record of 16 KiB
    "an answer": ("http", b"HTTP/1.0 200 OK\r\nContent-Length: 9999\r\n\r\n"),
}


class Dripping:
    """A peer whose answer comes in single octets, and has no end."""

    def __init__(self, begins):
        self._begins = begins
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.was_cut = False
        self._thread = threading.Thread(target=self._drip, daemon=True)
        self._thread.start()

    def _drip(self):
        peer, _ = self._listening.accept()
        with peer, contextlib.suppress(ConnectionError):
            peer.sendall(self._begins)
            for _ in range(500):
                if peer in select.select([peer], [], [], 0.02)[0] and not peer.recv(65_536):
                    break
                peer.sendall(b"\0")
            else:
                return
        self.was_cut = True

    def close(self):
        self._thread.join()
        self._listening.close()


@pytest.mark.parametrize("what", DRIPS)
def test_what_has_no_end_is_cut(monkeypatch, what):
    monkeypatch.setattr(issuer, "SECONDS_MAX", 0.2)
    scheme, begins = DRIPS[what]
    peer = Dripping(begins)
    asked = issuer.Issuer(Provider(f"{scheme}://127.0.0.1:{peer.port}", CLIENT))

    with pytest.raises(issuer.Trouble):
        asyncio.run(asked.metadata())
    peer.close()

    assert peer.was_cut


def test_a_machine_without_a_thread_left_costs_no_sign_in_later(monkeypatch, fake):
    def full(thread):
        raise RuntimeError("can't start new thread")

    async def all_of_it():
        asked = issuer.Issuer(Provider(fake.issuer, CLIENT))
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", full)
            for _ in range(issuer.THREADS_MAX):
                with pytest.raises(issuer.Trouble, match="no thread left"):
                    await asked.userinfo(f"{fake.issuer}/userinfo", "token")
        assert await asked._on_thread(lambda: "asked") == "asked"

    asyncio.run(all_of_it())


def test_keys_that_were_asked_for_in_vain_end_with_their_hour(fake):
    """And a flood of tokens with unknown keys asks once in a while, had or not."""
    now = [0.0]
    asked = issuer.Issuer(Provider(fake.issuer, CLIENT), clock=lambda: now[0])
    fake.answers.clear()
    fake.hangs, fake.keys = False, [public(fake.key, "k1")]

    async def times_at(second, **how):
        now[0] = second
        fake.asked.clear()
        with contextlib.suppress(issuer.Trouble):
            await asked.keys(**how)
        return fake.asked.count("/keys")

    async def all_of_it():
        assert await times_at(0) == 1
        fake.answers["/keys"] = (500, {})
        assert await times_at(issuer.KEPT_SECONDS - 10, anew=True) == 1
        assert await times_at(issuer.KEPT_SECONDS - 9, anew=True) == 0
        assert await times_at(issuer.KEPT_SECONDS) == 0
        del fake.answers["/keys"]
        assert await times_at(issuer.KEPT_SECONDS + 1) == 1
        assert await times_at(issuer.KEPT_SECONDS + 1 + issuer.KEYS_SECONDS - 1, anew=True) == 0

    asyncio.run(all_of_it())


def test_too_many_tries_are_refused_before_the_provider_is_asked(server, fake, ann):
    answers = [leave(server)[0].answer.status for _ in range(31)]

    assert (answers[29], answers[30]) == (200, 429)


NONCE, NOW = "n", 1_700_000_000
KEY, OTHER, SMALL, CURVE = rsa_key(), rsa_key(), rsa_key(1024), ec_key()
KEYS = openid.keys_of(
    json.dumps(
        {
            "keys": [
                public(KEY, "k1"),
                public(SMALL, "small"),
                public(CURVE, "ec"),
                public(KEY, "for-enc", use="enc"),
                {"kty": "oct", "kid": "oct", "k": b64(b"known")},
                "x",
            ]
        }
    ).encode()
)
WANTED = openid.Wanted("https://id.example", CLIENT, NONCE, NOW)
GOOD = {"iss": WANTED.issuer, "aud": CLIENT, "sub": "s", "nonce": NONCE, "iat": NOW, "exp": NOW + 60}
PEM = b"-----BEGIN PUBLIC KEY-----"


def signed(claims=None, key=KEY, **how):
    return token(GOOD | (claims or {}), key, **how)


def test_what_is_good_is_taken():
    for good in (
        signed(),
        signed(alg="PS256"),
        signed(key=CURVE, alg="ES256", kid="ec"),
        signed({"aud": [CLIENT, "other"], "azp": CLIENT}),
        signed({"exp": NOW - openid.LEEWAY_SECONDS + 1}),
        signed(key=CURVE, alg="ES256", kid=""),
    ):
        assert openid.claims_of(good, KEYS, WANTED)["sub"] == "s"


HOSTILE = {
    "alg none": signed(alg="none"),
    "alg None": signed(alg="None"),
    "a public key as a secret": signed(key=PEM, alg="HS256"),
    "a known secret": signed(key=b"known", alg="HS256", kid="oct"),
    "another's key": signed(key=OTHER),
    "a small key": signed(key=SMALL, kid="small"),
    "a key for encryption": signed(kid="for-enc"),
    "a key of another kind": signed(kid="ec"),
    "an unknown key": signed(kid="k9"),
    "crit": signed(crit=["exp"]),
    "a key that it brings": signed(key=OTHER, kid="k1", jwk=public(OTHER, "k1")),
    "no signature": signed().rpartition(".")[0] + ".",
    "two parts": signed().rpartition(".")[0],
    "four parts": signed() + ".x",
    "other claims below the signature": ".".join(
        [signed().split(".")[0], signed({"sub": "z"}).split(".")[1], signed().split(".")[2]]
    ),
    "not base64": "ä.ö.ü",
    "empty": "",
    "too long": signed({"x": "x" * openid.TOKEN_CHARACTERS_MAX}),
    "iss": signed({"iss": "https://id.example/"}),
    "aud": signed({"aud": "other"}),
    "no aud": signed({"aud": None}),
    "aud of many without azp": signed({"aud": [CLIENT, "other"]}),
    "azp": signed({"azp": "other"}),
    "exp": signed({"exp": NOW - openid.LEEWAY_SECONDS}),
    "no exp": signed({"exp": None}),
    "exp as text": signed({"exp": str(NOW + 60)}),
    "exp without end": signed({"exp": 1e300}),
    "old": signed({"iat": NOW - openid.AGE_SECONDS_MAX - openid.LEEWAY_SECONDS - 1}),
    "to come": signed({"iat": NOW + openid.LEEWAY_SECONDS + 1}),
    "no iat": signed({"iat": None}),
    "nbf": signed({"nbf": NOW + openid.LEEWAY_SECONDS + 1}),
    "nonce": signed({"nonce": "m"}),
    "no nonce": signed({"nonce": None}),
    "no sub": signed({"sub": ""}),
    "sub too long": signed({"sub": "x" * 256}),
    "sub as a number": signed({"sub": 5}),
}


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_what_is_hostile_is_refused(hostile):
    with pytest.raises(openid.Untrusted):
        openid.claims_of(hostile, KEYS, WANTED)


@pytest.mark.parametrize(
    "said",
    [
        {"email": "a@b.example"},
        {"email": "a@b.example", "email_verified": "true"},
        {"email": "a@b.example", "email_verified": False},
        {"email": "a@" + "b" * 400, "email_verified": True},
        {"email": ["a@b.example"], "email_verified": True},
        {"email_verified": True},
    ],
)
def test_an_address_that_is_not_verified_is_nobodys(said):
    with pytest.raises(openid.Untrusted):
        openid.email_of(said, "email")
    assert openid.email_of({"upn": "a@b.example"}, "upn") == "a@b.example"


def test_secrets_are_in_no_log(server, fake, ann, caplog):
    """Neither of the client nor of a sign-in, whatever goes wrong."""
    fake.answers["/token"] = (401, {"error": "invalid_client"})
    person, url = leave(server)
    query = fake.approve(url)
    assert come_back(person, query).answer.status == 503
    fake.answers.clear()
    assert go(server, fake, nonce="x").answer.status == 403
    assert "401" in caplog.text
    for secret in (SECRET, query["code"] + " ", query["state"], "ann@example.com"):
        assert secret not in caplog.text
