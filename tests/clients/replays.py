"""What programs ask that are not installed here, as requests, and what their decoders need of the answers.

Owns  the requests of each program, written down from its documentation and its public interface.
Not   asking (tests/rest/test_replays.py); the page of all programs (tests/clients/conformance.py).

`{...}` in a path or a body is what an earlier answer was kept as; `{zone}` and `{name}` are there from the
start. `wanted` are members of `result` by their path, or of the whole answer with a slash before them.
"""

from typing import Any, NamedTuple

Json = Any


class Ask(NamedTuple):
    """`keep` maps a name to a member of the answer, `failing` are codes that the program lives with."""

    method: str
    path: str
    body: Json = None
    wanted: dict[str, Json] = {}  # noqa: RUF012 - never changed
    keep: dict[str, str] = {}  # noqa: RUF012
    failing: tuple[int, ...] = ()


class Replay(NamedTuple):
    """`spec` is the code at which the default profile stops the program, None where it works, too."""

    asks: tuple[Ask, ...]
    spec: int | None = None


RECORDS = "/zones/{zone}/dns_records"
RECORD = f"{RECORDS}/{{id}}"
TOKEN = "LHDhK3oGRvkiefQnx7OOczTY5Tic_xZ6HcMOc_gmtoM"  # a challenge's, without quotes
CHALLENGE = "_acme-challenge.{name}"
BY_NAME = Ask("GET", "/zones?name={name}", None, {"0/name": "{name}", "0/status": "active"}, {"zone": "0/id"})
BANS = "/zones/{zone}/firewall/access_rules/rules"


def challenge(list_path: str, *, per_delete: bool = True, **more: Json) -> tuple[Ask, ...]:
    """Present and clean up: most programs of ACME do that, and differ in how they find the record again."""
    body = {"type": "TXT", "name": CHALLENGE, "content": TOKEN, "ttl": 120, **more}
    return (
        BY_NAME,
        Ask("POST", RECORDS, body, {"type": "TXT", "name": CHALLENGE}, {"id": "id", "said": "content"}),
        Ask("GET", list_path, None, {"0/id": "{id}"}),
        *((Ask("DELETE", RECORD, None, {"id": "{id}"}),) if per_delete else ()),
    )


def address(*asks: Ask) -> tuple[Ask, ...]:
    """An updater of one address finds what is there, and changes it."""
    first = {"type": "A", "name": "home.{name}", "content": "192.0.2.1", "ttl": 1, "proxied": False}
    return (BY_NAME, Ask("POST", RECORDS, first, {"content": "192.0.2.1"}, {"id": "id"}), *asks)


HOME = f"{RECORDS}?type=A&name=home.{{name}}"
FOUND = Ask("GET", HOME, None, {"0/id": "{id}", "0/content": "192.0.2.1", "0/type": "A"})
CHANGED = {"type": "A", "name": "home.{name}", "content": "192.0.2.2", "ttl": 1, "proxied": False}

REPLAYS: dict[str, Replay] = {
    # It compares the content of what it finds with what it wrote, letter for letter.
    "cert-manager": Replay(
        (
            Ask("GET", "/zones?name={name}", None, {"0/name": "{name}"}, {"zone": "0/id"}),
            Ask("GET", f"{RECORDS}?per_page=100&type=TXT&name={CHALLENGE}", None, {"": []}),
            Ask(
                "POST",
                RECORDS,
                {"type": "TXT", "name": CHALLENGE, "content": TOKEN, "ttl": 120},
                {"content": TOKEN},
                {"id": "id"},
            ),
            Ask(
                "GET",
                f"{RECORDS}?per_page=100&type=TXT&name={CHALLENGE}",
                None,
                {"0/content": TOKEN, "0/id": "{id}"},
            ),
            Ask("DELETE", RECORD, None, {"id": "{id}"}),
            Ask("GET", f"{RECORDS}?per_page=100&type=TXT&name={CHALLENGE}", None, {"": []}),
        ),
        spec=-1,
    ),
    "lego": Replay(challenge(RECORD.replace("/{id}", "?type=TXT&name={said_name}"))),
    "Traefik": Replay(challenge(f"{RECORDS}?type=TXT&name={CHALLENGE}")),
    "Caddy": Replay(
        challenge(f"{RECORDS}?type=TXT&name={CHALLENGE}&page=1&per_page=100&content.exact={{said}}")
    ),
    "acme.sh": Replay(
        (
            Ask("GET", "/zones?name={name}", None, {"/result_info/total_count": 1}, {"zone": "0/id"}),
            Ask("GET", f"{RECORDS}?type=TXT&name={CHALLENGE}", None, {"/success": True}),
            Ask(
                "POST",
                RECORDS,
                {"type": "TXT", "name": CHALLENGE, "content": TOKEN, "ttl": 120},
                {"name": CHALLENGE},
                {"id": "id"},
            ),
            Ask(
                "GET",
                f"{RECORDS}?type=TXT&name={CHALLENGE}&content={TOKEN}",
                None,
                {"/result_info/count": 1, "0/id": "{id}"},
            ),
            Ask("DELETE", RECORD, None, {"id": "{id}"}),
        )
    ),
    "Proxmox VE": Replay(challenge(f"{RECORDS}?type=TXT&name={CHALLENGE}&content={TOKEN}")),
    "Posh-ACME": Replay(challenge(f"{RECORDS}?type=TXT&name={CHALLENGE}&content={TOKEN}")),
    "win-acme": Replay(challenge(f"{RECORDS}?type=TXT&name={CHALLENGE}&per_page=100")),
    "dehydrated": Replay(challenge(f"{RECORDS}?type=TXT&name={CHALLENGE}&per_page=100&match=all")),
    "external-dns": Replay(
        (
            Ask("GET", "/zones?per_page=50&page=1", None, {"0/name": "{name}"}, {"zone": "0/id"}),
            Ask("GET", f"{RECORDS}?page=1&per_page=5000", None, {"": []}),
            Ask(
                "POST",
                RECORDS,
                {"type": "A", "name": "app.{name}", "content": "192.0.2.1", "ttl": 1, "proxied": False},
                {"name": "app.{name}", "ttl": 1, "proxied": False},
                {"id": "id"},
            ),
            Ask(
                "POST",
                RECORDS,
                {
                    "type": "TXT",
                    "name": "a-app.{name}",
                    "content": '"heritage=external-dns,external-dns/owner=me"',
                    "ttl": 1,
                },
                {"content": '"heritage=external-dns,external-dns/owner=me"'},
                {"text": "id"},
            ),
            Ask("GET", f"{RECORDS}?page=1&per_page=5000", None, {"1/id": "{text}"}),
            Ask(
                "PATCH",
                RECORD,
                {"type": "A", "name": "app.{name}", "content": "192.0.2.2", "ttl": 1, "proxied": False},
                {"content": "192.0.2.2"},
            ),
            Ask("DELETE", RECORD, None, {"id": "{id}"}),
            Ask("DELETE", RECORD.replace("{id}", "{text}"), None, {"id": "{text}"}),
        )
    ),
    "DNSControl": Replay(
        (
            Ask("GET", "/zones?per_page=50", None, {"0/name_servers/0": None}),
            BY_NAME,
            Ask("GET", f"{RECORDS}?page=1&per_page=100", None, {"": []}),
            Ask(
                "POST",
                RECORDS,
                {"name": "www.{name}", "type": "CNAME", "content": "{name}", "ttl": 1},
                {"content": "{name}"},
                {"id": "id"},
            ),
            Ask(
                "PUT",
                RECORD,
                {
                    "id": "{id}",
                    "name": "www.{name}",
                    "type": "CNAME",
                    "content": "a.{name}",
                    "ttl": 300,
                    "proxied": False,
                },
                {"ttl": 300, "content": "a.{name}"},
            ),
            Ask("DELETE", RECORD, None, {"id": "{id}"}),
        )
    ),
    "flarectl": Replay(
        (
            Ask("GET", "/zones?name={name}&per_page=50", None, {"0/plan/name": None}, {"zone": "0/id"}),
            Ask("GET", "/user", None, {"email": "admin@example.com"}),
            Ask("PUT", "/zones/{zone}/activation_check", None, {"/messages/0/code": None}),
        )
    ),
    "cloudflare-go 0": Replay(
        (
            BY_NAME,
            Ask("GET", "/zones/{zone}", None, {"id": "{zone}", "paused": False}),
            Ask("GET", f"{RECORDS}?page=1&per_page=100", None, {"/result_info/total_pages": 1}),
            Ask("GET", "/zones/{zone}/settings", None, {"/success": True}),
            Ask("POST", "/zones/{zone}/purge_cache", {"purge_everything": True}, {"id": "{zone}"}),
        )
    ),
    "Ansible": Replay(
        (
            Ask("GET", "/zones?name={name}", None, {"0/id": "{zone}"}),
            Ask("GET", f"{RECORDS}?type=A&name=web.{{name}}", None, {"": []}),
            Ask(
                "POST",
                RECORDS,
                {"type": "A", "name": "web.{name}", "content": "192.0.2.1", "ttl": 1, "proxied": False},
                {"ttl": 1, "proxied": False, "content": "192.0.2.1"},
                {"id": "id"},
            ),
            Ask("GET", f"{RECORDS}?type=A&name=web.{{name}}&content=192.0.2.1", None, {"0/ttl": 1}),
            Ask("DELETE", RECORD, None, {"id": "{id}"}),
        )
    ),
    "inadyn": Replay(address(FOUND, Ask("PUT", RECORD, CHANGED, {"content": "192.0.2.2"}))),
    "ddns-go": Replay(
        address(
            Ask("GET", "/zones?name={name}&status=active&per_page=50", None, {"0/id": "{zone}"}),
            Ask("GET", f"{HOME}&per_page=50", None, {"0/id": "{id}"}),
            Ask("PUT", RECORD, CHANGED, {"content": "192.0.2.2"}),
        )
    ),
    "favonia/cloudflare-ddns": Replay(
        address(
            Ask("GET", "/user/tokens/verify", None, {"status": "active"}),
            Ask("GET", "/zones?name={name}&per_page=50", None, {"0/status": "active"}),
            Ask("GET", f"{HOME}&page=1&per_page=100", None, {"0/comment": None}),
            Ask("PATCH", RECORD, {"content": "192.0.2.2"}, {"content": "192.0.2.2", "ttl": 1}),
        )
    ),
    "OPNsense": Replay(address(FOUND, Ask("PATCH", RECORD, {"content": "192.0.2.2"}, {"id": "{id}"}))),
    "pfSense": Replay(address(FOUND, Ask("PUT", RECORD, CHANGED, {"content": "192.0.2.2"}))),
    "OpenWrt ddns-scripts": Replay(
        address(FOUND, Ask("PUT", RECORD, CHANGED, {"content": "192.0.2.2", "/success": True}))
    ),
    "qdm12/ddns-updater": Replay(
        address(
            Ask("GET", f"{HOME}&page=1&per_page=1&match=all", None, {"0/content": "192.0.2.1"}),
            Ask("PUT", RECORD, CHANGED, {"content": "192.0.2.2"}),
        )
    ),
    "fail2ban": Replay(
        (
            BY_NAME,
            Ask(
                "POST",
                BANS,
                {
                    "mode": "block",
                    "configuration": {"target": "ip", "value": "203.0.113.9"},
                    "notes": "Fail2Ban sshd",
                },
                {"mode": "block"},
                {"id": "id"},
            ),
            Ask(
                "GET",
                f"{BANS}?mode=block&notes=Fail2Ban%20sshd&configuration.target=ip&configuration.value=203.0.113.9",
                None,
                {"0/id": "{id}"},
            ),
            Ask("DELETE", f"{BANS}/{{id}}", None, {"id": "{id}"}),
        )
    ),
    "scripts for real_ip of nginx": Replay((Ask("GET", "/ips", None, {"ipv4_cidrs/0": "203.0.113.1/32"}),)),
    "cloudflared": Replay((BY_NAME, Ask("GET", "/accounts/{account}/cfd_tunnel", None, {"": []})), spec=7003),
    "CrowdSec's bouncer with lists": Replay(
        (BY_NAME, Ask("GET", "/accounts/{account}/rules/lists", None, {"": []})), spec=7003
    ),
    "ingress controllers of tunnels": Replay(
        (BY_NAME, Ask("POST", "/accounts/{account}/cfd_tunnel", {"name": "t"}, {"name": "t"})), spec=7003
    ),
}
NEVER = {"cloudflared", "CrowdSec's bouncer with lists", "ingress controllers of tunnels"}  # in no profile
