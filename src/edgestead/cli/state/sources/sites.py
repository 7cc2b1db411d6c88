"""Sites of another proxy as proxied records, with rules that lead to their origins.

Owns  what of a site becomes a record, and what a rule.
Not   any proxy's configuration.
"""

import json
from ipaddress import ip_address
from typing import NamedTuple

from edgestead.cli.state.document import Json, relative
from edgestead.cli.state.sources.gathered import Gathered

PORTS = {"http": 80, "https": 443}
REDIRECTS = frozenset({301, 302, 303, 307, 308})
NOWHERE = "192.0.2.1"  # RFC 5737: the origin of a host that is only redirected, so nobody asks it
LOCAL = "127.0.0.1"
WHOLE_PATH = ("$request_uri", "$uri", "{http.request.uri}")  # how the proxies spell that a redirect keeps it
HOST_AGAIN = ("$host", "{http.request.host}")


class Origin(NamedTuple):
    """Where a site's answers come from. `port` None is the scheme's."""

    scheme: str
    host: str
    port: int | None = None


class Sites:
    """Adds sites to what is gathered, host by host; `end` when all of them have been seen."""

    def __init__(self, found: Gathered) -> None:
        self.found = found
        self._redirected: list[str] = []

    def add(self, host: str, origin: Origin, where: str) -> None:
        """A proxied record, and a rule where the origin has a port of its own."""
        name = self._name(host, where)
        if not name:
            return
        self._add_record(name, LOCAL if origin.host == "localhost" else origin.host.strip("[]"))
        if origin.port not in (None, PORTS.get(origin.scheme)):
            parameters = {"origin": {"port": origin.port}}
            self._add_rule(name, "", "origin", "route", parameters, "origin")
        if origin.scheme == "https":
            self.found.leave(where, f"{name} is asked over TLS: set `ssl` to full or strict for its zone")

    def redirect(self, host: str, path: str, status: int, target: str, where: str) -> None:
        """`path` "" is every one; `target` is as the proxy has it, with its own variables."""
        name = self._name(host, where)
        if not name:
            return
        self._redirected.append(name)
        base = next((target.removesuffix(one) for one in WHOLE_PATH if target.endswith(one)), target)
        keeps_path = base != target
        base = base.replace("$scheme", "https")
        for variable in HOST_AGAIN:
            base = base.replace(variable, name)
        if "$" in base or "{" in base:
            self.found.leave(where, f"a redirect to {target}: its variables are not known here")
        elif keeps_path and base == f"https://{name}":
            remedy = "`edgecli setting set always_use_https=on` does that for its zone"
            self.found.leave(where, f"{name} to https: {remedy}")
        else:
            url: Json = {"value": base}
            if keeps_path:
                url = {"expression": f"concat({json.dumps(base)}, http.request.uri)"}
            parameters = {"from_value": {"status_code": status, "target_url": url}}
            self._add_rule(name, path, "redirect", "redirect", parameters, "redirect")

    def end(self) -> None:
        """A host that is only redirected needs a record, too: its visitors have to come to the edge."""
        for name in self._redirected:
            zone = self.found.zone_of(name)
            rrsets = self.found.zones.get(zone, {}).get("rrsets", ())
            if all(one["name"] != relative(name, zone) for one in rrsets):
                self._add_record(name, NOWHERE)

    def _name(self, host: str, where: str) -> str:
        """As a record is named; "" where it cannot be one, or nobody asked for its zone."""
        name = host.lower().rstrip(".")
        if "." not in name or name.startswith("~") or "*" in name.removeprefix("*."):
            self.found.leave(where, f"{name or 'a site without a name'}: it is the name of no zone's record")
            return ""
        if _is_address(name):
            self.found.leave(where, f"{name}: a site is known by its name here, not by an address")
            return ""
        return name if self.found.takes(self.found.zone_of(name)) else ""

    def _add_record(self, name: str, content: str) -> None:
        type_ = "CNAME" if not _is_address(content) else "AAAA" if ":" in content else "A"
        record = {"name": name, "type": type_, "content": content, "proxied": True}
        self.found.add_rrset_record(self.found.zone_of(name), record)

    def _add_rule(
        self, name: str, path: str, phase: str, action: str, parameters: Json, purpose: str
    ) -> None:
        expression = f"http.host eq {json.dumps(name)}"
        if path:
            expression += f" and http.request.uri.path eq {json.dumps(path)}"
        rule = {
            "action": action,
            "expression": expression,
            "description": f"{purpose} of {name}{path}",
            "action_parameters": parameters,
        }
        self.found.add_rule(self.found.zone_of(name), phase, rule)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
