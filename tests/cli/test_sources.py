"""Moving in: what other programs hold becomes a document, and when it is applied nothing differs."""

import contextlib
import json
import re
import shutil
import subprocess
import time
import urllib.request
from datetime import UTC, datetime

import pytest

from edgestead.cli.state.sources.blocks import named_statements, nginx_statements
from tests.cli.powerdns import SBIN, make_folder, pdnsutil
from tests.cli.powerdns import needed as powerdns_is_needed
from tests.dns import peers
from tests.support.pairs import issued

ZONE = """
$TTL 1h
@        IN SOA ns1 hostmaster 1 7200 900 1209600 300
@        IN NS  ns1
@        IN MX  10 mail
         IN TXT "v=spf1 mx -all"
@        IN CAA 0 issue "letsencrypt.org"
ns1      IN A   192.0.2.53
mail     30 IN A 192.0.2.25
mail     IN AAAA 2001:DB8:0::25
WWW  1w  IN CNAME @
_sip._tcp IN SRV 10 5 5060 sip.moved.example.
sub      IN NS  ns1.sub
ns1.sub  IN A   192.0.2.54
key      IN TXT ( "first part " "second part" )
*.wild   IN A   192.0.2.99
"""
RECORDS = 12  # beside SOA and NS of the apex


@pytest.fixture
def kv_server(lent):
    """One whose account has nothing of other tests: what moves in stays there until the next one."""
    return lent


def installed(*programs):
    missing = [one for one in programs if shutil.which(one, path=SBIN) is None]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} is not installed")


@pytest.fixture
def edgecli(edgecli):
    """No zone stays."""
    yield edgecli
    for zone in json.loads(edgecli("zone", "list", "--json").out):
        edgecli("zone", "delete", zone["name"], "--yes")


def moved(edgecli, source, *options):
    """Apply it; returns what was said of what is not carried over. Afterwards nothing differs."""
    done = edgecli("apply", source, *options, "--yes")
    assert done.code == 0, done.err
    after = edgecli("plan", source, *options, "--check")
    assert (after.code, after.out.splitlines()[-1]) == (0, "Nothing differs."), after.out
    return done.err


def records_of(edgecli, zone):
    listed = json.loads(edgecli("record", "list", zone, "--json").out)
    return {(one["name"], one["type"], one["content"], one["ttl"], one["proxied"]) for one in listed}


@installed("named")
def test_a_running_bind_moves_in_by_its_folder_and_by_transfer(edgecli, tmp_path):
    other = ZONE.replace("moved", "other")
    with peers.started("BIND", tmp_path, {"moved.example": ZONE, "other.example": other}) as bind:
        said = moved(edgecli, f"bind:{tmp_path / 'server.conf'}")
        address = f"@{bind.host}:{bind.port}"
        both = edgecli("plan", address, "--zone", "moved.example", "--zone", "other.example", "--check")
        assert both.out.splitlines()[-1] == "Nothing differs."
        assert edgecli("diff", address, "server", "--zone", "moved.example").code == 0

    assert "mail.moved.example" not in said
    assert "0.zone:9: a TTL of 30 seconds; it becomes 60" in said
    assert "0.zone:11: a TTL of 604800 seconds; it becomes 86400" in said
    held = records_of(edgecli, "other.example")
    assert len(held) == RECORDS
    assert ("mail.other.example", "AAAA", "2001:db8::25", 3_600, False) in held
    assert ("www.other.example", "CNAME", "other.example", 86_400, False) in held


def test_a_configuration_in_parts_with_views_copies_and_includes(edgecli, tmp_path):
    write_folder(
        tmp_path,
        {
            "named.conf": 'include "named.conf.options"; include "named.conf.*.local";',
            "named.conf.options": f'options {{ directory "{tmp_path}/zones"; allow {{ any; }}; }}; // x',
            "named.conf.a.local": """
                view "inside" { zone "moved.example" IN { type master; file "in/db.moved"; }; };
                view "outside" { zone "moved.example" { type primary; file "absent"; }; };
                /* a copy */ zone "copy.example" { type slave; masters { 192.0.2.1; }; file "c"; };
                zone "raw.example" { type master; file "raw"; };
                zone "." { type hint; file "/usr/share/dns/root.hints"; };
                zone "localhost" { type master; file "/etc/bind/db.local"; };""",
            "zones/in/db.moved": "$TTL 600\n@ SOA a b 1 2 3 4 5\n"
            "$INCLUDE in/more sub\nlast A 192.0.2.3\nbad A 1.2\n",
            "zones/in/more": "www A 192.0.2.1\n$ORIGIN deep\nwww A 192.0.2.2\n",
            "zones/raw": "\0\0\0\2",
        },
    )

    said = moved(edgecli, f"bind:{tmp_path}")

    assert {one[0] for one in records_of(edgecli, "moved.example")} == {
        "www.sub.moved.example",
        "www.deep.sub.moved.example",
        "last.moved.example",
    }
    for words in (
        "named.conf.a.local:3: moved.example again, in another view",
        "named.conf.a.local:4: copy.example is a copy: take it from its primary, `edgecli apply @HOST",
        "raw.example is in the raw form; `named-compilezone",
        "db.moved:5: ",
    ):
        assert words in said
    assert "localhost" not in said


def test_a_folder_that_was_copied_from_another_machine(edgecli, tmp_path, monkeypatch):
    """As Debian has it: every name is absolute, and this machine may have files of the same names."""
    here = tmp_path / "here"
    write_folder(
        tmp_path,
        {
            "bind/named.conf": f'include "{here}/named.conf.options";\ninclude "{here}/named.conf.local";',
            "bind/named.conf.options": 'options { directory "/var/cache/absent"; };',
            "bind/named.conf.local": f'zone "moved.example" {{ type master; file "{here}/db.moved"; }};\n'
            'zone "beside.example" { type master; file "db.beside"; };',
            "bind/db.moved": "@ 300 SOA a b 1 2 3 4 5\nwww 300 A 192.0.2.1\n",
            "bind/db.beside": "@ 300 SOA a b 1 2 3 4 5\nwww 300 A 192.0.2.2\n",
            "here/named.conf.local": "",
            "here/db.moved": "@ 300 SOA a b 1 2 3 4 5\nwww 300 A 192.0.2.99\n",
        },
    )

    monkeypatch.chdir(tmp_path)
    moved(edgecli, "bind:bind")

    for zone, address in (("moved.example", "192.0.2.1"), ("beside.example", "192.0.2.2")):
        assert {one[2] for one in records_of(edgecli, zone)} == {address}


def test_a_folder_of_zone_files_and_a_signed_one(edgecli, tmp_path):
    apex = "signed.example. 300 IN SOA a. b. 1 2 3 4 5\nsigned.example. 300 DNSKEY 257 3 13 AAAA\n"
    signed = "www.signed.example. 300 IN A 192.0.2.1\nwww.signed.example. 300 IN RRSIG A 13 3 300 x\n"
    write_folder(
        tmp_path,
        {
            "db.first.example": "@ 300 SOA a b 1 2 3 4 5\nwww 300 A 192.0.2.1\n",
            "any": apex + signed,
            "README": "not a zone",
        },
    )

    said = moved(edgecli, f"bind:{tmp_path}")

    assert [one[:3] for one in records_of(edgecli, "first.example")] == [
        ("www.first.example", "A", "192.0.2.1")
    ]
    assert [one[:3] for one in records_of(edgecli, "signed.example")] == [
        ("www.signed.example", "A", "192.0.2.1")
    ]
    assert "signed.example: 2 records that its signer made" in said
    assert "README: no zone file" in said


@contextlib.contextmanager
def powerdns(folder):
    """PowerDNS over SQLite with its API on; yields the API's address and its database."""
    host, port = peers.private_place()
    database = make_folder(
        folder,
        *(f"local-address={host}", f"local-port={port}", "api=yes", "api-key=a-key", "webserver=yes"),
        *(f"webserver-address={host}", f"webserver-port={port + 1}", "webserver-allow-from=0.0.0.0/0"),
        *("daemon=no", "guardian=no"),
    )
    zone = folder / "zone"
    zone.write_text(ZONE + "alias 300 IN ALIAS www.elsewhere.example.\n")
    pdnsutil(folder, "load-zone", "moved.example", zone)
    command = [shutil.which("pdns_server", path=SBIN), f"--config-dir={folder}"]
    with (folder / "said").open("wb") as said, subprocess.Popen(command, stdout=said, stderr=said) as process:
        try:
            until = time.monotonic() + peers.START_SECONDS
            base = f"http://{host}:{port + 1}"
            while time.monotonic() < until and process.poll() is None:
                with contextlib.suppress(OSError):
                    urllib.request.urlopen(f"{base}/", timeout=5).close()
                    break
                time.sleep(0.02)
            yield base, database
        finally:
            process.terminate()


@powerdns_is_needed
def test_a_powerdns_moves_in_by_its_database_and_by_its_api(edgecli, tmp_path, monkeypatch):
    with powerdns(tmp_path) as (base, database):
        said = moved(edgecli, f"powerdns:{database}")
        monkeypatch.setenv("PDNS_API_KEY", "a-key")
        asked = edgecli("plan", f"powerdns:{base}", "--check")
        assert (asked.code, asked.out.splitlines()[-1]) == (0, "Nothing differs."), asked.out
        monkeypatch.setenv("PDNS_API_KEY", "another")
        refused = edgecli("plan", f"powerdns:{base}")

    assert (refused.code, "did not answer as PowerDNS does" in refused.err) == (1, True)
    assert "ALIAS became a CNAME" in said
    held = {one[:3] for one in records_of(edgecli, "moved.example")}
    assert len(held) == RECORDS + 1
    assert ("alias.moved.example", "CNAME", "www.elsewhere.example") in held
    assert ("moved.example", "MX", "mail.moved.example") in held


STATE_5 = {
    "resources": [
        ("cloudflare_zone", {"id": "z1", "name": "moved.example", "paused": False}),
        (
            "cloudflare_dns_record",
            {
                "zone_id": "z1",
                "name": "www.moved.example",
                "type": "A",
                "content": "192.0.2.1",
                "ttl": 1,
                "proxied": True,
            },
        ),
        (
            "cloudflare_dns_record",
            {
                "zone_id": "z1",
                "name": "moved.example",
                "type": "CAA",
                "content": None,
                "ttl": 300,
                "data": {"flags": 0, "tag": "issue", "value": "letsencrypt.org", "port": None},
            },
        ),
        ("cloudflare_zone_setting", {"zone_id": "z1", "setting_id": "ssl", "value": "strict"}),
        (
            "cloudflare_ruleset",
            {
                "zone_id": "z1",
                "kind": "zone",
                "phase": "http_request_firewall_custom",
                "rules": [
                    {
                        "action": "block",
                        "expression": 'http.request.uri.path eq "/admin"',
                        "enabled": True,
                        "action_parameters": None,
                        "description": "no",
                    }
                ],
            },
        ),
        (
            "cloudflare_ruleset",
            {
                "account_id": "a1",
                "id": "5f" * 16,
                "kind": "custom",
                "name": "office",
                "phase": "http_request_firewall_custom",
                "rules": [{"id": "6f" * 16, "ref": "6f" * 16, "action": "log", "expression": "true"}],
            },
        ),
        (
            "cloudflare_ruleset",
            {
                "account_id": "a1",
                "kind": "root",
                "phase": "http_request_firewall_custom",
                "rules": [
                    {
                        "action": "execute",
                        "expression": "true",
                        "action_parameters": {"id": "5f" * 16, "version": "3", "overrides": None},
                    },
                    {
                        "action": "skip",
                        "expression": "true",
                        "action_parameters": {"rules": {"5f" * 16: ["6f" * 16]}},
                    },
                ],
            },
        ),
        ("cloudflare_workers_kv_namespace", {"id": "n", "title": "titles"}),
        ("cloudflare_load_balancer", {"zone_id": "z1", "id": "b"}),
        ("random_id", {"id": "r"}),
    ]
}
RULE_4 = {
    "action": "redirect",
    "expression": 'http.request.uri.path eq "/old"',
    "enabled": True,
    "description": "",
    "ratelimit": [],
    "action_parameters": [
        {
            "from_value": [
                {"status_code": 301, "target_url": [{"value": "https://moved.example/", "expression": ""}]}
            ],
            "headers": [],
        }
    ],
}
STATE_4 = {
    "resources": [
        ("cloudflare_zone", {"id": "z1", "zone": "moved.example", "paused": False}),
        (
            "cloudflare_record",
            {"zone_id": "z1", "name": "www", "type": "A", "value": "192.0.2.1", "ttl": 300, "data": []},
        ),
        (
            "cloudflare_record",
            {"zone_id": "z1", "name": "@", "type": "MX", "value": "mail.moved.example", "priority": 10},
        ),
        ("cloudflare_zone_settings_override", {"zone_id": "z1", "settings": [{"ssl": "full", "brotli": ""}]}),
        (
            "cloudflare_ruleset",
            {
                "zone_id": "z1",
                "kind": "zone",
                "phase": "http_request_dynamic_redirect",
                "rules": [RULE_4],
            },
        ),
    ]
}


@pytest.mark.parametrize("state", [STATE_4, STATE_5], ids=["provider 4", "provider 5"])
def test_a_terraform_state_moves_in_beside_what_it_does_not_name(edgecli, tmp_path, state):
    path = tmp_path / "terraform.tfstate"
    resources = [
        {"mode": "managed", "type": kind, "name": "one", "instances": [{"attributes": values}]}
        for kind, values in state["resources"]
    ]
    path.write_text(json.dumps({"version": 4, "resources": resources}))
    edgecli("zone", "create", "moved.example")
    edgecli("record", "create", "moved.example", "by-hand", "A", "192.0.2.77")

    said = moved(edgecli, f"terraform:{path}")

    held = {one[:3] for one in records_of(edgecli, "moved.example")}
    assert ("www.moved.example", "A", "192.0.2.1") in held
    assert ("by-hand.moved.example", "A", "192.0.2.77") in held
    assert ("cloudflare_load_balancer.one" in said) == (state is STATE_5)
    assert "random_id" not in said
    of_account = json.loads(edgecli("export", "--json").out)
    assert ("custom" in of_account["rules"]) == (state is STATE_5)
    if state is STATE_5:
        execute, skip = of_account["rules"]["custom"]
        assert execute["action_parameters"] == {"id": "custom/office"}
        assert skip["action_parameters"] == {"rules": {"custom/office": ["6f" * 16]}}


NGINX = """
user www-data; events { worker_connections 64; }
http {
  map $http_upgrade $connection_upgrade { default upgrade; '' close; }
  upstream app { server 192.0.2.10:3000; server 192.0.2.11:3000; }
  include sites/*;
}
"""
NGINX_SITES = """
server { listen 80; server_name moved.example www.moved.example; return 301 https://www.moved.example$uri; }
server {
  listen 443 ssl; server_name app.moved.example; ssl_certificate moved.pem; ssl_certificate_key moved.pem;
  location / { proxy_pass http://app; proxy_set_header Host $host; }
  location = /old { return 302 "https://app.moved.example/new"; }
  location ~ ^/img/(.*)\\.png$ { expires 30d; }
  client_max_body_size 10m; # the edge's own
}
server { listen 8081; server_name files.moved.example; root /srv; }
server { listen 80 default_server; server_name _; return 444; }
"""
CADDYFILE = """
{
    admin off
}
app.moved.example {
    reverse_proxy 192.0.2.10:3000
    redir /old https://app.moved.example/new 302
}
http://moved.example {
    redir https://www.moved.example{uri} permanent
}
"""
APP_RULES = {"origin": ["origin of app.moved.example"], "redirect": ["redirect of app.moved.example/old"]}


@installed("nginx")
def test_nginx_itself_takes_these_sites(tmp_path):
    """At sockets of the folder, so that no port is asked for."""
    pair = issued("app.moved.example", now=datetime.now(UTC))
    write_folder(
        tmp_path,
        {
            "nginx.conf": NGINX.replace("http {", "http { access_log off;"),
            "sites/moved": re.sub(r"listen (\d+)", rf"listen unix:{tmp_path}/\1", NGINX_SITES),
            "moved.pem": pair.chain + pair.key,
        },
    )
    command = [shutil.which("nginx", path=SBIN), "-t", "-p", tmp_path, "-e", "stderr", "-c", "nginx.conf"]

    done = subprocess.run(
        [*command, "-g", f"pid {tmp_path}/pid;"], capture_output=True, text=True, timeout=60
    )

    assert done.returncode == 0, done.stderr


def rules_of(edgecli, zone):
    document = json.loads(edgecli("export", "--zone", zone, "--json").out)
    return {
        phase: [rule["description"] for rule in rules]
        for phase, rules in document["zones"][zone]["rules"].items()
    }


def test_sites_of_nginx_move_in_as_proxied_records_with_their_origins(edgecli, tmp_path):
    write_folder(tmp_path, {"nginx.conf": NGINX, "sites/moved": NGINX_SITES})

    said = moved(edgecli, f"nginx:{tmp_path}")

    held = records_of(edgecli, "moved.example")
    assert ("app.moved.example", "A", "192.0.2.10", 1, True) in held
    assert ("files.moved.example", "A", "127.0.0.1", 1, True) in held
    assert ("moved.example", "A", "192.0.2.1", 1, True) in held  # a redirect needs no origin
    rules = rules_of(edgecli, "moved.example")
    assert rules["origin"] == ["origin of app.moved.example", "origin of files.moved.example"]
    assert rules["redirect"] == ["redirect of moved.example", "redirect of app.moved.example/old"]
    for words in (
        "upstream app: the first of 2 servers",
        "moved:7: location ~ ^/img/(.*)\\.png$ of app.moved.example",
        "moved:8: client_max_body_size of app.moved.example",
        "moved:10: a site of files",
        "moved:11: a server without a name",
        "www.moved.example to https",
    ):
        assert words in said, said


@installed("caddy")
def test_sites_of_caddy_move_in_by_a_caddyfile(edgecli, tmp_path):
    path = tmp_path / "Caddyfile"
    path.write_text(CADDYFILE)

    moved(edgecli, f"caddy:{path}")

    assert ("app.moved.example", "A", "192.0.2.10", 1, True) in records_of(edgecli, "moved.example")
    rules = rules_of(edgecli, "moved.example")
    assert rules["origin"] == ["origin of app.moved.example"]
    assert sorted(rules["redirect"]) == ["redirect of app.moved.example/old", "redirect of moved.example"]


BAD = [
    ("bind:named.conf", 'zone "a" { type master', "a block does not end"),
    ("bind:named.conf", "}", "line 1: a brace closes what nothing opened"),
    ("bind:named.conf", '\nzone "a', "line 2: a quotation or a comment does not end"),
    ("bind:named.conf", 'include "named.conf";', "includes in one another"),
    (
        "bind:named.conf",
        'zone "a.example" { type master; file "absent"; };',
        "absent cannot be read: No such file",
    ),
    ("bind:named.conf", "", "holds nothing that could be taken"),
    ("nginx:nginx.conf", "server {" * 100, "more than 64 blocks in one another"),
    ("nginx:nginx.conf", "include nginx.conf;", "includes in one another"),
    ("powerdns:pdns.sqlite3", "no database", "is no database of PowerDNS"),
    ("terraform:terraform.tfstate", "{}", "is no Terraform state"),
    ("terraform:terraform.tfstate", "[" * 100_000, "is no Terraform state"),
    ("caddy:caddy.json", '{"apps": {}}', "is no configuration of Caddy"),
    ("@127.0.0.1:1", "", "tells nobody which zones it has"),
]


@pytest.mark.parametrize(("source", "text", "words"), BAD)
def test_a_source_that_cannot_be_read_says_why_and_where(edgecli_alone, tmp_path, source, text, words):
    program, _, name = source.partition(":")
    path = tmp_path / name
    path.write_text(text)

    done = edgecli_alone("plan", source if source.startswith("@") else f"{program}:{path}")

    assert (done.code, done.out) == (1, "")
    assert words in done.err


def test_words_quotations_and_comments_of_both_configurations():
    (zone,) = named_statements('zone "a b" IN { # x\n // y;\n /* z; */ type master;; file "f;}"; };')
    assert zone.words == ("zone", "a b", "IN")
    assert [one.words for one in zone.block] == [("type", "master"), ("file", "f;}")]
    (server,) = nginx_statements("server { rewrite '^/a b' https://${host}/$1; }  # end")
    assert [one.words for one in server.block] == [("rewrite", "^/a b", "https://${host}/$1")]


def write_folder(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
