"""All control nodes of a cluster sign clearances with one key, whichever of them made it."""

from contextlib import ExitStack

import pytest

from edgestead.server import credentials
from edgestead.server.control.shared_keys import SharedKeys
from edgestead.server.edge import challenge_keys
from edgestead.server.edge.challenge_key_memory import KeyReader, KeyWriter
from edgestead.server.edge.challenge_keys import KEY_SECONDS, SIGNS_ON_SECONDS
from edgestead.server.nodes.vault import FileVault

NOW = 1_700_000_000


class Machine:
    """A control node: its folder, the memory that its edge processes read, and its look at the vault."""

    def __init__(self, cluster, name, undo):
        self.folder = cluster.folder / name
        self.folder.mkdir()
        self.leads = False
        credentials.write(self.folder, cluster.credentials)
        self.writer = KeyWriter(self.folder, lambda: cluster.now_s, undo, is_shared=True)
        self.reader = KeyReader(self.writer.fd)
        self.shared = SharedKeys(
            self.folder,
            FileVault(cluster.folder / "vault", b"k" * 32),
            leads=lambda: self.leads,
            changed=self.writer.credentials_changed,
            now_s=lambda: cluster.now_s,
        )
        self._keys = ()

    @property
    def keys(self):
        self._keys = self.reader.changed() or self._keys
        return self._keys


class Cluster:
    def __init__(self, folder, undo):
        self.folder, self.now_s = folder, NOW
        self.credentials = credentials.load_or_make(folder)
        self.machines = [Machine(self, name, undo) for name in ("a", "b", "c")]
        self.machines[0].leads = True

    def look(self):
        for machine in self.machines:
            machine.writer.renew()
            machine.shared.look()

    def is_of_one_mind(self):
        return len({machine.keys for machine in self.machines}) == 1


@pytest.fixture
def cluster(tmp_path):
    with ExitStack() as undo:
        yield Cluster(tmp_path, undo)


def test_nodes_that_began_with_keys_of_their_own_take_the_leaders(cluster):
    assert not cluster.is_of_one_mind()
    leaders = cluster.machines[0].keys

    cluster.look()

    assert cluster.is_of_one_mind()
    assert cluster.machines[2].keys == leaders


def test_a_key_that_is_due_is_made_once_and_the_one_before_it_signs_on_for_a_moment(cluster):
    cluster.look()
    (first,) = cluster.machines[0].keys
    cluster.now_s += KEY_SECONDS
    for machine in cluster.machines[1:]:  # before the leader looks: nobody else makes one
        machine.writer.renew()
        machine.shared.look()
        assert machine.keys == (first,)

    cluster.look()

    assert cluster.is_of_one_mind()
    second, old = cluster.machines[1].keys
    assert (second.id != first.id, old.id) == (True, first.id)
    assert old.signs_until_s == cluster.now_s + SIGNS_ON_SECONDS


def test_another_leader_goes_on_with_the_same_keys(cluster):
    cluster.look()
    before = cluster.machines[0].keys
    cluster.machines[0].leads, cluster.machines[1].leads = False, True

    cluster.look()
    assert cluster.is_of_one_mind()
    assert cluster.machines[1].keys == before
    cluster.now_s += KEY_SECONDS
    cluster.look()
    cluster.look()
    assert cluster.is_of_one_mind()
    assert [key.id for key in cluster.machines[0].keys[1:]] == [before[0].id]


def test_credentials_that_are_renewed_at_the_leader_void_the_keys_everywhere(cluster):
    cluster.look()
    (before,) = cluster.machines[0].keys
    leader = cluster.machines[0]
    kept = credentials.load_or_make(leader.folder)
    credentials.write(leader.folder, credentials.renewed(kept, revoke_others=True))
    leader.writer.credentials_changed()

    cluster.look()

    assert cluster.is_of_one_mind()
    assert before.id not in {key.id for key in cluster.machines[2].keys}


def test_a_node_that_comes_back_late_takes_what_was_made_meanwhile(cluster):
    late = cluster.machines.pop()
    for _ in range(3):
        cluster.look()
        cluster.now_s += KEY_SECONDS
    cluster.look()
    late.leads = True  # it leads at once, and its keys are older
    cluster.machines[0].leads = False
    cluster.machines.append(late)

    late.shared.look()

    assert late.keys == cluster.machines[0].keys


def test_a_vault_that_holds_something_else_changes_nothing(cluster, caplog):
    cluster.look()
    before = cluster.machines[1].keys
    FileVault(cluster.folder / "vault", b"k" * 32).write("challenge-keys", b"[1]")

    cluster.machines[1].shared.look()

    assert cluster.machines[1].keys == before
    assert "these are no keys" in caplog.text
    assert challenge_keys.stored(cluster.machines[1].folder)
