"""What is handed out, made of this checkout, and an environment that has nothing else of it."""

import fcntl
import os
import shutil
import subprocess
import sys
import sysconfig
from contextlib import contextmanager
from pathlib import Path

import pytest

from edgestead.testing.server import EdgeServer
from tests.support.patience import patient

ROOT = Path(__file__).resolve().parents[2]
SECONDS_MAX = 800


def run(*command, seconds_max=SECONDS_MAX, **more):
    return subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=seconds_max, **more
    ).stdout


def build(kind, source, folder):
    run(sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder), cwd=source)
    (built,) = folder.iterdir()
    return built


def outside(**more):
    """The environment of somebody who has no checkout."""
    ours = {"PYTHONPATH", "XDG_DATA_HOME"}
    return {name: value for name, value in os.environ.items() if name not in ours} | more


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def installed(wheel, tmp_path_factory):
    """The `bin` of a new environment: the wheel, the packages it asks for, and nothing of this checkout."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", str(folder))
    python = folder / "bin" / "python"
    site = Path(run(str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    # Packages of the environment of the tests. A path file in there, which leads here, is not followed.
    (site / "packages.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = os.environ.get("PYTHON", "python3"), "-m", "pip", "--python", str(python)
    run(*pip, "--disable-pip-version-check", "install", "--quiet", "--no-deps", "--no-index", str(wheel))
    return folder / "bin"


@pytest.fixture(scope="session")
def package(tmp_path_factory):
    """The Debian package, built once for all processes of a run."""
    if not shutil.which("dpkg-deb"):
        pytest.skip("dpkg-deb is not installed")
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with (shared / "deb.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (built := list(shared.glob("deb/*.deb"))):
            # The least compression: it is read once or twice.
            quick = os.environ | {"DPKG_DEB_COMPRESSOR_LEVEL": "0"}
            built = [Path(run(str(ROOT / "scripts/build-deb"), str(shared / "deb"), env=quick).split()[-1])]
    return built[0]


@contextmanager
def servers(bin_folder):
    """A function that starts a server of an environment with a data folder and flags; at the end they end."""
    made = []

    def start(data_dir, *flags):
        flags = flags if "--config" in flags else (*patient(data_dir.parent), *flags)
        made.append(EdgeServer(data_dir, *flags))
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("edgestead.testing.server.environment", outside)
            patched.setattr(sys, "executable", str(bin_folder / "python"))
            return made[-1].start()

    yield start
    for server in made:
        server.close()


@pytest.fixture(scope="module")
def start(installed):
    with servers(installed) as start:
        yield start
