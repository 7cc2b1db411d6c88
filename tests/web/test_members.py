"""Members at the dashboard: invited, signed in, changed, removed; and everybody who is not."""

import asyncio
import json
import re
from html import unescape

import pytest

from edgestead.model.budgets.table import (
    ADDRESS_PASSWORDS,
    CREDENTIALS_PASSWORDS,
    PASSWORD_HASHES,
    PASSWORD_HASHES_ADDRESS,
)
from edgestead.model.refusals.account import SignInRefused
from edgestead.model.refusals.request import OverBudget, ServerFull
from edgestead.model.roles import ROLES
from edgestead.usecases.access import passwords
from edgestead.usecases.account import signing_in
from edgestead.usecases.audit import Where
from edgestead.web.pages import members
from edgestead.web.people import People
from tests.web.local import LocalSite
from tests.web.local import LocalVisitor as Visitor

PASSWORD = "correct horse battery staple"
OTHER = "a sentence nobody else would think of"
ROLE_IDS = {role.name: role.id for role in ROLES}


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.setattr(passwords, "COST_LOG2", 4)
    made = LocalSite(tmp_path)
    yield made
    made.close()


@pytest.fixture
def operator(server):
    made = Visitor(server)
    assert made.sign_in(server.ready["api_token"]).status == 303
    return made


def members_path(server):
    return f"{server.account}/members"


def invite(server, email, role="DNS"):
    """The member, and what they open."""
    made = server.call("POST", members_path(server), {"email": email, "roles": [ROLE_IDS[role]]}).result
    return made, f"/ui/invite?code={made['code']}"


def accept(server, link, password=PASSWORD, **names):
    """A browser that has set its password by a link."""
    person = Visitor(server)
    code = link.partition("code=")[2]
    person.answer = person.send("/ui/invite", code=code, password=password, again=password, **names)
    return person


def sign_in(server, email, password=PASSWORD, person=None, **headers):
    person = person or Visitor(server)
    person.answer = person.send("/ui/sign-in", headers=headers, email=email, password=password)
    return person


def is_in(person):
    return person.get("/ui/profile").status == 200


@pytest.fixture
def member(server):
    """Somebody with a password, and the role DNS."""
    made, link = invite(server, "mia@example.com")
    person = accept(server, link)
    person.email, person.id = made["email"], made["id"]
    assert person.answer.status == 303
    return person


def test_an_operator_invites_in_the_browser_and_the_member_signs_in(server, operator):
    page = operator.post(
        "/ui/members", what="invite", email="ann@example.com", role=ROLE_IDS["Administrator Read Only"]
    )
    assert "lets ann@example.com set a password" in page.words
    link = unescape(re.search(r'href="http://localhost(/ui/invite[^"]+)"', page.text)[1])
    code = link.partition("code=")[2]
    assert code not in operator.get("/ui/members").text

    ann = Visitor(server)
    for _ in range(2):  # looking at it uses nothing up
        assert "You were invited as ann@example.com" in ann.get(link).words
    ann = accept(server, link, first_name="Ann")

    assert is_in(ann)
    assert "ann@example.com, Ann" in ann.get("/ui/profile").words
    assert ann.get("/ui/zones").status == 200
    refused = ann.post("/ui/zones", name="not-mine.example")
    assert refused.status == 403
    assert "ann@example.com (Ann)" in operator.get("/ui/members").words
    again = sign_in(server, "ANN@example.com")
    assert (again.answer.status, is_in(again)) == (303, True)
    log = operator.get("/ui/audit?actor.email=ann@example.com").words
    assert "login session" in log
    assert "accept session" in log


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"password": "short", "again": "short"}, "from 12 to 256 characters"),
        ({"password": PASSWORD, "again": OTHER}, "the two differ"),
        (
            {"password": "carolcarolcarol@example.com", "again": "carolcarolcarol@example.com"},
            "e-mail address",
        ),
        ({"password": PASSWORD, "again": PASSWORD, "first_name": "x" * 101}, "at most 100"),
    ],
)
def test_a_password_that_is_refused_uses_no_invitation_up(server, fields, words):
    _, link = invite(server, "carolcarolcarol@example.com")
    person = Visitor(server)
    refused = person.send("/ui/invite", code=link.partition("code=")[2], **fields)

    assert (refused.status, person.cookie) == (400, "")
    assert words in refused.words
    assert accept(server, link).answer.status == 303


def test_an_invitation_works_once_and_a_newer_one_ends_it(server):
    made, link = invite(server, "dora@example.com")
    newer = server.api.post(f"{members_path(server)}/{made['id']}/invitation", None).result["code"]

    assert accept(server, link).answer.status == 403
    first = accept(server, f"/ui/invite?code={newer}")
    assert first.answer.status == 303
    second = accept(server, f"/ui/invite?code={newer}", OTHER)
    assert (second.answer.status, second.cookie) == (403, "")
    assert "used already" in second.answer.words
    assert sign_in(server, "dora@example.com", OTHER).answer.status == 403
    assert is_in(first)


def test_who_has_rejected_a_membership_and_is_invited_again_is_a_member_by_the_link(server, member):
    rejected = "update memberships set status = 'rejected' where id = ?"
    server.api.store.write(lambda tx: tx.run(rejected, (member.id,))).result()
    again = server.api.post(f"{members_path(server)}/{member.id}/invitation", None).result["code"]
    shown = server.api.get(f"{members_path(server)}/{member.id}").result["status"]

    person = accept(server, f"/ui/invite?code={again}", OTHER)

    assert (shown, person.answer.status, person.get("/ui/zones").status) == ("pending", 303, 200)
    assert server.api.get(f"{members_path(server)}/{member.id}").result["status"] == "accepted"


def test_an_invitation_ends_by_itself_and_with_the_membership(server):
    _, link = invite(server, "late@example.com")
    server.api.store.write(lambda tx: tx.run("update invitations set expires_us = 1")).result()
    gone, removed = invite(server, "gone@example.com")
    server.call("DELETE", f"{members_path(server)}/{gone['id']}")

    for one in (link, removed, "/ui/invite?code=", f"/ui/invite?code={'x' * 32}"):
        refused = accept(server, one)
        assert (refused.answer.status, refused.cookie) == (403, ""), one
        assert Visitor(server).get(one).status == 403


def test_who_is_removed_is_out(server, member):
    server.call("DELETE", f"{members_path(server)}/{member.id}")

    assert member.get("/ui/profile").to == "/ui/sign-in"
    assert sign_in(server, member.email).answer.status == 403


def test_a_role_that_goes_is_gone_at_once(server, member):
    server.make_zone("narrowed.example")
    path = "/ui/zones/narrowed.example"
    made = member.post(path, name="www", type="A", content="192.0.2.1", ttl="300")
    assert (made.status, "192.0.2.1" in made.text) == (200, True)

    server.call(
        "PUT",
        f"{members_path(server)}/{member.id}",
        {"roles": [{"id": ROLE_IDS["Administrator Read Only"]}]},
    )

    refused = member.post(path, name="web", type="A", content="192.0.2.2", ttl="300")
    assert refused.status == 403
    assert member.get(path).status == 200


def test_an_unknown_address_and_a_wrong_password_are_the_same(server, member):
    unknown = sign_in(server, "nobody@example.com").answer
    wrong = sign_in(server, member.email, OTHER).answer

    assert unknown.status == wrong.status == 403
    assert unknown.words.replace("nobody", "x") == wrong.words.replace(member.email.partition("@")[0], "x")
    assert "set-cookie" not in wrong.headers


def test_guesses_at_one_address_are_refused_and_counted(server):
    _, link = invite(server, "victim@example.com")
    accept(server, link)
    answers = [
        sign_in(server, "victim@example.com", f"{OTHER} {number}").answer.status
        for number in range(CREDENTIALS_PASSWORDS.limit + 1)
    ]

    assert set(answers[:-1]) == {403}
    assert answers[-1] == 429
    assert sign_in(server, "victim@example.com").answer.status == 429, "the right one is not looked at either"
    assert server.guesses == CREDENTIALS_PASSWORDS.limit


def test_guesses_from_one_network_are_refused_and_others_come_in(server, member):
    """Each at another address, so that none of these has a budget of its own that is spent."""
    answers = [
        sign_in(server, f"guessed{number}@example.com").answer.status
        for number in range(ADDRESS_PASSWORDS.limit)
    ]

    assert set(answers) == {403}
    assert sign_in(server, member.email).answer.status == 429
    assert sign_in(server, member.email, person=Visitor(server, "192.0.2.7")).answer.status == 303
    assert is_in(member), "a session is no password"


def test_a_password_that_changed_while_it_was_looked_at_is_not_good(server, member):
    reader, context = server.api.store.read, server.api.app.context
    person = reader(lambda reader: signing_in.person_of_email(reader, member.email))
    member.post("/ui/profile", what="password", old=PASSWORD, password=OTHER, again=OTHER)
    call = People(context)._call()

    write = server.api.store.write(
        lambda tx: signing_in.sign_in(call, tx, context.platform, Where("", "x"), person, None)
    )
    with pytest.raises(SignInRefused):
        write.result()


def test_some_passwords_of_a_network_and_some_of_all_wait_to_be_looked_at(server, member, monkeypatch):
    context, each = server.api.app.context, PASSWORD_HASHES_ADDRESS.limit
    people, ledger = People(context), context.draws.requests.ledger
    read = []
    monkeypatch.setattr(people, "_spend", lambda *_: None)
    monkeypatch.setattr(signing_in, "person_of_email", lambda *_: read.append(1))

    async def refused(kind, client):
        with pytest.raises(kind, match="passwords that wait"):
            await people.sign_in(member.email, PASSWORD, client)

    async def fill():
        async with people._hashing:
            waiting = [
                asyncio.create_task(
                    people.sign_in(member.email, PASSWORD, f"2001:db8::{number // each}:0:0:0:1")
                )
                for number in range(PASSWORD_HASHES.limit)
            ]
            await asyncio.sleep(0)
            await refused(OverBudget, "2001:db8::1:0:0:0:2")
            await refused(ServerFull, "2001:db8::ff:0:0:0:1")
            assert len(read) == PASSWORD_HASHES.limit, "nothing is read for who is refused"
        answers = await asyncio.gather(*waiting, return_exceptions=True)
        assert {type(answer) for answer in answers} == {SignInRefused}
        with pytest.raises(SignInRefused):
            await people.sign_in(member.email, PASSWORD, "2001:db8::1:0:0:0:2")

    server.api.together(fill())
    assert [ledger.refused(one) for one in (PASSWORD_HASHES_ADDRESS, PASSWORD_HASHES)] == [1, 1]


def test_a_password_that_came_too_often_reads_nothing(server, member, monkeypatch):
    people, read = People(server.api.app.context), []
    monkeypatch.setattr(signing_in, "person_of_email", lambda *_: read.append(1))

    async def guess():
        for _ in range(CREDENTIALS_PASSWORDS.limit):
            with pytest.raises(SignInRefused):
                await people.sign_in(member.email, OTHER, "192.0.2.1")
        with pytest.raises(OverBudget):
            await people.sign_in(member.email, PASSWORD, "192.0.2.1")

    server.api.together(guess())
    assert len(read) == CREDENTIALS_PASSWORDS.limit


def test_what_is_done_on_a_page_is_in_the_log_as_that(server, member):
    server.make_zone("paged.example")
    member.post("/ui/zones/paged.example", name="www", type="A", content="192.0.2.1", ttl="300")
    entry = server.api.get(f"{server.account}/audit_logs?per_page=1").result[0]

    assert (entry["interface"], entry["actor"]["email"]) == ("dashboard", member.email)
    assert entry["metadata"]["token_name"] == "Session"


def test_a_session_id_of_before_is_worth_nothing_afterwards(server, member):
    """Somebody who planted a cookie has no session, and the session of before ends with a sign-in."""
    planted = "A" * 43
    person = Visitor(server)
    person.cookie = f"edge_session={planted}"
    old = member.cookie
    sign_in(server, member.email, person=person)
    assert planted not in person.cookie
    thief = Visitor(server)
    thief.cookie = f"edge_session={planted}"
    assert not is_in(thief)

    sign_in(server, member.email, person=member)
    thief.cookie = old
    assert not is_in(thief)
    assert is_in(member)


@pytest.mark.parametrize("origin", ["http://evil.example", "null"])
@pytest.mark.parametrize("path", ["/ui/sign-in", "/ui/invite"])
def test_no_other_site_signs_somebody_in(server, member, origin, path):
    form = {"email": member.email, "password": PASSWORD, "code": "x"}
    stranger = Visitor(server)

    assert stranger.send(path, headers={"Origin": origin}, **form).status == 403
    assert stranger.cookie == ""


def test_another_password_ends_every_other_session(server, member):
    elsewhere = sign_in(server, member.email)
    wrong = member.post("/ui/profile", what="password", old=OTHER, password=OTHER, again=OTHER)
    differ = member.post("/ui/profile", what="password", old=PASSWORD, password=OTHER, again=PASSWORD)
    assert (wrong.status, differ.status) == (403, 400)
    assert is_in(elsewhere)

    done = member.post("/ui/profile", what="password", old=PASSWORD, password=OTHER, again=OTHER)

    assert "The password is changed" in done.words
    assert is_in(member)
    assert not is_in(elsewhere)
    assert sign_in(server, member.email).answer.status == 403
    assert sign_in(server, member.email, OTHER).answer.status == 303


def test_signing_out_everywhere_ends_every_session(server, member):
    elsewhere = sign_in(server, member.email)
    assert is_in(elsewhere)

    member.post("/ui/profile", what="everywhere")

    assert not is_in(member)
    assert not is_in(elsewhere)
    assert is_in(sign_in(server, member.email))


def test_signing_out_ends_one_session(server, member):
    elsewhere = sign_in(server, member.email)
    member.post("/ui/sign-out", member.get("/ui/profile"))

    assert not is_in(member)
    assert is_in(elsewhere)


def test_a_form_of_a_member_needs_its_key(server, member):
    refused = member.post("/ui/profile", what="everywhere", form_key="x")

    assert refused.status == 403
    assert is_in(member)


def test_nobody_gives_a_role_that_they_have_not(server):
    """An administrator without the account's settings invites nobody; with them, nobody above."""
    _, link = invite(server, "boss@example.com", "Administrator")
    boss = accept(server, link)
    refused = boss.post("/ui/members", what="invite", email="friend@example.com", role=ROLE_IDS["DNS"])

    assert refused.status == 403
    assert "friend@example.com" not in json.dumps(server.api.get(members_path(server)).result)


def test_another_account_is_offered_to_who_may_be_able_to_make_it(operator, member):
    assert "Make another account" in operator.get("/ui/profile").words
    assert "Make another account" not in member.get("/ui/profile").words


def test_sessions_of_links_and_tokens_have_no_password(operator):
    assert "Sign out everywhere" not in operator.get("/ui/profile").words
    refused = operator.post("/ui/profile", what="everywhere")
    assert refused.status == 400
    assert "begun by a link or a token" in refused.words


def test_nothing_secret_is_kept_as_it_was_typed(server, member):
    _, link = invite(server, "kept@example.com")
    code = link.partition("code=")[2]
    Visitor(server).get(link)
    cookie = member.cookie.partition("=")[2]
    member.get("/ui/profile")
    log = b"".join(server.api.lines)
    kept = b"".join(path.read_bytes() for path in server.folder.glob("control.db*"))

    for secret in (PASSWORD, code, cookie):
        assert secret.encode() not in kept
        assert secret.encode() not in log
        assert secret not in member.get("/ui/profile").text


def test_hostile_names_are_text(server, operator):
    hostile = "<script>alert(1)</script>"
    _, link = invite(server, "h@example.com")
    person = accept(server, link, first_name=hostile, last_name="\"'><img src=x>")

    for page in (person.get("/ui/profile"), operator.get("/ui/members"), operator.get("/ui/audit")):
        assert hostile not in page.text
        assert "<img src=x>" not in page.text


def test_the_audit_page_filters_and_says_what_is_wrong_with_a_filter(server, operator):
    server.make_zone("logged.example")
    assert "create zone logged.example" in operator.get("/ui/audit?zone.name=logged.example").words
    assert "Nothing was changed" in operator.get("/ui/audit?zone.name=other.example").words
    assert "a day is written" in operator.get("/ui/audit?since=yesterday").words
    found = json.loads(operator.get("/ui/audit.json?zone.name=logged.example").text)
    assert found["entries"]["items"][0]["resource"]["type"] == "zone"


def test_the_audit_log_is_exported_as_lines_of_json(server, operator, monkeypatch):
    for number in range(7):
        server.make_zone(f"z{number}.example")
    monkeypatch.setattr(members, "EXPORT_ROWS", 5)  # of a page, of which all are read
    page = operator.get("/ui/audit")
    answer = operator.get(page.link("As JSON lines"))

    rows = [json.loads(line) for line in answer.text.splitlines()]
    shown = json.loads(operator.get("/ui/audit.json").text)["entries"]["items"]
    assert [one["id"] for one in rows] == [one["id"] for one in reversed(shown)]
    assert len(rows) > 5
    assert answer.headers["content-disposition"] == 'attachment; filename="audit.jsonl"'
    some = operator.get("/ui/audit/export?zone.name=z1.example").text.splitlines()
    assert [json.loads(line)["metadata"]["zone_name"] for line in some] == ["z1.example"]
    assert operator.get("/ui/audit/export?since=yesterday").status == 400


@pytest.mark.parametrize("count", [2, 3])
def test_first_sign_ins_of_one_member_at_once_are_of_one_secret(server, member, monkeypatch, count):
    """Their transactions may be of one commit, and none is answered before all of them are made."""
    context, written, all_are = server.api.app.context, [], asyncio.Event()
    write = context.barrier.write

    async def slowly(fn):
        value = await write(fn)
        written.append(value)
        if len(written) == count:
            all_are.set()
        await all_are.wait()
        return value

    monkeypatch.setattr(context.barrier, "write", slowly)
    people = People(context)  # as after a restart

    entered = server.api.together(
        *(people.sign_in(member.email, PASSWORD, f"192.0.2.{number}") for number in range(count))
    )

    assert len(set(entered)) == 1
