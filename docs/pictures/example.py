"""A server with believable example data, for pictures of the dashboard.

Owns  what is on it; the identifiers that addresses of pages hold.
Not   which pages there are pictures of (`docs.pictures.pages`).

Names and addresses are those that documents may use (RFC 2606, RFC 5737, RFC 3849).
"""

from pathlib import Path
from typing import Any

from edgestead.model.managed_settings import THRESHOLDS
from tests.edge import chromium
from tests.edge.conftest import Site
from tests.edge.test_managed_server import deployed
from tests.web.conftest import Visitor

ZONE, PASSWORD = "example.com", "a sentence is a good password"
MEMBER = "ann@example.com"
CUSTOM, LIMITS = "http_request_firewall_custom", "http_ratelimit"
REDIRECTS, HEADERS = "http_request_dynamic_redirect", "http_response_headers_transform"

BOOKING = """
from edgestead import StatefulObject


class Show(StatefulObject):
    storage = "sql"

    async def on_start(self):
        seats = "seats (seat TEXT PRIMARY KEY, name TEXT, paid INTEGER)"
        self.ctx.storage.sql.exec(f"CREATE TABLE IF NOT EXISTS {seats}")

    async def hold(self, seat, name, paid=False):
        self.ctx.storage.sql.exec("INSERT OR REPLACE INTO seats VALUES (?, ?, ?)", seat, name, int(paid))
        self.ctx.storage.put("last", {"seat": seat, "name": name})
        self.ctx.storage.put("held", await self.ctx.storage.get("held", default=0) + 1)

    async def close_at(self, when_ms):
        self.ctx.storage.set_alarm(when_ms)

    async def alarm(self):
        self.ctx.storage.put("closed", True)


class Cart(StatefulObject):
    async def add(self, article):
        self.ctx.storage.put(article, await self.ctx.storage.get(article, default=0) + 1)
"""
RECORDS = (
    ("MX", "@", "mail.example.com", {"priority": 10}),
    ("A", "mail", "192.0.2.25", {"comment": "moves to the new machine in spring"}),
    ("AAAA", "mail", "2001:db8::25", {}),
    ("TXT", "@", '"v=spf1 mx -all"', {"ttl": 3600}),
    ("TXT", "_dmarc", '"v=DMARC1; p=reject; rua=mailto:postmaster@example.com"', {"ttl": 3600}),
    ("CAA", "@", '0 issue "letsencrypt.org"', {}),
    ("CNAME", "docs", "docs.example.net", {}),
    ("SRV", "_imaps._tcp", "1 993 mail.example.com", {"priority": 0}),
    ("A", "vpn", "192.0.2.60", {"comment": "office"}),
)
RULES = {
    REDIRECTS: [
        {
            "action": "redirect",
            "expression": 'http.request.uri.path eq "/jobs"',
            "description": "Jobs have a site of their own",
            "action_parameters": {
                "from_value": {"target_url": {"value": "https://jobs.example.com/"}, "status_code": 301}
            },
        }
    ],
    CUSTOM: [
        {
            "action": "block",
            "expression": 'http.request.uri.path contains "/wp-login.php"',
            "description": "We have no WordPress",
        },
        {
            "action": "managed_challenge",
            "expression": 'http.request.uri.path eq "/signup" and not http.cookie contains "member="',
            "description": "Strangers prove that they have a browser",
        },
        {
            "action": "log",
            "expression": 'http.user_agent contains "curl"',
            "description": "Programs, for a while",
            "enabled": False,
        },
    ],
    LIMITS: [
        {
            "action": "block",
            "expression": 'http.request.uri.path eq "/login"',
            "description": "Ten tries a minute",
            "ratelimit": {
                "characteristics": ["ip.src"],
                "period": 60,
                "requests_per_period": 10,
                "mitigation_timeout": 60,
            },
        }
    ],
    HEADERS: [
        {
            "action": "rewrite",
            "expression": "true",
            "description": "Nobody guesses types",
            "action_parameters": {
                "headers": {"X-Content-Type-Options": {"operation": "set", "value": "nosniff"}}
            },
        }
    ],
}
CRAWLERS = {
    "name": "Crawlers",
    "kind": "custom",
    "phase": CUSTOM,
    "rules": [
        {
            "action": "block",
            "expression": 'http.user_agent contains "BadBot"',
            "description": "It does not read robots.txt",
        }
    ],
}
BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
REQUESTS = (  # (path, client, user agent, how often)
    ("/", "203.0.113.20", BROWSER, 4),
    ("/wp-login.php", "198.51.100.7", "python-requests/2.32", 5),
    ("/wp-login.php", "198.51.100.91", "Go-http-client/1.1", 3),
    ("/signup", "203.0.113.44", BROWSER, 2),
    ("/login", "198.51.100.23", "python-requests/2.32", 13),
    ("/search?q=1+union+select+name+from+users", "198.51.100.23", "sqlmap/1.9", 1),
    ("/products?sort=price&order=select+one+or+the+other+from+the+union", "203.0.113.20", BROWSER, 1),
    ("/../../etc/passwd?file=../../../../etc/passwd", "198.51.100.7", "curl/8.14", 1),
    ("/comments?text=%3Cscript%3Ealert(1)%3C/script%3E", "198.51.100.91", BROWSER, 1),
)
VALUES = (
    {"key": "banner", "value": "Closed on Monday", "metadata": {"by": "ann"}},
    {"key": "flags", "value": '{"checkout": "new", "search": true, "limits": {"free": 10, "paid": 1000}}'},
    {"key": "session:7f3a", "value": "ann", "expiration_ttl": 3_600},
    {"key": "session:91bc", "value": "bob", "expiration_ttl": 7_200},
    {"key": "template:invoice", "value": "Dear {name},\nthank you for your order.\n"},
)


def flags(folder: Path) -> tuple[str, ...]:
    (folder / "show.py").write_text(BOOKING)
    objects = ("--objects", str(folder / "show.py"), "--objects-workers", "1")
    return (
        *objects,
        "--trusted-proxies",
        "127.0.0.0/8",
        "--nameserver",
        "ns1.example.net",
        "--nameserver",
        "ns2.example.net",
    )


class Example:
    """A server that was filled. `facts` are identifiers by name, for addresses of pages."""

    def __init__(self, folder: Path) -> None:
        self.site = Site(folder, *flags(folder), zone=ZONE)
        self.server = self.site.server
        self.account = f"/accounts/{self.server.ready['account_id']}"
        self.zone = f"/zones/{self.site.zone_id}"
        self.facts = {"zone": ZONE}
        self.operator = Visitor(self.server)
        self.operator.sign_in(self.server.ready["api_token"])

    def fill(self) -> "Example":
        self._zones()
        self._rules_and_events()
        self._values()
        self._objects()
        self._people()
        return self

    def call(self, method: str, path: str, body: object = None) -> Any:
        answer = self.server.call(method, path, body)
        assert answer.status == 200, answer
        return answer.result

    def _zones(self) -> None:
        for name in ("example.net", "example.org", "shop.example"):
            self.server.make_zone(name)
        made = [
            self.call(
                "POST",
                f"{self.zone}/dns_records",
                {"type": type_, "name": name, "content": content, "ttl": 1} | more,
            )
            for type_, name, content, more in RECORDS
        ]
        changed = self.call("PATCH", f"{self.zone}/dns_records/{made[1]['id']}", {"content": "192.0.2.26"})
        self.call("DELETE", f"{self.zone}/dns_records/{made[8]['id']}")
        self.facts["record"] = changed["id"]
        self.call("PATCH", f"{self.zone}/settings/always_use_https", {"value": "on"})
        self.call("PATCH", f"{self.zone}/settings/always_use_https", {"value": "off"})
        change = next(one for one in self.call("GET", f"{self.zone}/history") if one["origin"] == "edit")
        self.facts["change"] = str(change["sequence"] - 2)
        for path in ("/filters", "/firewall/rules"):
            assert self.server.call("GET", self.zone + path).status == 410

    def _rules_and_events(self) -> None:
        host, origin = deployed(self.site, THRESHOLDS["high"])
        self.call("DELETE", f"{self.zone}/dns_records/{self._record(host)}")
        for name in ("www", "@"):
            self.server.make_record(self.site.zone_id, "A", name, origin.host, proxied=True)
        for phase, rules in RULES.items():
            self.call("PUT", f"{self.zone}/rulesets/phases/{phase}/entrypoint", {"rules": rules})
        shared = self.call("POST", f"{self.account}/rulesets", CRAWLERS)
        run = {"action": "execute", "expression": "true", "action_parameters": {"id": shared["id"]}}
        entry = f"{self.account}/rulesets/phases/{CUSTOM}/entrypoint"
        self.call("PUT", entry, {"rules": [run | {"description": "For every zone"}]})
        for path, client, agent, times in REQUESTS:
            for _ in range(times):
                about = (f"X-Forwarded-For: {client}", f"User-Agent: {agent}", "Accept: */*")
                self.site.get(f"www.{ZONE}", path, *about)
        events = f"{self.zone}/security/events?per_page=100"

        def of(phase: str) -> list[dict]:
            return [one for one in self.call("GET", events) if one["phase"] == phase]

        wanted = {"http_request_firewall_managed": 3, CUSTOM: 10, LIMITS: 1}
        self.server.wait_until(
            lambda: all(len(of(phase)) >= count for phase, count in wanted.items()), chromium.WAIT_SECONDS
        )
        self.facts["event"] = next(
            one["id"] for one in of("http_request_firewall_managed") if "union" in one["query"]
        )
        entry = self.call("GET", f"{self.zone}/rulesets/phases/{CUSTOM}/entrypoint")
        self.facts |= {"phase": CUSTOM, "rule": entry["rules"][1]["id"]}

    def _record(self, name: str) -> str:
        return self.call("GET", f"{self.zone}/dns_records?name={name}")[0]["id"]

    def _values(self) -> None:
        spaces = f"{self.account}/storage/kv/namespaces"
        for title in ("configuration", "sessions", "translations"):
            made = self.call("POST", spaces, {"title": title})
            self.facts.setdefault("namespace", made["id"])
        self.call("PUT", f"{spaces}/{self.facts['namespace']}/bulk", list(VALUES))

    def _objects(self) -> None:
        for name, seats in (("friday", ("1A", "1B", "2A")), ("saturday", ("7C",))):
            for seat in seats:
                assert (
                    self.server.call_object(f"Show/{name}/hold", seat, "ann", paid=seat == "1A").status == 200
                )
        self.server.call_object("Show/friday/hold", "1B", "bob")
        self.server.call_object("Cart/4711/add", "tea")
        page = self.operator.get("/ui/objects/Show?name=friday")
        self.facts["object"] = page.to.rpartition("/")[2]
        path = f"/ui/objects/Show/{self.facts['object']}"
        self.operator.post(path, what="set-alarm", time="3h")

    def _people(self) -> None:
        roles = {one["name"]: one["id"] for one in self.call("GET", f"{self.account}/roles")}
        editor = next(
            id_ for name, id_ in roles.items() if name.startswith("Administrator") or "Editor" in name
        )
        invited = self.call("POST", f"{self.account}/members", {"email": MEMBER, "roles": [editor]})
        least = next(id_ for name, id_ in roles.items() if "Read" in name)
        pending = self.call("POST", f"{self.account}/members", {"email": "bob@example.com", "roles": [least]})
        self.facts["invitation"] = pending["code"]
        person = Visitor(self.server)
        again = {"password": PASSWORD, "again": PASSWORD}
        person.send("/ui/invite", code=invited["code"], first_name="Ann", last_name="Lee", **again)
        for task, name in (
            ("certificates", "certbot on web1"),
            ("dns", "external-dns"),
            ("metrics", "Prometheus"),
        ):
            zone = ZONE if task != "metrics" else ""
            person.post("/ui/tokens/new", task=task, name=name, zone=zone, days="90")

    def close(self) -> None:
        self.site.close()
