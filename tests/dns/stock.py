"""Stock NSD, Knot and BIND as processes: the part of their configuration that every use of them shares.

What they serve, or follow, is what a caller writes behind the head. NSD and Knot listen on an address that
belongs to this process alone; BIND listens on addresses that an interface has only.
"""

import contextlib
import shutil
import signal
import socket
import subprocess

from edgestead.cli.parent import end_with_parent, if_it_lasts
from edgestead.server.places import COMMON_HOST, common_port, private_place
from edgestead.testing.server import wait_until

SBIN = "/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin"
START_SECONDS = 180
PROGRAMS = {"NSD": ("nsd", "-d", "-c"), "Knot": ("knotd", "-c"), "BIND": ("named", "-g", "-n", "1", "-c")}
HEADS = {
    "NSD": """
server:
  ip-address: {host}
  port: {port}
  server-count: 1
  username: ""
  chroot: ""
  zonesdir: "{folder}"
  database: ""
  zonelistfile: "{folder}/zone.list"
  xfrdfile: "{folder}/xfrd.state"
  xfrdir: "{folder}"
  pidfile: "{folder}/nsd.pid"
{options}
remote-control:
  control-enable: no
""",
    "Knot": """
server:
    rundir: "{folder}"
    listen: {host}@{port}
    udp-workers: 1
    tcp-workers: 1
    background-workers: 1
{options}
log:
  - target: stderr
    any: info
database:
    storage: "{folder}"
""",
    "BIND": """
controls {{ }};
options {{
  directory "{folder}";
  pid-file none;
  session-keyfile none;
  lock-file none;
  listen-on port {port} {{ {host}; }};
  listen-on-v6 {{ none; }};
  recursion no;
  dnssec-validation no;
{options}
}};
""",
}


def binary(kind):
    """The program, None where it is not installed."""
    return shutil.which(PROGRAMS[kind][0], path=SBIN)


def installed():
    return [kind for kind in PROGRAMS if binary(kind)]


def free_place():
    """A place of 127.0.0.1 that is free for UDP and TCP, and that the kernel gives to no client meanwhile."""
    return COMMON_HOST, common_port()


def new_place(kind):
    """Where nobody listens."""
    return free_place() if kind == "BIND" else private_place()


def head(kind, folder, place, options=""):
    """The configuration of a server that has no zone; `options` are further lines of its first section."""
    host, port = place
    return HEADS[kind].format(folder=folder, host=host, port=port, options=options)


class Stock:
    """A process with its own folder; `log` is what it said. Call `stop` at the end."""

    def __init__(self, kind, folder, config, place, *, answers=True, program=None):
        """`config` is all of it. With `answers` this returns when it can be connected to. `program` are the
        words of another one than what is installed.
        """
        self.kind, self.folder = kind, folder
        self.host, self.port = place
        self._file = folder / "config"
        self._file.write_text(config)
        _, *options = PROGRAMS[kind]
        with (folder / "output").open("ab") as output:
            self.process = subprocess.Popen(
                [*(program or [binary(kind)]), *options, str(self._file)],
                stdout=output,
                stderr=output,
                preexec_fn=if_it_lasts(end_with_parent),
            )
        if answers:
            try:
                wait_until(self._answers, START_SECONDS)
            except TimeoutError:
                self.stop()
                raise AssertionError(f"{kind} does not answer:\n{self.log}") from None

    def _answers(self):
        with contextlib.suppress(OSError):
            socket.create_connection((self.host, self.port), 1).close()
            return True

    def read_again(self, config=None):
        """Its zones, and its configuration."""
        if config is not None:
            self._file.write_text(config)
        self.process.send_signal(signal.SIGHUP)

    @property
    def log(self):
        return (self.folder / "output").read_text(errors="replace")

    def stop(self):
        self.process.terminate()
        self.process.wait(60)
