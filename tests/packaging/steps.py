"""What an operator does with an installed `edgecli`, as a table that any environment can be taken through.

Owns  the commands with what they print, and somebody who calls them in a home of their own.
Not   making environments (`conftest`, `environments`).
"""

import re
import shlex
import subprocess
from pathlib import Path
from typing import NamedTuple

from edgestead.testing.server import EdgeServer
from tests.packaging.conftest import SECONDS_MAX, outside

CLIENT = """
def limits(api, zone):
    return api.get(f"/zones/{zone}/rate_limits")
"""
OBJECT = """
from edgestead import StatefulObject


class Visits(StatefulObject):
    async def add(self) -> int:
        count = await self.ctx.storage.get("count") or 0
        await self.ctx.storage.put("count", count + 1)
        return count + 1
"""
ZONE_FILE = "@ 300 IN MX 10 mail\nmail 300 IN A 192.0.2.25\n"
ATTACK = "GET /?id=1%27%20OR%20%271%27=%271 HTTP/1.1\nHost: www.example.com\nUser-Agent: x\nAccept: */*\n\n"
RULES = '{"phase": "http_request_firewall_custom", "rules": [{"action": "log", "expression": "true"}]}'

STEPS = (  # a command, and what it prints; what stands in <…> is kept for those that follow
    ("--version", r"^edgecli \d"),
    ("--help", r"backup +Copy everything"),
    ("doctor", "the API answers"),
    ("zone create example.com", "example.com"),
    ("zone list", "example.com"),
    ("record create example.com www A 192.0.2.1", r"Created www\.example\.com"),
    ("record create example.com mail A 127.0.0.1 --proxied", "Created"),
    ("record list example.com", "192.0.2.1"),
    ("record update example.com www --content 192.0.2.9", "192.0.2.9"),
    ("zone export example.com", r"www.*192\.0\.2\.9"),
    ("zone history example.com", r"\+ A www\.example\.com"),
    ("zone undo example.com 3", ""),
    ("zone import example.com {folder}/zone.txt", ""),  # python-multipart reads it
    ("zone export example.com", r"MX\s+10"),
    ("certificate list example.com", ""),
    ("dns query www.example.com", "192.0.2.1"),
    ("dns check example.com", ""),
    ("dns dnssec example.com on --parent 127.0.0.1:9", r"example\.com: pending"),
    ("dns dnssec example.com roll --parent 127.0.0.1:9", r": csk, published"),
    ("dns secondary add example.net 127.0.0.1@9", "is asked for at 127.0.0.1@9"),
    ("dns secondary transfer example.net", "is transferred"),
    ("zone delete example.net --yes", ""),
    ("dns catalog on", r"catalog\.invalid lists"),
    ("dns catalog group example.com signed", "signed"),
    ("dns catalog show", "serial"),
    ("dns catalog config knot 192.0.2.1", "catalog-role: interpret"),
    ("dns catalog off", ""),
    ("dns catalog follow catalog.example 127.0.0.1@9 --signed", "is asked for at 127.0.0.1@9"),
    ("dns catalog list", r"catalog\.example"),
    ("dns catalog group-settings catalog.example edge --overrides", "edge with settings"),
    ("dns catalog members catalog.example", ""),
    ("dns catalog unfollow catalog.example --yes", "its zones stay"),
    ("dns key add xfr.example.com", r"hmac-sha256"),
    ("dns key list", r"xfr\.example\.com\."),
    ("dns key show xfr.example.com", r"secret"),
    ("dns secondary add example.net 127.0.0.1@9 --key xfr.example.com --dry-run", r"Nothing is changed"),
    ("dns key remove xfr.example.com --yes", r"removed"),
    ("kv namespace create texts", r"id = \"<space>([0-9a-f]{32})\""),
    ("kv key put greeting hello --namespace-id {space}", ""),
    ("kv key get greeting --namespace-id {space}", "^hello$"),
    ("kv key list --namespace-id {space}", "greeting"),
    ("kv:key get greeting --namespace-id {space}", "^hello"),
    ("kv key put greeting here --namespace-id {space} --local --persist-to {folder}/local", ""),
    ("object call Visits home add", "^1$"),
    ("object list Visits", "home"),
    ("object bookmark Visits home", r"^<bookmark>([0-9a-f-]+)$"),
    ("object call Visits home add", "^2$"),
    ("object restore Visits home {bookmark} --yes", "is back"),
    ("object apart list", ""),
    ("object stats", "Visits"),
    ("object call Visits home add", "^2$"),
    ("objects types {classes}", "Visits"),
    ("ruleset list", ""),
    ("ruleset check {folder}/rules.json", ""),
    ("rule add custom log --description noted", "Added the rule"),
    ("rule list", "noted"),
    ("setting set always_use_https=off", "always_use_https is off"),
    ("export -o {folder}/edge.toml", "1 zone"),  # tomlkit writes it
    ("plan {folder}/edge.toml --check", "Nothing differs"),
    ("apply {folder}/edge.toml --yes", "Nothing differs"),
    ("diff {folder}/edge.toml server", "Nothing differs"),
    ("waf show", "deployed"),
    ("waf explain {folder}/attack.txt", "942100"),  # libinjection's rule
    ("waf events", ""),
    ("token create robot -p 'DNS Read' --zone example.com", r"^\S{40}$"),
    ("token list", "robot"),
    ("token roll robot --yes", r"^\S{40}$"),
    ("token delete robot --yes", ""),
    ("member roles", "Administrator Read Only"),
    ("member invite ann@example.com --role dns", r"/ui/invite\?code=\S{32}$"),
    ("member link ann@example.com", r"/ui/invite\?code=\S{32}$"),
    ("member set ann@example.com --role 'read only'", "Administrator Read Only"),
    ("member list", r"ann@example\.com +pending +Administrator Read Only"),
    ("member remove ann@example.com --yes", "is removed"),
    ("account create Second", "has the id"),
    ("account list", "Second"),
    ("audit", "delete token robot"),
    ("audit --json --zone example.com", r'"type":"record"'),
    ("deprecations list", "2020-04-02"),
    ("deprecations show rate-limits", "http_ratelimit"),
    ("deprecations usage", ""),
    ("tls dev www.example.com --tls-dir {folder}/tls", "ca.pem"),
    ("completion bash", "edgecli"),
    ("credentials rotate --yes", ""),
    ("status", ""),
    ("top --once --seconds 0.2", "supervisor"),
    ("logs --file {folder}/zone.txt", "192.0.2.25"),
    ("init {folder}/units --yes", "edgestead.socket"),
    ("demo --once", "gets 403, and hello gets 200"),
    ("alert list", ""),
    ("dashboard", "/ui/enter"),
    ("env", r"EDGE_TOKEN=.*\S{40}"),
    ("backup {folder}/backup", "files"),
    ("verify {folder}/backup", "is whole"),
    ("verify", "is whole"),
    ("restore {folder}/backup --data-dir {folder}/again", "is as"),
)
ELSEWHERE = {  # commands that tests of their own try below
    "serve": "test_the_steps_of_an_operator",
    "import": "test_an_account_moves_in",
    "cluster": "test_a_cluster_needs_its_database",
}
FILES = {
    "attack.txt": ATTACK,
    "client.py": CLIENT,
    "rules.json": RULES,
    "visits.py": OBJECT,
    "zone.txt": ZONE_FILE,
}


def settle(home, bin_folder, start, *flags):
    """An operator in an empty home, whose server keeps its data where it does by default."""
    data_dir = home / ".local" / "share" / "edgestead"
    data_dir.parent.mkdir(parents=True)
    for name, text in FILES.items():
        (home / name).write_text(text)
    server = start(data_dir, *(flag.format(home=home) for flag in flags))
    return Operator(bin_folder / "edgecli", home, server)


class Operator(NamedTuple):
    """Somebody with the installed commands and a home of their own, where a server runs."""

    command: Path
    folder: Path
    server: EdgeServer

    def call(self, line, *, secrets=None, **known):
        """Run a command as the shell would, with `{name}` filled in."""
        words = [word.format(**known) for word in shlex.split(line)]
        return subprocess.run(
            [str(self.command), *words],
            cwd=self.folder,
            env=outside(HOME=str(self.folder), COLUMNS="120", **(secrets or {})),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
        )

    def take_the_steps(self):
        known = {"folder": self.folder, "classes": self.folder / "visits.py"}
        for line, expected in STEPS:
            done = self.call(line, **known)

            assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
            pattern = re.sub(r"<(\w+)>\(", r"(?P<\1>", expected)
            found = re.search(pattern, done.stdout + done.stderr, re.MULTILINE)
            assert found, f"{line}: {done.stdout}{done.stderr}"
            known |= found.groupdict()
        assert self.server.dig("www.example.com") == ["192.0.2.1"]
