"""Keep a name at the address of this machine: a small client of the API, and an example of testing one.

    EDGE_API_BASE=… EDGE_TOKEN=… python dyndns.py example.test home 192.0.2.7

The token needs the permissions Zone Read and DNS Write for the zone. With EDGE_KV (the id of a key-value
namespace, permission Workers KV Storage Write) and EDGE_ACCOUNT_ID it also keeps when the address changed.
"""

import json
import os
import sys
import time
from ipaddress import ip_address
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

TTL_SECONDS = 60


class Refused(Exception):
    """The API said no, in its words."""


class Api:
    """Calls of the API, by path."""

    def __init__(self, base: str, token: str) -> None:
        self._base, self._token = base, token

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """What the answer's `result` holds. Raises Refused."""
        request = Request(self._base + path, method=method)
        request.add_header("Authorization", f"Bearer {self._token}")
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        try:
            with urlopen(request, timeout=30) as response:
                return json.load(response)["result"]
        except HTTPError as error:
            with error:
                raise Refused(json.load(error)["errors"][0]["message"]) from None


def update(api: Api, zone_name: str, host: str, address: str) -> str:
    """Let `host` in the zone have this address: `created`, `changed` or `unchanged`.

    Raises ValueError: no address. Refused.
    """
    type_ = "AAAA" if ip_address(address).version == 6 else "A"
    zones = api.call("GET", f"/zones?{urlencode({'name': zone_name})}")
    if not zones:
        raise Refused(f"there is no zone {zone_name}, or the token does not see it")
    records = f"/zones/{zones[0]['id']}/dns_records"
    found = api.call("GET", f"{records}?{urlencode({'type': type_, 'name': f'{host}.{zone_name}'})}")
    if found and found[0]["content"] == str(ip_address(address)):
        return "unchanged"
    if found:
        api.call("PATCH", f"{records}/{found[0]['id']}", {"content": address})
        return "changed"
    api.call("POST", records, {"type": type_, "name": host, "content": address, "ttl": TTL_SECONDS})
    return "created"


def remember(api: Api, account_id: str, namespace_id: str, name: str, address: str, at: float) -> None:
    """Keep when a name got its address."""
    path = f"/accounts/{account_id}/storage/kv/namespaces/{namespace_id}/bulk"
    api.call("PUT", path, [{"key": quote(name), "value": json.dumps({"address": address, "at": int(at)})}])


def main() -> None:
    zone_name, host, address = sys.argv[1:]
    api = Api(os.environ["EDGE_API_BASE"], os.environ["EDGE_TOKEN"])
    done = update(api, zone_name, host, address)
    namespace_id = os.environ.get("EDGE_KV")
    if namespace_id and done != "unchanged":
        name = f"{host}.{zone_name}"
        remember(api, os.environ["EDGE_ACCOUNT_ID"], namespace_id, name, address, time.time())
    sys.stdout.write(f"{done}\n")


if __name__ == "__main__":
    main()
