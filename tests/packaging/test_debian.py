"""The Debian package, installed by dpkg into a copy of this machine that ends with the test."""

import os
import re
import shutil
import subprocess
import sys
import tempfile

import pytest

import edgestead
from tests.packaging.conftest import ROOT, SECONDS_MAX, run

UNITS = ROOT / "src" / "edgestead" / "cli" / "server" / "units"
# The copy: what is written goes to memory, and the mounts end with the namespace.
_COPY = """
set -e
mount -t tmpfs none /mnt && mkdir /mnt/upper /mnt/work /mnt/copy
mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work /mnt/copy
mount --rbind /dev /mnt/copy/dev && mount -t proc proc /mnt/copy/proc
"""
_INSTALLED = """
set -e
dpkg -i "$1" >/tmp/installed.txt
echo user $(getent passwd edgestead | cut -d: -f1,6)
echo version $(edgecli --version)
echo compiled $(ls /opt/edgestead/lib/*/site-packages/edgestead/model/__pycache__ | grep -c names.cpython)
echo said $(grep -c 'systemctl enable --now' /tmp/installed.txt)
install -d -o edgestead -g edgestead -m 0700 /var/lib/edgestead
export EDGE_DATA_DIR=/var/lib/edgestead
setpriv --reuid edgestead --regid edgestead --clear-groups edgecli serve --api 127.0.0.1:0 \\
    --dns 127.0.0.1:0 --http 127.0.0.1:0 --log-level error \\
    --ready-file /var/lib/edgestead/ready.json >/dev/null &
server=$!
for second in $(seq 120); do [ -e /var/lib/edgestead/ready.json ] && break; sleep 1; done
edgecli zone create example.com >/dev/null && echo zones $(edgecli zone list | grep -c example.com)
echo managed $(edgecli ruleset list | grep -c managed)
echo missing $(edgecli doctor | grep -c 'libinjection is missing')
kill $server && wait $server && echo ended $?
dpkg -r edgestead >/dev/null
echo kept $(ls -d /var/lib/edgestead/control.db /etc/edgestead.toml)
echo gone $(ls -d /opt/edgestead /usr/bin/edgecli 2>/dev/null)
"""


def field(package, name):
    return run("dpkg-deb", "-f", str(package), name).strip()


def test_its_name_and_its_needs(package):
    minor = sys.version_info.minor

    version = f"{edgestead.__version__}+python3.{minor}"
    assert field(package, "Version") == version
    assert package.name == f"edgestead_{version}_{field(package, 'Architecture')}.deb"
    assert f"python3 (>= 3.{minor}), python3 (<< 3.{minor + 1})" in field(package, "Depends")
    assert {"modsecurity-crs", "libmodsecurity3"} <= set(field(package, "Depends").split(", "))


def test_it_holds_units_and_no_path_of_the_machine_that_built_it(package, tmp_path):
    run("dpkg-deb", "-x", str(package), str(tmp_path))

    units = tmp_path / "usr" / "lib" / "systemd" / "system"
    assert (units / "edgestead.service").read_bytes() == (
        ROOT / "src" / "edgestead" / "cli" / "server" / "units" / "edgestead.service"
    ).read_bytes()
    assert "User=edgestead" in (units / "edgestead.service.d" / "user.conf").read_text()
    texts = [
        file
        for file in tmp_path.rglob("*")
        if file.is_file() and file.suffix in ("", ".cfg", ".json", ".txt", ".py", ".md")
    ]
    strange = (str(ROOT).encode(), tempfile.gettempdir().encode() + b"/tmp.")
    assert [file.name for file in texts if any(path in file.read_bytes() for path in strange)] == []


def test_the_pages_that_messages_name_are_in_it(package, tmp_path):
    run("dpkg-deb", "-x", str(package), str(tmp_path))
    told = [*(ROOT / "src").rglob("*.py"), *(ROOT / "packaging").glob("*.toml"), *UNITS.glob("edgestead*")]
    named = {page for file in told for page in re.findall(r"docs/[\w./-]+\.md", file.read_text())}

    assert len(named) > 10
    documents = tmp_path / "usr" / "share" / "doc" / "edgestead"
    assert [page for page in sorted(named) if not (documents / page).is_file()] == []


def in_a_copy(package):
    if os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("installing needs root, in a namespace of its own")
    script = _COPY + 'chroot /mnt/copy sh -c "$2" sh "$1"'
    tried = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", str(package), _INSTALLED],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    if "overlay" in tried.stderr and "mount" in tried.stderr and not tried.stdout:
        pytest.skip(f"no overlay here: {tried.stderr.strip()}")
    assert tried.returncode == 0, tried.stdout + tried.stderr
    return dict(line.partition(" ")[::2] for line in tried.stdout.splitlines())


def test_it_installs_serves_and_leaves_what_is_the_operators(package):
    seen = in_a_copy(package)

    assert seen == {
        "user": "edgestead:/var/lib/edgestead",
        "version": f"edgecli {edgestead.__version__}",
        "compiled": "1",
        "said": "1",
        "zones": "1",
        "managed": "1",
        "missing": "0",
        "ended": "0",
        "kept": "/etc/edgestead.toml /var/lib/edgestead/control.db",
        "gone": "",
    }
