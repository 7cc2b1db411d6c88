"""DNS over TLS and HTTPS on sockets of its own, with certificates that its clients trust."""

import asyncio
import base64
import socket
import ssl
from datetime import UTC, datetime

from h2 import events
from h2.config import H2Configuration
from h2.connection import H2Connection

from edgestead.cli.server.authority import Authority
from edgestead.dns.tcp import Private, TransferPolicy, serve_tcp
from edgestead.edge.http.certificates import Certificates, Terms
from edgestead.model.budgets.ledger import Ledger
from tests.dns.serving import Counts, patient_limits

DEFAULT, OTHER = "ns1.example.test", "dns.example.test"


class Folder:
    """A folder of certificates, and what a client needs to believe them."""

    def __init__(self, path):
        path.mkdir(exist_ok=True)
        self.path = path
        self.authority = Authority.new(datetime.now(UTC))
        self.ca = path.parent / "ca.pem"
        self.ca.write_bytes(self.authority.certificate_pem)
        self.put("default", DEFAULT)
        self.put(OTHER, OTHER)

    def put(self, name, host):
        (self.path / f"{name}.pem").write_bytes(self.authority.issue([host], datetime.now(UTC)).pem)

    def client(self, *protocols, newest=None):
        context = ssl.create_default_context(cafile=str(self.ca))
        context.set_alpn_protocols(list(protocols))
        if newest is not None:
            context.maximum_version = newest
        return context


class Lab:
    """All transports of one table, on the running loop."""

    def __init__(self, folder, table, *, ledger=None, transfers=None, **limits):
        self.folder, self.table, self.transfers = folder, table, transfers
        self.limits, self.counts, self.stop = patient_limits(**limits), Counts(), asyncio.Event()
        self.ledger = ledger or Ledger(tell=lambda *_: None)
        self.certificates = Certificates(folder.path)
        self.clients = []

    def context(self, host, protocols):
        return self.certificates.context(host, Terms(protocols=tuple(protocols)))

    async def __aenter__(self):
        tcp, tls, https = (socket.create_server(("127.0.0.1", 0)) for _ in range(3))
        self.tcp, self.tls, self.https = (one.getsockname()[1] for one in (tcp, tls, https))
        self.task = asyncio.create_task(
            serve_tcp(
                tcp,
                self.table,
                self.counts,
                self.stop,
                self.limits,
                transfers=self.transfers,
                ledger=self.ledger,
                private=Private(self.context, tls, https),
            )
        )
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_):
        self.stop.set()
        await self.task
        for client in self.clients:
            client.writer.transport.abort()

    async def client(self, port=None, *, host=DEFAULT, context=None):
        """A client over TLS; without a host over TCP alone."""
        if context is None and host:
            context = self.folder.client("dot")
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port or self.tls, ssl=context if host else None, server_hostname=host or None
        )
        client = Client(reader, writer)
        self.clients.append(client)
        return client

    async def ask_http2(self, *requests):
        """Each is (method, target, headers, body); (status, headers, body) of each, all on one connection."""
        client = await self.client(self.https, context=self.folder.client("h2"))
        assert client.writer.get_extra_info("ssl_object").selected_alpn_protocol() == "h2"
        return await Http2(client).ask(requests)

    async def ask_https(self, method, target, *headers, body=b"", client=None):
        client = client or await self.client(self.https, context=self.folder.client("http/1.1"))
        lines = [f"{method} {target} HTTP/1.1", "Host: dns.example.test", *headers]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        client.writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        return await client.answer(method)


class Client:
    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    async def read(self):
        length = int.from_bytes(await self.reader.readexactly(2), "big")
        return await self.reader.readexactly(length)

    async def ask(self, *messages):
        self.writer.write(b"".join(len(one).to_bytes(2, "big") + one for one in messages))
        return [await self.read() for _ in messages]

    async def ended(self):
        try:
            return await self.reader.read() == b""
        except (ConnectionError, ssl.SSLError):
            return True

    async def answer(self, method="GET"):
        """(status, headers, body)."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        octets = 0 if method == "HEAD" else int(headers.get("content-length", 0))
        return int(head[0].split()[1]), headers, await self.reader.readexactly(octets)


class Http2:
    """`h2`'s side of a connection; what it is sent it takes."""

    def __init__(self, client):
        self.client = client
        self.h2 = H2Connection(H2Configuration(header_encoding="utf-8"))
        self.h2.initiate_connection()

    async def ask(self, requests):
        numbers = []
        for method, target, headers, body in requests:
            numbers.append(self.h2.get_next_available_stream_id())
            said = {":method": method, ":scheme": "https", ":authority": DEFAULT, ":path": target, **headers}
            self.h2.send_headers(numbers[-1], list(said.items()), end_stream=not body)
            if body:
                self.h2.send_data(numbers[-1], body, end_stream=True)
        heads, bodies, left = {}, dict.fromkeys(numbers, b""), set(numbers)
        while left:
            self.client.writer.write(self.h2.data_to_send())
            data = await self.client.reader.read(65_536)
            assert data, "the connection ended"
            for event in self.h2.receive_data(data):
                match event:
                    case events.ResponseReceived():
                        heads[event.stream_id] = dict(event.headers)
                    case events.DataReceived():
                        bodies[event.stream_id] += event.data
                        self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                    case events.StreamEnded():
                        left.discard(event.stream_id)
                    case events.StreamReset():
                        heads[event.stream_id] = {":status": f"-{event.error_code}"}
                        left.discard(event.stream_id)
        return [(int(heads[n][":status"]), heads[n], bodies[n]) for n in numbers]


def in_target(query):
    return "/dns-query?dns=" + base64.urlsafe_b64encode(query).decode().rstrip("=")


def open_transfers(journal, *networks, tls_only=False):
    return TransferPolicy(journal=journal, networks=networks, tls_only=tls_only)
