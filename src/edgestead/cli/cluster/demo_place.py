"""Where a cluster's demo lives: two database servers and three nodes in a temporary folder.

Owns  starting all of it, the keeper that does what machines of a cluster do by themselves, ending all of it.
Not   what is shown (`cli.cluster.demo`).

The keeper stands for systemd, which starts a server again that died, and for Patroni, which promotes the
standby when the primary is gone. It may promote at once, because it sees processes end; over a network nobody
does.

    standby gone   started again; commits wait for it
    primary gone   standby promoted, commits alone; the former primary follows it; commits on both
    node gone      started again
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgestead.cli.demo_folder import held
from edgestead.cli.failure import Failed
from edgestead.cli.parent import end_with_parent, interrupt_with_parent
from edgestead.cli.source import Source
from edgestead.server.places import private_place

if TYPE_CHECKING:
    from edgestead.server.own_postgres import OwnPostgres

PREFIX = "edgestead-cluster-"
NAMES = ("ams-1", "fra-1", "waw-1")
ROLES = ("control", "objects", "edge")
DATABASE = "edge"
START_SECONDS_MAX = 120.0
END_SECONDS_MAX = 30.0
KEEP_SECONDS = 0.1  # between two looks at processes
ASK_EVERY = 30  # looks, until the primary is asked whether it answers
RESTART_SECONDS = 1.0
_LOG_LINES = 8
_FACES = ("api", "dns", "http", "objects-http")
_OBJECTS = "edgestead.cli.server.demo_objects"


class Node:
    """One node's server. `ready` is what it wrote when it was ready."""

    def __init__(
        self, folder: Path, name: str, addresses: Mapping[str, str], objects: Sequence[str] = ()
    ) -> None:
        """`objects` are files and modules of classes that it runs."""
        self.folder, self.name, self._addresses = folder / name, name, addresses
        self._objects = objects
        self.between = _place()  # where other nodes reach it
        self.token = ""  # by which it becomes a node; not needed afterwards
        self._settings = folder / f"{name}.toml"
        self._ready_file, self._log = folder / f"{name}.json", folder / f"{name}.log"
        self.process: subprocess.Popen[bytes] | None = None
        self.ready: Mapping[str, Any] = {}
        self.again_at_s = 0.0

    @property
    def dns(self) -> tuple[str, int]:
        host, _, port = self._addresses["dns"].rpartition(":")
        return host, int(port)

    @property
    def pid(self) -> int | None:
        process = self.process
        return process.pid if process is not None and process.poll() is None else None

    @property
    def source(self) -> Source:
        headers = {"Authorization": f"Bearer {self.ready['api_token']}"}
        return Source(f"the node {self.name}", self.ready["api_base"], headers, self.ready["account_id"])

    def start(self) -> None:
        self._ready_file.unlink(missing_ok=True)
        self._settings.write_text(f'[cluster]\nlisten = "{self.between}"\nadvertise = "{self.between}"\n')
        addresses = [part for key, value in self._addresses.items() for part in (f"--{key}", value)]
        is_node = (self.folder / "cluster.toml").exists()
        becomes = ["--join", self.token, "--data-dir", str(self.folder)]
        words = ["serve", *(["--cluster", str(self.folder)] if is_node else becomes)]
        words += ["--config", str(self._settings), "--ready-file", str(self._ready_file), *addresses]
        words += [part for source in self._objects for part in ("--objects", source)]
        words += ["--objects-workers", "1"]
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "edgestead", *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=end_with_parent,
            )

    def wait_ready(self) -> None:
        """Raises Failed."""
        ends_s = time.monotonic() + START_SECONDS_MAX
        while not self._ready_file.exists():
            if self.pid is None or time.monotonic() > ends_s:
                raise Failed(f"The node {self.name} did not start.", *self.last_words())
            time.sleep(0.05)
        self.ready = json.loads(self._ready_file.read_bytes())

    def last_words(self) -> list[str]:
        with suppress(OSError):
            return self._log.read_text(errors="replace").splitlines()[-_LOG_LINES:]
        return []

    def end(self) -> None:
        process = self.process
        if process is None:
            return
        if process.poll() is None:
            process.terminate()
        try:
            process.wait(END_SECONDS_MAX)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            process.kill()
            process.wait()


class Place:
    """A running demo. `say` is called by the keeper, on its thread, with what it does."""

    def __init__(
        self, folder: Path, databases: "list[OwnPostgres]", nodes: list[Node], say: Callable[[str], None]
    ) -> None:
        self.folder, self.nodes, self._say = folder, nodes, say
        self.primary, self.standby = databases
        self._databases = sorted(databases, key=lambda one: one.name)
        self._stop = threading.Event()
        self._is_failing_over = False
        self._keeper = threading.Thread(target=self._keep, name="keeper", daemon=True)

    @property
    def dsn(self) -> str:
        from edgestead.server.own_postgres import dsn_of

        return dsn_of(self._databases, DATABASE)

    def node(self, name: str) -> Node:
        return next(node for node in self.nodes if node.name == name)

    def leader(self) -> str:
        """The name of the node that leads; "" while none does, or while the database is away."""
        from edgestead.cli.cluster.shared import opened
        from edgestead.server.founding.look import leader_of

        try:
            with opened(self.nodes[0].folder, None) as node:
                return leader_of(node)
        except Failed:
            return ""

    def wait_for_leader(self) -> str:
        """Raises Failed."""
        ends_s = time.monotonic() + START_SECONDS_MAX
        while not (leader := self.leader()):
            if time.monotonic() > ends_s:
                raise Failed("No node leads.", *self.last_words())
            time.sleep(0.1)
        return leader

    def wait_settled(self) -> None:
        """Until everything that was killed runs again, and commits are on two. Raises Failed."""
        ends_s = time.monotonic() + START_SECONDS_MAX
        while not self.is_settled:
            if time.monotonic() > ends_s:
                raise Failed("What was killed did not come back.", *self.last_words())
            time.sleep(0.1)
        for node in self.nodes:
            node.wait_ready()

    @property
    def is_settled(self) -> bool:
        if self._is_failing_over or any(node.pid is None for node in self.nodes):
            return False
        return self.primary.pid is not None and self.standby.pid is not None and self.primary.has_standby()

    def pids(self) -> list[tuple[str, int]]:
        """Of everything that may be killed."""
        named = [(node.name, node.pid) for node in self.nodes]
        named += [(one.name, one.pid) for one in (self.primary, self.standby)]
        return [(name, pid) for name, pid in named if pid is not None]

    def last_words(self) -> list[str]:
        return [f"{node.name}: {line}" for node in self.nodes for line in node.last_words()]

    def start(self) -> None:
        """The first node, and then those that it invites."""
        first, *others = self.nodes
        first.start()
        first.wait_ready()
        for node in others:
            node.token = self._invite(node)
            node.start()
        for node in others:
            node.wait_ready()
        self._keeper.start()

    def _invite(self, node: Node) -> str:
        from edgestead.cli.cluster.shared import opened
        from edgestead.server.founding import act
        from edgestead.server.nodes.invites import Invitation

        until_s = int(time.time() + START_SECONDS_MAX)
        wanted = Invitation(
            name=node.name, roles=ROLES, secret=b"", until_s=until_s, region=_region(node.name)
        )
        with opened(self.nodes[0].folder, None) as first:
            return act.invite(first, wanted)

    def close(self) -> None:
        self._stop.set()
        if self._keeper.is_alive():
            self._keeper.join()
        for node in self.nodes:
            if node.pid is not None:
                with suppress(ProcessLookupError):
                    os.kill(node.pid, signal.SIGTERM)
                    os.kill(node.pid, signal.SIGCONT)
        for node in self.nodes:
            node.end()
        for database in (self.primary, self.standby):
            with suppress(subprocess.TimeoutExpired):
                database.resume()
                database.stop()

    def _keep(self) -> None:
        looks = 0
        while not self._stop.wait(KEEP_SECONDS):
            looks += 1
            try:
                self._keep_databases(ask=looks % ASK_EVERY == 0)
                for node in self.nodes:
                    self._keep_node(node)
            except (OSError, subprocess.SubprocessError) as error:
                self._say(f"the demo's keeper could not do its work: {error}")

    def _keep_databases(self, *, ask: bool) -> None:
        if self.primary.pid is not None and ask and not self.primary.answers():
            self._say("the primary does not answer: it is ended")
            self.primary.kill()
        if self.primary.pid is None:
            if self.standby.pid is None:
                self._say("both databases are gone: the primary is started again")
                self.primary.kill()
                self.primary.start()
            else:
                self._is_failing_over = True
                self._fail_over()
                self._is_failing_over = False
        if self.standby.pid is None:
            self._say("the standby is gone: it is started again, and commits wait for it")
            self.standby.kill()
            self.standby.start()

    def _fail_over(self) -> None:
        self.primary.kill()  # what is left of it
        self.primary, self.standby = self.standby, self.primary
        began_s = time.monotonic()
        self.primary.promote()
        self.primary.require_standby(False)
        self._say(f"the primary is gone: its standby is the primary after {time.monotonic() - began_s:.1f} s")
        self.standby.follow(self.primary)
        self.standby.start()
        while not self.primary.has_standby() and not self._stop.wait(KEEP_SECONDS):
            pass
        self.primary.require_standby(True)
        self._say("the former primary follows it, and commits are on two again")

    def _keep_node(self, node: Node) -> None:
        if node.pid is not None:
            return
        now_s = time.monotonic()
        if not node.again_at_s:
            node.again_at_s = now_s + RESTART_SECONDS
            self._say(f"the node {node.name} is gone: it is started again")
        elif now_s >= node.again_at_s:
            node.again_at_s = 0.0
            node.start()


@contextmanager
def opened(say: Callable[[str], None], objects: Sequence[str] = ()) -> Iterator[Place]:
    """A running cluster. Its nodes run classes of `objects`, too. Raises Failed."""
    from edgestead.server.own_postgres import OwnPostgres, find_binaries

    binaries = find_binaries()
    if binaries is None:
        raise Failed(
            "PostgreSQL is not on this machine, or its user postgres is not.",
            "On Debian and Ubuntu: apt install postgresql; its own service is not needed.",
        )
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    with held(PREFIX) as folder:
        folder.chmod(0o711)  # the database's user has to pass; what is in it has owners of its own
        databases = [
            OwnPostgres(binaries, folder / name, name=name, before_exec=interrupt_with_parent)
            for name in ("db-a", "db-b")
        ]
        place = Place(folder, databases, [], say)
        try:
            _start_databases(databases)
            place.nodes = [
                Node(folder, name, {face: _place() for face in _FACES}, (_OBJECTS, *objects))
                for name in NAMES
            ]
            _found(place, say)
            place.start()
            yield place
        except subprocess.CalledProcessError as error:
            raise Failed(f"PostgreSQL: {error.stderr.decode(errors='replace').strip() or error}") from None
        except TimeoutError as error:
            raise Failed(str(error)) from None
        finally:
            place.close()


def _start_databases(databases: "list[OwnPostgres]") -> None:
    primary, standby = databases
    primary.create()
    primary.start()
    standby.follow(primary)
    standby.start()
    primary.require_standby(True)
    primary.psql(f"CREATE DATABASE {DATABASE};", check=True)


def _found(place: Place, say: Callable[[str], None]) -> None:
    from edgestead.cli.cluster.shared import plainly
    from edgestead.config_values import address
    from edgestead.server.founding.found import First, found

    node = place.nodes[0]
    reached = address(node.between)
    with plainly():
        found(place.dsn, node.folder, First(node.name, ROLES, reached, reached, _region(node.name)), say=say)


def _region(name: str) -> str:
    return name.partition("-")[0]


def _place() -> str:
    host, port = private_place()
    return f"{host}:{port}"
