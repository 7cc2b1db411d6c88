"""A bare Debian: made by debootstrap once and kept, then entered as often as one likes without a trace.

Owns  the kept folder, and what a machine's own sources of packages mean inside it.
Not   what is typed there (`test_bare_system`).

What is written goes to memory and ends with the namespace. Packages come from where this machine gets them:
apt's and pip's configurations are read here and written there. After the installation there is no network but
loopback, so that ports 53 and 80 are free and nothing is fetched behind the page's back.
"""

import fcntl
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.packaging.conftest import SECONDS_MAX, run

KEPT_DAYS_MAX = 7  # older lists of packages name versions that are gone
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "edgestead-tests")
_ENTER = """
set -eu
mount -t tmpfs none /mnt && mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay overlay -o "lowerdir=$1,upperdir=/mnt/upper,workdir=/mnt/work" /mnt/root
cp -r "$2/." /mnt/root/
mount --rbind /dev /mnt/root/dev && mount -t proc proc /mnt/root/proc
for folder in $3; do mkdir -p "/mnt/root$folder" && mount --bind "$folder" "/mnt/root$folder"; done
chroot /mnt/root "$4" /typed/prepare.sh >/mnt/root/prepared.txt 2>&1 ||
    { cat /mnt/root/prepared.txt; exit 1; }
exec unshare --net --pid --fork --kill-child sh -euc '
    ip link set lo up
    mount -t proc proc /mnt/root/proc
    exec chroot /mnt/root "$1" /typed/type.sh' sh "$4"
"""


def _mirror():
    """Where this machine gets Debian from."""
    found = run("apt-get", "indextargets", "--format", "$(REPO_URI)", "Origin: Debian", "Label: Debian")
    return found.split()[0]


def base(suite, *packages):
    """The folder of a new system of a suite, such as bookworm, with these packages. Skips, loudly, where none
    can be made.
    """
    for program in ("debootstrap", "unshare", "ip"):
        if not shutil.which(program):
            pytest.skip(f"NO BARE SYSTEM: {program} is not installed")
    if os.geteuid() != 0:
        pytest.skip("NO BARE SYSTEM: only root can make one")
    kept = _CACHE / "-".join((suite, *packages))
    _CACHE.mkdir(parents=True, exist_ok=True)
    with (_CACHE / f"{kept.name}.lock").open("w") as lock:  # workers may want the same one at once
        fcntl.flock(lock, fcntl.LOCK_EX)
        if kept.exists() and time.time() - kept.stat().st_mtime > KEPT_DAYS_MAX * 86_400:
            shutil.rmtree(kept)
        if not kept.exists():
            _make(suite, packages, kept)
    return kept


def program_of(suite, package, path):
    """The words that run a program of another suite's package on this one: by the loader and libraries of its
    own system.
    """
    root = base(suite, package)
    (libraries,) = (root / "usr/lib").glob("*-linux-gnu")
    (loader,) = libraries.glob("ld-linux-*.so.*")
    return [str(loader), "--library-path", str(libraries), str(root / path)]


def _make(suite, packages, kept):
    """Under another name first: an interrupted run leaves nothing that looks like a system."""
    mirror = _mirror()
    fresh = kept.with_name(f"{kept.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    made = subprocess.run(
        [*("debootstrap", "--variant=minbase"), *_including(packages), suite, str(fresh), mirror],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    if made.returncode:
        shutil.rmtree(fresh, ignore_errors=True)
        pytest.skip(f"NO BARE SYSTEM: debootstrap says {made.stdout.splitlines()[-1:]}")
    (fresh / "etc/apt/sources.list").write_text(f"deb {mirror} {suite} main\n")
    (fresh / "etc/apt/apt.conf.d/90host").write_text(run("apt-config", "dump", "Acquire"))
    (fresh / "etc/dpkg/dpkg.cfg.d/90test").write_text("force-unsafe-io\n")  # it is in memory
    fresh.touch()
    fresh.rename(kept)


def _including(packages):
    return [f"--include={','.join(packages)}"] if packages else []


class Tree:
    """Files that are in the bare system from the start, below one folder."""

    def __init__(self, folder):
        self.folder, self.shared = folder, []
        for name in ("resolv.conf", "hosts"):
            self.write(f"etc/{name}", Path("/etc", name).read_text())
        self._take_pip_over()

    def write(self, place, text, mode=0o644):
        file = self.folder / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)

    def copy(self, source, place):
        (self.folder / place).mkdir(parents=True, exist_ok=True)
        shutil.copy(source, self.folder / place)

    def _take_pip_over(self):
        """Each option of this machine's pip. Files that it names are copied, folders are there too."""
        options = re.findall(r"^[^=]*?\.([\w-]+)='(.*)'$", run("pip", "config", "list"), re.MULTILINE)
        lines = [f"{name} = {self._taken_over(value)}\n" for name, value in dict(options).items()]
        self.write("etc/pip.conf", "[global]\n" + "".join(lines))

    def _taken_over(self, value):
        for path in sorted(set(re.findall(r"/[^\s:]+", re.sub(r"file://|\w+://\S+", "", value)))):
            if Path(path).is_file():
                self.copy(path, "srv/pip")
                value = value.replace(path, f"/srv/pip/{Path(path).name}")
            elif Path(path).is_dir():  # an index refers to files beside it
                self.shared.append(str(Path(path).parent) if path.endswith("/simple") else path)
        return value

    def type(self, suite, prepare, script, shell="sh"):
        """What a script printed that was typed without a network, after another one with it."""
        self.write("typed/prepare.sh", f"{prepare}\npwd >/typed/where; export -p >/typed/known\n", 0o755)
        self.write("typed/type.sh", f". /typed/known; cd $(cat /typed/where)\n{script}", 0o755)
        (self.folder / "typed").chmod(0o777)
        done = subprocess.run(
            [
                "unshare",
                "-m",
                "sh",
                "-c",
                _ENTER,
                "sh",
                base(suite),
                self.folder,
                " ".join(self.shared),
                shell,
            ],
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            env={
                "PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                "HOME": "/root",
                "LC_ALL": "C.UTF-8",
            },
        )
        if "overlay" in done.stderr and "mount" in done.stderr and not done.stdout:
            pytest.skip(f"NO BARE SYSTEM: no overlay here: {done.stderr.strip()}")
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout
