"""A process of the edge proxy.

Owns  putting its parts together, and their order at the start and the end.
Not   anything about HTTP, TLS or rules.

One loop: what the feed says is applied between two requests, so every answer after its acknowledgement shows
it.
"""

import asyncio
import signal
import socket
import sys
import time
from ipaddress import ip_network
from pathlib import Path

import uvloop

from edgestead.edge.access.log import AccessLog
from edgestead.edge.http import origin_tls
from edgestead.edge.http.address import NAMES, Addresses, Trust
from edgestead.edge.http.certificates import Certificates, Kept
from edgestead.edge.http.listener import Listener
from edgestead.edge.http.policy import Policy
from edgestead.edge.http.pool import Pool
from edgestead.edge.http.resolving import Resolver
from edgestead.edge.http.worker import Edge
from edgestead.edge.routing import Routes
from edgestead.edge.tools.acme import Pages
from edgestead.edge.tools.phase import Tools
from edgestead.edge.tools.pressure import Pressure
from edgestead.feed.follower import Follower
from edgestead.feed.follower_loop import LoopFollower
from edgestead.model.budgets.ledger import Ledger
from edgestead.model.counters import CHALLENGED, VERDICTS, Page, slot
from edgestead.model.edge import KINDS
from edgestead.server import process
from edgestead.server.certificate_memory import CertificateReader
from edgestead.server.edge import rules as edge_rules
from edgestead.server.edge import tools as edge_tools
from edgestead.server.edge.names import NameSource
from edgestead.server.messages import EDGE_GROUP, EdgeStart

DRAIN_SECONDS_MAX = 8.0  # less than the supervisor's patience
SHOW_SECONDS = 0.5  # between two looks at what is shown as metrics
KEYS_SECONDS = 1.0  # between two looks at the keys of clearances
SWITCH_SECONDS = 0.0005
"""How long the thread that makes rules ready may keep the interpreter from the loop, which asks for it after
every system call, and so several times before a change is acknowledged. Python's 5 ms add up to the barrier's
patience where the machine has other work."""

_ANSWERS = slot("edge_http_requests_total", "1xx") - 1  # plus the first digit of the status
_CLASSES = 5
_SECONDS = slot("edge_http_request_seconds")
_OPEN = slot("edge_http_connections_open")
_REFUSED = slot("edge_http_connections_refused_total")
_ZONES = slot("edge_http_zones")
_SEQUENCE = slot("edge_feed_sequence")
_RULES_MISSING = slot("edge_rules_missing")
_RULES_SLOW = slot("edge_rules_slow")
_CHALLENGED = {what: slot("edge_challenges_total", what) for what in CHALLENGED}
_VERDICTS = {verdict: slot("edge_waf_verdicts_total", verdict) for verdict in VERDICTS}


def main() -> None:
    start = process.begin(EdgeStart)
    sys.setswitchinterval(SWITCH_SECONDS)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(start))


async def _serve(start: EdgeStart) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    page = process.page(start.counters_fd)
    events = edge_tools.events_of(start, page)
    managed = edge_rules.managed_of(start)
    tools = edge_tools.tools_of(start, page, events, managed)._replace(
        https_port=start.https_port, ledger=Ledger(page)
    )
    routes = Routes(tools)
    events.zone_id_of = lambda host: facts.id if (facts := routes.zone_of(host)) else None
    rules = edge_rules.RulesPart(start, managed, lambda: managed.ruleset_id in routes.executed())
    routes.when_changed = rules.look
    follower = LoopFollower(
        start.feed_path,
        Follower(
            routes,
            group=EDGE_GROUP,
            name=start.name,
            kinds=KINDS,
            loading=process.Status(start.status_fd).loading,
        ),
    )
    access = edge_tools.access_of(start, page)
    contexts = origin_tls.Contexts(start.origin_ca)
    edge = _edge(start, loop, routes, tools, page, access, contexts)
    # An exception of any of them ends the group, and with it the process: without the feed every answer may
    # be wrong from the next change on.
    async with asyncio.TaskGroup() as tasks:
        background = [
            tasks.create_task(follower.run()),
            tasks.create_task(_show(edge, routes, rules, tools.pressure, page)),
            tasks.create_task(_renew(tools)),
            tasks.create_task(rules.run()),
        ]
        answering = tasks.create_task(_answer(start, edge, follower, stop, contexts, tools.acme))
        answering.add_done_callback(lambda _: [task.cancel() for task in background])
    await asyncio.to_thread(events.close)
    if access is not None:
        await asyncio.to_thread(access.close)


def _edge(
    start: EdgeStart,
    loop: asyncio.AbstractEventLoop,
    routes: Routes,
    tools: Tools,
    page: Page,
    access: AccessLog | None,
    contexts: origin_tls.Contexts,
) -> Edge:
    names, trust = NAMES[start.profile], Trust(tuple(map(ip_network, start.trusted_proxies)))
    source = NameSource(routes, own_dns=start.own_dns, resolver=start.resolver)
    resolver = Resolver(source.ask, routes.origins_of, loop.time)
    policy = Policy(start.own_listeners, tuple(map(ip_network, start.origins_allowed)))
    return Edge(
        loop,
        routes=routes,
        pool=Pool(loop, policy, resolver.addresses, contexts),
        trust=trust,
        address=Addresses(trust, names, start.loop_token),
        names=names,
        tools=tools,
        count=lambda status: page.add(cell_of(status)),
        turned_away=lambda: page.add(_REFUSED),
        took=lambda arrived_us: page.observe(_SECONDS, time.time_ns() // 1_000 - arrived_us),
        origin_port=start.origin_port,
        per_address_max=start.http_connections_per_address,
        ledger=tools.ledger,
        access=access,
    )


def cell_of(status: int) -> int:
    """Where answers are counted. A code that no standard has is one of 5xx (RFC 9110 §15)."""
    return _ANSWERS + min(status // 100, _CLASSES)


async def _answer(
    start: EdgeStart,
    edge: Edge,
    follower: LoopFollower,
    stop: asyncio.Event,
    contexts: origin_tls.Contexts,
    pages: Pages,
) -> None:
    may_serve = asyncio.create_task(follower.wait_until_may_serve())
    stopped = asyncio.create_task(stop.wait())
    await asyncio.wait((may_serve, stopped), return_when=asyncio.FIRST_COMPLETED)
    if may_serve.done():
        certificates = None
        if start.https_fd >= 0:
            kept = CertificateReader(start.certificates_fd)

            def take() -> tuple[Kept, ...] | None:
                found = kept.changed()
                contexts.trust(kept.origins)
                pages.take(kept.proofs.pages)
                return found

            folder = Path(start.tls_dir) if start.tls_dir else None
            certificates = Certificates(folder, take, lambda: kept.proofs.handshakes)
        listener = Listener(edge, proxy_protocol=start.proxy_protocol, certificates=certificates)
        https = socket.socket(fileno=start.https_fd) if start.https_fd >= 0 else None
        await listener.open(socket.socket(fileno=start.http_fd), https)
        edge.sweep()
        process.rest_collector()
        process.Status(start.status_fd).ready()
        await stopped
        listener.close()
        await edge.close(DRAIN_SECONDS_MAX)
    may_serve.cancel()
    stopped.cancel()


async def _renew(tools: Tools) -> None:
    """Sign with a new key soon after it was made."""
    while True:
        await asyncio.sleep(KEYS_SECONDS)
        tools.clearances.renew()


async def _show(
    edge: Edge, routes: Routes, rules: edge_rules.RulesPart, pressure: Pressure, page: Page
) -> None:
    """Keep the metrics that are levels up to date."""
    shown, managed = dict.fromkeys((*_VERDICTS, *_CHALLENGED), 0), rules.managed
    while True:
        for counts, cells in ((managed.verdicts, _VERDICTS), (pressure.counts, _CHALLENGED)):
            for name, cell in cells.items():
                page.add(cell, counts[name] - shown[name])
                shown[name] = counts[name]
        page.set(_OPEN, edge.connections)
        page.set(_ZONES, routes.zones)
        page.set(_SEQUENCE, routes.sequence)
        page.set(_RULES_MISSING, sum(bool(managed.unusable(id_)) for id_ in routes.executed()))
        page.set(_RULES_SLOW, rules.is_slow)
        await asyncio.sleep(SHOW_SECONDS)
