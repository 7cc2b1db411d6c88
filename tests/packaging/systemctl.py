#!/usr/bin/python3
"""systemd's part in a system that was not booted: `systemctl enable --now UNIT…` starts what its units say.

It binds what the socket unit lists, becomes the unit's user in the unit's environment, runs `ExecStart`, and
returns when that has said that it is ready. Limits on what the service may see are not played.
"""

import os
import pwd
import socket
import sys
from pathlib import Path

FOLDERS = (Path("/etc/systemd/system"), Path("/usr/lib/systemd/system"))
STATE = Path("/var/lib")
FIRST_FD = 3


def unit(name):
    """The values of a unit, with its drop-ins; each key has a list."""
    found = next(folder / name for folder in FOLDERS if (folder / name).exists())
    files = [found, *sorted(file for folder in FOLDERS for file in folder.glob(f"{name}.d/*.conf"))]
    values = {}
    for file in files:
        for line in file.read_text().splitlines():
            key, equals, value = line.partition("=")
            if equals and not line.startswith("#"):
                values.setdefault(key, []).append(value)
    return values


def bound(values):
    for key, kind in (("ListenStream", socket.SOCK_STREAM), ("ListenDatagram", socket.SOCK_DGRAM)):
        for place in values.get(key, []):
            host, _, port = place.rpartition(":")
            made = socket.socket(socket.AF_INET6, kind)
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            made.bind((host.strip("[]"), int(port)))
            if kind == socket.SOCK_STREAM:
                made.listen()
            made.setblocking(False)
            yield made


def start(values, sockets):
    """Returns when the service has said that it is ready."""
    user = pwd.getpwnam(values["User"][-1])
    home = STATE / values["StateDirectory"][-1]
    home.mkdir(mode=0o700, exist_ok=True)
    os.chown(home, user.pw_uid, user.pw_gid)
    told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    told.bind("\0notify")
    if os.fork() == 0:
        run(values, sockets, user)
    told.settimeout(float(values["TimeoutStartSec"][-1]))
    while b"READY=1" not in told.recv(65536):
        pass


def run(values, sockets, user):
    os.setsid()
    kept = [os.dup(one.fileno()) for one in sockets]
    high = [os.dup2(fd, 100 + place) for place, fd in enumerate(kept)]
    for place, fd in enumerate(high):
        os.dup2(fd, FIRST_FD + place)
    os.closerange(FIRST_FD + len(high), 1024)
    log = os.open("/var/log/edgestead.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for fd in (1, 2):
        os.dup2(log, fd)
    os.close(log)
    pairs = (
        pair.replace("%S", str(STATE)).replace("%t", "/run").split("=", 1) for pair in values["Environment"]
    )
    environ = {"PATH": "/usr/bin:/bin", "NOTIFY_SOCKET": "@notify", **dict(pairs)}
    environ |= {"LISTEN_FDS": str(len(high)), "LISTEN_PID": str(os.getpid())}
    for name in ("RuntimeDirectory", "LogsDirectory"):
        folder = Path("/run" if name.startswith("R") else "/var/log", values[name][-1])
        folder.mkdir(mode=0o700, exist_ok=True)
        os.chown(folder, user.pw_uid, user.pw_gid)
    os.setgroups([])
    os.setgid(user.pw_gid)
    os.setuid(user.pw_uid)
    os.chdir("/")
    command = values["ExecStart"][-1].split()
    os.execve(command[0], command, environ)


def main():
    if sys.argv[1:3] != ["enable", "--now"]:
        return
    services = [unit(name) for name in sys.argv[3:] if name.endswith(".service")]
    sockets = [one for name in sys.argv[3:] if name.endswith(".socket") for one in bound(unit(name))]
    for values in services:
        start(values, sockets)


main()
