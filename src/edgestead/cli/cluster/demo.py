"""`edgecli cluster demo`: three nodes over a database with a standby, and what happens when one of them dies.

Owns  the tour: what is made, what is killed, what is looked at afterwards.
Not   the processes (`cli.cluster.demo_place`).
"""

import http.client
import json
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from edgestead.cli.failure import Failed
from edgestead.cli.target import Command

if TYPE_CHECKING:
    from edgestead.cli.cluster.demo_place import Node, Place

ZONE = "demo.example"
WRITE_SECONDS_MAX = 20.0  # of one request: longer than a node holds it
SETTLE_SECONDS_MAX = 90.0  # until something that was killed has its successor
ACKED_BEFORE = 10  # writes, before and after each kill
BOOKS = tuple(f"book-{number}" for number in range(11))  # so that each node has some
SIGN_SECONDS = 0.05  # between two lines
DNS_SECONDS = 2.0


class Writes:
    """A client that writes record after record, to the nodes in turn, and notes what was acknowledged."""

    def __init__(self, place: "Place", zone_id: str, prefix: str = "w") -> None:
        self._place, self._zone_id, self._prefix = place, zone_id, prefix
        self.acked: list[str] = []
        self.longest_s = 0.0  # between two acknowledgements
        self._acked_s = time.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="writes", daemon=True)

    def __enter__(self) -> "Writes":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()

    def wait_for(self, count: int) -> None:
        """Until so many more are acknowledged. Raises Failed."""
        wanted, ends_s = len(self.acked) + count, time.monotonic() + SETTLE_SECONDS_MAX
        while len(self.acked) < wanted:
            if time.monotonic() > ends_s:
                raise Failed(f"Only {len(self.acked)} writes were acknowledged.", *self._place.last_words())
            time.sleep(0.02)

    def begin_gap(self) -> None:
        self.longest_s, self._acked_s = 0.0, time.monotonic()

    def _run(self) -> None:
        number = 0
        while not self._stop.is_set():
            node = self._place.nodes[number % len(self._place.nodes)]
            number += 1
            if name := self._written(node, number):
                now_s = time.monotonic()
                self.longest_s = max(self.longest_s, now_s - self._acked_s)
                self._acked_s = now_s
                self.acked.append(name)

    def _written(self, node: "Node", number: int) -> str:
        """What was acknowledged; nothing if it was not."""
        name = f"{self._prefix}{number:05}.{ZONE}"
        record = {"type": "TXT", "name": name, "content": f'"{number}"'}
        with suppress(OSError, http.client.HTTPException):
            status, _ = ask(node, "POST", f"/zones/{self._zone_id}/dns_records", record)
            return name if status == 200 else ""
        self._stop.wait(0.02)
        return ""


class Signatures(Writes):
    """The same with lines in guestbooks, which are stateful objects, each on one of the nodes."""

    def __init__(self, place: "Place") -> None:
        super().__init__(place, "")

    def _written(self, node: "Node", number: int) -> str:
        self._stop.wait(SIGN_SECONDS)
        line = f"{number:05}"
        with suppress(OSError, http.client.HTTPException):
            status, _ = ask_object(node, f"Guestbook/{BOOKS[number % len(BOOKS)]}/sign", line)
            return line if status == 200 else ""
        return ""


def ask_object(node: "Node", path: str, *arguments: object) -> tuple[int, Any]:
    """One call of an object's method, of which nothing is repeated. Raises OSError, HTTPException."""
    return _ask(node, node.ready["objects"], "POST", f"/objects/{path}", {"args": arguments})


def ask(node: "Node", method: str, path: str, body: object = None) -> tuple[int, Any]:
    """One request to a node, of which nothing is repeated. Raises OSError, HTTPException."""
    where = urlsplit(node.ready["api_base"])
    return _ask(node, where.netloc, method, where.path + path, body)


def _ask(node: "Node", address: str, method: str, target: str, body: object) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(address, timeout=WRITE_SECONDS_MAX)
    try:
        content = None if body is None else json.dumps(body).encode()
        headers = {**node.source.headers, "Content-Type": "application/json"}
        connection.request(method, target, content, headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


@click.command("demo", cls=Command)
@click.option("--once", is_flag=True, help="End when everything was shown, without waiting for Ctrl-C.")
def demo(once: bool) -> None:
    """Start three nodes over a database with a synchronous standby, kill some, and look what is left.

    Everything is on free ports of this machine, in a temporary folder; it needs PostgreSQL's programs
    (Debian: postgresql), not its service. Afterwards it waits: kill any process yourself. Ctrl-C ends it and
    removes everything.

    \b
      edgecli cluster demo
    """
    from edgestead.cli.cluster import demo_place

    click.echo("Starting a database, its standby and three nodes, in a temporary folder …")
    with demo_place.opened(lambda words: click.echo(f"   … {words}")) as place:
        _show(place)
        if not once:
            with suppress(KeyboardInterrupt):
                click.echo("\nKill and cut off what you like. Ctrl-C ends it, and leaves nothing behind.")
                while True:
                    time.sleep(1)  # a signal just before a wait without an end would be lost
    click.echo("Ended; the folder is removed.")


def _show(place: "Place") -> None:
    click.echo("\n1. Three nodes")
    for node in place.nodes:
        host, port = node.dns
        click.echo(f"   {node.name}: API {node.ready['api_base']}, DNS {host}:{port}")
    click.echo(
        f"   {place.nodes[0].name} was the first; the others joined by tokens of `edgecli cluster invite`."
    )
    click.echo("\n2. A zone, made at a node that does not lead")
    leader = place.wait_for_leader()
    follower = next(node for node in place.nodes if node.name != leader)
    account = follower.ready["account_id"]
    zone_id = _made(follower, "/zones", {"name": ZONE, "account": {"id": account}})["id"]
    _made(follower, f"/zones/{zone_id}/dns_records", {"type": "A", "name": "www", "content": "192.0.2.1"})
    click.echo(f"   {leader} leads; {follower.name} passed it on, and when it answered")
    for node in place.nodes:
        found = dns_answer(node, f"www.{ZONE}", "A")
        click.echo(f"   {node.name} said {found or 'nothing'} to dig www.{ZONE}")
    with Writes(place, zone_id) as writes, Signatures(place) as signed:
        for number, (title, step) in enumerate(STEPS, 3):
            click.echo(f"\n{number}. {title}")
            writes.wait_for(ACKED_BEFORE)
            signed.wait_for(ACKED_BEFORE)
            writes.begin_gap()
            signed.begin_gap()
            step(place)
            place.wait_settled()
            writes.wait_for(ACKED_BEFORE)
            signed.wait_for(ACKED_BEFORE)
            click.echo(f"   Writes went on; the longest wait between two was {writes.longest_s:.1f} s.")
            click.echo(f"   So did stateful objects ({signed.longest_s:.1f} s).")
    click.echo("\n6. What was acknowledged")
    click.echo(f"   {_looked_at(place, writes.acked)}")
    click.echo(f"   {_looked_at_books(place, signed.acked)}")
    click.echo("\n7. Look around, in another terminal")
    folder = place.nodes[0].folder
    host, port = place.nodes[1].dns
    for line in (
        f"edgecli cluster status --cluster {folder}",
        f'eval "$(edgecli env --data-dir {folder})"',
        f"for i in $(seq 1000); do edgecli record create {ZONE} x$i TXT $i || sleep 1; done",
        f"dig +short -p {port} @{host} x1.{ZONE} TXT",
        f"edgecli object call Guestbook {BOOKS[0]} read",
        f"kill -9 PID   # any of: {', '.join(f'{name} {pid}' for name, pid in place.pids())}",
        "pkill -STOP -s PID; sleep 10; pkill -CONT -s PID   # a node that nobody hears, and that goes on",
    ):
        click.echo(f"   {line}")


def _kill_leader(place: "Place") -> None:
    leader = place.node(place.wait_for_leader())
    assert leader.pid is not None
    click.echo(
        f"   kill -9 {leader.pid}: the server of {leader.name}, which leads, with all of its processes"
    )
    os.kill(leader.pid, signal.SIGKILL)


def _kill_primary(place: "Place") -> None:
    click.echo(f"   kill -9 {place.primary.pid}: the database's primary")
    os.kill(place.primary.pid or 0, signal.SIGKILL)


def _kill_standby(place: "Place") -> None:
    click.echo(f"   kill -9 {place.standby.pid}: the database's standby; a commit waits for it")
    os.kill(place.standby.pid or 0, signal.SIGKILL)


STEPS: tuple[tuple[str, Callable[["Place"], None]], ...] = (
    ("The leader is killed under a client that writes", _kill_leader),
    ("The database's primary is killed", _kill_primary),
    ("And its standby", _kill_standby),
)


def _looked_at(place: "Place", acked: list[str]) -> str:
    """Every acknowledged record, asked of DNS at every node. Raises Failed."""
    place.wait_settled()
    for node in place.nodes:
        lost = [name for name in acked if dns_answer(node, name, "TXT") is None]
        if lost:
            raise Failed(f"{node.name} does not know {len(lost)} of {len(acked)} records: {lost[0]} …")
    return f"{len(acked)} writes were acknowledged, and DNS of all {len(place.nodes)} nodes has every one."


def _looked_at_books(place: "Place", acked: list[str]) -> str:
    """Every acknowledged line, read at every node. Raises Failed."""
    for node in place.nodes:
        found = {line for book in BOOKS for line in _read_book(node, book)}
        if lost := [line for line in acked if line not in found]:
            raise Failed(f"{node.name} does not read {len(lost)} of {len(acked)} lines: {lost[0]} …")
    return f"{len(acked)} lines were signed in {len(BOOKS)} guestbooks, and every node reads every one."


def _read_book(node: "Node", book: str) -> list[str]:
    """Asked again while the object moves."""
    ends_s = time.monotonic() + SETTLE_SECONDS_MAX
    while time.monotonic() < ends_s:
        with suppress(OSError, http.client.HTTPException):
            status, answer = ask_object(node, f"Guestbook/{book}/read")
            if status == 200:
                found: list[str] = answer["result"]
                return found
        time.sleep(0.1)
    raise Failed(f"{node.name} does not read the guestbook {book}.")


def dns_answer(node: "Node", name: str, rdtype: str) -> str | None:
    """What a node's DNS answers; asked again while it is started. None: there is no such record."""
    import dns.exception
    import dns.message
    import dns.query
    import dns.rcode

    host, port = node.dns
    ends_s = time.monotonic() + SETTLE_SECONDS_MAX
    while True:
        with suppress(OSError, dns.exception.DNSException):
            answer = dns.query.udp(dns.message.make_query(name, rdtype), host, DNS_SECONDS, port)
            if answer.rcode() in (dns.rcode.NOERROR, dns.rcode.NXDOMAIN):
                return str(answer.answer[0][0]) if answer.answer else None
        if time.monotonic() > ends_s:
            raise Failed(f"DNS of {node.name} does not answer.")
        time.sleep(0.1)


def _made(node: "Node", path: str, body: object) -> dict[str, Any]:
    status, answer = ask(node, "POST", path, body)
    if status != 200:
        raise Failed(f"{node.name} answered {status}: {answer.get('errors')}")
    found: dict[str, Any] = answer["result"]
    return found
