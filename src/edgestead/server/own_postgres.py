"""A PostgreSQL of one's own in a folder: made, started, followed by a standby, promoted, ended.

Owns  finding Debian's binaries, the processes of one server, and the few settings that it needs.
Not   a production database: Patroni or a provider does that; who decides that a standby takes over.

PostgreSQL refuses to run as root, so root starts it as the package's own user. It is reached by a Unix socket
in its folder, which only that user and root may enter; with `tcp` on loopback, for tests that cut networks.
"""

import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from edgestead.server.places import COMMON_HOST, common_port

ROOT = Path("/usr/lib/postgresql")  # Debian keeps each version's binaries below it
USER = "postgres"
START_SECONDS_MAX = 60  # with the recovery of what was killed
ANSWER_SECONDS_MAX = 5.0  # one that was stopped never answers
STOP_SECONDS_MAX = 60  # with its last checkpoint
PORT = 5432  # names the socket; each server has a folder of its own
_SETTINGS = (
    "shared_buffers=16MB",
    "max_wal_senders=4",
    "wal_keep_size=64MB",
    "wal_sender_timeout=5s",
    "wal_receiver_timeout=5s",
    "wal_retrieve_retry_interval=200ms",
    "logging_collector=off",
)


def find_binaries() -> Path | None:
    """The newest installed version's binaries, None when there are none that this user can run."""
    versions = sorted(
        (p for p in ROOT.glob("*/bin") if (p / "initdb").exists()), key=lambda p: int(p.parent.name)
    )
    return versions[-1] if versions and (os.getuid() or _has_user()) else None


def _has_user() -> bool:
    try:
        pwd.getpwnam(USER)
    except KeyError:
        return False
    return True


class OwnPostgres:
    """One server. `folder` is short (a socket's path has 107 bytes) and belongs to this object alone.

    Without `synced` nothing is flushed to the disk: for tests, which end processes and no machines.
    `before_exec` runs in the new process before it becomes PostgreSQL.
    """

    def __init__(
        self,
        binaries: Path,
        folder: Path,
        *,
        name: str = "a",
        synced: bool = True,
        tcp: bool = False,
        before_exec: Callable[[], None] | None = None,
    ) -> None:
        self.folder, self.name = folder, name
        self._binaries = binaries
        self._synced = synced
        self._account = {"user": USER, "group": USER} if os.getuid() == 0 else {}
        self._process: subprocess.Popen[bytes] | None = None
        self.port = common_port() if tcp else PORT
        self._tcp = tcp
        self._before_exec = before_exec

    @property
    def host(self) -> str:
        return COMMON_HOST if self._tcp else str(self.folder)

    @property
    def pid(self) -> int | None:
        """Of the running postmaster."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def dsn(self, database: str = "postgres") -> str:
        return dsn_of([self], database)

    def create(self) -> None:
        """Make an empty one, in UTF8 with C collation. Raises CalledProcessError."""
        self._own_folder()
        self._run(
            "initdb", "-D", self._data, "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"
        )

    def follow(self, primary: "OwnPostgres") -> None:
        """Make a standby of a running one, in the place of what was here. Raises CalledProcessError."""
        shutil.rmtree(self._data, ignore_errors=True)
        self._own_folder()
        source = f"host={primary.host} port={primary.port} user={USER} application_name={self.name}"
        self._run("pg_basebackup", "-D", self._data, "-d", source, "-R", "-X", "stream", "-c", "fast", "-N")

    def start(self) -> None:
        """Return when it accepts connections. Raises TimeoutError."""
        settings = [f"listen_addresses={COMMON_HOST if self._tcp else ''}", f"cluster_name={self.name}"]
        settings += [f"port={self.port}", f"fsync={'on' if self._synced else 'off'}", *_SETTINGS]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(  # type: ignore[call-overload]
                [
                    self._binaries / "postgres",
                    *("-D", self._data, "-k", self.folder),
                    *(word for setting in settings for word in ("-c", setting)),
                ],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C of a terminal is for the one that started it
                preexec_fn=self._before_exec,
                **self._account,
            )
        deadline = time.monotonic() + START_SECONDS_MAX
        while self.psql("SELECT 1;").returncode:
            if self.pid is None or time.monotonic() > deadline:
                raise TimeoutError(f"PostgreSQL did not start: {self._last_words()}")
            time.sleep(0.05)

    def require_standby(self, required: bool) -> None:
        """Whether a commit waits for a standby. Raises CalledProcessError."""
        names = "*" if required else ""
        self.psql(
            f"ALTER SYSTEM SET synchronous_standby_names = '{names}';\nSELECT pg_reload_conf();\n", check=True
        )

    def answers(self) -> bool:
        """Whether it answers within a few seconds: one that was stopped does not."""
        with suppress(subprocess.TimeoutExpired):
            return self.psql("SELECT 1;", seconds_max=ANSWER_SECONDS_MAX).returncode == 0
        return False

    def has_standby(self) -> bool:
        """Whether a standby follows, so that a commit that waits for one ends."""
        done = self.psql("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming';", "-At")
        return done.stdout.strip() not in (b"", b"0")

    def promote(self) -> None:
        """Make a standby the primary. Its former primary must have ended. Raises CalledProcessError."""
        self._run("pg_ctl", "promote", "-D", self._data, "-w")

    def stop(self) -> None:
        """End it in order: sessions are ended, what was written is checkpointed. Idempotent."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """End it at once, with its children, also where it has ended already. Idempotent.

        A child goes on for as long as clients keep it busy: it would commit beside a promoted standby.
        """
        self._end(signal.SIGKILL)
        while children := self._children():
            for pid in children:
                _signal(pid, signal.SIGKILL)
            time.sleep(0.01)
        Path(self._data, "postmaster.pid").unlink(missing_ok=True)

    def pause(self) -> None:
        """Stop it and all its children where they are."""
        for pid in [self.pid, *self._children()]:
            _signal(pid, signal.SIGSTOP)

    def resume(self) -> None:
        for pid in [*self._children(), self.pid]:
            _signal(pid, signal.SIGCONT)

    def psql(
        self,
        script: str,
        *options: str,
        database: str = "postgres",
        check: bool = False,
        seconds_max: float | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        words = ("-X", "-q", *options, "-h", self.host, "-p", str(self.port), "-U", USER, "-d", database)
        return self._run("psql", *words, input_=script, check=check, seconds_max=seconds_max)

    @property
    def _data(self) -> str:
        return str(self.folder / "data")

    def _own_folder(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._account:
            shutil.chown(self.folder, USER, USER)

    def _children(self) -> list[int]:
        """Processes that work in its folder's data: postgres changes there when it starts."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with suppress(OSError):
                    if os.readlink(entry / "cwd") == self._data and int(entry.name) != self.pid:
                        found.append(int(entry.name))
        return found

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(how)
        process.wait(STOP_SECONDS_MAX)

    def _last_words(self) -> str:
        with suppress(OSError):
            return " | ".join((self.folder / "log").read_text("utf-8", "replace").splitlines()[-3:])
        return ""

    def _run(
        self,
        program: str,
        *arguments: str,
        input_: str = "",
        check: bool = True,
        seconds_max: float | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(  # type: ignore[call-overload, no-any-return]
            [self._binaries / program, *arguments],
            cwd=self.folder,
            input=input_.encode(),
            capture_output=True,
            check=check,
            timeout=seconds_max,
            **self._account,
        )


def dsn_of(servers: list[OwnPostgres], database: str) -> str:
    """Names them all; the primary is found among them."""
    hosts = ",".join(server.host for server in servers)
    ports = ",".join(str(server.port) for server in servers)
    return f"host={hosts} port={ports} user={USER} dbname={database}"


def _signal(pid: int | None, what: signal.Signals) -> None:
    if pid is not None:
        with suppress(ProcessLookupError):
            os.kill(pid, what)
