"""What pyproject.toml promises: the lowest and the newest packages that it allows do it all, on each Python.

A wheel is installed by pip as a user would, with each package at its lowest version or at the newest that is
allowed, and taken through the operator's list. Without `--long` two such environments are made: the lowest
on this Python, the newest on the newest Python of this machine. A missing interpreter or index is a skip.
"""

import os
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from shutil import which

import pytest
from packaging.requirements import Requirement

from tests.packaging.conftest import ROOT, SECONDS_MAX, run, servers
from tests.packaging.steps import settle

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
THIS = f"{sys.version_info.major}.{sys.version_info.minor}"
PIP = (os.environ.get("PYTHON", "python3"), "-m", "pip", "--disable-pip-version-check")
WHEELS = ("--quiet", "--no-input", "--only-binary", ":all:")
NO_INDEX = "(from versions: none)"  # what pip says when it reaches none
CAPPED = {"hyperscan", "google-re2"}  # their insides are used: docs/design/dependencies.md


@cache
def interpreter(version):
    """A python of this machine of a version such as 3.13, or None: on the path, or one of pyenv's."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    named = [which(f"python{version}"), *sorted(pyenv.glob(f"{version}.*/bin/python{version}"), reverse=True)]
    for path in [sys.executable if version == THIS else None, *named]:
        if path and subprocess.run([path, "-c", "import venv"], capture_output=True).returncode == 0:
            return str(path)
    return None


def lowest(dependencies=PROJECT["dependencies"]):
    """`name==lowest; marker` of each dependency."""
    return [re.sub(r">=([^,;]+)[^;]*", r"==\1", dependency) for dependency in dependencies]


@pytest.fixture
def installed_with(wheel, tmp_path):
    """A function that makes an environment of what pip finds for the wheel on a Python; returns its `bin`."""

    def make(version, pins):
        python = interpreter(version)
        if python is None:
            pytest.skip(f"no Python {version} on this machine")
        folder = tmp_path / "environment"
        run(python, "-m", "venv", "--without-pip", str(folder))
        pip = (*PIP, "--python", str(folder / "bin" / "python"), "install", *WHEELS)
        done = subprocess.run(
            [*pip, "--upgrade", str(wheel), *pins], capture_output=True, text=True, timeout=SECONDS_MAX
        )
        if NO_INDEX in done.stderr:
            pytest.skip(f"no package index: {done.stderr.splitlines()[-1]}")
        assert done.returncode == 0, done.stderr
        return folder / "bin"

    return make


def one_of(version, kind):
    always = (version, kind) in {(THIS, "lowest"), (newest_python(), "newest")}
    return pytest.param(version, kind, marks=[] if always else pytest.mark.long)


def newest_python():
    return next((version for version in reversed(PYTHONS) if interpreter(version)), THIS)


@pytest.mark.parametrize(
    ("version", "kind"), [one_of(version, kind) for version in PYTHONS for kind in ("lowest", "newest")]
)
def test_an_operator_has_what_it_takes(version, kind, installed_with, tmp_path):
    bin_folder = installed_with(version, lowest() if kind == "lowest" else [])

    home = tmp_path / "home"
    home.mkdir()
    with servers(bin_folder) as start:
        operator = settle(home, bin_folder, start, "--objects", "{home}/visits.py")
        operator.take_the_steps()
        assert operator.server.stop() == 0


PUT_AND_GET = """
import io, sys
from hashlib import sha256
from edgestead.s3.bodies import Bucket, S3Bodies

bodies, content = S3Bodies(Bucket(*sys.argv[1:])), b"x" * 300_000
bodies.put("s3.a", io.BytesIO(content), len(content), sha256(content).digest())
assert b"".join(bodies.read("s3.a")) == content
bodies.remove(["s3.a"])
try:
    list(bodies.read("s3.a"))
except FileNotFoundError:
    print("done")
"""


@pytest.mark.long
def test_the_lowest_client_of_an_object_store_does_what_is_needed(installed_with, s3):
    pins = lowest(PROJECT["optional-dependencies"]["s3"])
    bin_folder = installed_with(THIS, pins)

    assert pins[0].startswith("botocore==")
    assert run(str(bin_folder / "python"), "-c", PUT_AND_GET, *s3.bucket()) == "done\n"


def locked_for(version):
    """`name==version` of each locked package that a Python asks for. pip would ask the markers of its own."""
    names = {"python_version": version, "python_full_version": f"{version}.0"}
    lines = (ROOT / "requirements" / "serve.txt").read_text().splitlines()
    found = [Requirement(line.rstrip(" \\")) for line in lines if re.match(r"\w", line)]
    return [f"{one.name}{one.specifier}" for one in found if not one.marker or one.marker.evaluate(names)]


@pytest.mark.parametrize(
    "version", [pytest.param(one, marks=[] if one == PYTHONS[-1] else pytest.mark.long) for one in PYTHONS]
)
def test_every_locked_package_has_a_wheel(version, tmp_path):
    """Also for a Python that this machine may not have."""
    options = ("--dry-run", "--ignore-installed", "--no-deps", "--python-version", version)
    packages = locked_for(version)
    done = subprocess.run(
        [*PIP, "install", *WHEELS, *options, "--target", str(tmp_path), *packages],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    if NO_INDEX in done.stderr:
        pytest.skip(f"no package index: {done.stderr.splitlines()[-1]}")

    assert done.returncode == 0, done.stderr
    assert len(packages) > 10


def test_a_package_whose_insides_are_used_is_held_below_the_next():
    capped = {re.split(r"[><=]", one)[0] for one in PROJECT["dependencies"] if "<" in one.partition(";")[0]}

    assert capped == CAPPED


def test_the_server_of_a_checkout_asks_for_the_same():
    listed = (ROOT / "requirements" / "serve.in").read_text().replace('"', "'").splitlines()

    assert [line for line in listed if not line.startswith("#")] == PROJECT["dependencies"]
