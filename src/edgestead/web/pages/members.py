"""Members of the account with their roles, the audit log, and one's own password, passkeys and accounts.

Owns  the three pages.
Not   who may invite whom: the API says. Passwords (`web.people`).

The link of an invitation is in the answer to the form that made it, and on no other page.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from edgestead.model.refusals import EdgeError
from edgestead.web.asker import Refused
from edgestead.web.pages.shared import account_of, listed
from edgestead.web.people import People
from edgestead.web.visit import ROOT, Moved, Renewed, Sent, Shown, Visit
from edgestead.web.way_in import BOUNDS

EXPORT_ROWS = 1_000  # of a page of the API
EXPORT_PAGES_MAX = 10  # of these: what a browser waits for
ROWS_MAX = 20  # of the list of members: three forms each
FILTERS = ("since", "before", "actor.email", "zone.name", "action.type")


async def show(visit: Visit) -> Shown:
    return await _members(visit)


async def _members(visit: Visit, **more: Any) -> Shown:
    account = f"/accounts/{await account_of(visit)}"
    data = {
        "members": await listed(visit, f"{account}/members", per_page=ROWS_MAX),
        "roles": await visit.api.result(f"{account}/roles"),
        "form": {"email": visit.field("email"), "role": visit.field("role")},
        "errors": defaultdict(str),
        "link": "",
        "invited": "",
    }
    return Shown("members.html", "Members", data | more, 400 if more.get("errors") else 200)


async def change(visit: Visit) -> Shown | Moved:
    """Invite somebody, make another link, give another role, remove."""
    account = f"/accounts/{await account_of(visit)}"
    member = f"{account}/members/{visit.field('id')}"
    what, roles = visit.field("what"), {"roles": [visit.field("role")]}
    try:
        if what == "invite":
            body = {"email": visit.field("email"), **roles}
            made = (await visit.api.send("POST", f"{account}/members", body))["result"]
            return await _invited(visit, made["email"], made["code"])
        if what == "link":
            made = (await visit.api.send("POST", f"{member}/invitation"))["result"]
            return await _invited(visit, made["email"], made["code"])
    except Refused as refused:
        if refused.status != 400:
            raise
        return await _members(
            visit, errors=defaultdict(str, refused.fields or {"email": refused.messages[0]})
        )
    if what == "role":
        await visit.api.send("PUT", member, roles)
        return Moved(f"{ROOT}/members", "The member has another role, and so have their sessions and tokens.")
    await visit.api.send("DELETE", member)
    return Moved(f"{ROOT}/members", "The member is removed: sessions and tokens of theirs are dead.")


async def _invited(visit: Visit, email: str, code: str) -> Shown:
    link = f"{visit.place.origin}{ROOT}/invite?code={code}"
    return await _members(visit, invited=email, link=link, form={"email": "", "role": ""})


async def audit(visit: Visit) -> Shown:
    filters = {name: visit.query.get(name, "")[:100] for name in FILTERS}
    try:
        found = await listed(visit, f"/accounts/{await account_of(visit)}/audit_logs", **filters)
        error = ""
    except Refused as refused:
        if refused.status != 400:
            raise
        found, error = {"items": [], "page": 1, "pages": 1, "count": 0}, refused.messages[0]
    return Shown("audit.html", "Audit log", {"entries": found, "filters": filters, "error": error})


async def export_audit(visit: Visit) -> Sent:
    """What the filters leave, as JSON lines, the oldest first, as `edgecli audit --json` prints it."""
    asked = {name: visit.query.get(name, "")[:100] for name in FILTERS} | {"direction": "asc"}
    path, lines = f"/accounts/{await account_of(visit)}/audit_logs", list[msgspec.Raw]()
    for page in range(1, EXPORT_PAGES_MAX + 1):
        query = {**asked, "per_page": EXPORT_ROWS, "page": page}
        found = await visit.api.read(path, list[msgspec.Raw], query)
        lines += found
        if len(found) < EXPORT_ROWS:
            break
    return Sent("audit.jsonl", b"".join(bytes(one) + b"\n" for one in lines))


async def profile(visit: Visit) -> Shown:
    return await _profile(visit, "")


async def _profile(visit: Visit, error: str, status: int = 200, **more: Any) -> Shown:
    assert visit.people is not None
    user_id = visit.people.member_of(visit.session)
    data = {
        "user": await visit.api.result("/user"),
        "memberships": await visit.api.result("/memberships"),
        "has_password": user_id is not None,
        "passkeys": visit.people.passkeys(user_id) if user_id else [],
        "has_passkeys": bool(visit.place.name),
        "named": visit.place.named,
        "error": error,
        "new_account": "",
        "account_error": "",
        **BOUNDS,
        **more,
    }
    return Shown("profile.html", "You", data, status)


async def change_profile(visit: Visit) -> Shown | Moved | Renewed:
    """Another password, passkeys, the end of all sessions, an answer to an invitation, another account."""
    assert visit.people is not None
    what, user_id = visit.field("what"), visit.people.member_of(visit.session)
    if what in ("accepted", "rejected"):
        body = {"status": what, "code": visit.field("code").rpartition("code=")[2]}
        try:
            await visit.api.send("PUT", f"/memberships/{visit.field('id')}", body)
        except Refused as refused:
            if refused.status != 400:
                raise
            return await _profile(visit, refused.messages[0], 400)
        return Moved(f"{ROOT}/profile", f"The membership is {what}.")
    if what == "account":
        return await _make_account(visit)
    form = visit.form or {}
    if user_id is None:
        return await _profile(visit, "This session has no password: it was begun by a link or a token.", 400)
    try:
        if what == "everywhere":
            await visit.people.sign_out_everywhere(user_id, visit.client)
            return Renewed((), f"{ROOT}/sign-in")
        if what in _PASSKEYS:
            return await _PASSKEYS[what](visit, visit.people, user_id)
        if form.get("password", "") != form.get("again", ""):
            return await _profile(visit, "The two new passwords differ.", 400)
        headers = await visit.people.change_password(
            user_id, form.get("old", ""), form.get("password", ""), visit.client
        )
    except EdgeError as refused:
        return await _profile(visit, refused.message, refused.status)
    return Renewed(headers, f"{ROOT}/profile", "The password is changed. Every other session is over.")


async def _make_account(visit: Visit) -> Shown | Moved:
    """Another account, which the session looks at from now on."""
    name = visit.field("name")
    try:
        made = (await visit.api.send("POST", "/accounts", {"name": name}))["result"]
    except Refused as refused:
        if refused.status != 400:
            raise
        return await _profile(visit, "", 400, new_account=name, account_error=refused.messages[0])
    visit.session.account = made["id"]
    return Moved(f"{ROOT}/zones", f"The account {made['name']} is made, and you look at it.")


async def _ask_for_passkey(visit: Visit, people: People, user_id: str) -> Shown:
    """For the page's script, as JSON."""
    return await _profile(visit, "", passkey=people.ask_for_new_passkey(user_id, visit.place, visit.client))


async def _add_passkey(visit: Visit, people: People, user_id: str) -> Moved:
    name, challenge, answer = (visit.field(name) for name in ("name", "challenge", "answer"))
    await people.add_passkey(user_id, name, challenge, answer, visit.place, visit.client)
    return Moved(f"{ROOT}/profile", f"The passkey {name} is registered: sign in with it from now on.")


async def _remove_passkey(visit: Visit, people: People, user_id: str) -> Moved:
    await people.remove_passkey(user_id, visit.field("id"), visit.client)
    return Moved(f"{ROOT}/profile", "The passkey is removed. Sessions that it began go on.")


_PASSKEYS: Final[dict[str, Callable[[Visit, People, str], Awaitable[Shown | Moved]]]] = {
    "ask": _ask_for_passkey,
    "passkey": _add_passkey,
    "forget": _remove_passkey,
}
