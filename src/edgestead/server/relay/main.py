"""The relay of a machine without control: it follows a control node, and the processes here follow it.

Owns  putting its parts together; telling how the node stands.
Not   the rules (`feed.relay`); a group's parts (`group`).

Two groups follow apart, because the order between them is kept across machines by control. What comes is what
the processes here serve; nothing that control keeps to itself is asked for, or would be given.
"""

import asyncio
import logging
import signal
import socket
import sys
from functools import partial
from pathlib import Path
from typing import Any, Final

import uvloop

from edgestead import __version__
from edgestead.feed.publisher import Expected
from edgestead.server import process, stores
from edgestead.server.messages import DNS_GROUP, EDGE_GROUP, RelayStart
from edgestead.server.nodes import identity, join, renewing
from edgestead.server.nodes.kinds import CERTIFICATES, CHALLENGE_KEYS, DNS_SECRETS, NODE_KINDS
from edgestead.server.relay.file import RelayFile
from edgestead.server.relay.group import GroupRelay, end
from edgestead.server.supervisor.admin import serve_admin

HOUR_SECONDS: Final = 3_600

log = logging.getLogger("edgestead.server")


def main() -> None:
    start = process.begin(RelayStart)
    status = process.Status(start.status_fd)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_run(start, status))
    except (*stores.CANNOT_OPEN, identity.NotANode) as error:
        status.failed(f"the relay cannot go on: {error}")
        sys.exit(1)


async def _run(start: RelayStart, status: process.Status) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    folder = Path(start.identity_dir)
    member = identity.member_of(folder)
    groups = [await _group(start, name, member, folder) for name in NODE_KINDS]
    admin = await serve_admin(
        socket.socket(fileno=start.admin_fd), {"node": partial(_standing, member, groups)}
    )
    process.rest_collector()
    status.ready()
    working = [asyncio.create_task(group.run()) for group in groups]
    certificate = renewing.Renewing(member, partial(renewing.ask_control, member))
    working += [asyncio.create_task(_beat(status)), asyncio.create_task(certificate.run())]
    stopped = asyncio.create_task(stop.wait())
    try:
        done, _ = await asyncio.wait((*working, stopped), return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in (*working, stopped):
            task.cancel()
        admin.close()
        for group in groups:
            group.close()


async def _group(start: RelayStart, name: str, member: identity.Member, folder: Path) -> GroupRelay:
    file = await asyncio.to_thread(RelayFile, Path(start.data_dir), name, kinds=NODE_KINDS[name])
    expected = [Expected(c.pid, c.pidfd, c.group) for c in start.expected if c.group == name]
    stops = start.cluster_stale == "stop"
    if expected and (stops or file.position is None):
        log.warning("%s: %d processes answer without a lease: they are ended", name, len(expected))
        await end(expected)
        expected = []
    return GroupRelay(
        name,
        NODE_KINDS[name],
        file,
        socket.socket(fileno=start.feed_fds[name]),
        member,
        lambda: [join.host_of(one) for one in join.addresses_in(folder)],
        stops=stops,
        stale_seconds=start.cluster_stale_hours * HOUR_SECONDS,
        zones_expire=name == DNS_GROUP and not stops,
        expected=expected,
        memories=_memories(start)[name],
        patience={
            "barrier_ms": start.barrier_ms,
            "silence_ms": start.silence_ms,
            "still_ms": start.still_ms,
        },
        release=__version__,
        region=start.cluster_region or "",
    )


def _memories(start: RelayStart) -> dict[str, dict[str, int]]:
    """Where secrets go, by group and name."""
    return {
        DNS_GROUP: {DNS_SECRETS: start.dns_secrets_fd},
        EDGE_GROUP: {CERTIFICATES: start.certificates_fd, CHALLENGE_KEYS: start.challenge_keys_fd},
    }


async def _standing(member: identity.Member, groups: list[GroupRelay]) -> dict[str, Any]:
    """What `edgecli cluster status` shows of this node."""
    return {
        "name": member.peer.name,
        "roles": sorted(member.peer.roles),
        "groups": {
            group.group: {
                "follows": group.upstream or None,
                "live": group.relay.is_live,
                "answers": group.relay.is_open,
                "sequence": group.relay.applied,
            }
            for group in groups
        },
    }


async def _beat(status: process.Status) -> None:
    while True:
        status.beat()
        await asyncio.sleep(process.CONTROL_BEAT_SECONDS)
