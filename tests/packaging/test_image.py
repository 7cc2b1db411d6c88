"""The image is made without a daemon, and serves as a user who is not root; the compose file fits it."""

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from edgestead import config
from tests.packaging.bare import Tree, base
from tests.packaging.conftest import ROOT, SECONDS_MAX

DOCKERFILE = ROOT / "packaging" / "Dockerfile"
COMPOSE = ROOT / "src" / "edgestead" / "cli" / "server" / "units" / "compose.yaml"
# The entrypoint in a network of its own, until the image's own check is content; then who it is that serves.
_LIVE = """
ip link set lo up
setsid "$@" >"$LOG" 2>&1 &
for second in $(seq 100); do sleep 0.5; eval "$CHECK" 2>/dev/null && break; done
eval "$CHECK" && echo healthy
eval "$RUN edgecli zone create example.com" >/dev/null && eval "$RUN edgecli zone list"
eval "$RUN stat -c %u /data/control.db"
"""


def words(instruction):
    """What stands behind an instruction of the Dockerfile, each time."""
    text = DOCKERFILE.read_text().replace("\\\n", " ")
    return re.findall(rf"^{instruction} (.*)$", text, re.MULTILINE)


def test_the_compose_file_fits_the_image():
    service = yaml.safe_load(COMPOSE.read_text())["services"]["edgestead"]
    exposed = {port if "/" in port else f"{port}/tcp" for port in words("EXPOSE")[0].split()}
    inside = {port.rpartition(":")[2] for port in service["ports"]}
    mounted = [volume.split(":")[1] for volume in service["volumes"]]

    assert {port if "/" in port else f"{port}/tcp" for port in inside} <= exposed
    assert words("VOLUME")[0] in mounted
    assert set(service["environment"]) <= {"EDGE_ADDRESS"}
    assert {word[2:] for word in service["command"] if word.startswith("--")} <= {
        *(option.key for option in config.OPTIONS),
        "config",
    }
    assert service["command"][1] in mounted
    assert "127.0.0.1:8787:8787" in service["ports"], "the API is for this machine"


class Buildah:
    """buildah, with a store of its own. `vfs` copies what `overlay` stacks, 15 s more, and works anywhere."""

    def __init__(self, folder):
        self.command = ["buildah", "--storage-driver", "vfs"]
        self.command += ["--root", str(folder / "store"), "--runroot", str(folder / "run")]

    def __call__(self, *words, **more):
        return subprocess.run(
            [*self.command, *map(str, words)],
            check=True,
            text=True,
            stdout=subprocess.PIPE,
            timeout=SECONDS_MAX,
            **more,
        ).stdout.strip()


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    if not shutil.which("buildah"):
        pytest.skip("NO IMAGE: buildah is not installed")
    system = base("bookworm")
    folder = tmp_path_factory.mktemp("image")
    buildah, tree = Buildah(folder), Tree(folder / "tree")
    scratch = buildah("from", "scratch")
    buildah("add", "--quiet", scratch, system, "/")
    buildah("commit", "--quiet", "--rm", scratch, "docker.io/library/base:latest")
    volumes = [f"{tree.folder / place}:/{place}:ro" for place in ("etc/pip.conf", "srv/pip")]
    volumes += [f"{path}:{path}:ro" for path in tree.shared]
    buildah(
        *("bud", "--quiet", "--isolation", "chroot", "--format", "docker", "--pull-never"),
        *(word for volume in volumes if Path(volume.split(":")[0]).exists() for word in ("-v", volume)),
        *("--build-arg", "BASE=docker.io/library/base:latest", "-f", DOCKERFILE, "-t", "edgestead", ROOT),
    )
    yield buildah
    buildah("rmi", "--all", "--force")


def test_it_is_well_as_a_user_who_is_not_root(image, tmp_path):
    said = json.loads(image("inspect", "--type", "image", "edgestead"))["Docker"]["config"]
    container = image("from", "--pull-never", "edgestead")
    run = [*image.command, "run", "--isolation", "chroot", "--user", said["User"]]
    run += [container, "--"]  # the volume is the one that the image names
    environ = {
        "LOG": str(tmp_path / "log"),
        "RUN": shlex.join(run),
        "CHECK": shlex.join([*run, *said["Healthcheck"]["Test"][1:]]),
    }

    done = subprocess.run(
        [
            *("unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"),
            *("sh", "-c", _LIVE, "sh", *run, *said["Entrypoint"]),
        ],
        env=os.environ | environ,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )

    assert (said["User"], set(said["Volumes"])) == ("edgestead", {"/data"})
    assert "healthy" in done.stdout, done.stderr + (tmp_path / "log").read_text()
    assert "example.com" in done.stdout
    assert done.stdout.split()[-1] == "900", "the data is its own"
