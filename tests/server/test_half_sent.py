"""A token that ends while its request is on its way, with a real server: nothing is done for it."""

import json
import socket
from urllib.parse import urlsplit

import pytest

from edgestead.model.permissions import BY_NAME
from edgestead.rest import app as _app  # noqa: F401 - importing it fills the table
from edgestead.rest.routing import CONTROL, rows_of

VALUE_BYTES = 300_000  # over what the row holds: a file of its own


@pytest.fixture
def kv_path(lent):
    path = f"/accounts/{lent.ready['account_id']}/storage/kv/namespaces"
    namespace = lent.call("POST", path, {"title": "n"}).result["id"]
    return f"{path}/{namespace}/values/key"


def policies(server):
    """Everything, on the user, the account and its zones."""
    known = server.call("GET", "/user/tokens/permission_groups").result
    resources = {
        "com.cloudflare.api.user": f"com.cloudflare.api.user.{server.call('GET', '/user').result['id']}",
        "com.cloudflare.api.account": f"com.cloudflare.api.account.{server.ready['account_id']}",
        "com.cloudflare.api.account.zone": "com.cloudflare.api.account.zone.*",
    }
    return [
        {
            "effect": "allow",
            "permission_groups": [{"id": one["id"]} for one in known if scope in one["scopes"]],
            "resources": {resource: "*"},
        }
        for scope, resource in resources.items()
    ]


def ended(server, how, made, body):
    """A token's right ends, as its owner ends it."""
    path = f"/user/tokens/{made['id']}"
    sent = {
        "deleted": ("DELETE", path),
        "rolled": ("PUT", f"{path}/value", {}),
        "disabled": ("PUT", path, {**body, "status": "disabled"}),
        "narrowed": ("PUT", path, {**body, "policies": NARROW}),
        "over": ("PUT", path, {**body, "expires_on": "2020-01-01T00:00:00Z"}),
    }
    return server.call(*sent[how])


NARROW = [
    {
        "effect": "allow",
        "permission_groups": [{"id": BY_NAME["Objects Invoke"].id}],
        "resources": {"com.cloudflare.api.account.*": "*"},
    }
]


@pytest.mark.parametrize("how", ["deleted", "rolled", "disabled", "narrowed", "over"])
def test_no_half_sent_request_outlives_the_token_that_it_was_sent_with(lent, kv_path, how):
    server = lent
    zone_id = server.make_zone("example.com")
    record = {"type": "A", "name": "www", "content": "192.0.2.1"}
    asked = [
        ("POST", "/user/tokens", json.dumps({"name": "successor", "policies": policies(server)}).encode()),
        ("POST", f"/zones/{zone_id}/dns_records", json.dumps(record).encode()),
        ("PUT", kv_path, b"v" * VALUE_BYTES),
    ]
    body = {"name": "t", "policies": policies(server)}
    made = server.call("POST", "/user/tokens", body).result
    tokens_before = {one["id"] for one in server.call("GET", "/user/tokens").result}

    begun = [begin(server, made["value"], *one) for one in asked]
    begun.append(begin_head(server, made["value"], f"/zones/{zone_id}/dns_records"))
    assert ended(server, how, made, body).status == 200
    statuses = [end(connection, rest) for connection, rest in begun]

    assert set(statuses[:-1]) <= {401, 403}, statuses
    assert statuses[-1] in NOT_DONE, statuses
    gone = {made["id"]} if how in ("deleted", "over") else set()  # what is over is in no list
    assert {one["id"] for one in server.call("GET", "/user/tokens").result} == tokens_before - gone
    assert server.call("GET", f"/zones/{zone_id}/dns_records").result == []
    assert server.call("GET", kv_path).status == 404
    assert [server.call(*one[:2], json.loads(one[2])).status for one in asked[:2]] == [200, 200]


ASKING = [route for route in rows_of(CONTROL) if not (route.public or route.has_ended)]
BEHIND_BYTES = 20  # of a head, which come when the token is gone
AT_ONCE = 25  # a head has ten seconds to come, and an address 60 unknown credentials a minute
NOT_DONE = {401, 403, 408}  # the last one on a machine that is slower than that


def test_no_half_sent_head_of_any_route_outlives_its_token(lent):
    server, statuses = lent, {}
    known = {"zone_id": server.make_zone("heads.example"), "account_id": server.ready["account_id"]}
    before = everything(server)
    for number in range(0, len(ASKING), AT_ONCE):
        routes, source = ASKING[number : number + AT_ONCE], f"127.0.3.{1 + number // AT_ONCE}"
        body = {"name": "heads", "policies": policies(server)}
        made = server.call("POST", "/user/tokens", body).result
        begun = [begin_route(server, made["value"], route, known, source) for route in routes]
        assert server.call("DELETE", f"/user/tokens/{made['id']}").status == 200
        for route, one in zip(routes, begun, strict=True):
            statuses[f"{route.method} {route.path}"] = end(*one)

    assert {name: status for name, status in statuses.items() if status not in NOT_DONE} == {}
    assert not set(statuses.values()) <= {408}
    assert everything(server) == before


def everything(server):
    paths = ("/zones", "/accounts", "/user/tokens", f"/accounts/{server.ready['account_id']}/members")
    found = {path: server.call("GET", path).result for path in paths}
    for token in found["/user/tokens"]:
        token.pop("last_used_on", None)
    return found


def begin_route(server, secret, route, known, source):
    """A connection with a head but for its end; one that has a body has an empty object."""
    base, path = urlsplit(server.ready["api_base"]), route.path
    for parameter in route.parameters:
        path = path.replace("{" + parameter + "}", known.get(parameter, "0" * 32))
    head = (
        f"{route.method} {path} HTTP/1.1\r\nHost: api\r\nAuthorization: Bearer {secret}\r\n"
        "Content-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
    ).encode()
    address = (base.hostname, base.port)
    connection = socket.create_connection(address, timeout=300, source_address=(source, 0))
    connection.sendall(head[:-BEHIND_BYTES])
    return connection, head[-BEHIND_BYTES:]


def begin(server, secret, method, path, body):
    """The connection, with half of the body sent, and the other half. The server has seen the head."""
    base = urlsplit(server.ready["api_base"])
    form = "octet-stream" if method == "PUT" else "json"
    head = (
        f"{method} {base.path}{path} HTTP/1.1\r\nHost: api\r\nAuthorization: Bearer {secret}\r\n"
        f"Content-Type: application/{form}\r\nExpect: 100-continue\r\n"
        f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    connection = socket.create_connection((base.hostname, base.port), timeout=300)
    connection.sendall(head.encode())
    assert connection.recv(1_024).startswith(b"HTTP/1.1 100 ")  # its body is being read: it was let in
    connection.sendall(body[: len(body) // 2])
    return connection, body[len(body) // 2 :]


def begin_head(server, secret, path):
    """The connection, with half of the head sent, and the other half."""
    base = urlsplit(server.ready["api_base"])
    head = (
        f"GET {base.path}{path} HTTP/1.1\r\nHost: api\r\nAuthorization: Bearer {secret}\r\n"
        "Connection: close\r\n\r\n"
    ).encode()
    connection = socket.create_connection((base.hostname, base.port), timeout=300)
    connection.sendall(head[: len(head) - 20])
    return connection, head[len(head) - 20 :]


def end(connection, rest):
    """The status that is answered to the whole request."""
    with connection:
        connection.sendall(rest)
        return int(connection.makefile("rb").readline().split()[1])
