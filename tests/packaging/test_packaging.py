"""What is handed out: the wheel and the sdist, systemd's units, the example configuration, the container."""

import configparser
import fnmatch
import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

from edgestead import __version__, config
from edgestead.cli.server.init import files_for
from edgestead.server.supervisor.main import START_SECONDS_MAX
from tests.packaging.conftest import ROOT, SECONDS_MAX, build
from tests.packaging.first_page import PYTHONS, as_root

PACKAGING = ROOT / "packaging"
UNITS = ROOT / "src" / "edgestead" / "cli" / "server" / "units"
SERVICE, SOCKET = (UNITS / f"edgestead.{kind}" for kind in ("service", "socket"))
PACKAGE_FILES = sorted(
    str(file.relative_to(ROOT / "src"))
    for file in (ROOT / "src" / "edgestead").rglob("*")
    if file.is_file() and "__pycache__" not in file.parts
)


def test_the_wheel_has_every_file_of_the_package(wheel):
    with zipfile.ZipFile(wheel) as archive:
        found = sorted(name for name in archive.namelist() if name.startswith("edgestead/"))

    assert found == PACKAGE_FILES


def digests(archive):
    """The digest of each file in a wheel."""
    with zipfile.ZipFile(archive) as opened:
        return {name: hashlib.sha256(opened.read(name)).hexdigest() for name in opened.namelist()}


def test_the_sdist_builds_the_same_wheel(wheel, tmp_path):
    sdist = build("sdist", ROOT, tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (source,) = (tmp_path / "unpacked").iterdir()

    again = build("wheel", source, tmp_path / "again")

    # Digests: a comparison of contents that fails would be explained for minutes.
    first, second = (digests(built) for built in (wheel, again))
    assert sorted(first) == sorted(second)
    assert [name for name in first if first[name] != second[name]] == []


def test_the_octodns_provider_is_a_wheel_of_its_own(tmp_path):
    source = PACKAGING / "octodns"

    built = build("wheel", source, tmp_path)

    with zipfile.ZipFile(built) as archive:
        found = {name for name in archive.namelist() if ".dist-info/" not in name}
    files = (source / "src").rglob("octodns_edgestead/*")
    assert found == {str(file.relative_to(source / "src")) for file in files if file.is_file()}


def test_the_changelog_has_the_version_that_is_built():
    assert re.search(
        rf"^## \[{re.escape(__version__)}\] - \d{{4}}-", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )


def test_no_entry_of_the_changelog_is_there_twice():
    entries = re.findall(r"^- (?:.|\n(?=  ))+", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)

    # Branches that were merged line by line have brought whole lists back.
    assert len(entries) > 200
    assert [entry[:80] for entry in sorted(set(entries)) if entries.count(entry) > 1] == []


@pytest.mark.parametrize("suite", PYTHONS)
def test_the_first_page_installs_the_package_that_a_release_has_for_each_debian(suite):
    install, _ = as_root(suite)
    made = re.search(r"for version in ([\d. ]+);", (ROOT / "scripts" / "release").read_text())[1].split()
    files = {version: f"edgestead_{__version__}+python{version}_amd64.deb" for version in made}

    (typed,) = re.findall(r"apt install \./(\S+\.deb)", install)
    assert fnmatch.filter(files.values(), typed) == [files[PYTHONS[suite]]]


def read_unit(file):
    parser = configparser.RawConfigParser(strict=False, delimiters=("=",), comment_prefixes=("#",))
    parser.optionxform = str
    parser.read(file)
    return parser


def of_init():
    return files_for("192.0.2.10", ["ns1.example.net"], "systemd")["edgestead.toml"]


@pytest.mark.parametrize("written", [(PACKAGING / "edgestead.toml").read_text, of_init])
def test_the_sockets_are_where_the_configuration_serves(written, tmp_path):
    (tmp_path / "edgestead.toml").write_text(written())
    listens = re.findall(r"^Listen(?:Stream|Datagram)=(\S+)$", SOCKET.read_text(), re.MULTILINE)
    settings = config.load({}, tmp_path / "edgestead.toml")

    # Whoever connects to a socket that systemd holds and nobody serves hangs.
    public = (settings.dns, settings.dns, settings.http, settings.https)
    assert sorted(map(str, public)) == sorted(listens), "that of DNS twice, for UDP and TCP"
    assert settings.edge_addresses, "a wildcard is no address that a proxied name can answer"
    assert settings.api.host == "127.0.0.1"


def test_the_service_is_up_when_it_says_so_and_is_looked_after():
    service = read_unit(SERVICE)["Service"]

    assert (service["Type"], service["OOMPolicy"]) == ("notify", "continue")
    assert int(service["WatchdogSec"]) > 0
    assert int(service["TimeoutStartSec"]) > START_SECONDS_MAX


def test_the_service_runs_what_is_installed():
    command = read_unit(SERVICE)["Service"]["ExecStart"].split()

    assert command[:2] == ["/opt/edgestead/bin/edgecli", "serve"]
    known = {f"--{option.key}" for option in config.OPTIONS if option.flag} | {"--config"}
    assert {word for word in command if word.startswith("--")} <= known


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_systemd_takes_the_units(tmp_path):
    for unit in (SERVICE, SOCKET):
        (tmp_path / unit.name).write_text(
            unit.read_text().replace("/opt/edgestead/bin/edgecli", sys.executable)
        )

    found = subprocess.run(
        ["systemd-analyze", "verify", *map(str, sorted(tmp_path.iterdir()))],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )

    assert (found.returncode, found.stderr) == (0, "")


def test_the_container_is_made_of_what_is_there():
    lines = (PACKAGING / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    copied = [
        word
        for line in lines
        if line.startswith("COPY ") and "--from" not in line
        for word in line.split()[1:-1]
    ]
    options = re.findall(r"--([a-z-]+)", next(line for line in lines if line.startswith("ENTRYPOINT")))

    assert copied
    assert [word for word in copied if not (ROOT / word).exists()] == []
    assert set(options) <= {option.key for option in config.OPTIONS}
