"""Connecting to origins: what has no name that can be asked for is a fault, not a wait."""

import asyncio
import socket
from ipaddress import ip_network

import pytest
import uvloop

from edgestead.edge.exchanges import faults
from edgestead.edge.exchanges.faults import OriginFault
from edgestead.edge.exchanges.origins import Origins
from edgestead.edge.http import origin_tls
from edgestead.edge.http.policy import Policy
from edgestead.edge.http.pool import Pool

NO_NAMES = ["", "a..example.com", ".example.com", "x" * 64 + ".example.com"]


def fault_of(*, host=None, tls="", server_name="", resolve=None):
    """The fault of connecting to a port where somebody listens and says nothing."""

    async def connect():
        pool = Pool(
            asyncio.get_running_loop(),
            Policy((), [ip_network("127.0.0.0/8")]),
            resolve,
            origin_tls.Contexts(None).get,
        )
        addresses = None if host else ("127.0.0.1",)
        with socket.create_server(("127.0.0.1", 0)) as listening:
            way = (listening.getsockname()[1], tls, server_name)
            with pytest.raises(OriginFault) as caught:
                await pool.connect(Origins(()), addresses, host, way)
        return caught.value.fault

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(connect())


@pytest.mark.parametrize("name", NO_NAMES)
def test_a_name_that_tls_cannot_ask_for_is_a_525(name):
    assert fault_of(tls="full", server_name=name) is faults.NO_TLS


def test_a_name_that_dns_cannot_ask_for_is_a_530():
    async def resolve(host):
        raise ValueError(host)

    assert fault_of(host=b"a..example.com", resolve=resolve) is faults.UNRESOLVED
