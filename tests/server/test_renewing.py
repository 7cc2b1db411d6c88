"""A node's certificate is renewed in time: by the rule, over the years, and in connections that go on."""

import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from edgestead.server.nodes import identity, join, port, renewing
from edgestead.server.nodes.control_part import Nodes
from tests.support.nodes import Cluster

ECHO = "echo/1"
LIFE_SECONDS = 20  # of the first certificates: time for a busy machine to renew them


async def echo(reader, writer, peer):
    while line := await reader.readline():
        writer.write(peer.name.encode() + b" " + line)


def certified(cluster, member, now):
    """Put a certificate of the cluster's authority in a node's file."""
    public = identity.public_key(member.key_file.read_bytes())
    made = cluster.authority.certify(public, member.peer.name, member.peer.roles, now)
    member.certificate_file.write_bytes(made)


def is_good(cluster, member, now):
    certificate = x509.load_pem_x509_certificate(member.certificate_file.read_bytes())
    der = certificate.public_bytes(Encoding.DER)
    return identity.is_issued_by(der, cluster.authority.certificate_pem, now)


@pytest.fixture
def cluster(tmp_path):
    return Cluster(tmp_path)


@pytest.mark.parametrize("away_days", [0, 20])
def test_no_hour_of_years_is_without_a_certificate(cluster, away_days):
    """Also when nobody could make one for weeks after it was due."""
    start = datetime.now(UTC)
    clock, made, told = [start], [], []
    certified(cluster, cluster.main, start)

    async def ask(now):
        if made and (now - made[-1]).days < identity.RENEW_AFTER_DAYS + away_days:
            raise ConnectionError("nobody is there")
        certified(cluster, cluster.main, now)
        made.append(now)

    one = renewing.Renewing(cluster.main, ask, renewed=lambda: told.append(0), now=lambda: clock[0])

    async def play():
        while clock[0] < start + timedelta(days=400):
            await one.look()
            assert is_good(cluster, cluster.main, clock[0])
            clock[0] += timedelta(hours=12)

    asyncio.run(play())
    assert len(made) == len(told) == (6 if away_days == 0 else 5)


def test_what_keeps_it_from_being_renewed_is_said(cluster):
    now = datetime.now(UTC)
    ends = now + timedelta(days=identity.CERTIFICATE_DAYS)
    certified(cluster, cluster.main, now)

    async def ask(now):
        raise PermissionError("the disk is read-only")

    clock = [now]
    one = renewing.Renewing(cluster.main, ask, now=lambda: clock[0])
    asyncio.run(one.look())
    assert one.standing == (int(ends.timestamp()) * 1_000_000, "", "")
    clock[0] += timedelta(days=identity.RENEW_AFTER_DAYS + 1)
    asyncio.run(one.look())
    assert one.standing.problem == "the disk is read-only"


@pytest.mark.parametrize("content", [b"", b"-----BEGIN CERTIFICATE-----\nAAAA\n", None])
def test_one_that_cannot_be_read_is_said_and_made_anew(cluster, content):
    now, asked = datetime.now(UTC), []
    certified(cluster, cluster.main, now)

    async def ask(at):
        asked.append(at)
        if len(asked) == 1:
            raise ConnectionError("nobody is there")
        certified(cluster, cluster.main, at)

    one = renewing.Renewing(cluster.main, ask, now=lambda: now)
    asyncio.run(one.look())
    before = one.standing
    file = cluster.main.certificate_file
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    asyncio.run(one.look())
    assert (one.standing.ends_us, one.standing.problem) == (before.ends_us, "nobody is there")
    assert one.standing.unread
    asyncio.run(one.look())
    assert one.standing == before


def test_it_is_looked_at_once_at_a_start(cluster, monkeypatch):
    looks = []

    async def look(self):
        looks.append(0)

    async def play():
        monkeypatch.setattr(renewing.Renewing, "look", look)
        one = renewing.Renewing(cluster.main, None)
        await one.open()
        for _ in range(9):
            await asyncio.sleep(0)
        one.close()

    asyncio.run(play())
    assert len(looks) == 1


def control_of(cluster):
    """The part of control that renews its certificate, over the folder of the cluster's only control node."""
    made = Nodes.__new__(Nodes)
    made._registry, made._authority, made._port = cluster.registry, cluster.authority, None
    made.member = cluster.main
    made._look()
    return made


async def said(member, cluster):
    reader, writer, peer = await port.open_streams(member, join.host_of(cluster.address), ECHO)
    writer.write(b"hello\n")
    answer = await reader.readline()
    writer.close()
    return peer.name, answer


@pytest.mark.long
def test_two_nodes_go_on_talking_when_their_first_certificates_have_ended(cluster, monkeypatch):
    """With a real clock, and without a restart: one end makes its own, the other one asks for it."""
    edge, control = cluster.node("ams-1", "edge"), control_of(cluster)
    with monkeypatch.context() as short:
        short.setattr(identity, "CERTIFICATE_DAYS", LIFE_SECONDS / 86_400)
        for member in (cluster.main, edge):
            certified(cluster, member, datetime.now(UTC))

    async def play():
        async with cluster.listening({ECHO: port.streams(echo)}) as opened:
            control._port = opened
            (edge.certificate_file.parent / join.ADDRESSES).write_text(cluster.address)
            ends = [
                renewing.Renewing(cluster.main, control.renew, renewed=control.renewed),
                renewing.Renewing(edge, partial(renewing.ask_control, edge)),
            ]
            answers = [await said(edge, cluster)]
            for one in reversed(ends):  # the edge asks by what both have, and control shows a new one then
                await one.open()
            await asyncio.sleep(LIFE_SECONDS + 1)
            answers.append(await said(edge, cluster))
            for one in ends:
                one.close()
            return answers

    assert asyncio.run(play()) == [("main", b"ams-1 hello\n")] * 2


def test_control_that_was_off_when_its_certificate_ended_has_another_one_before_it_listens(cluster):
    control, then = control_of(cluster), datetime.now(UTC) - timedelta(days=identity.CERTIFICATE_DAYS + 1)
    certified(cluster, cluster.main, then)

    async def play():
        one = renewing.Renewing(cluster.main, control.renew, renewed=control.renewed)
        await one.open()
        one.close()

    asyncio.run(play())
    assert is_good(cluster, cluster.main, datetime.now(UTC))


def test_a_look_that_fails_in_another_way_is_not_the_last_one(cluster):
    """A task that lives for months and ends unseen would be the end of the certificate."""
    certified(cluster, cluster.main, datetime.now(UTC) - timedelta(days=70))
    again = asyncio.Event()

    async def ask(now):
        if not again.is_set():
            again.set()
            raise ZeroDivisionError

    async def play():
        renewed = asyncio.Event()
        one = renewing.Renewing(cluster.main, ask, renewed=renewed.set, look_seconds=0)
        task = asyncio.create_task(one.run())
        await asyncio.wait_for(renewed.wait(), 300)
        task.cancel()

    asyncio.run(play())


def test_a_node_that_was_removed_makes_none_for_itself(cluster):
    control, then = control_of(cluster), datetime.now(UTC) - timedelta(days=70)
    certified(cluster, cluster.main, then)
    before = cluster.main.certificate_file.read_bytes()
    cluster.registry.remove("main")
    one = renewing.Renewing(cluster.main, control.renew)
    asyncio.run(one.look())
    assert "was removed" in one.standing.problem
    assert cluster.main.certificate_file.read_bytes() == before
