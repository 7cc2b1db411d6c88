"""What orders of certificates need of this server: its authorities, and its secondaries' answers.

Owns  putting them together; asking secondaries whether they show a proof.
Not   orders (`server.control.orders`); what an authority is asked (`server.control.authority`).
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from edgestead.model.call import Call
from edgestead.model.counters import Page
from edgestead.server.control.authority import AcmeAuthority
from edgestead.server.control.orders import OrdersPart
from edgestead.server.control.targets import Data
from edgestead.server.messages import ControlStart
from edgestead.usecases.platform import Platform

QUESTION_SECONDS_MAX: Final = 5.0  # of one secondary for one proof


def orders_of(
    start: ControlStart, data: Data, platform: Platform, page: Page, call: Callable[[], Call]
) -> OrdersPart | None:
    """None where no authority is configured."""
    if start.acme is None:
        return None
    roots = start.acme_ca
    return OrdersPart(
        data,
        platform,
        page,
        call,
        email=start.acme.email,
        directories=start.acme.directories,
        open_authority=lambda directory, account, registered: AcmeAuthority(
            directory, account, roots, registered
        ),
        shows=partial(shown_everywhere, [(host, port) for host, port, _ in start.notify]),
    )


async def shown_everywhere(servers: Sequence[tuple[str, int]], proofs: Sequence[tuple[str, str]]) -> bool:
    """Whether each server shows each TXT record, by name and value."""
    asked = [_shows(server, name, value) for server in servers for name, value in proofs]
    return all(await asyncio.gather(*asked)) if asked else True


async def _shows(server: tuple[str, int], name: str, value: str) -> bool:
    import dns.asyncquery  # 10 MB that servers without secondaries never need
    import dns.exception
    import dns.message
    import dns.rdatatype

    host, port = server
    try:
        question = dns.message.make_query(name, dns.rdatatype.TXT)
        answer, _ = await dns.asyncquery.udp_with_fallback(question, host, QUESTION_SECONDS_MAX, port)
    except (dns.exception.DNSException, OSError):
        return False
    wanted = value.encode()
    return any(
        b"".join(record.strings) == wanted
        for rrset in answer.answer
        if rrset.rdtype == dns.rdatatype.TXT
        for record in rrset
    )
