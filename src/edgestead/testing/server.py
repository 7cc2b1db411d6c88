"""A real server in its own processes, for tests and benchmarks.

Owns  starting `edgecli serve` on ports of its own, asking it by HTTP and DNS, and ending all of it.
Not   fixtures (`testing.plugin`); looking into the server's memory.
"""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from edgestead.cli.parent import end_with_parent, if_it_lasts
from edgestead.server.places import private_place

START_SECONDS_MAX = 300.0  # a machine that is busy with all else; one that ended is noticed at once
END_SECONDS_MAX = 300.0
DIG_SECONDS_MAX = 60.0  # of all tries
DIG_TRY_SECONDS = 2.0
_POLL_SECONDS = 0.01


class Answer(NamedTuple):
    """What the API said. `body` is the decoded JSON, or the text when it is none; names of headers are in
    lower case.
    """

    status: int
    body: Any
    headers: Mapping[str, str] = {}

    @property
    def result(self) -> Any:
        assert self.status == 200, self
        return self.body["result"]


class EdgeServer:
    """One server with its data folder. `flags` are added to the command line, which runs behind `prefix`."""

    def __init__(self, data_dir: Path, *flags: str, prefix: Sequence[str] = ()) -> None:
        self.data_dir = data_dir
        self.prefix = prefix
        self.flags = flags
        self.ready: dict[str, Any] = {}
        self._addresses = {
            key: "{}:{}".format(*private_place()) for key in ("api", "dns", "http", "objects-http")
        }
        self._popen: subprocess.Popen[bytes] | None = None
        self._log = data_dir.with_name(data_dir.name + ".log")

    def launch(self) -> None:
        """Start it and return at once."""
        ready_file = self.ready_file
        ready_file.unlink(missing_ok=True)
        addresses = [part for key, value in self._addresses.items() for part in (f"--{key}", value)]
        files = ("--data-dir", str(self.data_dir), "--ready-file", str(ready_file))
        program = (sys.executable, "-P", "-m", "edgestead", "serve")
        with self._log.open("ab") as log:
            # Other threads may end before their servers do. One thread that starts all servers was tried: it
            # has not the namespaces, priority and processors of a thread that chose its own for its server.
            self._popen = subprocess.Popen(
                [*self.prefix, *program, *files, *addresses, *self.flags],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                preexec_fn=if_it_lasts(end_with_parent),
                env=environment(),
            )

    def start(self) -> "EdgeServer":
        """Start it and wait until everything answers. A later start takes the same ports."""
        self.launch()
        self.wait_ready()
        return self

    def wait_ready(self) -> None:
        """After `launch`: wait until everything answers."""
        self.wait_until(self.ready_file.exists, START_SECONDS_MAX)
        self.ready = json.loads(self.ready_file.read_bytes())

    def stop(self) -> int:
        """SIGTERM; returns the exit status."""
        assert self._popen is not None
        self._popen.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        """Wait for the end of the supervisor; returns its exit status."""
        assert self._popen is not None
        code = self._popen.wait(END_SECONDS_MAX)
        self._popen = None
        return code

    def kill(self) -> None:
        """SIGKILL to the supervisor, and wait until its children have followed it."""
        assert self._popen is not None
        children = self.children()
        self._popen.kill()
        self.wait()
        wait_until(lambda: not any(map(is_running, children.values())), END_SECONDS_MAX)

    def close(self) -> None:
        """End it whatever state it is in."""
        if self._popen is not None and self._popen.poll() is None:
            self.kill()

    @property
    def is_started(self) -> bool:
        """Whether it was started, and neither stopped nor killed."""
        return self._popen is not None

    @property
    def pid(self) -> int:
        assert self._popen is not None
        return self._popen.pid

    @property
    def log(self) -> str:
        """Everything that it wrote to stdout and stderr, over all its starts."""
        return self._log.read_text() if self._log.exists() else ""

    def children(self) -> dict[str, int]:
        """The living children's pids by process name."""
        found = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        ours = _arguments(self.pid)  # also of a child that has not begun its own program yet
        return {name: int(pid) for pid in found if (name := _child_name(int(pid), ours))}

    def wait_until(self, is_true: Any, seconds_max: float) -> None:
        """Wait for a condition; fails with the log when the server ends first, or the time does."""

        def checked() -> bool:
            assert self._popen is not None
            assert self._popen.poll() is None, f"the server ended with {self._popen.returncode}:\n{self.log}"
            return bool(is_true())

        try:
            wait_until(checked, seconds_max)
        except TimeoutError:
            raise TimeoutError(f"waited {seconds_max:g} s in vain:\n{self.log}") from None

    def wait_for_life(self, name: str, before: int = 0) -> int:
        """Wait until the process `name` lives with another pid than `before`; returns it."""
        found: list[int] = []

        def lives() -> bool:
            found.append(self.children().get(name, before))
            return found[-1] != before

        self.wait_until(lives, START_SECONDS_MAX)
        return found[-1]

    def wait_for_log(self, *texts: str, after: int = 0) -> None:
        """Wait until each of the texts is in the log, behind its first `after` characters.

        Processes write their lines on threads of their own: what has happened may not have been written yet.
        """
        self.wait_until(lambda: all(text in self.log[after:] for text in texts), START_SECONDS_MAX)

    def call(self, method: str, path: str, body: Any = None, token: str | None = None) -> Answer:
        """One REST call on its own connection. `path` follows `/client/v4`; `//metrics` is `/metrics`."""
        base = urlsplit(self.ready["api_base"])
        target = path[1:] if path.startswith("//") else base.path + path
        return self._ask(base.netloc, method, target, body, token)

    def call_object(self, path: str, *arguments: Any, token: str | None = None, **named: Any) -> Answer:
        """One call of an object's method on its own connection. `path` is `Class/name/method`."""
        body = {"args": arguments, "kwargs": named}
        return self._ask(self.ready["objects"], "POST", f"/objects/{path}", body, token)

    def _ask(self, address: str, method: str, target: str, body: Any, token: str | None) -> Answer:
        connection = http.client.HTTPConnection(address, timeout=START_SECONDS_MAX)
        headers = {"Authorization": f"Bearer {token or self.ready['api_token']}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, target, json.dumps(body) if body is not None else None, headers)
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        headers = {name.lower(): value for name, value in response.getheaders()}
        try:
            return Answer(response.status, json.loads(content), headers)
        except ValueError:
            return Answer(response.status, content.decode("utf-8", "replace"), headers)

    def make_zone(self, name: str) -> str:
        """Create a zone; returns its id."""
        account = {"id": self.ready["account_id"]}
        zone_id = self.call("POST", "/zones", {"name": name, "account": account}).result["id"]
        assert isinstance(zone_id, str)
        return zone_id

    def make_record(self, zone_id: str, type_: str, name: str, content: str, **more: Any) -> Answer:
        fields = {"type": type_, "name": name, "content": content, **more}
        return self.call("POST", f"/zones/{zone_id}/dns_records", fields)

    def dig(self, name: str, type_: str = "A", *, tcp: bool = False) -> list[str]:
        """The answer section's rdata as text, sorted; the rcode's name instead when it is not NOERROR.

        Asks again when no answer comes, as resolvers do: a process that dies takes the queries with it that
        it has read. Raises dns.exception.Timeout, or OSError over TCP.
        """
        import dns.exception
        import dns.message
        import dns.query
        import dns.rcode

        host, _, port = self.ready["dns"].rpartition(":")
        ask = dns.query.tcp if tcp else dns.query.udp
        query = dns.message.make_query(name, type_)
        end = time.monotonic() + DIG_SECONDS_MAX
        while True:
            try:
                reply = ask(query, host.strip("[]"), port=int(port), timeout=DIG_TRY_SECONDS)
                break
            except (dns.exception.Timeout, EOFError, OSError):
                if time.monotonic() > end:
                    raise
                time.sleep(_POLL_SECONDS)
        if reply.rcode() != dns.rcode.NOERROR:
            return [dns.rcode.to_text(reply.rcode())]
        return sorted(rdata.to_text() for rrset in reply.answer for rdata in rrset)

    @property
    def ready_file(self) -> Path:
        return self.data_dir.with_name(self.data_dir.name + ".ready")


def wait_until(is_true: Any, seconds_max: float) -> None:
    """Poll a condition. Raises TimeoutError."""
    end = time.monotonic() + seconds_max
    while not is_true():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(_POLL_SECONDS)


def is_running(pid: int) -> bool:
    """Whether the process lives; a zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def _arguments(pid: int) -> list[bytes]:
    """The command line of a process; nothing of one that is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except OSError:
        return []


def _child_name(pid: int, supervisor: list[bytes]) -> str | None:
    """Children carry their name as the last argument (`server.supervisor.child`), or in `comm` when they got
    another one later (`server.process.take_place`).
    """
    arguments = _arguments(pid)
    if b"-m" not in arguments or arguments == supervisor or not is_running(pid):
        return None
    try:
        named = Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return None
    return named if named == "control" or named.startswith("objects-") else arguments[-1].decode()


def environment() -> dict[str, str]:
    """Ours, and the path on which this very package was found: the server must be the one under test."""
    source = str(Path(__file__).resolve().parents[2])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH"))))}
