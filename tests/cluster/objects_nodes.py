"""Real nodes that run stateful objects: where each object lives, and clients that note what they were told.

Owns  finding names whose object is at a node; a load of appends and reads, with its history.
Not   the nodes (`tests.support.cluster_nodes`); judging a history (`list_checker`).
"""

import http.client
import itertools
import threading
import time
from pathlib import Path

from edgestead.cluster.placement import slot_of, wanted
from edgestead.objects import ids
from edgestead.postgres.slots import look
from edgestead.testing.server import wait_until
from tests.cluster.list_checker import NEVER, Append, Read, faults
from tests.support.beside import Beside
from tests.support.cluster_nodes import ClusterNodes

CLASSES = Path(__file__).with_name("objects_classes.py")
FLAGS = ("--objects", str(CLASSES), "--objects-workers", "1")
SECONDS_MAX = 300
FAILED = (OSError, http.client.HTTPException)


def workers_of(nodes: ClusterNodes):
    """The objects processes, by number."""
    return look(nodes.link).workers


def node_of(nodes: ClusterNodes, name: str, class_name: str = "Numbers"):
    """The node where an object is; None while nobody has it."""
    view = look(nodes.link)
    held = view.slots[slot_of(ids.from_name(class_name, name).id)].holder
    return view.workers[held].node if held in view.workers else None


def names_at(nodes: ClusterNodes, node: str, count: int, prefix: str = "l", class_name: str = "Numbers"):
    """Names whose object is at a node, and wanted there. Waits until slots have moved that far."""
    found: list[str] = []

    def enough() -> bool:
        view = look(nodes.link)
        targets = wanted(view.workers.values())
        found.clear()
        for number in range(2_000):
            name = f"{prefix}{number}"
            slot = slot_of(ids.from_name(class_name, name).id)
            holder = view.slots[slot].holder
            if targets and targets[slot] == holder and view.workers[holder].node == node:
                found.append(name)
        return len(found) >= count

    wait_until(enough, SECONDS_MAX)
    return found[:count]


class Load(Beside):
    """A client at each node: it appends unique numbers to lists, and reads them."""

    def __init__(self, nodes: ClusterNodes, names, pause_seconds=0.005) -> None:
        super().__init__()
        self.nodes, self.names, self._pause = nodes, list(names), pause_seconds
        self.appends = {name: [] for name in self.names}
        self.reads = {name: [] for name in self.names}
        self.acked, self.refused = 0, []
        self._left, self._turns = set(), {name: threading.Lock() for name in nodes.servers}
        self._numbers = itertools.count()
        for name in nodes.servers:
            self.run_beside(self._run, name)

    def _run(self, node) -> None:
        for turn in itertools.count():
            if self._ended.is_set():
                return
            name = self.names[turn % len(self.names)]
            server = self.nodes.servers[node]
            with self._turns[node]:
                if server.is_started and node not in self._left:
                    self.append(server, name) if turn % 3 else self.read(server, name)
            time.sleep(self._pause)

    def leave(self, node) -> None:
        """Nobody asks it any more, and nobody waits for its answer."""
        self._left.add(node)
        with self._turns[node]:
            pass

    def come_back(self, node) -> None:
        self._left.discard(node)

    def append(self, server, name) -> bool:
        number, began = next(self._numbers), time.monotonic()
        is_ok = self._answer(server, f"Numbers/{name}/append", number) is not None
        ended = time.monotonic()
        self.appends[name].append(Append(number, began, ended if is_ok else NEVER))
        if is_ok:
            self.acked += 1
        return is_ok

    def read(self, server, name) -> bool:
        began = time.monotonic()
        body = self._answer(server, f"Numbers/{name}/read")
        if body is not None:
            self.reads[name].append(Read(began, time.monotonic(), body["result"]))
        return body is not None

    def wait_for(self, more: int) -> None:
        """So many more acknowledged appends."""
        wanted_count = self.acked + more
        wait_until(lambda: self.acked >= wanted_count, SECONDS_MAX)

    def check(self) -> None:
        """When nothing runs any more: every list is read last, and its history judged."""
        servers = [server for server in self.nodes.servers.values() if server.is_started]
        for name in self.names:
            wait_until(lambda n=name: self.read(servers[0], n), SECONDS_MAX)
            assert faults(self.appends[name], self.reads[name]) == []

    def _answer(self, server, path, *arguments):
        """The body of a 200. Every other answer, and that there is none, is noted."""
        try:
            answer = server.call_object(path, *arguments)
        except FAILED as error:
            self.refused.append(repr(error))
            return None
        if answer.status != 200:
            self.refused.append(f"{answer.status} {answer.body}")
        return answer.body if answer.status == 200 else None
