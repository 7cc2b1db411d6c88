"""How the nodes without control stand, asked of every control node when somebody looks.

Owns  the question on the nodes' port, its answer, and putting the answers of several together.
Not   who is live (`feed.promise`); showing it (`server.founding.look`).

    asker with control  ── connects with STANDING_ALPN ──▶  control node
                        ◀──────────────── one JSON value, and the end
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from edgestead.feed.publisher import NodeStanding
from edgestead.server.nodes import port
from edgestead.server.nodes.identity import Member, Peer
from edgestead.server.nodes.kinds import NODE_KINDS

STANDING_ALPN: Final = "edgestead-standing/1"
ANSWER_BYTES_MAX: Final = 256 << 10  # 256 nodes of 300 octets
ASK_SECONDS: Final = 3.0  # of all questions: they are asked at the same time

Standings = Mapping[str, Mapping[str, NodeStanding]]
"""By name and group of the feed."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, dict[str, NodeStanding]]).decode


def answering(standings: Callable[[], Standings]) -> port.Accept:
    """For the port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, peer: Peer) -> None:
        if not peer.has("control"):
            raise ConnectionError("it has not the role control")
        writer.write(_encode(standings()))
        await writer.drain()

    return port.streams(answer)


async def ask(member: Member, addresses: Iterable[tuple[str, int]]) -> Standings | None:
    """What all control nodes that answer say; None when none does."""
    answers = await asyncio.gather(*(_ask(member, address) for address in addresses))
    heard = [answer for answer in answers if answer is not None]
    return merged(heard) if heard else None


async def _ask(member: Member, address: tuple[str, int]) -> Standings | None:
    try:
        async with asyncio.timeout(ASK_SECONDS):
            reader, writer, _ = await port.open_streams(member, address, STANDING_ALPN)
            try:
                content = bytearray()
                while (part := await reader.read(1 << 16)) and len(content) <= ANSWER_BYTES_MAX:
                    content += part
            finally:
                writer.close()
        return _decode(content) if len(content) <= ANSWER_BYTES_MAX else None
    except (OSError, EOFError, TimeoutError, msgspec.MsgspecError):
        return None


def merged(answers: Iterable[Standings]) -> Standings:
    """Of a node that changed its control node both may speak: the one where it is live is right."""
    found: dict[str, dict[str, NodeStanding]] = {}
    for answer in answers:
        for name, groups in answer.items():
            own = found.setdefault(name, {})
            for group, standing in groups.items():
                before = own.get(group)
                if before is None or (standing.is_live, -standing.behind) > (before.is_live, -before.behind):
                    own[group] = standing
    return found


def state_of(groups: Mapping[str, NodeStanding]) -> str:
    """live: writes wait for it, or would if they waited for it; joins: it loads; away: nobody hears of it."""
    if not groups:
        return "away"
    is_live = all(group in groups and groups[group].is_live for group in NODE_KINDS)
    return "live" if is_live else "joins"
