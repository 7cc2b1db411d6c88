"""A started platform as a test sees it: REST, zones, key-values and DNS.

Owns  `Edge`, `Zone`, `Namespace` and `Dns`.
Not   starting and emptying the platform (`testing.platforms`).
"""

import http.client
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from edgestead.cli.server.env import VARIABLES

if TYPE_CHECKING:
    import dns.message
    import dns.resolver

CALL_SECONDS_MAX = 300.0  # on a machine that is busy with all else
DNS_SECONDS_MAX = 2.0  # of one try
DNS_TRIES_MAX = 5


class Answer(NamedTuple):
    """One answer. Header names are lower-case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """What the body's JSON says. Raises ValueError."""
        return json.loads(self.body)

    @property
    def result(self) -> Any:
        """What a success holds; a failure fails the test that expected one."""
        assert self.status == 200, (self.status, self.body)
        return self.json["result"]

    @property
    def codes(self) -> list[int]:
        """The codes of a failure."""
        return [error["code"] for error in self.json["errors"]]


class Edge:
    """Where a platform listens, and its credentials, which may do everything."""

    def __init__(self, ready: Mapping[str, Any]) -> None:
        self._ready = ready
        self.api_base: str = ready["api_base"]
        self.account_id: str = ready["account_id"]
        self.token: str = ready["api_token"]
        self.email: str = ready["email"]
        self.key: str = ready["api_key"]
        self.http: str = ready["http"]
        self.objects: str | None = ready["objects"]
        self.dns = Dns(ready["dns"])

    @property
    def environment(self) -> dict[str, str]:
        """What `edgecli env` prints, for a process of the test's own."""
        known = ((name, self._ready[member]) for name, member in VARIABLES)
        return {name: str(value) for name, value in known if value is not None}

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One REST call. `path` follows the base; a `body` that is not bytes is sent as JSON."""
        base = urlsplit(self.api_base)
        return ask(
            base.netloc,
            method,
            base.path + path,
            body,
            {"Authorization": f"Bearer {token or self.token}", **(headers or {})},
        )

    def get(self, path: str, **options: Any) -> Answer:
        return self.call("GET", path, **options)

    def post(self, path: str, body: Any = None, **options: Any) -> Answer:
        return self.call("POST", path, body, **options)

    def put(self, path: str, body: Any = None, **options: Any) -> Answer:
        return self.call("PUT", path, body, **options)

    def patch(self, path: str, body: Any = None, **options: Any) -> Answer:
        return self.call("PATCH", path, body, **options)

    def delete(self, path: str, **options: Any) -> Answer:
        return self.call("DELETE", path, **options)

    def make_zone(self, name: str) -> "Zone":
        made = self.post("/zones", {"name": name, "account": {"id": self.account_id}}).result
        return Zone(self, made["id"], made["name"])

    def make_namespace(self, title: str) -> "Namespace":
        path = f"/accounts/{self.account_id}/storage/kv/namespaces"
        return Namespace(self, self.post(path, {"title": title}).result["id"], title)

    def make_token(self, *permissions: str, zone: "Zone | None" = None) -> str:
        """The secret of a token with permission groups by name: for one zone, or all zones and the account.

        Raises ValueError: a group that does not exist.
        """
        groups = {one["name"]: one for one in self.get("/user/tokens/permission_groups").result}
        if unknown := [name for name in permissions if name not in groups]:
            raise ValueError(f"there is no permission group {unknown[0]!r}; there are {', '.join(groups)}")
        policies: dict[str, dict[str, Any]] = {}
        for name in permissions:
            scope = groups[name]["scopes"][0]
            resource = scope + ("." + self._resource_of(scope, zone))
            policy = policies.setdefault(
                resource, {"effect": "allow", "permission_groups": [], "resources": {resource: "*"}}
            )
            policy["permission_groups"].append({"id": groups[name]["id"]})
        body = {"name": "test", "policies": list(policies.values())}
        secret: str = self.post("/user/tokens", body).result["value"]
        return secret

    def _resource_of(self, scope: str, zone: "Zone | None") -> str:
        if scope.endswith(".zone"):
            return zone.id if zone else "*"
        return self.account_id if scope.endswith(".account") else str(self.get("/user").result["id"])


class Zone:
    """One zone. Names of records are below it: `www`, `@`, or in full."""

    def __init__(self, edge: Edge, id_: str, name: str) -> None:
        self._edge = edge
        self.id = id_
        self.name = name

    @property
    def path(self) -> str:
        """Of the zone in the API."""
        return f"/zones/{self.id}"

    def add(self, type_: str, name: str, content: str | None = None, **more: Any) -> dict[str, Any]:
        """Create a record; `more` are further members of it, such as `ttl` or `data`. Returns the record."""
        body = {"type": type_, "name": name, **({} if content is None else {"content": content}), **more}
        made: dict[str, Any] = self._edge.post(f"{self.path}/dns_records", body).result
        return made

    def records(self, **filters: Any) -> list[dict[str, Any]]:
        """The records, of at most 5,000; `filters` are parameters of the list: `type`, `name`, and so on."""
        query = urlencode({"per_page": 5_000, **filters})
        found: list[dict[str, Any]] = self._edge.get(f"{self.path}/dns_records?{query}").result
        return found

    def answers(self, name: str = "@", type_: str = "A") -> list[str]:
        """What DNS answers for a name of the zone (`Dns.answers`)."""
        is_full = name == self.name or name.endswith("." + self.name)
        return self._edge.dns.answers(
            name if is_full else self.name if name == "@" else f"{name}.{self.name}", type_
        )


class Namespace:
    """One key-value namespace."""

    def __init__(self, edge: Edge, id_: str, title: str) -> None:
        self._edge = edge
        self.id = id_
        self.title = title

    @property
    def path(self) -> str:
        """Of the namespace in the API."""
        return f"/accounts/{self._edge.account_id}/storage/kv/namespaces/{self.id}"

    def put(self, key: str, value: bytes | str, **options: Any) -> None:
        """Store a value; `options` are `expiration` and `expiration_ttl`."""
        octets = value.encode() if isinstance(value, str) else value
        answer = self._edge.put(
            self._of(key, options), octets, headers={"Content-Type": "application/octet-stream"}
        )
        assert answer.status == 200, answer

    def get(self, key: str) -> bytes | None:
        """The value, or None where there is none."""
        answer = self._edge.get(self._of(key))
        assert answer.status in (200, 404), answer
        return answer.body if answer.status == 200 else None

    def delete(self, key: str) -> None:
        answer = self._edge.delete(self._of(key))
        assert answer.status == 200, answer

    def keys(self, prefix: str = "") -> list[str]:
        """The first 1,000 keys in their order."""
        query = urlencode({"prefix": prefix, "limit": 1_000})
        return [one["name"] for one in self._edge.get(f"{self.path}/keys?{query}").result]

    def _of(self, key: str, options: Mapping[str, Any] | None = None) -> str:
        return f"{self.path}/values/{quote(key, safe='')}" + (f"?{urlencode(options)}" if options else "")


class Dns:
    """The platform's name server, over UDP."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.host, self.port = host.strip("[]"), int(port)

    def ask(self, name: str, type_: str = "A") -> "dns.message.Message":
        """The whole reply. Asks again when none comes, as resolvers do. Raises dns.exception.Timeout."""
        import dns.exception
        import dns.message
        import dns.query

        query = dns.message.make_query(name, type_)
        for tries_left in reversed(range(DNS_TRIES_MAX)):
            try:
                return dns.query.udp(query, self.host, port=self.port, timeout=DNS_SECONDS_MAX)
            except (dns.exception.Timeout, OSError):
                if not tries_left:
                    raise
        raise AssertionError("unreachable")

    def answers(self, name: str, type_: str = "A") -> list[str]:
        """The answer's contents as text, sorted; none when the name or the type is not there."""
        return sorted(rdata.to_text() for rrset in self.ask(name, type_).answer for rdata in rrset)

    def rcode(self, name: str, type_: str = "A") -> str:
        """NOERROR, NXDOMAIN, REFUSED and so on."""
        import dns.rcode

        return dns.rcode.to_text(self.ask(name, type_).rcode())

    def resolver(self) -> "dns.resolver.Resolver":
        """A resolver of dnspython that asks this server alone."""
        import dns.resolver

        made = dns.resolver.Resolver(configure=False)
        made.nameservers, made.port, made.lifetime = [self.host], self.port, DNS_SECONDS_MAX * DNS_TRIES_MAX
        return made


def ask(address: str, method: str, target: str, body: Any, headers: Mapping[str, str]) -> Answer:
    """One request on its own connection. Raises OSError, http.client.HTTPException."""
    connection = http.client.HTTPConnection(address, timeout=CALL_SECONDS_MAX)
    try:
        return send(connection, method, target, body, headers)
    finally:
        connection.close()


def send(
    connection: http.client.HTTPConnection, method: str, target: str, body: Any, headers: Mapping[str, str]
) -> Answer:
    """One request on a connection that stays open."""
    octets = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    if octets is not None:
        headers = {"Content-Type": "application/json", **headers}
    connection.request(method, target, octets, dict(headers))
    response = connection.getresponse()
    found = {name.lower(): value for name, value in response.getheaders()}
    return Answer(response.status, found, response.read())
