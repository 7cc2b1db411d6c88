"""Making a platform what it was before a test: in milliseconds, without a restart.

Owns  what a test can leave behind, and how each of it goes.
Not   when. What nobody can take back stays: counters, the history of tokens, what rate limits have counted;
      and so do further accounts and the account's own catalog zone.
"""

import http.client
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from edgestead.testing.edge import CALL_SECONDS_MAX, Answer, Edge, send

ROUNDS_MAX = 8  # of deleting, where one thing holds another
_ACCOUNT = "/accounts/{account}"
# Zones go first: they hold rulesets, name servers and peers; peers hold keys.
LISTS = (
    ("/zones", "id"),
    (f"{_ACCOUNT}/storage/kv/namespaces", "id"),
    (f"{_ACCOUNT}/rulesets", "id"),
    (f"{_ACCOUNT}/custom_ns", "ns_name"),
    (f"{_ACCOUNT}/firewall/access_rules/rules", "id"),
    (f"{_ACCOUNT}/secondary_dns/catalogs", "id"),
    (f"{_ACCOUNT}/secondary_dns/peers", "id"),
    (f"{_ACCOUNT}/secondary_dns/acls", "id"),
    (f"{_ACCOUNT}/secondary_dns/tsigs", "id"),
    (f"{_ACCOUNT}/members", "id"),
    (f"{_ACCOUNT}/tokens", "id"),
    ("/user/tokens", "id"),
)
_OBJECTS = "/operate/objects?limit=1000"
FACTS = {  # what a platform has once, and how it is written
    _ACCOUNT: ("PUT", ("name", "settings")),
    f"{_ACCOUNT}/dns_settings": ("PATCH", ("zone_defaults", "enforce_dns_only")),
    "/user": ("PATCH", ("first_name", "last_name", "telephone", "country", "zipcode")),
}


class NotEmptied(Exception):
    """Something of a test stays, or the platform does not answer."""


class Contents:
    """What a platform holds at one moment, to which `restore` brings it back."""

    def __init__(self, edge: Edge) -> None:
        """What is there now stays at every `restore`. Raises OSError."""
        self._edge = edge
        base = urlsplit(edge.api_base)
        self._base = base.path
        self._api = http.client.HTTPConnection(base.netloc, timeout=CALL_SECONDS_MAX)
        self._objects = http.client.HTTPConnection(edge.objects or "", timeout=CALL_SECONDS_MAX)
        try:
            self._look()
        except BaseException:
            self.close()
            raise

    def _look(self) -> None:
        self._facts = {path: self._call("GET", path).result for path in FACTS}
        self._kept = {path: {one[id_] for one in self._list(path)} for path, id_ in LISTS}
        self._changes = {zone_id: self._last_change(zone_id) for zone_id in self._kept["/zones"]}
        self._kept_objects = {one["id"] for one in self._object_list()}

    def close(self) -> None:
        self._api.close()
        self._objects.close()

    def restore(self) -> None:
        """Raises NotEmptied, OSError, http.client.HTTPException: the platform is of no further use."""
        for path, id_ in LISTS:
            self._empty(path, id_)
        for path, fact in self._facts.items():
            if self._call("GET", path).result != fact:
                method, members = FACTS[path]
                self._done(self._call(method, path, {name: fact[name] for name in members}))
        for zone_id, last in self._changes.items():
            if self._last_change(zone_id) != last:
                self._done(self._call("POST", f"/zones/{zone_id}/history/{last}/restore", {}))
                self._changes[zone_id] = self._last_change(zone_id)
        for one in self._object_list():
            if one["id"] not in self._kept_objects:
                path = f"/operate/ids/{quote(one['class'], safe='')}/{one['id']}"
                self._done(self._ask(self._objects, "DELETE", path))

    def _empty(self, path: str, id_: str) -> None:
        """Delete what is new. What something else still holds goes in the next round."""
        for _ in range(ROUNDS_MAX):
            found = list(self._list(path))
            missing = self._kept[path] - {one[id_] for one in found}
            if missing:
                raise NotEmptied(f"{path} has no {', '.join(sorted(missing))} any more")
            new = [one[id_] for one in found if one[id_] not in self._kept[path]]
            if not new:
                return
            for name in new:
                self._call("DELETE", f"{path}/{quote(name, safe='')}")
        raise NotEmptied(f"{path} still has {', '.join(new)}")

    def _list(self, path: str) -> Iterator[Mapping[str, Any]]:
        """The first thousand: more are there after the round that deletes them. Managed rulesets stay."""
        for one in self._call("GET", f"{path}?per_page=1000&include_expired=true").result:
            if one.get("kind") != "managed":
                yield one

    def _object_list(self) -> list[Mapping[str, Any]]:
        if self._edge.objects is None:
            return []
        found: list[Mapping[str, Any]] = self._ask(self._objects, "GET", _OBJECTS).result
        return found

    def _last_change(self, zone_id: str) -> int:
        changes = self._call("GET", f"/zones/{zone_id}/history?per_page=1").result
        return changes[0]["sequence"] if changes else 0

    def _call(self, method: str, path: str, body: Any = None) -> Answer:
        path = path.format(account=self._edge.account_id)
        return self._ask(self._api, method, self._base + path, body)

    def _ask(
        self, connection: http.client.HTTPConnection, method: str, target: str, body: Any = None
    ) -> Answer:
        """A connection that the platform has closed meanwhile is made again: all of this may be repeated."""
        headers = {"X-Auth-Email": self._edge.email, "X-Auth-Key": self._edge.key}
        try:
            return send(connection, method, target, body, headers)
        except (http.client.HTTPException, OSError):
            connection.close()
            return send(connection, method, target, body, headers)

    def _done(self, answer: Answer) -> None:
        if answer.status != 200:
            raise NotEmptied(answer.body.decode("utf-8", "replace"))
