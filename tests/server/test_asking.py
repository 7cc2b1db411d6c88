"""Asking primaries from control's loop."""

import subprocess
import sys

HANGS = """
import asyncio, threading
from types import SimpleNamespace
from edgestead.server.control.asking import Asking

asked = threading.Event()

def hang(*_):
    asked.set()
    threading.Event().wait()

async def main():
    peer = SimpleNamespace(tsig_id=None, ixfr_enable=True)
    asking = asyncio.create_task(Asking(None, hang).found(peer, {}, b"", None, frozenset, whole=False))
    while not asked.is_set():
        await asyncio.sleep(0.01)
    asking.cancel()

asyncio.run(main())
"""


def test_a_process_ends_while_a_primary_does_not_answer():
    subprocess.run([sys.executable, "-c", HANGS], check=True, timeout=60)
