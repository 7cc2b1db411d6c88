"""Machines without control get the keys of clearances, whatever one look has met."""

import asyncio
from contextlib import ExitStack
from types import SimpleNamespace

from edgestead.server.control import node_secrets
from edgestead.server.control.node_secrets import NodeSecrets
from edgestead.server.edge.challenge_key_memory import KeyWriter
from edgestead.server.edge.challenge_keys import KEY_SECONDS
from edgestead.server.nodes.kinds import CHALLENGE_KEYS


def test_keys_that_could_not_be_told_are_told_by_the_next_look(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(node_secrets, "LOOK_SECONDS", 0)

    async def live(undo):
        now, told, is_told, faults = [1_700_000_000], [], asyncio.Event(), []

        def tell(group, name, content):
            if faults:
                raise faults.pop()
            told.append(content)
            if [name, len(told)] == [CHALLENGE_KEYS, 3]:  # after the secrets of DNS, and the first key
                is_told.set()

        writer = KeyWriter(tmp_path, lambda: now[0], undo)
        start = SimpleNamespace(challenge_keys_fd=writer.fd, data_dir=str(tmp_path), cookie_secret=b"")
        secrets = NodeSecrets(start, tell)
        await secrets.open()
        while len(told) < 2:  # noqa: ASYNC110 - it is told to nobody
            await asyncio.sleep(0)
        faults.append(LookupError("odd"))
        now[0] += KEY_SECONDS
        writer.renew()
        try:
            await asyncio.wait_for(is_told.wait(), 60)
        finally:
            secrets.close()
        return told

    with ExitStack() as undo:
        told = asyncio.run(live(undo))

    assert len(set(told)) == 3
    assert "LookupError: odd" in caplog.text
