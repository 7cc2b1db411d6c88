"""A server in which everything that others may write is an attempt to run a script on somebody's page.

`fill` writes it all, `HOSTILE` says where; each place has its own text, so that a test sees which were shown.
"""

from urllib.parse import quote

from tests.edge.test_managed_server import ATTACK, RULES, deployed
from tests.web.conftest import Visitor, link_of

SHELF = """
from edgestead import StatefulObject


class Shelf(StatefulObject):
    storage = "sql"

    async def keep(self, key, value, table, row):
        self.ctx.storage.put(key, value)
        name = '"' + table.replace('"', '""') + '"'
        self.ctx.storage.sql.exec(f"CREATE TABLE IF NOT EXISTS {name} ({name} TEXT)")
        self.ctx.storage.sql.exec(f"INSERT INTO {name} VALUES (?)", row)
"""
ZONE = "shop.example"
RAN = "ran"  # of the browser's window, set by a script of theirs
PASSWORD = "correct horse battery staple"


def marked(place):
    """How a hostile text begins, which nothing escapes."""
    return f"{place}-theirs"


def hostile(place):
    """Out of an attribute, a text, a text area and a title; without blanks, at most 100 characters."""
    return f"{marked(place)}\"'><script>top.ran=1</script></textarea></title><svg/onload=top.ran=1>"


PLACES = (
    *("txt", "comment", "rule", "title", "key", "value", "metadata", "token", "first", "last"),
    *("object", "entry", "kept", "table", "row", "agent", "path", "ruleset", "shared"),
)

HOSTILE = {place: hostile(place) for place in PLACES}


def flags(folder):
    """Of a server that is to be filled, with a rule set of the tests' own and the class `Shelf`."""
    (folder / "crs" / "rules").mkdir(parents=True)
    (folder / "crs" / "crs-setup.conf").write_text('SecComponentSignature "OWASP_CRS/4.0.0"\n')
    (folder / "crs" / "rules" / "one.conf").write_text(RULES)
    (folder / "shelf.py").write_text(SHELF)
    objects = ("--objects", str(folder / "shelf.py"), "--objects-workers", "1")
    return ("--crs", str(folder / "crs"), *objects)


def fill(site):
    """One of each thing that has a page."""
    server, written = site.server, HOSTILE

    def send(method, path, body):
        answer = server.call(method, path, body)
        assert answer.status == 200, answer
        return answer.result

    send(
        "POST",
        f"/zones/{site.zone_id}/dns_records",
        {"type": "TXT", "name": "x", "content": _quoted(written["txt"]), "comment": written["comment"]},
    )
    rule = {"action": "log", "expression": 'http.host contains "shop"', "description": written["rule"]}
    send(
        "PUT",
        f"/zones/{site.zone_id}/rulesets/phases/http_request_firewall_custom/entrypoint",
        {"rules": [rule]},
    )
    account = f"/accounts/{server.ready['account_id']}"
    _ruleset(account, send)
    spaces = f"{account}/storage/kv/namespaces"
    space = send("POST", spaces, {"title": written["title"]})["id"]
    pair = {"key": written["key"], "value": written["value"], "metadata": {"a": written["metadata"]}}
    send("PUT", f"{spaces}/{space}/bulk", [pair])
    groups = server.call("GET", "/user/tokens/permission_groups").result
    resources = {f"com.cloudflare.api.account.{server.ready['account_id']}": "*"}
    policy = {"effect": "allow", "permission_groups": [{"id": groups[0]["id"]}], "resources": resources}
    send("POST", "/user/tokens", {"name": written["token"], "policies": [policy]})
    _member(server, account, send)
    shelf = quote(written["object"], safe="")
    for row in ("before", written["row"]):
        kept = (written["entry"], [written["kept"], row], written["table"], row)
        assert server.call_object(f"Shelf/{shelf}/keep", *kept).status == 200
    _event(site)


def _quoted(text):
    """As a zone file has it."""
    return '"' + text.replace('"', '\\"') + '"'


def _ruleset(account, send):
    """Of the account, executed for every zone."""
    phase = "http_request_firewall_custom"
    rule = {"action": "log", "expression": 'http.host eq "none"', "description": HOSTILE["shared"]}
    body = {"name": HOSTILE["ruleset"], "kind": "custom", "phase": phase, "rules": [rule]}
    said = {"id": send("POST", f"{account}/rulesets", body)["id"]}
    rule = {"action": "execute", "expression": "true", "action_parameters": said}
    send("PUT", f"{account}/rulesets/phases/{phase}/entrypoint", {"rules": [rule]})


def _member(server, account, send):
    role = server.call("GET", f"{account}/roles").result[0]["id"]
    made = send("POST", f"{account}/members", {"email": "h@example.com", "roles": [role]})
    person = Visitor(server)
    again = {"password": PASSWORD, "again": PASSWORD}
    names = {"first_name": HOSTILE["first"], "last_name": HOSTILE["last"]}
    assert person.send("/ui/invite", code=made["code"], **again, **names).status == 303


def _event(site):
    host, _ = deployed(site)
    agent = f"User-Agent: {HOSTILE['agent']}"
    assert site.get(host, "/" + HOSTILE["path"].replace(" ", "+") + ATTACK[1:], agent).status == 403
    path = f"/zones/{site.zone_id}/security/events?host={host}&action=block"
    site.server.wait_until(lambda: site.server.call("GET", path).result, 180)


def operator(server):
    """Somebody signed in by the link of `edgecli dashboard`."""
    made = Visitor(server)
    assert made.send("/ui/enter", code=link_of(server).partition("code=")[2]).status == 303
    return made
