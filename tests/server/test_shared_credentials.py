"""All control nodes of a cluster have the credentials that its database lets in, whoever renewed them."""

import asyncio

import pytest

from edgestead.server import credentials
from edgestead.server.control.shared_credentials import NAME, SharedCredentials
from edgestead.server.errors import StartError
from edgestead.server.nodes.vault import FileVault
from edgestead.server.supervisor import renewal


class Cluster:
    """Three folders, a vault, and who is let in."""

    def __init__(self, folder):
        self.vault = FileVault(folder / "vault", b"k" * 32)
        self.first = credentials.load_or_make(folder)
        self.let_in = {self.first.api_key}
        self.is_current, self.changes = True, []
        self.folders = [folder / name for name in "abc"]
        for one in self.folders:
            one.mkdir()
            credentials.write(one, self.first)

    def shared(self, folder):
        return SharedCredentials(
            folder,
            self.vault,
            renewing=asyncio.Lock(),
            is_current=lambda: self.is_current,
            is_let_in=lambda one: one.api_key in self.let_in,
            changed=lambda: self.changes.append(folder.name),
        )

    def look(self, names="abc"):
        for folder in self.folders:
            if folder.name in names:
                self.shared(folder).look()

    def renew(self, folder):
        made = credentials.renewed(self.first, revoke_others=False)
        credentials.write(folder, made)
        self.let_in = {made.api_key}
        return made

    @property
    def files(self):
        return [credentials.read(folder) for folder in self.folders]


@pytest.fixture
def cluster(tmp_path):
    return Cluster(tmp_path)


@pytest.mark.parametrize("order", ["abc", "cba"])
def test_a_renewal_reaches_every_node(cluster, order):
    cluster.look()
    renewed = cluster.renew(cluster.folders[1])

    for name in (*order, *order):
        cluster.look(name)

    assert cluster.files == [renewed] * 3
    assert sorted(cluster.changes) == ["a", "c"]


def test_what_is_renewed_and_not_let_in_yet_is_not_published(cluster):
    cluster.look()
    credentials.write(cluster.folders[0], credentials.renewed(cluster.first, revoke_others=False))

    cluster.look("bc")

    assert cluster.files[1:] == [cluster.first] * 2
    cluster.look("a")
    assert cluster.files == [cluster.first] * 3  # of a renewal that was cut short


def test_where_nobody_is_let_in_nothing_changes(cluster):
    cluster.let_in = set()

    cluster.look()

    assert cluster.vault.read(NAME) is None
    assert cluster.files == [cluster.first] * 3


def test_a_node_that_may_know_less_than_the_others_does_not_look(cluster):
    cluster.look()
    cluster.renew(cluster.folders[1])
    cluster.look("b")
    cluster.is_current = False

    cluster.look("a")

    assert cluster.files[0] == cluster.first


def test_nobody_looks_while_a_renewal_runs(cluster):
    """It writes its file before its commit: what the vault has would be put back over it."""

    async def looks():
        shared, looked = cluster.shared(cluster.folders[0]), asyncio.Event()
        loop = asyncio.get_running_loop()
        shared.look = lambda: loop.call_soon_threadsafe(looked.set)
        async with shared._renewing:
            shared.open()
            await asyncio.sleep(0.05)
            assert not looked.is_set()
        await looked.wait()
        shared.close()

    asyncio.run(looks())


def test_the_file_of_a_node_that_does_not_run_is_not_renewed(tmp_path):
    """Its database knows nothing of it, and would never let it in."""
    before = credentials.load_or_make(tmp_path)
    (tmp_path / "cluster.toml").touch()

    with pytest.raises(StartError, match="start it first"):
        renewal.renew_file(tmp_path, "rotate")

    assert credentials.read(tmp_path) == before
