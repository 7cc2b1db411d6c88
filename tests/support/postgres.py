"""A private PostgreSQL for tests: made in a folder, reached by a Unix socket, ended with the test.

Owns  finding Debian's binaries, one cluster's life, running a script and sorting its errors.
Not   anything that the product runs.

PostgreSQL refuses to run as root, so root starts it as the package's own user.
"""

import os
import pwd
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path("/usr/lib/postgresql")  # Debian keeps each version's binaries below it
USER = "postgres"
START_SECONDS_MAX = 60


def find_binaries() -> Path | None:
    """The newest installed version's binaries, None when there are none that this user can run."""
    versions = sorted(
        (p for p in ROOT.glob("*/bin") if (p / "initdb").exists()), key=lambda p: int(p.parent.name)
    )
    return versions[-1] if versions and (os.getuid() or _has_user()) else None


@contextmanager
def cluster(binaries: Path) -> Iterator["Cluster"]:
    """A running, empty cluster with C collation. Raises CalledProcessError, TimeoutError."""
    folder = Path(tempfile.mkdtemp(prefix="edgestead-pg-"))  # short: a socket's path has 107 bytes
    account = {"user": USER, "group": USER} if os.getuid() == 0 else {}
    if account:
        shutil.chown(folder, USER, USER)
    made = Cluster(binaries, folder, account)
    try:
        made.start()
        yield made
    finally:
        made.stop()
        shutil.rmtree(folder, ignore_errors=True)


class Cluster:
    def __init__(self, binaries: Path, folder: Path, account: dict[str, str]) -> None:
        self._binaries = binaries
        self._folder = folder
        self._account = account
        self._server: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        data = str(self._folder / "data")
        self._run("initdb", "-D", data, "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        settings = ["-c", "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=16MB"]
        self._server = subprocess.Popen(
            [self._binaries / "postgres", "-D", data, "-k", self._folder, *settings],
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **self._account,  # type: ignore[call-overload]
        )
        deadline = time.monotonic() + START_SECONDS_MAX
        while self._psql("SELECT 1;").returncode:
            if self._server.poll() is not None or time.monotonic() > deadline:
                raise TimeoutError("PostgreSQL did not start")
            time.sleep(0.05)

    def stop(self) -> None:
        if self._server is not None:
            self._server.terminate()
            self._server.wait(START_SECONDS_MAX)

    def errors(self, statements: Sequence[str]) -> list[str]:
        """Run each statement, all in one session; one entry each: its error, or an empty text."""
        script = "".join(f"\\warn @@{number}\n{text};\n" for number, text in enumerate(statements))
        output = self._psql(script).stderr.decode()
        parts = re.split(r"@@\d+\n", output)[1:]
        return [part.strip() for part in parts]

    def _psql(self, script: str) -> subprocess.CompletedProcess[bytes]:
        return self._run("psql", "-X", "-q", "-h", str(self._folder), "-U", USER, input_=script, check=False)

    def _run(
        self, program: str, *arguments: str, input_: str = "", check: bool = True
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(  # type: ignore[call-overload, no-any-return]
            [self._binaries / program, *arguments],
            cwd=self._folder,
            input=input_.encode(),
            capture_output=True,
            check=check,
            **self._account,
        )


def _has_user() -> bool:
    try:
        pwd.getpwnam(USER)
    except KeyError:
        return False
    return True
