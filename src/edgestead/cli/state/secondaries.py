"""Secondary zones of a document, the primaries that they are transferred from, and TSIG keys without secrets.

Owns  how a primary and a key are written, from answers and to requests; what a zone's type refuses.
Not   records: they are the primary's, so no document has them. Imports click and the standard library only.

A primary is `{ ip, port, key, tls, ixfr }`: the name of its TSIG key, and what differs from port 53, plain
TCP and IXFR. The API's peer of that place is found, or made; what it is called is nobody's business.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from edgestead.cli.failure import Failed
from edgestead.cli.http import Refused
from edgestead.cli.target import NO_PRIMARIES, Json, is_id

if TYPE_CHECKING:
    from edgestead.cli.http import Api

SECONDARY, FULL = "secondary", "full"
PRIMARY_MEMBERS: Mapping[str, type] = {"ip": str, "port": int, "key": str, "tls": bool, "ixfr": bool}
PRIMARY_DEFAULTS: Json = {"port": 53, "key": None, "tls": False, "ixfr": True}
KEY_MEMBERS: Mapping[str, type] = {"name": str, "algorithm": str, "transfer": bool}
KEY_DEFAULTS: Json = {"algorithm": "hmac-sha256", "transfer": True}
OF_PRIMARIES = frozenset({"records", "rrsets", "dnssec"})  # members of a zone that its primary decides


def primary_form(primary: Mapping[str, Any]) -> Json:
    """What is as by default is left out."""
    return {"ip": primary["ip"].lower()} | _without(primary, PRIMARY_DEFAULTS)


def key_form(key: Mapping[str, Any]) -> Json:
    given = {**key, "algorithm": _plain(key.get("algorithm", KEY_DEFAULTS["algorithm"]))}
    return {"name": _plain(key["name"])} | _without(given, KEY_DEFAULTS)


def _without(given: Mapping[str, Any], defaults: Json) -> Json:
    return {
        name: given[name]
        for name, default in defaults.items()
        if given.get(name, default) not in (None, default)
    }


def _plain(name: str) -> str:
    return name.lower().removesuffix(".")


class Peers:
    """An account's name servers and keys, read when the first zone needs them."""

    def __init__(self, server: "Api", account: str) -> None:
        self._server = server
        self._path = f"/accounts/{account}/secondary_dns"
        self._peers: list[Json] | None = None
        self._keys: list[Json] | None = None

    def keys(self) -> list[Json]:
        """Raises Refused: it takes the right to write them, since secrets are in the answer."""
        if self._keys is None:
            self._keys = self._server.call("GET", f"{self._path}/tsigs")["result"]
        return self._keys

    def primaries(self, zone_path: str) -> list[Json]:
        """Of a secondary zone, in the order in which they are asked. A key that may not be read is its id."""
        try:
            incoming = self._server.call("GET", f"{zone_path}/secondary_dns/incoming")["result"]
        except Refused as refusal:
            if NO_PRIMARIES in refusal.codes:
                return []
            raise
        by_id = {one["id"]: one for one in self._all()}
        return [self._form(by_id[one]) for one in incoming["peers"] if one in by_id]

    def send(self, zone_path: str, zone: str, before: Sequence[Json] | None, after: Sequence[Json]) -> None:
        """Say where a zone is transferred from. Raises Failed: there is no such key."""
        ids = [self._id(one) for one in after]
        path, body = f"{zone_path}/secondary_dns/incoming", {"name": zone, "peers": ids}
        self._server.call("PUT" if before else "POST", path, json_body=body)

    def send_key(self, before: Json | None, after: Json) -> None:
        """Make a key, whose secret the server chooses, or change one, which keeps its secret."""
        whole = {**KEY_DEFAULTS, **after}
        body = {"name": whole["name"], "algo": whole["algorithm"], "transfer": whole["transfer"]}
        if before is None:
            self._server.call("POST", f"{self._path}/tsigs", json_body=body, repeat=False)
        else:
            key_id = self.key_id(after["name"])
            self._server.call("PUT", f"{self._path}/tsigs/{key_id}", json_body=body)
        self._keys = None

    def key_id(self, name: str) -> str:
        """Raises Failed: the account has no such key."""
        for one in self.keys():
            if name in (_plain(one["name"]), one["id"]):
                return str(one["id"])
        raise Failed(
            f"There is no TSIG key {name}.", f"`edgecli dns key add {name} --secret-file FILE` makes it."
        )

    def _all(self) -> list[Json]:
        if self._peers is None:
            self._peers = self._server.call("GET", f"{self._path}/peers")["result"]
        return self._peers

    def _form(self, peer: Json) -> Json:
        key = peer.get("tsig_id")
        if key:
            key = next((_plain(one["name"]) for one in self._readable() if one["id"] == key), key)
        return primary_form({**peer, "key": key, "ixfr": peer.get("ixfr_enable", True)})

    def _readable(self) -> list[Json]:
        try:
            return self.keys()
        except Refused as refusal:
            if refusal.status != 403:
                raise
            self._keys = []
            return []

    def _id(self, primary: Json) -> str:
        found = next((one for one in self._all() if one.get("ip") and self._form(one) == primary), None)
        if found is None:
            whole = {**PRIMARY_DEFAULTS, **primary}
            body = {
                "name": f"{whole['ip']}@{whole['port']}",
                "ip": whole["ip"],
                "port": whole["port"],
                "ixfr_enable": whole["ixfr"],
                "tls": whole["tls"],
                "tsig_id": self.key_id(whole["key"]) if whole["key"] else None,
            }
            path = f"{self._path}/peers"
            found = self._server.call("POST", path, json_body=body, repeat=False)["result"]
            self._all().append(found)
        return str(found["id"])


def key_forms(keys: Sequence[Json]) -> list[Json]:
    forms = [key_form({**one, "algorithm": one["algo"]}) for one in keys]
    return sorted(forms, key=lambda one: str(one["name"]))


def compare_without_keys(now: Json, wanted: Json) -> bool:
    """Take the keys out of all primaries if those of `now` could not be read; whether that is so."""
    zones = [zone for one in (now, wanted) for zone in one.get("zones", {}).values() if "primaries" in zone]
    held = [primary for zone in now.get("zones", {}).values() for primary in zone.get("primaries", ())]
    is_unread = any(is_id(primary.get("key", "")) for primary in held)
    for primary in (one for zone in zones for one in zone["primaries"] if is_unread):
        primary.pop("key", None)
    return is_unread


def refuse_types(now: Json, wanted: Json) -> None:
    """Before anything is changed. Raises Failed: a zone is of another type here, which nobody can change."""
    for name, zone in wanted.get("zones", {}).items():
        there = now.get("zones", {}).get(name)
        if there is None:
            continue
        held = there.get("type", FULL)
        if zone.get("type", held) != held:
            raise Failed(
                f"The zone {name} is {_worded(held)} here, and not {_worded(zone['type'])}.",
                f"`edgecli zone delete {name}` removes it; then it can be made anew.",
            )
        if held == SECONDARY and (own := sorted(OF_PRIMARIES & zone.keys())):
            raise Failed(
                f"The zone {name} is secondary here: its {', '.join(own)} are its primary's.",
                'Write `type = "secondary"` and its primaries, or leave that out.',
            )


def _worded(type_: str) -> str:
    return SECONDARY if type_ == SECONDARY else "primary"
