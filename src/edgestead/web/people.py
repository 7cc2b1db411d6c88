"""Members at the dashboard: their passwords, passkeys and invitations become credentials of sessions.

Owns  how often a password or passkey may be tried, checking both off the loop, the secrets of members' tokens
      in memory.
Not   rules and transactions (`usecases.account.signing_in`, `passkeys`); challenges (`web.passkeys`); forms
      and cookies (`web.way_in`, `web.site`).

    try      the address's budget, the e-mail's budget ── spent ──► 429, nothing is looked at
               │
               ▼ one at a time, 4 of a network and 16 wait        ── more ──► 429, 503, nothing is looked at
             scrypt, as long for a user whom nobody knows          ── wrong ──► 403, counted as a refused
               │                                                               credential, so alarmed
               ▼
             a transaction looks again, and gives the secret       ── changed meanwhile ──► 403

A passkey goes the same way: its identifier has the e-mail's budget, its signature is checked where scrypt is.

Each member's sessions share one secret, which is known here alone: a restart of control forgets all of them.
"""

import asyncio
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

import msgspec

from edgestead.changes import NEWEST
from edgestead.http1.head import by_name
from edgestead.model.budgets.ledger import Levels, Windows
from edgestead.model.budgets.networks import network_of
from edgestead.model.budgets.table import (
    ADDRESS_PASSWORDS,
    CREDENTIALS_PASSWORDS,
    PASSWORD_HASHES,
    PASSWORD_HASHES_ADDRESS,
)
from edgestead.model.call import Actor, Call
from edgestead.model.refusals import EdgeError
from edgestead.model.refusals.account import PasskeyRefused, PasskeySignInRefused, SignInRefused
from edgestead.model.refusals.request import OverBudget, unreadable
from edgestead.model.room import Adds
from edgestead.rest.context import AppContext
from edgestead.rest.credentials import identify
from edgestead.rest.request_id import request_ids
from edgestead.store.control import Transaction
from edgestead.usecases.access import passwords
from edgestead.usecases.access.authorise import CONTENTS
from edgestead.usecases.access.member_rights import is_session
from edgestead.usecases.account import openid, passkeys, signing_in
from edgestead.usecases.account.passkeys import Named, PasskeyView
from edgestead.usecases.account.signing_in import Names, Person
from edgestead.usecases.audit import Where
from edgestead.usecases.limits import EMAIL_CHARACTERS_MAX, PASSKEY_ANSWER_BYTES_MAX
from edgestead.web.asker import INTERFACE
from edgestead.web.passkeys import Challenges, Place, register_options, sign_in_options
from edgestead.web.sessions import Headers, Session

P = ParamSpec("P")
T = TypeVar("T")


class People:
    """Used by one event loop. What signs somebody in gives the headers of their requests."""

    def __init__(self, context: AppContext) -> None:
        self._context = context
        ledger = context.draws.requests.ledger
        self._by_address = Windows(ledger, ADDRESS_PASSWORDS)
        self._by_email = Windows(ledger, CREDENTIALS_PASSWORDS)
        self._hashing = asyncio.Semaphore(1)
        self._waiting = Levels(ledger, PASSWORD_HASHES_ADDRESS, PASSWORD_HASHES)
        self._secrets: dict[str, str] = {}  # by user: read and written in transactions
        self._challenges = Challenges()
        self._next_request_id = request_ids(secrets.randbits(64))

    async def sign_in(self, email: str, password: str, client: str) -> Headers:
        """Raises SignInRefused, OverBudget, Unavailable."""
        self._spend(email, client)
        with self.in_line(client):
            person = self._context.barrier.read(lambda reader: signing_in.person_of_email(reader, email))
            await self._check(person, password, client)
        assert person is not None
        where, call, id_ = Where(client, INTERFACE), self._call(), person.user_id

        def enter(tx: Transaction) -> tuple[Person, str]:
            known = self._secrets.get(id_)
            return person, signing_in.sign_in(call, tx, self._context.platform, where, person, known)

        return await self._enter(enter)

    def member_of(self, session: Session) -> str | None:
        """Whose session it is; None for one of a link or a token."""
        try:
            identity = identify(by_name(list(session.headers())), self._context.access, CONTENTS)
        except EdgeError:
            return None
        return identity.actor.id if is_session(identity) else None

    def invited(self, code: str) -> Person:
        """Raises InvitationOver."""
        now_us = self._context.now_us()
        return self._context.barrier.read(lambda reader: signing_in.invited(reader, code, now_us))

    async def accept(self, code: str, password: str, names: Names, client: str) -> Headers:
        """Raises InvitationOver, PasswordRefused, OverBudget, Unavailable."""
        person = self.invited(code)
        passwords.check(password, person.email)
        with self.in_line(client):
            scrypt = await self.hashed(passwords.hashed, password)
        where, call = Where(client, INTERFACE), self._call()
        return await self._enter(
            lambda tx: signing_in.accept(call, tx, self._context.platform, where, code, scrypt, names)
        )

    async def change_password(self, user_id: str, old: str, new: str, client: str) -> Headers:
        """Raises SignInRefused, PasswordRefused, OverBudget, Unavailable."""
        person = self._person(user_id)
        self._spend(person.email, client)
        with self.in_line(client):
            await self._check(person, old, client)
            passwords.check(new, person.email)
            scrypt = await self.hashed(passwords.hashed, new)
        where, call = Where(client, INTERFACE), self._call()
        platform = self._context.platform
        return await self._enter(
            lambda tx: (person, signing_in.set_password(call, tx, platform, where, person, scrypt))
        )

    async def sign_out_everywhere(self, user_id: str, client: str) -> None:
        """Raises SignInRefused, Unavailable."""
        person, where, call = self._person(user_id), Where(client, INTERFACE), self._call()

        def leave(tx: Transaction) -> None:
            self._secrets.pop(user_id, None)
            signing_in.end_sessions(call, tx, self._context.platform, where, person)

        await self._write(leave)

    def passkeys(self, user_id: str) -> list[PasskeyView]:
        return self._context.barrier.read(lambda reader: passkeys.listed(reader, user_id))

    def ask_for_passkey(self, place: Place, client: str) -> dict[str, Any]:
        """What a browser needs to sign in. Raises PasskeyRefused."""
        challenge = self._challenges.make(place.checked(), client, None, self._context.now_us())
        return sign_in_options(challenge, place)

    def ask_for_new_passkey(self, user_id: str, place: Place, client: str) -> dict[str, Any]:
        """What a browser needs to make one. Raises PasskeyRefused, SignInRefused."""
        person = self._person(user_id)
        present = self._context.barrier.read(lambda reader: passkeys.key_ids(reader, user_id))
        challenge = self._challenges.make(place.checked(), client, user_id, self._context.now_us())
        return register_options(challenge, place, person, present)

    async def add_passkey(
        self, user_id: str, name: str, challenge: str, answer: str, place: Place, client: str
    ) -> None:
        """Raises PasskeyRefused, SignInRefused, Unavailable."""
        passkeys.check_name(name)
        person, origin, now_us = self._person(user_id), place.checked(), self._context.now_us()
        if not self._challenges.take(challenge, origin, user_id, now_us):
            raise PasskeyRefused(reason="it took too long, or was sent already")
        if (said := _answer(answer)) is None:
            raise PasskeyRefused(reason="the browser's answer is none to this page")
        with self.in_line(client):
            found = await self.hashed(_registered, said, challenge, origin)
        where, call, named = Where(client, INTERFACE), self._call(), Named(name, origin)
        await self._write(
            lambda tx: passkeys.register(call, tx, self._context.platform, where, person, named, found)
        )

    async def remove_passkey(self, user_id: str, id_: str, client: str) -> None:
        """Raises PasskeyNotFound, SignInRefused, Unavailable."""
        person, where, call = self._person(user_id), Where(client, INTERFACE), self._call()
        await self._write(lambda tx: passkeys.remove(call, tx, where, person, id_))

    async def sign_in_by_passkey(self, challenge: str, answer: str, place: Place, client: str) -> Headers:
        """Raises PasskeySignInRefused, PasskeyRefused, OverBudget, Unavailable."""
        origin, context = place.checked(), self._context
        try:
            return await self._by_passkey(challenge, answer, origin, client)
        except (PasskeySignInRefused, SignInRefused):
            raise context.guesses.refusal(PasskeySignInRefused(), client, context.now_us()) from None

    async def _by_passkey(self, challenge: str, answer: str, origin: str, client: str) -> Headers:
        now_us, said = self._context.now_us(), _answer(answer) or {}
        self._spend(str(said.get("rawId", "")), client)
        with self.in_line(client):
            is_asked = self._challenges.take(challenge, origin, None, now_us)
            key_id = await self.hashed(_key_id_of, said)
            row = self._context.barrier.read(lambda reader: passkeys.by_key(reader, key_id))
            if row is None or row.origin != origin or not is_asked:
                raise PasskeySignInRefused
            count = await self.hashed(_signed, said, challenge, origin, row.public_key, row.user_id)
        where, call, id_ = Where(client, INTERFACE), self._call(), row.user_id

        def enter(tx: Transaction) -> tuple[Person, str]:
            known = self._secrets.get(id_)
            return passkeys.sign_in(call, tx, self._context.platform, where, row, count, known)

        return await self._enter(enter)

    async def sign_in_by_openid(self, issuer: str, subject: str, email: str, client: str) -> Headers:
        """What a provider said was good. Raises OpenIdRefused, SignInRefused, OverBudget, Unavailable."""
        self._spend_of(self._by_email, email.strip().lower())
        where, call, said = Where(client, INTERFACE), self._call(), (issuer, subject, email)
        return await self._enter(
            lambda tx: openid.sign_in(call, tx, self._context.platform, where, said, self._secrets.get)
        )

    def refused(self, refused: EdgeError, client: str) -> EdgeError:
        """Counted as a credential that nobody has."""
        return self._context.guesses.refusal(refused, client, self.now_us())

    def now_us(self) -> int:
        return self._context.now_us()

    async def loaded(self, load: Callable[[], None]) -> None:
        """A library that the first one needs, on the thread of the others."""
        await self.hashed(load)

    def spend(self, client: str) -> None:
        """Before anything is read. Raises OverBudget: a network has no try left this minute."""
        self._spend_of(self._by_address, network_of(client))

    def _spend(self, key: str, client: str) -> None:
        """Before anything is read. Raises OverBudget, where a network, or something that it tries for, has no
        try left this minute.
        """
        self.spend(client)
        self._spend_of(self._by_email, key.strip().lower()[:EMAIL_CHARACTERS_MAX])

    def _spend_of(self, windows: Windows, key: str) -> None:
        if (spent := windows.spend(key, self.now_us())) is not None:
            raise OverBudget(reason=spent.reason)

    @contextmanager
    def in_line(self, client: str) -> Iterator[None]:
        """Among those who wait for a hash. Raises OverBudget, ServerFull."""
        with self._waiting.drawn(network_of(client)) as refusal:
            if refusal is not None:
                raise unreadable(refusal.budget.status, refusal.reason)
            yield

    async def _check(self, person: Person | None, password: str, client: str) -> None:
        """Raises SignInRefused."""
        context = self._context
        stored = None if person is None else person.scrypt
        if not await self.hashed(passwords.matches, password, stored):
            raise context.guesses.refusal(SignInRefused(), client, context.now_us())

    async def hashed(self, fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        async with self._hashing:
            return await self._context.kv.in_thread(fn, *args, **kwargs)

    async def _enter(self, fn: Callable[[Transaction], tuple[Person, str]]) -> Headers:
        """A session whose secret `fn` gives. The next transaction knows it, also one of the same commit.

        What is undone leaves one that no row has, which is like none.
        """

        def remembered(tx: Transaction) -> str:
            person, secret = fn(tx)
            self._secrets[person.user_id] = secret
            return secret

        secret = await self._write(remembered)
        return ((b"authorization", b"Bearer " + secret.encode("ascii")),)

    async def _write(self, fn: Callable[[Transaction], T]) -> T:
        """As a request that may end credentials: nothing of theirs commits after it (`rest.rights`)."""
        self._context.take_room(Adds.NOTHING, 0)
        result = await self._context.barrier.write(fn)
        await self._context.kv.settled()
        return result

    def _person(self, user_id: str) -> Person:
        person = self._context.barrier.read(lambda reader: signing_in.person_of_id(reader, user_id))
        if person is None:
            raise SignInRefused
        return person

    def _call(self) -> Call:
        """The use cases put the actor in: until then it is nobody."""
        context = self._context
        return Call(
            actor=Actor(kind="user", id=""),
            as_of=context.as_of or NEWEST,
            profile=context.profile,
            now_us=context.now_us(),
            request_id=self._next_request_id(),
        )


def _answer(text: str) -> dict[str, Any] | None:
    """What a browser sent of an authenticator; None for what is no such thing."""
    if len(text) > PASSKEY_ANSWER_BYTES_MAX:
        return None
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (ValueError, RecursionError):
        return None


# The library is loaded by the first of these, on their thread.


def _registered(answer: dict[str, Any], challenge: str, origin: str) -> tuple[bytes, bytes, int]:
    from edgestead.usecases.access import webauthn

    return webauthn.registered(answer, challenge, origin)


def _key_id_of(answer: dict[str, Any]) -> bytes:
    from edgestead.usecases.access import webauthn

    return webauthn.key_id_of(answer)


def _signed(answer: dict[str, Any], challenge: str, origin: str, public_key: bytes, user_id: str) -> int:
    from edgestead.usecases.access import webauthn

    return webauthn.signed(answer, challenge, origin, public_key, user_id)
