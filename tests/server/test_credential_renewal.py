"""A renewal whose write fails, or nobody knows of: the file's secrets are those that are let in."""

import asyncio
import itertools

import pytest

from edgestead.server import credentials, stores
from edgestead.server.control import credential_renewal, first_account
from edgestead.server.control.credential_renewal import ATTEMPTS_MAX, CredentialRenewal
from edgestead.store.controllog import NotLeader, Unknown


class Server:
    """A folder with its database. `outcomes` are of the next writes: whether it commits, what it raises."""

    def __init__(self, folder):
        self.folder, self.store = folder, stores.open_control(folder, synced=False)
        self.first = credentials.load_or_make(folder)
        self._ids = itertools.count(1)
        self._commit("", self.first)
        self.outcomes, self.writes, self.changes = [], 0, 0

    def _commit(self, command, secrets):
        write = first_account.install(secrets, 1, lambda: f"{next(self._ids):032x}", command)
        self.store.write(write).result()

    async def _let_in(self, content):
        self.writes += 1
        commits, error = self.outcomes.pop(0) if self.outcomes else (True, None)
        if commits:
            self._commit(*credential_renewal.decode(content))
        if error is not None:
            raise error

    def _changed(self):
        self.changes += 1

    def renew(self, *outcomes, command="rotate"):
        self.outcomes = list(outcomes)

        async def run():
            await CredentialRenewal(self.folder, self.store.read, self._let_in, self._changed).renew(command)

        asyncio.run(run())

    @property
    def file(self):
        return credentials.read(self.folder)

    @property
    def audited(self):
        return [
            action for (action,) in self.store.read(lambda reader: reader.rows("select action from audit"))
        ]

    @property
    def is_let_in(self):
        return self.store.read(lambda reader: first_account.is_let_in(reader, self.file))


@pytest.fixture
def server(tmp_path):
    made = Server(tmp_path)
    yield made
    made.store.close()


@pytest.mark.parametrize("command", ["rotate", "reset"])
def test_the_file_has_what_is_let_in(server, command):
    server.renew(command=command)

    assert server.is_let_in
    assert server.file.api_key != server.first.api_key
    assert not server.file.revoke_others
    assert (server.writes, server.changes) == (1, 1)


@pytest.mark.parametrize("lands", [True, False])
def test_what_nobody_knows_is_asked_for_again(server, lands):
    server.renew((lands, Unknown()))

    assert server.is_let_in
    assert server.file.api_key != server.first.api_key
    assert (server.writes, server.changes, server.audited) == (2, 1, ["rotate"])


@pytest.mark.parametrize("then", [Unknown, NotLeader])
def test_what_stays_unknown_leaves_the_new_ones_in_the_file(server, then):
    with pytest.raises(Unknown):
        server.renew((True, Unknown()), *[(False, then())] * (ATTEMPTS_MAX - 1))

    assert server.is_let_in
    assert server.file.api_key != server.first.api_key
    assert server.changes == 1


def test_what_lands_after_the_command_gave_up_is_in_the_file(server):
    with pytest.raises(Unknown):
        server.renew(*[(False, Unknown())] * ATTEMPTS_MAX)

    assert server.file.api_key != server.first.api_key


@pytest.mark.parametrize("error", [NotLeader(), RuntimeError("anything")], ids=["refused", "failed"])
def test_a_write_that_failed_leaves_the_old_ones(server, error):
    with pytest.raises(type(error)):
        server.renew((False, error))

    assert server.is_let_in
    assert server.file == server.first
    assert (server.writes, server.changes) == (1, 0)


def test_what_fails_after_the_write_leaves_the_new_ones(server):
    with pytest.raises(RuntimeError):
        server.renew((True, RuntimeError("anything")))

    assert server.is_let_in
    assert server.file.api_key != server.first.api_key
    assert server.changes == 1
