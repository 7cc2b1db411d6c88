"""Who types only what the production page says, on a bare Debian, has it all.

A zone moved from BIND, a site behind rules, an object, and a backup that was restored once: as root from the
Debian package, and as an ordinary user by pip.
"""

import re

import pytest

from tests.packaging.bare import Tree
from tests.packaging.conftest import ROOT

PAGE = "docs/how-to/production.md"
INSTALLED = "## 2. Configure it"  # what is above this heading needs a network
OTHERS = {"root": "ordinary user", "ordinary user": "root"}
# /etc/bind as Debian's package leaves it, with two zones.
BIND = {
    "named.conf": 'include "/etc/bind/named.conf.options";\ninclude "/etc/bind/named.conf.local";\n'
    'include "/etc/bind/named.conf.default-zones";\n',
    "named.conf.options": 'options {\n\tdirectory "/var/cache/bind";\n\tdnssec-validation auto;\n};\n',
    "named.conf.local": 'zone "example.com" { type master; file "/etc/bind/db.example.com"; };\n'
    'zone "example.org" { type master; file "/etc/bind/db.example.org"; };\n',
    "named.conf.default-zones": 'zone "." { type hint; file "/usr/share/dns/root.hints"; };\n'
    'zone "localhost" { type master; file "/etc/bind/db.local"; };\n',
    "db.local": "$TTL 604800\n@ IN SOA localhost. root.localhost. 2 604800 86400 2419200 604800\n"
    "@ IN NS localhost.\n@ IN A 127.0.0.1\n",
}
ZONE_FILE = """
$TTL 300
@     IN SOA ns1.old.example. root.old.example. 7 3600 600 86400 300
@     IN NS  ns1.old.example.
@     IN A   192.0.2.80
www   IN A   192.0.2.80
mail  IN A   192.0.2.25
@     IN MX  10 mail
_dmarc IN TXT "v=DMARC1; p=reject"
"""
SCP = '#!/bin/sh\n[ "$*" = "-r old.example.net:/etc/bind bind" ] && exec cp -r /srv/old/bind bind\n'
SITE = """
mkdir /tmp/site && touch /tmp/site/index.html /tmp/site/admin
(cd /tmp/site && exec python3 -m http.server 8800 --bind 127.0.0.1 >/dev/null 2>&1) &
"""
RESTORED = """
edgecli serve --data-dir again --api 127.0.0.1:9787 --dns 127.0.0.1:9300 --http 127.0.0.1:9080 \\
    --objects "$PWD/edge/classes" --objects-http 127.0.0.1:9788 --quiet >/dev/null 2>&1 &
unset EDGE_API_BASE EDGE_TOKEN EDGE_OBJECTS_ADDR EDGE_DNS_ADDR
until edgecli status --data-dir again >/dev/null 2>&1; do sleep 0.2; done
eval "$(edgecli env --data-dir again)"
edgecli object call Visits home add
edgecli dns query mail.example.org
"""


def typed(page, who):
    """What somebody types: every block that has a grey edge or is indented, without those for others."""
    lines, mine, fenced = [], True, False
    for line in (ROOT / page).read_text().splitlines():
        if line.startswith("#") and not fenced:
            mine = OTHERS[who] not in line
            lines.append(line)
        elif line.startswith("```"):
            fenced = not fenced
        elif mine and (fenced or line.startswith("    ")):
            lines.append(line if fenced else line.removeprefix("    "))
    before, found, after = "\n".join(lines).partition(INSTALLED)
    assert found
    return before + "\n", after + "\n"


@pytest.fixture
def tree(tmp_path):
    made = Tree(tmp_path / "bare")
    for name, text in BIND.items():
        made.write(f"srv/old/bind/{name}", text)
    for name in ("example.com", "example.org"):
        made.write(f"srv/old/bind/db.{name}", ZONE_FILE)
    made.write("usr/local/bin/scp", SCP, 0o755)
    made.write("usr/local/bin/systemctl", (ROOT / "tests/packaging/systemctl.py").read_text(), 0o755)
    return made


def has_it_all(printed):
    """A zone of BIND, a site behind a rule, an object, and a backup that answers as the server did."""
    assert "Nothing differs." in printed
    assert re.findall(r"^\d+$", printed, re.MULTILINE) == ["200", "403", "1", "2"]
    assert printed.rstrip().endswith("192.0.2.25"), printed[-400:]


def test_as_root_from_the_package(package, tree):
    tree.copy(package, "root")
    install, rest = typed(PAGE, "root")

    printed = tree.type(
        "bookworm",
        f"set -eu\ncd\nexport HOME=/root DEBIAN_FRONTEND=noninteractive\napt-get update -qq\n"
        f'apt() {{ apt-get -qq -y --no-install-recommends "$@"; }}\n{install}',
        f"set -eu\n{SITE}{rest}{RESTORED}",
    )

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
    install, rest = typed(PAGE, "ordinary user")
    printed = tree.type(
        suite,
        USER + as_user(f"{install}\nexport -p >~/known"),
        "set -eu\n" + as_user(f". ~/known\n{SITE}{rest}{RESTORED}"),
    )

    has_it_all(printed)
