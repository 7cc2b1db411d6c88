"""A release's files: the same bytes twice, signed, and with a list of what is in them."""

import json
import re
import shutil
import subprocess

import pytest
from packaging.requirements import Requirement

from tests.packaging.conftest import ROOT, SECONDS_MAX, run
from tests.packaging.first_page import PYTHONS

RELEASE_SECONDS_MAX = 3_600  # a minute or two of CPU, most of it the packing of the Debian package

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="ssh-keygen is missing"),
    pytest.mark.skipif(not (ROOT / ".git").exists(), reason="a release is made of a commit"),
]


@pytest.fixture(scope="module")
def key(tmp_path_factory):
    file = tmp_path_factory.mktemp("key") / "key"
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "releases", "-f", str(file))
    return file


def release(key, clone, source=ROOT):
    """The folder of a release that is made in a new clone."""
    run("git", "clone", "--quiet", str(source), str(clone))
    command = (str(clone / "scripts" / "release"), "--key", str(key), str(clone.parent / "dist"))
    run(*command, seconds_max=RELEASE_SECONDS_MAX)
    return clone.parent / "dist"


@pytest.fixture(scope="module")
def released(key, tmp_path_factory):
    return release(key, tmp_path_factory.mktemp("release") / "one")


@pytest.fixture(scope="module")
def again(key, released, tmp_path_factory):
    """A second one of the same commit, whatever was committed meanwhile, from another place."""
    return release(key, tmp_path_factory.mktemp("release") / "another/place", released.parent / "one")


def test_two_releases_of_a_commit_are_the_same_bytes(released, again):
    one, another = ((folder / "SHA256SUMS").read_text().splitlines() for folder in (released, again))

    assert one == another
    assert len(one) == 7


def test_each_debian_has_a_package_for_its_python(released):
    packages = sorted(released.glob("*.deb"))

    for version, file in zip(PYTHONS.values(), packages, strict=True):
        assert f"+python{version}_" in file.name
        held = run("dpkg-deb", "-c", str(file))
        extensions = set(re.findall(r"\.cpython-(\d+)-\S+\.so$", held, re.MULTILINE))
        assert extensions == {version.replace(".", "")}
        assert f"./opt/edgestead/lib/python{version}/site-packages/edgestead/" in held


def test_the_checksums_are_of_all_files_and_signed(released, key, tmp_path):
    folder = released
    named = {line.split()[1] for line in (folder / "SHA256SUMS").read_text().splitlines()}
    signers = tmp_path / "signers"
    signers.write_text(f"releases {key.with_suffix('.pub').read_text()}")
    verify = ["ssh-keygen", "-Y", "verify", "-f", str(signers), "-I", "releases", "-n", "edgestead-release"]
    verify += ["-s", str(folder / "SHA256SUMS.sig")]

    def verified(text):
        return subprocess.run(verify, input=text, capture_output=True, timeout=SECONDS_MAX).returncode == 0

    text = (folder / "SHA256SUMS").read_bytes()
    assert verified(text)
    assert not verified(text.replace(b"0", b"1", 1))
    assert named == {file.name for file in folder.iterdir()} - {"SHA256SUMS", "SHA256SUMS.sig"}
    run("sha256sum", "--check", "--quiet", "SHA256SUMS", cwd=folder)


def test_the_list_of_what_is_in_it_has_each_locked_package_with_its_licence(released):
    (file,) = released.glob("*.cdx.json")
    told = json.loads(file.read_text())
    listed = {part["name"].lower().replace("_", "-"): part for part in told["components"]}
    lines = (ROOT / "requirements" / "serve.txt").read_text().splitlines()
    every = [Requirement(line.rstrip(" \\")) for line in lines if re.match(r"\w", line)]
    locked = {one.name: str(one.specifier)[2:] for one in every if not one.marker or one.marker.evaluate()}

    assert {name: listed[name]["version"] for name in locked} == locked
    assert [name for name, part in listed.items() if not part.get("licenses")] == []
    assert told["metadata"]["component"]["name"] == "edgestead"
    assert {one["ref"] for one in told["dependencies"]} >= {"root-component"}


def test_a_checkout_that_differs_is_no_release(tmp_path):
    clone = tmp_path / "clone"
    run("git", "clone", "--quiet", str(ROOT), str(clone))
    (clone / "README.md").write_text("other\n")

    done = subprocess.run(
        [str(clone / "scripts" / "release"), str(tmp_path / "dist")],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )

    assert done.returncode == 1
    assert "differs from its commit" in done.stderr
