"""`edgecli demo`: a server with something on it to look at, which leaves nothing behind.

Owns  the tour: what is made, and the words about it.
Not   the folder, the server's process and the site (`cli.server.demo_place`).
"""

import http.client
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

import click

from edgestead.cli.failure import Failed
from edgestead.cli.target import Command

if TYPE_CHECKING:
    from edgestead.cli.http import Api
    from edgestead.cli.server.demo_place import Place

ZONE = "demo.example"
SITE = f"www.{ZONE}"
OBJECT_CLASS = "Guestbook"
ATTACK = "' OR '1'='1"
REQUEST_SECONDS = 30.0  # the first one waits for the edge's rules
VISIT_SECONDS_MAX = 120.0  # until a visitor gets what is meant; on a quiet machine at once


class Seen(NamedTuple):
    """What a visitor got from the edge."""

    status: int
    text: str


@click.command("demo", cls=Command)
@click.option("--once", is_flag=True, help="End when everything was shown, without waiting for Ctrl-C.")
def demo(once: bool) -> None:
    """Start a server in a temporary folder, with a site behind rules, an attack, an object and a dashboard.

    It takes free ports of this machine, says what there is to look at, and waits. Ctrl-C ends it and removes
    everything; what a demo that was killed has left is removed by the next one.

    \b
      edgecli demo
    """
    from edgestead.cli.server import demo_place

    click.echo("Starting a server on free ports, in a temporary folder …")
    with demo_place.opened() as place:
        _show(place)
        if not once:
            place.wait("\nCtrl-C ends it, and leaves nothing behind.")
    click.echo("Ended; the folder is removed.")


def _show(place: "Place") -> None:
    """Make each thing, try it, and say where it is."""
    from edgestead.cli.http import Api

    with Api(place.source) as server:
        for number, (title, step) in enumerate(STEPS, 1):
            click.echo(f"\n{number}. {title}")
            for line in step(place, server):
                click.echo(f"   {line}")


def _zone(place: "Place", server: "Api") -> list[str]:
    zone = server.call(
        "POST", "/zones", json_body={"name": ZONE, "account": {"id": place.ready["account_id"]}}
    )["result"]
    records = f"/zones/{zone['id']}/dns_records"
    server.call("POST", records, json_body={"type": "A", "name": "mail", "content": "192.0.2.25"})
    server.call(
        "POST", records, json_body={"type": "A", "name": "www", "content": "127.0.0.1", "proxied": True}
    )
    host, _, port = place.ready["dns"].rpartition(":")
    return [f"{ZONE} has two records, and DNS answers them already:", f"dig -p {port} @{host} mail.{ZONE}"]


def _site(place: "Place", server: "Api") -> list[str]:
    seen = _visit(place, "/", lambda one: one.status == 200)
    return [f"{SITE} is served through the edge: {seen.status}.", _curl(place, "/")]


def _attack(place: "Place", server: "Api") -> list[str]:
    zone = server.call("GET", "/zones", query={"name": ZONE})["result"][0]["id"]
    rule = {
        "action": "block",
        "expression": 'http.request.uri.query contains "%27"',
        "description": "quotes in a query",
    }
    path = f"/zones/{zone}/rulesets/phases/http_request_firewall_custom/entrypoint"
    server.call("PUT", path, json_body={"rules": [rule]})
    attack = f"/?q={quote(ATTACK)}"
    seen = _visit(place, attack, lambda one: one.status == 403)
    good = _visit(place, "/?q=hello", lambda one: one.status == 200)
    return [
        f"A rule blocks quotes in a query: {ATTACK} gets {seen.status}, and hello gets {good.status}.",
        _curl(place, attack),
        f"edgecli waf events --zone {ZONE}",
    ]


def _object(place: "Place", server: "Api") -> list[str]:
    import json

    host, _, port = place.ready["objects"].rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=REQUEST_SECONDS)
    try:
        headers = {**place.source.headers, "Content-Type": "application/json"}
        body = json.dumps({"args": ["the demo was here"], "kwargs": {}})
        connection.request("POST", f"/objects/{OBJECT_CLASS}/home/sign", body, headers)
        answer = connection.getresponse()
        text = answer.read()
    finally:
        connection.close()
    if answer.status != 200:
        raise Failed(f"The object answered {answer.status}: {text.decode(errors='replace')}.")
    count = json.loads(text)["result"]
    return [
        f"{OBJECT_CLASS} home, a Python object that remembers, was signed: {count} line.",
        f"edgecli object call {OBJECT_CLASS} home sign hello",
        f"edgecli object timeline {OBJECT_CLASS} home",
    ]


def _values(place: "Place", server: "Api") -> list[str]:
    path = f"/accounts/{place.ready['account_id']}/storage/kv/namespaces"
    made = server.call("POST", path, json_body={"title": "texts"}, repeat=False)["result"]["id"]
    value = b"hello from the key-value store"
    length = {"Content-Length": str(len(value)), "Content-Type": "text/plain"}
    put = server.request("PUT", f"{path}/{made}/values/greeting", headers=length, body=lambda: value)
    put.read()
    return ["The namespace texts has a value:", f"edgecli kv key get greeting --namespace-id {made}"]


def _look(place: "Place", server: "Api") -> list[str]:
    return [
        "The dashboard, for two minutes from now on:",
        place.dashboard_link(),
        "For the commands above, in another terminal:",
        f'eval "$(edgecli env --data-dir {place.data_dir})"',
    ]


Step = Callable[["Place", "Api"], list[str]]
STEPS: tuple[tuple[str, Step], ...] = (
    ("A zone", _zone),
    ("A site behind the edge", _site),
    ("An attack", _attack),
    ("An object", _object),
    ("Keys and values", _values),
    ("Look around", _look),
)


def _curl(place: "Place", path: str) -> str:
    return f"curl -i -H 'Host: {SITE}' 'http://{place.ready['http']}{path}'"


def _visit(place: "Place", path: str, is_it: Callable[[Seen], bool]) -> Seen:
    """What a visitor gets; asked again while the edge has not what was just written. Raises Failed."""
    host, _, port = place.ready["http"].rpartition(":")
    seen, ends_s = Seen(0, ""), time.monotonic() + VISIT_SECONDS_MAX
    while time.monotonic() < ends_s:
        connection = http.client.HTTPConnection(host, int(port), timeout=REQUEST_SECONDS)
        try:
            connection.request("GET", path, headers={"Host": SITE, "User-Agent": "edgecli"})
            answer = connection.getresponse()
            seen = Seen(answer.status, answer.read().decode(errors="replace"))
        except (OSError, http.client.HTTPException) as error:  # an edge process that begins anew
            seen = Seen(0, str(error))
        finally:
            connection.close()
        if is_it(seen):
            return seen
        time.sleep(0.1)
    raise Failed(f"{SITE}{path} answers {seen.status}, which is not what was meant to be shown.")
