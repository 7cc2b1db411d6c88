"""Who types only what the first page of the docs says, on a bare Debian, has it all.

A zone moved from BIND, a site behind rules, an object, and a backup that was restored once: as root from the
Debian package, and as an ordinary user by pip.
"""

import os
import re
from pathlib import Path

import pytest

from tests.packaging.bare import Tree
from tests.packaging.conftest import ROOT, run
from tests.packaging.first_page import PYTHONS, RESTORED, SITE, as_root, first_page, furnish, typed
from tests.packaging.test_bounds import THIS


@pytest.fixture
def tree(tmp_path):
    made = Tree(tmp_path / "bare")
    furnish(made)
    return made


def has_it_all(printed):
    """A zone of BIND, a site behind a rule, an object, and a backup that answers as the server did."""
    assert "Nothing differs." in printed
    assert re.findall(r"^\d+$", printed, re.MULTILINE) == ["200", "403", "1", "2"]
    assert printed.rstrip().endswith("192.0.2.25"), printed[-400:]


@pytest.fixture
def package_for(package, tmp_path):
    """A function that gives the package for a suite's Python."""

    def made(suite):
        version = PYTHONS[suite]
        if version == THIS:
            return package
        quick = os.environ | {"DPKG_DEB_COMPRESSOR_LEVEL": "0"}
        build = (str(ROOT / "scripts/build-deb"), "--for", version, str(tmp_path / "deb"))
        return Path(run(*build, env=quick).split()[-1])

    return made


@pytest.mark.parametrize("suite", ["bookworm", pytest.param("trixie", marks=pytest.mark.long)])
def test_as_root_from_the_package(suite, package_for, tree):
    tree.copy(package_for(suite), "root")
    install, rest = as_root(suite)

    printed = tree.type(suite, f"set -eu\n{install}", f"set -eu\n{rest}{RESTORED}")

    has_it_all(printed)
    assert "example.com" in printed


USER = """set -eu
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get -qq -y --no-install-recommends install python3-venv curl ca-certificates
useradd --create-home --shell /bin/sh ann
cp /root/edgestead* /home/ann
chown ann /home/ann/*
"""


def as_user(script):
    """A script that types it all in one shell of an ordinary user's."""
    return f"su - ann -c 'sh -eu' <<'TYPED'\n{script}\nTYPED\n"


@pytest.mark.parametrize("suite", ["bookworm", pytest.param("trixie", marks=pytest.mark.long)])
def test_as_an_ordinary_user_by_pip(suite, wheel, tree):
    tree.copy(wheel, "root")
    tree.write("root/edgestead-0-requirements.txt", (ROOT / "requirements" / "serve.txt").read_text())
    install, rest = typed(first_page(), "ordinary user")
    printed = tree.type(
        suite,
        USER + as_user(f"{install}\nexport -p >~/known"),
        "set -eu\n" + as_user(f". ~/known\n{SITE}{rest}{RESTORED}"),
    )

    has_it_all(printed)
