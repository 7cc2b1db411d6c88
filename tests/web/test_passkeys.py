"""Passkeys of members: registered, used, removed; and every answer that is none."""

import json
import re
import subprocess
import sys
from urllib.parse import urlencode

import pytest

from edgestead.model.budgets.table import ADDRESS_PASSWORDS
from edgestead.model.refusals.account import PasskeyRefused
from edgestead.testing.server import environment
from edgestead.usecases.access import passwords
from edgestead.usecases.limits import PASSKEYS_PER_MEMBER_MAX
from edgestead.web.passkeys import (
    CHALLENGE_SECONDS,
    CHALLENGES_MAX,
    CHALLENGES_OF_NETWORK_MAX,
    Challenges,
    Place,
)
from tests.web.authenticator import Authenticator, base64url
from tests.web.local import LocalSite
from tests.web.local import LocalVisitor as Visitor
from tests.web.test_members import OTHER, PASSWORD, accept, invite, is_in, members_path, sign_in

ORIGIN = "http://localhost"


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.setattr(passwords, "COST_LOG2", 4)
    made = LocalSite(tmp_path)
    yield made
    made.close()


def joined(server, email):
    """Somebody who is signed in by a password."""
    made, link = invite(server, email)
    person = accept(server, link)
    person.email, person.id = made["email"], made["id"]
    return person


@pytest.fixture
def member(server):
    return joined(server, "mia@example.com")


def asked_to_register(person):
    form = {"form_key": person.get("/ui/profile").form_key, "what": "ask"}
    answer = person.ask("POST", "/ui/profile", urlencode(form), Origin=ORIGIN, Accept="application/json")
    return json.loads(answer.text)["passkey"]


def send_new(person, asked, answer, name="Laptop"):
    return person.post(
        "/ui/profile", what="passkey", name=name, challenge=asked["challenge"], answer=json.dumps(answer)
    )


def register(person, name="Laptop", key=None):
    key, asked = key or Authenticator(), asked_to_register(person)
    page = send_new(person, asked, key.create(asked, ORIGIN), name)
    assert f"The passkey {name} is registered" in page.words
    return key


def asked_to_sign_in(person, origin=ORIGIN, host="localhost"):
    answer = person.send("/ui/challenge", headers={"Origin": origin, "Host": host})
    assert answer.headers["cache-control"] == "no-store"
    return json.loads(answer.text)["passkey"]


def send_signed(person, asked, answer, origin=ORIGIN, host="localhost"):
    form = {"challenge": asked["challenge"], "answer": json.dumps(answer)}
    return person.send("/ui/sign-in", headers={"Origin": origin, "Host": host}, **form)


def sign_in_by(server, key, **instead):
    """A browser that has sent what the key signed."""
    person = Visitor(server)
    asked = asked_to_sign_in(person)
    origin = instead.pop("origin", ORIGIN)
    person.answer = send_signed(person, asked, key.get(asked, origin, **instead))
    return person


def removal(person, name):
    return re.search(
        r'name="id" value="(\w+)"><button[^>]*Remove the passkey ' + name, person.get("/ui/profile").text
    )[1]


def test_a_passkey_is_registered_signs_in_and_is_removed(server, member):
    key = register(member)

    person = sign_in_by(server, key)
    assert (person.answer.status, person.answer.to) == (303, "/ui")
    assert "mia@example.com" in person.get("/ui/profile").words
    assert "Laptop http://localhost" in person.get("/ui/profile").words
    assert is_in(member), "other sessions go on"
    assert is_in(sign_in_by(server, key)), "again, with another challenge"

    person.post("/ui/profile", what="forget", id=removal(person, "Laptop"))
    refused = sign_in_by(server, key)
    assert (refused.answer.status, is_in(refused)) == (403, False)
    assert is_in(person)
    log = server.api.get(f"{server.account}/audit_logs?per_page=50").result
    found = [one for one in log if one["resource"]["type"] == "passkey"]
    assert [one["action"]["type"] for one in found] == ["remove", "register"]
    assert {one["actor"]["email"] for one in found} == {"mia@example.com"}


LIES = {
    "another page's": {"origin": "http://evil.example"},
    "another port's": {"origin": "http://localhost:9999"},
    "another scheme's": {"origin": "https://localhost"},
    "another name's": {"name": "evil.example"},
    "another challenge": {"challenge": base64url(bytes(32))},
    "another member's handle": {"handle": base64url(b"0" * 32)},
    "the count of before": {"count": 1},
    "a lower count": {"count": 0},
}


@pytest.mark.parametrize("lie", LIES)
def test_an_answer_that_is_not_to_this_question_is_refused_and_counted(server, member, lie):
    key = register(member)
    assert is_in(sign_in_by(server, key))

    refused = sign_in_by(server, key, **LIES[lie])

    assert (refused.answer.status, refused.cookie) == (403, "")
    assert "This passkey signs nobody in here" in refused.answer.words
    assert server.guesses == 1
    assert is_in(sign_in_by(server, key)), "the true one still is"


def test_an_answer_is_good_once(server, member):
    key = register(member, key=Authenticator(count=None))
    person, thief = Visitor(server), Visitor(server)
    asked = asked_to_sign_in(person)
    answer = key.get(asked, ORIGIN)

    assert send_signed(person, asked, answer).status == 303
    assert send_signed(thief, asked, answer).status == 403
    assert send_signed(thief, asked_to_sign_in(thief), answer).status == 403, "nor to another question"
    assert thief.cookie == ""


def test_keys_that_do_not_count_sign_in_as_often_as_they_like(server, member):
    key = register(member, key=Authenticator(count=None))

    assert all(is_in(sign_in_by(server, key)) for _ in range(3))


def test_another_key_with_the_identifier_of_a_members_is_refused(server, member):
    key, other = register(member), Authenticator()
    other.key_id, other.handle, other.count = key.key_id, key.handle, 100

    assert sign_in_by(server, other).answer.status == 403


def test_a_passkey_of_one_member_is_not_anothers(server, member):
    """Neither registered again, nor removed, nor good for them."""
    key, ann = register(member), joined(server, "ann@example.com")
    asked = asked_to_register(ann)
    assert "registered already" in send_new(ann, asked, key.create(asked, ORIGIN)).words

    key.handle = asked["user"]["id"]
    assert sign_in_by(server, key).answer.status == 403
    key.handle = asked_to_register(member)["user"]["id"]
    assert ann.post("/ui/profile", what="forget", id=removal(member, "Laptop")).status == 404
    assert is_in(sign_in_by(server, key))


@pytest.mark.parametrize("signed_for", [ORIGIN, "http://localhost:9999"])
def test_a_relay_at_another_port_is_refused_though_it_names_itself_as_host(server, member, signed_for):
    """It gets a challenge as itself: the key is good only where it was registered."""
    key, person = register(member), Visitor(server)
    elsewhere = {"origin": "http://localhost:9999", "host": "localhost:9999"}
    asked = asked_to_sign_in(person, **elsewhere)

    refused = send_signed(person, asked, key.get(asked, signed_for), **elsewhere)

    assert (refused.status, person.cookie) == (403, "")


def test_a_question_of_one_kind_is_not_answered_by_another(server, member):
    key, asked = Authenticator(), asked_to_register(member)
    stranger = asked_to_sign_in(Visitor(server))

    for_sign_in = asked | {"challenge": stranger["challenge"]}
    refused = send_new(member, for_sign_in, key.create(for_sign_in, ORIGIN))
    assert "took too long" in refused.words
    key = register(member)
    asked = asked_to_register(member)
    answer = key.get({"rpId": "localhost", "challenge": asked["challenge"]}, ORIGIN)
    assert send_signed(Visitor(server), asked, answer).status == 403


@pytest.mark.parametrize(
    "broken", ["", "[]", "{}", '"x"', "{" * 9_000, '{"rawId": 5}', "x" * 20_000, '{"rawId": "é"}']
)
def test_what_is_no_answer_is_refused(server, member, broken):
    asked = asked_to_register(member)
    sent = {"name": "x", "challenge": asked["challenge"], "answer": broken}
    assert member.post("/ui/profile", what="passkey", **sent).status == 400

    person = Visitor(server)
    form = {"challenge": asked_to_sign_in(person)["challenge"], "answer": broken}
    assert person.send("/ui/sign-in", headers={"Origin": ORIGIN}, **form).status == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "http://localhost:9999"])
def test_a_key_is_not_registered_for_another_page(server, member, origin):
    key, asked = Authenticator(), asked_to_register(member)

    assert send_new(member, asked, key.create(asked, origin)).status == 400
    assert "Laptop" not in member.get("/ui/profile").words


def test_names_and_numbers_of_passkeys_have_bounds(server, member):
    for name in ("", "x" * 101, "a\x07b"):
        asked = asked_to_register(member)
        page = send_new(member, asked, Authenticator().create(asked, ORIGIN), name)
        assert page.status == 400, name
    for number in range(PASSKEYS_PER_MEMBER_MAX):
        register(member, f"Key {number}")
    for name, words in (("Key 0", "there are 20 already"),):
        asked = asked_to_register(member)
        assert len(asked["excludeCredentials"]) == PASSKEYS_PER_MEMBER_MAX
        assert words in send_new(member, asked, Authenticator().create(asked, ORIGIN), name).words


def test_two_of_one_name_would_not_be_told_apart(server, member):
    register(member)
    asked = asked_to_register(member)

    assert "has this name" in send_new(member, asked, Authenticator().create(asked, ORIGIN)).words


def test_guesses_by_passkey_are_bounded_as_passwords_are(server, member):
    key = register(member)
    answers = [sign_in_by(server, Authenticator()).answer.status for _ in range(ADDRESS_PASSWORDS.limit)]

    assert answers[-1] == 403
    assert sign_in_by(server, key).answer.status == 429, "the right one is not looked at either"
    assert sign_in(server, member.email).answer.status == 429, "one budget for both"
    assert server.guesses == ADDRESS_PASSWORDS.limit


def test_passkeys_go_with_their_member_and_stay_when_the_password_changes(server, member):
    key = register(member)
    member.post("/ui/profile", what="password", old=PASSWORD, password=OTHER, again=OTHER)
    assert is_in(sign_in_by(server, key))
    member.post("/ui/profile", what="everywhere")
    person = sign_in_by(server, key)
    assert is_in(person)

    server.call("DELETE", f"{members_path(server)}/{member.id}")

    assert not is_in(person)
    assert sign_in_by(server, key).answer.status == 403
    assert server.api.store.read(lambda reader: reader.rows("select * from passkeys")) == []


def test_an_address_of_digits_says_where_passkeys_are(server, member):
    for path in ("/ui/profile", "/ui/sign-in"):
        page = member.get(path, Host="127.0.0.1:8787")
        assert f'href="http://localhost:8787{path}"' in page.text
        assert "data-passkey" not in page.text
        assert "data-passkey" in member.get(path).text
    digits = {"Origin": "http://127.0.0.1:8787", "Host": "127.0.0.1:8787"}
    refused = member.send("/ui/challenge", headers=digits)
    assert "open http://localhost:8787" in json.loads(refused.text)["error"]
    key = member.get("/ui/sign-in").form_key
    assert member.ask("POST", "/ui/challenge", f"form_key={key}").status == 400, "without an origin"
    assert member.get("/ui/challenge").status == 405


def test_sessions_of_links_and_tokens_have_no_passkeys(server):
    operator = Visitor(server)
    operator.sign_in(server.ready["api_token"])

    assert "Passkeys" not in operator.get("/ui/profile").words
    assert operator.post("/ui/profile", what="passkey", name="x").status == 400


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("localhost:8787", "localhost"),
        ("edge.example.com", "edge.example.com"),
        ("127.0.0.1:8787", ""),
        ("[::1]:8787", ""),
        ("[x", ""),
        ("me@localhost", ""),
        ("localhost:x", ""),
        ("x" * 254, ""),
        ("", ""),
    ],
)
def test_a_relying_party_is_a_name(host, name):
    place = Place(host, f"http://{host}")
    assert place.name == name
    if name:
        assert place.checked() == f"http://{host}"
        with pytest.raises(PasskeyRefused):
            Place(host, "http://evil.example").checked()


def test_challenges_end_and_have_bounds():
    challenges = Challenges()
    late = challenges.make(ORIGIN, "192.0.2.1", None, 0)
    assert not challenges.take(late, ORIGIN, None, CHALLENGE_SECONDS * 1_000_000)
    kept = challenges.make(ORIGIN, "192.0.2.1", None, 0)
    flood = [challenges.make(ORIGIN, "198.51.100.1", None, 0) for _ in range(CHALLENGES_OF_NETWORK_MAX + 1)]
    assert [challenges.take(one, ORIGIN, None, 0) for one in flood] == [False] + [True] * (len(flood) - 1)
    assert challenges.take(kept, ORIGIN, None, 0), "one network pushes out its own"
    for number in range(CHALLENGES_MAX + 1):
        challenges.make(ORIGIN, f"203.0.{number >> 8}.{number & 255}", None, 0)
    assert len(challenges._asked) == CHALLENGES_MAX == challenges._held.total()


def test_the_library_is_loaded_by_nobody_who_uses_no_passkey():
    program = """
import importlib, pkgutil, sys
import edgestead.rest, edgestead.server, edgestead.web
for room in (edgestead.rest, edgestead.server, edgestead.web):
    for module in pkgutil.walk_packages(room.__path__, room.__name__ + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
print([name for name in sys.modules if name.split(".")[0] in ("fido2", "cryptography")])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment()
    )

    assert done.stdout.splitlines()[-1] == "[]"
