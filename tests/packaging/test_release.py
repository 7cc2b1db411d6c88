"""A release's files: the same bytes twice, signed, and with a list of what is in them."""

import json
import re
import shutil
import subprocess

import pytest

from tests.packaging.conftest import ROOT, SECONDS_MAX, run

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


@pytest.fixture(scope="module")
def released(key, tmp_path_factory):
    """Two releases of one commit, from clones in different places."""
    made = []
    for name in ("one", "another/place"):
        clone = tmp_path_factory.mktemp("release") / name
        run("git", "clone", "--quiet", str(ROOT), str(clone))
        run(str(clone / "scripts" / "release"), "--key", str(key), str(clone.parent / "dist"))
        made.append(clone.parent / "dist")
    return made


def test_two_releases_of_a_commit_are_the_same_bytes(released):
    one, another = ((folder / "SHA256SUMS").read_text().splitlines() for folder in released)

    assert one == another
    assert len(one) == 6


def test_the_checksums_are_of_all_files_and_signed(released, key, tmp_path):
    folder = released[0]
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
    (file,) = released[0].glob("*.cdx.json")
    told = json.loads(file.read_text())
    listed = {part["name"].lower().replace("_", "-"): part for part in told["components"]}
    lines = (ROOT / "requirements" / "serve.txt").read_text()
    locked = dict(re.findall(r"^([\w.-]+)==([\w.]+)", lines, re.MULTILINE))

    here = locked.keys() & listed.keys()
    assert {name: listed[name]["version"] for name in here} == {name: locked[name] for name in here}
    assert {line for line in locked if line not in listed} <= {"typing-extensions", "colorama"}
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
