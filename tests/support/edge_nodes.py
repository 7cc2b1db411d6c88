"""A server with control, and machines without it that follow over lines that can be cut.

Owns  starting and ending all of them.
Not   what they are asked.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

from edgestead.server.errors import StartError
from edgestead.server.folder import read_state
from edgestead.server.nodes import invites
from edgestead.server.places import private_place
from edgestead.server.supervisor.admin import ask as ask_admin
from edgestead.testing.server import EdgeServer
from tests.support.links import Line

LIVE_SECONDS_MAX = 300


class EdgeNodes:
    def __init__(self, folder: Path, *flags: str, settings: str = "") -> None:
        self.folder = folder
        self.place = private_place()  # where control listens for them
        host, port = self.place
        config = folder / "main.toml"
        config.write_text(f'{settings}\n[cluster]\nlisten = "{host}:{port}"\n')
        self.main = EdgeServer(folder / "main", "--config", str(config), *flags)
        self.nodes: dict[str, EdgeServer] = {}
        self.lines: dict[str, Line] = {}

    @property
    def identities(self) -> Path:
        return self.folder / "main" / "cluster"

    def invite(self, name: str, *, stale: str = "serve", wait: bool = True) -> str:
        line = self.lines[name] = Line(self.place)
        flags = ["--wait" if wait else "--no-wait", "--stale", stale, "--cluster", str(self.folder / "main")]
        command = [
            sys.executable,
            "-P",
            "-m",
            "edgestead",
            "cluster",
            "invite",
            name,
            "--role",
            "edge",
            *flags,
        ]
        token = invites.parse(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        assert token.addresses == ("{}:{}".format(*self.place),)
        return invites.text_of(msgspec.structs.replace(token, addresses=("{}:{}".format(*line.address),)))

    def join(self, name: str, *flags: str, **more: Any) -> EdgeServer:
        """A new node, which answers when this returns. Its addresses of control are its line's."""
        token = self.invite(name, **more)
        node = self.nodes[name] = EdgeServer(self.folder / name, "--join", token, *flags)
        node.start()
        # Control told the node its own address at the join: let it use the line again.
        host, port = self.lines[name].address
        (self.folder / name / "cluster" / "addresses").write_text(f"{host}:{port}\n")
        self.restart_relay(name)
        return node

    def restart_relay(self, name: str) -> None:
        node = self.nodes[name]
        before = node.children()["relay"]
        os.kill(before, signal.SIGKILL)
        node.wait_for_life("relay", before)
        node.wait_until(lambda: self.standing(name)["dns"]["live"], LIVE_SECONDS_MAX)

    def standing(self, name: str) -> dict[str, Any]:
        """What the node's relay says of itself, by group; nothing while there is none."""
        state = read_state(self.folder / name)
        try:
            return json.loads(ask_admin(state.admin_socket, "node"))["groups"]
        except (StartError, OSError, AttributeError):
            return {group: {"live": False, "answers": None, "follows": None} for group in ("dns", "edge")}

    def start_again(self, name: str) -> EdgeServer:
        """The node's whole server, from its folder alone."""
        node = self.nodes[name]
        node.flags = ("--cluster", str(node.data_dir), *node.flags[2:])
        return node.start()

    def close(self) -> None:
        for server in (*self.nodes.values(), self.main):
            server.close()
        for line in self.lines.values():
            line.close()
