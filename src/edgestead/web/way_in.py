"""The pages before a session: one-time links, tokens, passwords and invitations.

Owns  their forms, and what each says to who is not let in.
Not   sessions (`web.sessions`), cookies (`web.site`); checking passwords (`web.people`), OpenID Connect
      (`web.openid`).

    /ui/enter     a link of `edgecli dashboard`     asks for a click: programs that preview links use none up
    /ui/invite    a link of `edgecli member invite` asks for a password, and uses it up
    /ui/sign-in   e-mail address and password, a passkey, or an API token
    /ui/openid    to a provider of OpenID Connect, and back from there
    /ui/challenge what a browser needs to ask for a passkey, as JSON
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from edgestead.http1.head import by_name
from edgestead.model.refusals import EdgeError
from edgestead.model.refusals.account import PasswordRefused
from edgestead.rest import credentials
from edgestead.rest.context import AppContext
from edgestead.usecases.access.authorise import CONTENTS, check_usable
from edgestead.usecases.account.signing_in import Names
from edgestead.usecases.limits import PASSWORD_CHARACTERS_MAX, PASSWORD_CHARACTERS_MIN, PROFILE_CHARACTERS_MAX
from edgestead.web.issuer import Trouble
from edgestead.web.openid import Away, Declined, OpenId
from edgestead.web.passkeys import Place
from edgestead.web.people import People
from edgestead.web.sessions import Sessions
from edgestead.web.visit import ROOT

PATHS: Final = frozenset(f"{ROOT}/{name}" for name in ("sign-in", "enter", "invite", "challenge", "openid"))
_OLD_LINK: Final = (
    "This link was used already, or is older than two minutes. `edgecli dashboard` makes another."
)
_NO_TOKEN: Final = "No token is that. `edgecli token create` makes one, and `edgecli dashboard` needs none."
_AWAY: Final = "{name} does not answer as it should. Try again in a moment, or sign in another way."
BOUNDS: Final = {"least": PASSWORD_CHARACTERS_MIN, "most": PASSWORD_CHARACTERS_MAX}


class Asked(NamedTuple):
    """A page that asks for what lets somebody in; `status` is 403, say, where it refuses something."""

    template: str
    title: str
    data: dict[str, Any]
    status: int = 200


class Told(NamedTuple):
    """For a script of ours."""

    data: dict[str, Any]
    status: int = 200


class WayIn:
    """What `answer` gives is the id of a session that has begun, a page, or data for one."""

    def __init__(
        self, context: AppContext, sessions: Sessions, people: People, openid: OpenId | None = None
    ) -> None:
        self._context, self._sessions, self._people = context, sessions, people
        self._openid = openid

    async def answer(
        self,
        path: str,
        query: Mapping[str, str],
        form: Mapping[str, str] | None,
        client: str,
        place: Place,
        fault: str = "",
        browser: str = "",
    ) -> str | Asked | Told | Away:
        """A form with a `fault` does nothing: its page comes again, with these words and what was typed."""
        if path.endswith("/challenge"):
            return Told({"error": fault}, 403) if fault else self._challenge(form, client, place)
        if fault and form is not None:
            found: str | Asked | Away = self._again(path, form, fault)
        elif path.endswith("/openid"):
            found = await self._by_openid(query, form, client, place, browser)
        else:
            found = await self._entered(path, query, form, client, place)
        if isinstance(found, Asked):
            provider = self._openid.name if self._openid else ""
            found.data.update(has_passkeys=bool(place.name), named=place.named, provider=provider)
        return found

    def _again(self, path: str, form: Mapping[str, str], fault: str) -> Asked:
        code = form.get("code", "")
        if path.endswith("/invite"):
            return self._invitation(code, form, fault, 403)
        email = form.get("email", "").strip()[:PROFILE_CHARACTERS_MAX]
        return _sign_in(fault, 403, code=code if path.endswith("/enter") else "", email=email)

    async def _entered(
        self, path: str, query: Mapping[str, str], form: Mapping[str, str] | None, client: str, place: Place
    ) -> str | Asked:
        if path.endswith("/invite"):
            return await self._invite((query if form is None else form).get("code", ""), form, client)
        if form is None:
            return _sign_in("", code=query.get("code", "") if path.endswith("/enter") else "")
        if code := form.get("code"):
            return self._sessions.enter(code) or _sign_in(_OLD_LINK, 403)
        if "email" in form:
            return await self._by_password(form, client)
        if "answer" in form:
            return await self._by_passkey(form, client, place)
        return self._by_token(form.get("token", "").strip(), client)

    def _by_token(self, token: str, client: str) -> str | Asked:
        context = self._context
        headers = ((b"authorization", b"Bearer " + token.encode("utf-8", "replace")),)
        try:
            identity = credentials.identify(by_name(list(headers)), context.access, CONTENTS)
        except EdgeError as refused:
            refusal = context.guesses.refusal(refused, client, context.now_us())
            return _sign_in(refusal.message if refusal.status == 429 else _NO_TOKEN, 403)
        try:
            check_usable(identity, context.now_us(), client)
        except EdgeError as refused:
            return _sign_in(refused.message, 403)
        return self._sessions.begin(lambda: headers)

    def _challenge(self, form: Mapping[str, str] | None, client: str, place: Place) -> Told:
        if form is None:
            return Told({"error": "A form of the page asks for it."}, 405)
        try:
            return Told({"passkey": self._people.ask_for_passkey(place, client)})
        except EdgeError as refused:
            return Told({"error": refused.message}, refused.status)

    async def _by_passkey(self, form: Mapping[str, str], client: str, place: Place) -> str | Asked:
        try:
            headers = await self._people.sign_in_by_passkey(
                form.get("challenge", ""), form["answer"], place, client
            )
        except EdgeError as refused:
            return _sign_in(refused.message, refused.status)
        return self._sessions.begin(lambda: headers)

    async def _by_openid(
        self,
        query: Mapping[str, str],
        form: Mapping[str, str] | None,
        client: str,
        place: Place,
        browser: str,
    ) -> str | Asked | Away:
        """A form leads to the provider, an address with a state comes back from there."""
        openid = self._openid
        if openid is None or (form is None and "state" not in query):
            return _sign_in("", 200 if openid else 404)
        try:
            if form is not None:
                return await openid.begin(place, client)
            headers = await openid.finish(query, browser, client)
        except Declined as declined:
            return _sign_in(str(declined), 403)
        except EdgeError as refused:
            return _sign_in(refused.message, refused.status)
        except Trouble:
            return _sign_in(_AWAY.format(name=openid.name), 503)
        return self._sessions.begin(lambda: headers)

    async def _by_password(self, form: Mapping[str, str], client: str) -> str | Asked:
        email = form.get("email", "").strip()
        try:
            headers = await self._people.sign_in(email, form.get("password", ""), client)
        except EdgeError as refused:
            return _sign_in(refused.message, refused.status, email=email[:PROFILE_CHARACTERS_MAX])
        return self._sessions.begin(lambda: headers)

    async def _invite(self, code: str, form: Mapping[str, str] | None, client: str) -> str | Asked:
        if form is None:
            return self._invitation(code, {}, "", 200)
        try:
            self._people.invited(code)
        except EdgeError as refused:
            return _sign_in(refused.message, 403)
        try:
            headers = await self._accepted(code, form, _names(form), client)
        except EdgeError as refused:
            return self._invitation(code, form, refused.message, 400)
        return self._sessions.begin(lambda: headers)

    def _invitation(self, code: str, form: Mapping[str, str], error: str, status: int) -> Asked:
        """The page of an invitation that holds."""
        try:
            email = self._people.invited(code).email
        except EdgeError as refused:
            return _sign_in(refused.message, 403)
        data = {"code": code, "email": email, "names": _names(form)._asdict(), "error": error, **BOUNDS}
        return Asked("invite.html", "Set your password", data, status)

    async def _accepted(
        self, code: str, form: Mapping[str, str], names: Names, client: str
    ) -> tuple[tuple[bytes, bytes], ...]:
        if form.get("password", "") != form.get("again", ""):
            raise PasswordRefused(reason="the two differ")
        if any(len(name) > PROFILE_CHARACTERS_MAX or not name.isprintable() for name in names):
            raise PasswordRefused(reason=f"a name has at most {PROFILE_CHARACTERS_MAX} printable characters")
        return await self._people.accept(code, form["password"], names, client)


def _names(form: Mapping[str, str]) -> Names:
    return Names(*(form.get(name, "").strip() for name in ("first_name", "last_name")))


def _sign_in(error: str, status: int = 200, *, code: str = "", email: str = "") -> Asked:
    return Asked("sign_in.html", "Sign in", {"code": code, "email": email, "error": error}, status)
