"""Who may speak to whom between nodes: identities, invitations, the port."""

import asyncio
import errno
import socket
import ssl
import threading
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
import uvloop
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from edgestead.server import files
from edgestead.server.nodes import control_part, identity, invites, join, port
from edgestead.server.nodes.identity import Authority, NotANode
from edgestead.server.nodes.registry import Node
from edgestead.server.nodes.vault import FileVault
from tests.support.nodes import CLUSTER, Cluster, pem

ECHO = "echo/1"
HOUR = 3_600


async def echo(reader, writer, peer):
    while line := await reader.readline():
        writer.write(peer.name.encode() + b" " + line)


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request):
    def runs(coroutine):
        with asyncio.Runner(loop_factory=request.param) as runner:
            return runner.run(asyncio.wait_for(coroutine, 300))

    return runs


@pytest.fixture
def cluster(tmp_path):
    return Cluster(tmp_path)


def invite(cluster, name="ams-1", roles=("edge",), **more):
    until = int(datetime.now(UTC).timestamp()) + HOUR
    fingerprint = identity.fingerprint(cluster.authority.certificate_pem)
    return invites.make(
        cluster.vault,
        (cluster.address,),
        fingerprint,
        **{"name": name, "roles": frozenset(roles), "until_s": until} | more,
    )


async def said(member, cluster, alpn=ECHO, **more):
    reader, writer, peer = await port.open_streams(member, join.host_of(cluster.address), alpn, **more)
    writer.write(b"hello\n")
    answer = await reader.readline()
    writer.close()
    return peer.name, answer


def test_a_certificate_names_its_node_and_roles():
    made = Authority.new(CLUSTER, datetime.now(UTC))
    key = identity.public_key(identity.new_key())

    certificate = made.certify(key, "ams-1", frozenset({"edge", "objects"}), datetime.now(UTC))

    der = x509.load_pem_x509_certificate(certificate).public_bytes(Encoding.DER)
    assert identity.peer_of(der) == (CLUSTER, "ams-1", {"edge", "objects"}, identity.key_of(key))
    assert identity.is_issued_by(der, made.certificate_pem, datetime.now(UTC))
    due = identity.renewal_of(certificate) - datetime.now(UTC)
    assert timedelta(days=59) < due < timedelta(days=61)
    assert not identity.is_issued_by(der, made.certificate_pem, datetime.now(UTC) + timedelta(days=91))
    other = Authority.new(CLUSTER, datetime.now(UTC))
    assert not identity.is_issued_by(der, other.certificate_pem, datetime.now(UTC))


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "a/b", "a?roles=control", "a" * 33, "a\n"])
def test_a_name_that_could_be_read_as_more_is_refused(name):
    made = Authority.new(CLUSTER, datetime.now(UTC))
    with pytest.raises(NotANode):
        made.certify(identity.public_key(identity.new_key()), name, frozenset({"edge"}), datetime.now(UTC))


def test_members_speak_and_know_one_another(run, cluster):
    edge = cluster.node("ams-1", "edge")

    async def play():
        async with cluster.listening({ECHO: port.streams(echo)}):
            return await said(edge, cluster)

    assert run(play()) == ("main", b"ams-1 hello\n")


class Greeting(asyncio.Protocol):
    def __init__(self, node):
        self.node = node

    def connection_made(self, transport):
        transport.write(self.node.name.encode())


def test_a_look_at_the_list_that_fails_is_not_the_last_one(run, tmp_path, monkeypatch):
    monkeypatch.setattr(control_part, "LIST_SECONDS", 0.01)
    listener = socket.create_server(("127.0.0.1", 0))
    address = listener.getsockname()
    start = {"data_dir": tmp_path, "cluster_database": None, "cluster_advertise": "192.0.2.1:8790"}
    nodes = control_part.Nodes(SimpleNamespace(**start, cluster_fd=listener.detach()))
    member = pem(nodes._authority, tmp_path / "ams-1", "ams-1", {"edge"})
    nodes._registry.add(Node(name="ams-1", roles=("edge",), key=member.peer.key))
    nodes._look()
    invites.make(nodes.vault, (), b"", name="ams-2", roles=frozenset({"edge"}), until_s=1)
    good, failed = nodes._registry.nodes, threading.Event()

    def look():
        if not failed.is_set():
            failed.set()
            raise ValueError("half a list")
        return good()

    async def play():
        monkeypatch.setattr(nodes._registry, "nodes", look)
        await nodes.open(SimpleNamespace(admit_node=Greeting, standings=None))
        reader, writer, _ = await port.open_streams(member, address, port.FEED_ALPN)
        assert await reader.readexactly(5) == b"ams-1"
        await asyncio.to_thread(failed.wait)
        await asyncio.to_thread(nodes._registry.remove, "ams-1")
        with suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()
        while nodes.vault.names("invite-"):  # noqa: ASYNC110 - another task forgets it
            await asyncio.sleep(0.01)
        nodes.close()

    run(play())


def strangers(cluster):
    """Nodes that no connection is for."""
    other = Authority.new(CLUSTER, datetime.now(UTC))
    removed = cluster.node("gone", "edge")
    cluster.registry.remove("gone")
    cluster.node("twice", "edge")
    return {
        "of another authority": pem(other, cluster.folder / "x", "main", {"control"}),
        "removed": removed,
        "with another key": pem(cluster.authority, cluster.folder / "y", "twice", {"edge"}),
        "with more roles": pem(cluster.authority, cluster.folder / "main2", "main", {"control", "objects"}),
    }


@pytest.mark.parametrize("who", ["of another authority", "removed", "with another key", "with more roles"])
def test_a_stranger_gets_no_connection(run, cluster, who):
    stranger = strangers(cluster)[who]

    async def play():
        async with cluster.listening({ECHO: port.streams(echo)}):
            try:
                return (await said(stranger, cluster))[1]
            except OSError:
                return b""

    assert run(play()) == b""


def test_without_a_certificate_one_can_only_join(run, cluster):
    async def play(alpn):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols([alpn])
        async with cluster.listening({ECHO: port.streams(echo)}):
            host, number = join.host_of(cluster.address)
            try:
                reader, writer = await asyncio.open_connection(host, number, ssl=context)
                writer.write(b"hello\n")
                got = await reader.read(10)
                writer.close()
            except OSError:
                return b""
            return got

    assert run(play(ECHO)) == b""
    assert run(play(port.JOIN_ALPN)) != b""


def test_a_node_speaks_to_none_without_the_role(run, cluster):
    edge = cluster.node("ams-1", "edge")

    async def play():
        async with cluster.listening({ECHO: port.streams(echo)}):
            with pytest.raises(ConnectionError, match="no objects node"):
                await said(edge, cluster, role="objects")
            with pytest.raises(OSError):  # noqa: PT011 - of TLS: no common protocol
                await said(edge, cluster, alpn="other/1")

    run(play())


def test_who_is_removed_loses_its_connections(run, cluster):
    edge, stays = cluster.node("ams-1", "edge"), cluster.node("ams-2", "edge")

    async def play():
        async with cluster.listening({ECHO: port.streams(echo)}) as opened:
            host_port = join.host_of(cluster.address)
            ends = [await port.open_streams(member, host_port, ECHO) for member in (edge, stays)]
            for reader, writer, _ in ends:
                writer.write(b"hello\n")
                assert await reader.readline()
            cluster.registry.remove("ams-1")
            assert opened.drop_strangers() == 1
            try:
                left = await ends[0][0].read()
            except OSError:
                left = b""
            ends[1][1].write(b"still\n")
            assert await ends[1][0].readline() == b"ams-2 still\n"
            for _, writer, _ in ends:
                writer.close()
            return left

    assert run(play()) == b""


def test_a_machine_joins_with_a_token_and_renews_with_its_certificate(run, cluster):
    cluster.handed = {"seal.key": b"secret"}

    async def play():
        async with cluster.listening({ECHO: port.streams(echo)}):
            token = invites.parse(invites.text_of(invite(cluster, wait=False, stale="stop")))
            member, granted = await join.join(
                token, cluster.folder / "new", address="10.0.0.1:8790", release="1"
            )
            answer = await said(member, cluster)
            again = await join.renew(member, cluster.address, cluster.folder / "new", release="2")
            return member, granted, answer, again

    member, granted, answer, again = run(play())
    assert member.peer[:3] == (CLUSTER, "ams-1", {"edge"})
    assert answer == ("main", b"ams-1 hello\n")
    assert granted.handed == {}  # only a node with control is handed what control needs
    assert again.certificate != granted.certificate
    assert identity.member_of(cluster.folder / "new").peer == member.peer
    row = cluster.registry.nodes()["ams-1"]
    assert (row.address, row.release, row.wait, row.stale) == ("10.0.0.1:8790", "2", False, "stop")
    assert (cluster.folder / "new" / "node.key").stat().st_mode & 0o077 == 0


def test_a_control_node_is_handed_what_control_needs(run, cluster):
    cluster.handed = {"seal.key": b"secret"}

    async def play():
        async with cluster.listening({}):
            return await join.join(invite(cluster, "b", ("control", "edge")), cluster.folder / "new")

    assert run(play())[1].handed == {"seal.key": b"secret"}


def test_a_token_is_good_for_one_machine_that_may_ask_again(run, cluster):
    async def play():
        async with cluster.listening({}):
            token = invite(cluster)
            first, _ = await join.join(token, cluster.folder / "one")
            again, _ = await join.join(token, cluster.folder / "one")  # its first answer was lost, say
            assert again.peer == first.peer
            with pytest.raises(invites.Refused, match="used by another machine"):
                await join.join(token, cluster.folder / "two")
            await join.join(token, cluster.folder / "one")  # that took nothing from the first

    run(play())


def spoilt(token):
    change = SimpleNamespace(**{field: getattr(token, field) for field in token.__struct_fields__})
    return {
        "another secret": invites.Token(change.addresses, change.authority, change.id, bytes(32)),
        "another id": invites.Token(change.addresses, change.authority, "0" * 16, change.secret),
        "an id that is a path": invites.Token(change.addresses, change.authority, "../../x", change.secret),
    }


@pytest.mark.parametrize("how", ["another secret", "another id", "an id that is a path"])
def test_a_spoilt_token_is_refused_in_words(run, cluster, how):
    async def play():
        async with cluster.listening({}):
            with pytest.raises(invites.Refused, match="token"):
                await join.join(spoilt(invite(cluster))[how], cluster.folder / "new")

    run(play())
    assert "new" not in cluster.registry.nodes()


def test_a_token_ends(run, cluster):
    async def play():
        async with cluster.listening({}):
            with pytest.raises(invites.Refused, match="time is over"):
                await join.join(invite(cluster, until_s=1), cluster.folder / "new")

    run(play())


def test_a_name_that_is_taken_is_refused_in_words(run, cluster):
    async def play():
        async with cluster.listening({}):
            with pytest.raises(invites.Refused, match="cluster remove"):
                await join.join(invite(cluster, name="main"), cluster.folder / "new")

    run(play())


def test_the_secret_is_told_to_no_other_cluster(run, cluster, tmp_path):
    """Who took the address of a control node gets nothing that it could use."""
    heard = []

    class Listening(join.Registrar):
        def _answer(self, asked, peer):
            heard.append(asked)
            return super()._answer(asked, peer)

    other = Cluster(tmp_path / "other")

    async def play():
        registrar = Listening(other.authority, other.vault, other.registry, addresses=tuple)
        async with other.listening({port.JOIN_ALPN: port.streams(registrar.serve)}):
            cluster.address = other.address
            with pytest.raises(ConnectionError, match="not of the cluster"):
                await join.join(invite(cluster), cluster.folder / "new")

    run(play())
    assert heard == []


@pytest.mark.parametrize("text", ["", "edgejoin1_", "edgejoin1_%%", "edgejoin1_AAAA", "x" * 10_000])
def test_text_that_is_no_token_is_refused(text):
    with pytest.raises(invites.Refused, match="not whole"):
        invites.parse(text)


def test_a_vault_opens_with_its_key_alone_and_only_in_place(tmp_path):
    vault = FileVault(tmp_path / "v", bytes(32))
    vault.write("one", b"content")
    (tmp_path / "v" / "two.sealed").write_bytes((tmp_path / "v" / "one.sealed").read_bytes())

    assert vault.read("one") == b"content"
    assert b"content" not in (tmp_path / "v" / "one.sealed").read_bytes()
    with pytest.raises(ValueError, match="another secret"):
        vault.read("two")
    with pytest.raises(ValueError, match="another secret"):
        FileVault(tmp_path / "v", bytes(31) + b"1").read("one")
    with pytest.raises(ValueError, match="name"):
        vault.read("../one")


def test_an_invitation_is_never_away(tmp_path, monkeypatch):
    """A full disk, or the end of the process, while it is redeemed, and the machine's next try meanwhile."""
    vault, key = FileVault(tmp_path / "v", bytes(32)), identity.public_key(identity.new_key())
    token = invites.make(vault, (), b"", name="ams-1", roles=frozenset({"edge"}), until_s=9)

    def full(path, content):
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        patch.setattr(files, "replace_private", full)
        with pytest.raises(OSError, match="full"):
            invites.redeem(vault, token.id, token.secret, key, 1)

    assert invites.redeem(vault, token.id, token.secret, key, 1).name == "ams-1"
    with monkeypatch.context() as patch:
        patch.setattr(files, "replace_private", full)
        assert invites.redeem(vault, token.id, token.secret, key, 1).name == "ams-1"
