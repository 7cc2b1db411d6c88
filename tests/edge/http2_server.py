"""An origin that speaks HTTP/2, in the same process: `h2` on its side of a connection without sockets."""

from h2 import events
from h2.config import H2Configuration
from h2.connection import H2Connection

from edgestead.edge.exchanges.origins import Target
from edgestead.edge.http.http2.origin import Http2Origin
from tests.edge.bench import Bench, Transport

STREAMS_MAX = 100
TARGET = Target("192.0.2.1", 80, streams_max=STREAMS_MAX)


class Asked:
    """A request as the origin has it. `reset` is the code of its end in the middle."""

    def __init__(self, fields):
        self.fields, self.body, self.ended, self.reset = fields, b"", False, None

    def __getitem__(self, name):
        return dict(self.fields).get(name)


class Http2Server:
    """One connection of an edge's pool. It takes what it is sent, and says windows, by itself."""

    def __init__(self, bench, *, streams=None, window=None):
        self.pool = bench.edge.pool
        self.transport = Transport("192.0.2.1")
        self.h2 = H2Connection(
            H2Configuration(
                client_side=False,
                header_encoding=None,
                validate_outbound_headers=False,
                normalize_outbound_headers=False,
            )
        )
        self.asked, self.goaway, self.pings, self.takes = {}, None, 0, True
        self.h2.initiate_connection()
        settings = {3: streams, 4: window}
        self.h2.update_settings({name: value for name, value in settings.items() if value is not None})
        self.edge = Http2Origin(self.pool, TARGET)
        self.pool._shared.setdefault(TARGET, []).append(self.edge)
        self.edge.connection_made(self.transport)
        self.transport.abort = self.lost
        self.talk()

    def lost(self):
        if self.transport.state == "open":
            self.transport.state = "aborted"
            self.edge.connection_lost(None)

    def talk(self):
        """All that either side has to say."""
        while self.transport.state == "open":
            said, self.transport.written = self.transport.written, b""
            for event in self.h2.receive_data(said) if said else ():
                self._take(event)
            data = self.h2.data_to_send()
            if data:
                self.edge.data_received(data)
            elif not self.transport.written:
                return

    def _take(self, event):
        match event:
            case events.RequestReceived():
                self.asked[event.stream_id] = Asked([tuple(field) for field in event.headers])
            case events.DataReceived():
                self.asked[event.stream_id].body += event.data
                if self.takes and event.flow_controlled_length:
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            case events.StreamEnded():
                self.asked[event.stream_id].ended = True
            case events.StreamReset():
                self.asked[event.stream_id].reset = int(event.error_code)
            case events.ConnectionTerminated():
                self.goaway = int(event.error_code)
            case events.PingReceived():
                self.pings += 1

    @property
    def last(self):
        """(number, request) of the newest one."""
        self.talk()
        number = max(self.asked)
        return number, self.asked[number]

    def answer(self, number, fields=((b":status", b"200"),), *pieces, trailers=None, ends=True):
        last = ends and not pieces and trailers is None
        self.h2.send_headers(number, list(fields), end_stream=last)
        for at, piece in enumerate(pieces, 1):
            self.h2.send_data(number, piece, end_stream=ends and at == len(pieces) and trailers is None)
            self.talk()
        if trailers is not None:
            self.h2.send_headers(number, trailers, end_stream=True)
        self.talk()

    def raw(self, data):
        """What `h2` would not say."""
        self.talk()
        self.edge.data_received(data)
        self.talk()


def h2c_bench(**settings):
    """One whose zone asks origins in HTTP/2, without TLS; and its connection."""
    bench = Bench(settings={"http2": "on", "websockets": "on", "origin_h2c": "on", **settings})
    return bench
