"""An objects process to be killed: serves the examples from a folder, prints its port."""

import asyncio
import socket
import sys
from pathlib import Path

from edgestead.objects.runtime.loader import load
from edgestead.server.objects.host import Host

EXAMPLES = Path(__file__).parents[2] / "examples"


async def main(folder: str) -> None:
    names = ("rate_limiter", "leaderboard", "work_queue")
    host = Host(folder, load(str(EXAMPLES / f"{name}.py") for name in names), segment_bytes=1 << 20)
    bound = socket.create_server(("127.0.0.1", 0))
    await host.open([bound], lambda request, permission: None)
    print(bound.getsockname()[1], flush=True)  # noqa: T201 - how the test finds it
    await asyncio.Event().wait()


asyncio.run(main(sys.argv[1]))
