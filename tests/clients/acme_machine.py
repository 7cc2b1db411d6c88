"""A machine of its own for programs of ACME: DNS at port 53, the edge at port 80, names that resolve.

Owns  the network namespace's files, servers and programs; prints what each program got, as JSON.
Not   judging that (tests/clients/test_acme_programs.py).

Run by `unshare --net --mount`: nothing here can be reached from outside, nor reach anything. The programs are
unmodified, their checks of propagation on: they find the zone's name servers by their names and ask each of
them.
"""

import http.server
import json
import os
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

from edgestead.testing.server import EdgeServer, wait_until
from tests.support.pairs import CA
from tests.support.patience import patient
from tests.support.pebble import Pebble

EDGE, ORIGIN = "127.0.0.2", ("127.0.0.3", 8_000)
ZONE = "shop.example"
SECONDS = 300
HOOK = r"""#!/bin/sh
# deploy_challenge|clean_challenge NAME _ VALUE (dehydrated); begin|done|failed METHOD NAME _ VALUE (uacme);
# put|drop, the rest in the environment (certbot)
set -eu
case "$1" in
  deploy_challenge) do=put; name=$2; value=$4 ;;
  clean_challenge) do=drop; name=$2; value=$4 ;;
  begin) [ "$2" = dns-01 ] || exit 1; do=put; name=$3; value=$5 ;;
  done|failed) do=drop; name=$3; value=$5 ;;
  put|drop) do=$1; name=$CERTBOT_DOMAIN; value=$CERTBOT_VALIDATION ;;
  *) exit 0 ;;
esac
api() { curl -sSf -H "Authorization: Bearer $EDGE_TOKEN" -H 'Content-Type: application/json' "$@"; }
records=$EDGE_API_BASE/zones/$EDGE_ZONE_ID/dns_records
if [ $do = put ]; then
  jq -n --arg name "_acme-challenge.$name" --arg value "$value" \
    '{type: "TXT", name: $name, content: $value, ttl: 60}' | api "$records" -d @- >/dev/null
  for server in $(dig +short NS "$EDGE_ZONE"); do
    dig +short TXT "_acme-challenge.$name" @"$server" | grep -qF -e "$value"
  done
else
  for id in $(api "$records?type=TXT&name=_acme-challenge.$name" | jq -r '.result[].id'); do
    api -X DELETE "$records/$id" >/dev/null
  done
fi
"""


class Machine:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        bundle = Path("/etc/ssl/certs/ca-certificates.crt")
        self._instead("/etc/resolv.conf", b"nameserver 127.0.0.1\n")
        self._instead("/etc/hosts", b"127.0.0.1 localhost\n")
        self._instead(str(bundle), bundle.read_bytes() + CA.certificate_pem)
        serve = partial(http.server.SimpleHTTPRequestHandler, directory=str(folder / "origin"))
        (folder / "origin" / ".well-known" / "acme-challenge").mkdir(parents=True)
        threading.Thread(target=http.server.HTTPServer(ORIGIN, serve).serve_forever, daemon=True).start()
        flags = ["--dns", "127.0.0.1:53", "--http", f"{EDGE}:80", "--origin-port", str(ORIGIN[1])]
        flags += ["--edge-address", EDGE, "--origin-allow", "127.0.0.0/8", "--profile", "clients"]
        names = ["--nameserver", "ns1.hosts.example", "--nameserver", "ns2.hosts.example"]
        self.server = EdgeServer(folder / "data", *patient(folder), *flags, *names).start()
        hosts = self.server.make_zone("hosts.example")
        for name in ("ns1", "ns2"):
            self._record(hosts, f"{name}.hosts.example", "127.0.0.1")
        self.zone_id = self.server.make_zone(ZONE)
        self._record(self.zone_id, f"www.{ZONE}", ORIGIN[0], proxied=True)
        self.pebble = Pebble(folder, "127.0.0.1:53", http_port=80)  # dehydrated asks once with a nonce

    def _instead(self, path: str, content: bytes) -> None:
        """Another content of a file, for this namespace alone."""
        own = self.folder / Path(path).name
        own.write_bytes(content)
        subprocess.run(["mount", "--bind", own, path], check=True)

    def _record(self, zone_id: str, name: str, address: str, **more: object) -> None:
        answer = self.server.make_record(zone_id, "A", name, address, **more)
        assert answer.status == 200, answer

    def run(self, *command: str, **environment: str) -> str:
        ready = self.server.ready
        own = {
            "EDGE_API_BASE": ready["api_base"],
            "EDGE_TOKEN": ready["api_token"],
            "EDGE_ZONE": ZONE,
            "EDGE_ZONE_ID": self.zone_id,
            "HOME": str(self.folder),
        }
        done = subprocess.run(
            command,
            env={"PATH": os.environ["PATH"], **own, **environment},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, (command[0], done.stdout[-2_000:], done.stderr[-2_000:])
        return done.stdout

    def hook(self) -> str:
        path = self.folder / "hook"
        path.write_text(HOOK)
        path.chmod(0o755)
        return str(path)

    def key(self, name: str) -> str:
        """The secret of a new key that may change TXT records."""
        account = self.server.ready["account_id"]
        wanted = {"name": name, "transfer": False, "update": {"names": [f"*.{ZONE}"], "types": ["TXT"]}}
        made = self.server.call("POST", f"/accounts/{account}/secondary_dns/tsigs", wanted)
        return str(made.result["secret"])

    # The programs. Each returns its certificate's path.

    def lego(self) -> Path:
        """By dynamic updates: Debian builds it without the API's provider."""
        where, name = self.folder / "lego", f"lego.{ZONE}"
        names = ["--domains", ZONE, "--domains", f"*.{ZONE}"]
        self.run(
            *("lego", "--accept-tos", "--email", "a@example.com", "--server", self.pebble.directory),
            *("--dns", "rfc2136", "--path", str(where), *names, "run"),
            RFC2136_NAMESERVER="127.0.0.1:53",
            RFC2136_TSIG_ALGORITHM="hmac-sha256.",
            RFC2136_TSIG_KEY=name,
            RFC2136_TSIG_SECRET=self.key(name),
            RFC2136_SEQUENCE_INTERVAL="1",  # between two names; a minute by default
        )
        return where / "certificates" / f"{ZONE}.crt"

    def dehydrated(self) -> Path:
        where = self.folder / "dehydrated"
        where.mkdir()
        lines = [f"CA={self.pebble.directory}", "CHALLENGETYPE=dns-01", f"HOOK={self.hook()}"]
        lines += [f"BASEDIR={where}", "KEY_ALGO=prime256v1", "CONTACT_EMAIL=a@example.com"]
        (where / "config").write_text("\n".join(lines) + "\n")
        common = ["dehydrated", "--config", str(where / "config")]
        self.run(*common, "--register", "--accept-terms")
        self.run(*common, "--cron", "--domain", f"{ZONE} *.{ZONE}")
        return where / "certs" / ZONE / "cert.pem"

    def uacme(self) -> Path:
        where = self.folder / "uacme"
        common = ["uacme", "-v", "-a", self.pebble.directory, "-c", str(where), "-t", "EC"]
        self.run(*common, "-y", "new", "a@example.com")
        self.run(*common, "-h", self.hook(), "issue", ZONE, f"*.{ZONE}")
        return where / ZONE / "cert.pem"

    def certbot(self) -> Path:
        hook = self.hook()
        return self._certbot(
            *("--manual", "--preferred-challenges", "dns"),
            *("--manual-auth-hook", f"{hook} put", "--manual-cleanup-hook", f"{hook} drop"),
        )

    def certbot_rfc2136(self) -> Path:
        """As docs/how-to/dynamic-updates.md says it."""
        name, file = f"certbot.{ZONE}", self.folder / "certbot.ini"
        file.touch(0o600)
        said = {
            "server": "127.0.0.1",
            "name": f"{name}.",
            "secret": self.key(name),
            "algorithm": "HMAC-SHA256",
        }
        file.write_text("".join(f"dns_rfc2136_{key} = {value}\n" for key, value in said.items()))
        return self._certbot(
            *("--dns-rfc2136", "--dns-rfc2136-credentials", str(file)),
            *("--dns-rfc2136-propagation-seconds", "1"),  # a minute by default
        )

    def _certbot(self, *how: str) -> Path:
        where = self.folder / how[0]
        folders = [part for one in ("config", "work", "logs") for part in (f"--{one}-dir", str(where / one))]
        names = ["--domain", ZONE, "--domain", f"*.{ZONE}"]
        common = ["certbot", "certonly", "--non-interactive", "--agree-tos", "--email", "a@example.com"]
        self.run(*common, "--server", self.pebble.directory, *folders, *names, *how)
        return where / "config" / "live" / ZONE / "cert.pem"

    def acme_tiny(self) -> Path:
        """HTTP-01 through the edge, which passes on what it was not asked to answer itself."""
        where = self.folder / "acme-tiny"
        where.mkdir()
        self.run("openssl", "genrsa", "-out", str(where / "account.key"), "2048")
        subject = ["-subj", "/", "-addext", f"subjectAltName=DNS:www.{ZONE}"]
        new = ["-newkey", "rsa:2048", "-nodes", "-keyout", str(where / "key.pem")]
        self.run("openssl", "req", "-new", *new, *subject, "-out", str(where / "csr.pem"))
        challenges = self.folder / "origin" / ".well-known" / "acme-challenge"
        chain = self.run(
            *("acme-tiny", "--account-key", str(where / "account.key"), "--csr", str(where / "csr.pem")),
            *("--acme-dir", str(challenges), "--directory-url", self.pebble.directory),
        )
        (where / "chain.pem").write_text(chain)
        return where / "chain.pem"

    def names(self, path: Path) -> list[str]:
        from cryptography import x509

        leaf = x509.load_pem_x509_certificates(path.read_bytes())[0]
        found = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        return sorted(found.get_values_for_type(x509.DNSName))

    def left(self) -> list[str]:
        """Challenges that a program left behind."""
        records = self.server.call("GET", f"/zones/{self.zone_id}/dns_records?type=TXT").result
        return [record["name"] for record in records]


PROGRAMS = ("lego", "dehydrated", "uacme", "certbot", "certbot_rfc2136", "acme_tiny")


def main(folder: Path) -> None:
    machine = Machine(folder)
    found: dict[str, object] = {}
    try:
        wait_until(lambda: machine.server.dig(f"www.{ZONE}", "A") == [EDGE], SECONDS)
        for program in PROGRAMS:
            try:
                found[program] = {"names": machine.names(getattr(machine, program)()), "left": machine.left()}
            except Exception as error:
                found[program] = {"error": repr(error)}
    finally:
        machine.pebble.close()
        machine.server.close()
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
