"""What a vault and a list of nodes promise, of files and of the cluster's database."""

import threading
from contextlib import ExitStack

import msgspec
import pytest

from edgestead.postgres.connection import Link
from edgestead.server.nodes import identity, invites
from edgestead.server.nodes.identity import NotANode
from edgestead.server.nodes.in_postgres import PostgresRegistry, PostgresVault
from edgestead.server.nodes.invites import Refused
from edgestead.server.nodes.registry import NODES_MAX, FileRegistry, NameTaken, Node
from edgestead.server.nodes.vault import FileVault

SECRET = b"s" * 32
NODE = Node(name="ams-1", roles=("control", "edge"), key="11" * 32, region="ams", address="192.0.2.1:8790")


@pytest.fixture
def links(postgres):
    with ExitStack() as open_:
        dsn = postgres.database()

        def make():
            link = Link(dsn)
            open_.callback(link.close)
            return link

        yield make


@pytest.fixture(params=["files", "postgres"])
def vaults(request, tmp_path):
    """A function that opens the same vault with a secret."""
    if request.param == "files":
        return lambda secret=SECRET: FileVault(tmp_path / "vault", secret)
    make = request.getfixturevalue("links")
    return lambda secret=SECRET: PostgresVault(make(), secret)


@pytest.fixture(params=["files", "postgres"])
def registry(request, tmp_path):
    if request.param == "files":
        return FileRegistry(tmp_path / "nodes.json")
    return PostgresRegistry(request.getfixturevalue("links")())


def test_a_secret_comes_back_as_it_was_changed_last(vaults):
    vault = vaults()
    assert vault.read("authority") is None

    vault.write("authority", b"\x00key")
    vault.write("authority", b"\x00newer")

    assert vaults().read("authority") == b"\x00newer"
    assert vault.change("authority", lambda content: content + b"!") == b"\x00newer!"
    assert vault.change("authority", lambda content: content) == b"\x00newer!"
    with pytest.raises(KeyError):
        vault.change("authority", {}.__getitem__)
    assert vaults().read("authority") == b"\x00newer!"
    assert vault.change("another", lambda content: content) is None


def test_what_lies_in_it_is_found_by_its_beginning_and_removed(vaults):
    vault = vaults()
    assert vault.names("invite-") == []
    for name in ("invite-1", "invite-2", "authority"):
        vault.write(name, b"x")

    vault.remove("invite-1")
    vault.remove("invite-1")

    assert (vault.names("invite-"), vault.names("auth")) == (["invite-2"], ["authority"])
    assert vaults().read("invite-1") is None


def test_invitations_that_are_long_over_are_forgotten_used_or_not(vaults):
    vault, key = vaults(), identity.public_key(identity.new_key())
    roles = frozenset({"edge"})
    used, unused, late, young = (
        invites.make(vault, (), b"", name="ams-1", roles=roles, until_s=until_s)
        for until_s in (100, 100, 150, 2_000_000)
    )
    invites.redeem(vault, used.id, used.secret, key, 50)
    vault.write("authority", b"key")
    vaults(b"o" * 32).write("invite-of-another-key", b"")

    invites.forget(vault, 100 + invites.KEPT_SECONDS)

    for forgotten in (used, unused):
        with pytest.raises(Refused, match="not known"):
            invites.redeem(vault, forgotten.id, forgotten.secret, key, 50)
    with pytest.raises(Refused, match="time is over"):
        invites.redeem(vault, late.id, late.secret, key, 100 + invites.KEPT_SECONDS)
    assert invites.redeem(vault, young.id, young.secret, key, 50).name == "ams-1"
    assert (vault.read("authority"), len(vault.names("invite-"))) == (b"key", 3)


def test_another_key_opens_nothing(vaults):
    vaults().write("authority", b"key")

    with pytest.raises(ValueError, match="another secret"):
        vaults(b"o" * 32).read("authority")


def test_no_change_of_several_is_lost(links):
    PostgresVault(links(), SECRET).write("one", b"")
    vaults = [PostgresVault(links(), SECRET) for _ in range(4)]
    others = [
        threading.Thread(target=lambda one=one: one.change("one", lambda content: content + b"x"))
        for one in vaults
    ]
    for other in others:
        other.start()
    for other in others:
        other.join()

    assert vaults[0].read("one") == b"xxxx"


def test_what_lies_in_the_database_is_sealed(links):
    link = links()
    PostgresVault(link, SECRET).write("authority", b"the private key")

    ((name, sealed),) = link.rows("SELECT name, sealed FROM secrets")
    assert name == "authority"
    assert b"private" not in sealed


def test_a_node_is_listed_changed_and_removed(registry):
    registry.add(NODE)
    moved = msgspec.structs.replace(NODE, address="192.0.2.9:8790", wait=False, stale="stop")
    registry.add(moved)

    assert registry.nodes() == {"ams-1": moved}
    assert (registry.remove("ams-1"), registry.remove("ams-1")) == (True, False)
    assert registry.nodes() == {}


def test_a_name_belongs_to_one_key(registry):
    registry.add(NODE)

    with pytest.raises(NameTaken):
        registry.add(msgspec.structs.replace(NODE, key="22" * 32))

    assert registry.nodes() == {"ams-1": NODE}


def test_a_list_with_the_longest_nodes_is_read_and_changed(registry):
    for number in range(NODES_MAX):
        registry.add(longest(number))

    assert len(registry.nodes()) == NODES_MAX
    with pytest.raises(NotANode, match="256 nodes already"):
        registry.add(longest(NODES_MAX))
    registry.add(longest(0, wait=False))
    assert registry.remove(longest(1).name)
    registry.add(longest(NODES_MAX))


def longest(number, **more):
    return Node(
        name=f"{number:03}-".ljust(identity.NAME_CHARS_MAX, "n"),
        roles=("control", "edge"),
        key="11" * 32,
        region="r" * 300,
        address="a" * 253 + ":65535",
        release="9" * 64,
        **more,
    )


def test_a_node_that_says_too_much_of_itself_takes_nobodys_room(registry):
    registry.add(NODE)
    with pytest.raises(NotANode, match="more than 1024 octets"):
        registry.add(msgspec.structs.replace(NODE, address="a" * 1_000))
    assert registry.nodes() == {"ams-1": NODE}


def test_a_database_that_is_away_is_an_oserror(tmp_path):
    registry = PostgresRegistry(Link(f"host={tmp_path} user=postgres"))

    with pytest.raises(OSError, match="database"):
        registry.nodes()
