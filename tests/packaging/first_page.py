"""What somebody types who follows the first page of the docs, and the machine with BIND that they come from.

Owns  which page that is, its commands for root and for an ordinary user, and what they find on the way.
Not   the bare system (`bare`), or what has to be there at the end (`test_bare_system`).
"""

import re

from tests.packaging.conftest import ROOT

INDEX = "docs/index.md"
INSTALLED = "## 2. Configure it"  # what is above this heading needs a network
DEBIANS = {"bookworm": "Debian 12", "trixie": "Debian 13"}  # a line that ends so is typed there alone
PYTHONS = {"bookworm": "3.11", "trixie": "3.13"}  # each has one, and packages of a release are for these
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


PREPARED = """cd
export HOME=/root DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt() { apt-get -qq -y --no-install-recommends "$@"; }
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


def first_page():
    """The page that the index of all pages names first."""
    link = re.search(r"^\* \[.*\]\((.*\.md)\)$", (ROOT / INDEX).read_text(), re.MULTILINE)
    return f"docs/{link[1]}"


def furnish(tree):
    """The machine that BIND runs on, as far as the page's `scp` reaches, and a stand-in for systemd."""
    for name, text in BIND.items():
        tree.write(f"srv/old/bind/{name}", text)
    for name in ("example.com", "example.org"):
        tree.write(f"srv/old/bind/db.{name}", ZONE_FILE)
    tree.write("usr/local/bin/scp", SCP, 0o755)
    tree.write("usr/local/bin/systemctl", (ROOT / "tests/packaging/systemctl.py").read_text(), 0o755)


def as_root(suite):
    """Two scripts of somebody who is root: up to the installation, with a network, and the rest without."""
    install, rest = typed(first_page(), "root")
    for debian in {*DEBIANS.values()} - {DEBIANS[suite]}:
        install, others = re.subn(rf"^.* # {debian}\n", "", install, flags=re.MULTILINE)
        assert others, f"nothing is for {debian} alone"
    return f"{PREPARED}{install}", f"{SITE}{rest}"
