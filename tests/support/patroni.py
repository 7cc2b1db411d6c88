"""Three PostgreSQL servers that Patroni keeps, over one etcd, as in docs/how-to/cluster.md.

Owns  their processes, what they are told, and where each member's are.
Not   what runs on the database. One etcd is enough here: it is not what is tested.
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from edgestead.cli.parent import end_with_parent, if_it_lasts
from edgestead.postgres.connection import Link, Trouble
from edgestead.server.own_postgres import USER, find_binaries
from edgestead.server.places import common_port

PATRONI, ETCD = "/usr/bin/patroni", "/usr/bin/etcd"
START_SECONDS_MAX = 300
TTL_SECONDS = 20  # Patroni 4 takes no less


def is_installed() -> bool:
    return find_binaries() is not None and os.path.exists(PATRONI) and os.path.exists(ETCD)


class Patroni:
    """The members are a, b and c."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._account: dict[str, Any] = {"user": USER, "group": USER} if os.getuid() == 0 else {}
        self.ports = {name: common_port() for name in "abc"}
        self._etcd_port = common_port()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def dsn(self, database: str) -> str:
        hosts, ports = ",".join("127.0.0.1" for _ in self.ports), ",".join(map(str, self.ports.values()))
        return f"host={hosts} port={ports} user={USER} password=secret dbname={database}"

    def start(self) -> None:
        peer = common_port()
        urls = f"http://127.0.0.1:{self._etcd_port}"
        self._run(
            "etcd",
            *(ETCD, "--data-dir", str(self._folder / "etcd"), "--listen-client-urls", urls),
            *("--advertise-client-urls", urls, "--listen-peer-urls", f"http://127.0.0.1:{peer}"),
            *("--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}"),
            *("--initial-cluster", f"default=http://127.0.0.1:{peer}"),
        )
        for name in self.ports:
            self.start_member(name)
        self.wait_for_primary()
        self.wait_for_standby()

    def wait_for_standby(self) -> None:
        """Until Patroni has one that it may promote: there is none right after a start."""
        self._wait(lambda: b"Sync Standby" in self.listed())

    def start_member(self, name: str) -> None:
        settings = self._folder / f"{name}.yml"
        settings.write_text(json.dumps(self._settings(name)))  # JSON is YAML
        self._run(name, PATRONI, str(settings))

    def _settings(self, name: str) -> dict[str, Any]:
        binaries = find_binaries()
        assert binaries is not None
        secret = {"password": "secret"}
        return {
            "scope": "edge",
            "name": name,
            "restapi": {"listen": f"127.0.0.1:{common_port()}"},
            "etcd3": {"host": f"127.0.0.1:{self._etcd_port}"},
            "bootstrap": {
                "dcs": {
                    "ttl": TTL_SECONDS,
                    "loop_wait": 2,
                    "retry_timeout": 5,
                    "synchronous_mode": True,
                    "synchronous_mode_strict": True,
                },
                "initdb": [{"encoding": "UTF8"}, {"locale": "C"}],
            },
            "postgresql": {
                "listen": f"127.0.0.1:{self.ports[name]}",
                "connect_address": f"127.0.0.1:{self.ports[name]}",
                "data_dir": str(self._folder / f"data-{name}"),
                "bin_dir": str(binaries),
                "pgpass": str(self._folder / f"pgpass-{name}"),
                "authentication": {
                    "superuser": {"username": USER, **secret},
                    "replication": {"username": "replicator", **secret},
                },
                "parameters": {"unix_socket_directories": str(self._folder), "shared_buffers": "16MB"},
                "pg_hba": [
                    "local all all trust",
                    "host all all 127.0.0.1/32 md5",
                    "host replication all 127.0.0.1/32 md5",
                ],
            },
        }

    def _run(self, name: str, *words: str) -> None:
        with (self._folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                words,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=if_it_lasts(end_with_parent),
                **self._account,
            )

    def listed(self) -> bytes:
        words = ["/usr/bin/patronictl", "-c", str(self._folder / "a.yml"), "list", "-f", "json"]
        return subprocess.run(words, capture_output=True, cwd=self._folder, **self._account).stdout

    def primary(self) -> str:
        """The name of the member whose server accepts writes; "" while none does."""
        for name, port in self.ports.items():
            link = Link(f"host=127.0.0.1 port={port} user={USER} password=secret dbname=postgres")
            try:
                if link.row("SELECT pg_is_in_recovery()") == (False,):
                    return name
            except Trouble:
                continue
            finally:
                link.close()
        return ""

    def wait_for_primary(self, but: str = "") -> str:
        self._wait(lambda: self.primary() not in ("", but))
        return self.primary()

    def postmaster(self, name: str) -> int:
        return int((self._folder / f"data-{name}" / "postmaster.pid").read_text().split()[0])

    def kill_server(self, name: str) -> None:
        os.kill(self.postmaster(name), signal.SIGKILL)

    def kill_machine(self, name: str) -> None:
        """Patroni and its server at once, as a power cut would."""
        pid = self.postmaster(name)
        self._processes[name].kill()
        os.kill(pid, signal.SIGKILL)
        self._processes[name].wait()

    def _wait(self, is_so: Any) -> None:
        ends_s = time.monotonic() + START_SECONDS_MAX
        while not is_so():
            if time.monotonic() > ends_s:
                logs = [path.read_text(errors="replace")[-1500:] for path in self._folder.glob("*.log")]
                raise TimeoutError("\n".join(logs))
            time.sleep(0.2)

    def close(self) -> None:
        for name in self.ports:
            with suppress(OSError, KeyError, ValueError, IndexError):
                self.kill_machine(name)
        for process in self._processes.values():
            process.kill()
            process.wait()


@contextmanager
def patroni() -> Iterator[Patroni]:
    folder = Path(tempfile.mkdtemp(prefix="edgestead-pt-"))
    made = Patroni(folder)
    try:
        if os.getuid() == 0:
            shutil.chown(folder, USER, USER)
        made.start()
        yield made
    finally:
        made.close()
        shutil.rmtree(folder, ignore_errors=True)
