"""Clients of HTTP/2 that may say what no client should: `h2` on their side, without sockets or over TLS."""

import socket

from h2 import events
from h2.config import H2Configuration
from h2.connection import H2Connection
from hyperframe.frame import HeadersFrame

from edgestead.edge.http.hello import Hello
from edgestead.edge.http.http2.connection import Http2Connection
from tests.edge.bench import Bench, Transport

HOST = b"www.example.com"


def fields(method=b"GET", path=b"/", *more, authority=HOST, scheme=b"https"):
    return [
        (b":method", method),
        (b":scheme", scheme),
        (b":authority", authority),
        (b":path", path),
        *more,
    ]


class Answer:
    """What came on a stream. `reset` is the code of its end in the middle."""

    def __init__(self):
        self.interim, self.status, self.headers, self.body = [], None, {}, b""
        self.ended, self.reset = False, None


class Asking:
    """One side of a connection, and what came on it by stream."""

    def __init__(self):
        config = H2Configuration(
            client_side=True,
            header_encoding=None,
            validate_outbound_headers=False,
            normalize_outbound_headers=False,
            validate_inbound_headers=True,
        )
        self.h2 = H2Connection(config)
        self.answers, self.goaway, self.settings, self.arrived = {}, None, {}, []
        self.h2.initiate_connection()

    def _take(self, event):
        answer = self.answers.setdefault(getattr(event, "stream_id", None) or 0, Answer())
        match event:
            case events.InformationalResponseReceived():
                answer.interim.append(dict(event.headers))
            case events.ResponseReceived():
                answer.headers = dict(event.headers)
                answer.status = int(answer.headers[b":status"])
            case events.DataReceived():
                answer.body += event.data
                self.arrived.append(event.stream_id)
            case events.StreamEnded():
                answer.ended = True
            case events.StreamReset():
                answer.reset = int(event.error_code)
            case events.ConnectionTerminated():
                self.goaway = int(event.error_code)
            case events.RemoteSettingsChanged():
                self.settings |= {int(code): one.new_value for code, one in event.changed_settings.items()}


class Http2Client(Asking):
    """In the same process. `window` is what the client takes of an answer before it says more; it gives none
    back by itself.
    """

    def __init__(self, bench, *, peer="192.0.2.9", window=None, connection=None):
        super().__init__()
        self.bench = bench
        self.transport = Transport(peer)
        self.edge = connection or Http2Connection(bench.edge, "", port=443, hello=Hello(HOST, b""))
        if window is not None:
            self.h2.update_settings({4: window})
        self.edge.connection_made(self.transport)
        self.talk()

    def talk(self):
        """What it has to say, and what comes of that."""
        data = self.h2.data_to_send()
        if data and self.transport.state == "open":
            self.edge.data_received(data)
        self.listen()

    def listen(self):
        while self.transport.written:
            data, self.transport.written = self.transport.written, b""
            for event in self.h2.receive_data(data):
                self._take(event)
            data = self.h2.data_to_send()
            if data and self.transport.state == "open":
                self.edge.data_received(data)

    def ask(self, said=None, body=None, *, ends=True):
        """A request; its number. `body` None is none."""
        number = self.h2.get_next_available_stream_id()
        self.h2.send_headers(number, fields() if said is None else said, end_stream=ends and body is None)
        if body is not None:
            self.h2.send_data(number, body, end_stream=ends)
        self.answers[number] = Answer()
        self.talk()
        return number

    def send(self, number, body, *, ends=False):
        self.h2.send_data(number, body, end_stream=ends)
        self.talk()

    def reset(self, number):
        self.h2.reset_stream(number, 8)
        self.talk()

    def give(self, octets, number=None):
        self.h2.increment_flow_control_window(octets, number)
        if number is not None:
            self.h2.increment_flow_control_window(octets)
        self.talk()


class Http2Socket(Asking):
    """Over a socket of TLS, which is the caller's to close."""

    def __init__(self, connection):
        super().__init__()
        self.connection = connection
        # What is said in two writes would wait for the edge's delayed ACK, 40 ms.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def say(self, fields, *frames):
        """A stream; its number. Of frames, octets are DATA, lists are fields; the last one ends it.

        Fields in the midst, which `h2` would not say, are a frame of their own.
        """
        number = self.h2.get_next_available_stream_id()
        self.answers[number] = Answer()
        self.h2.send_headers(number, fields, end_stream=not frames)
        for place, one in enumerate(frames, 1):
            ends = place == len(frames)
            if isinstance(one, bytes):
                self.h2.send_data(number, one, end_stream=ends)
            elif ends:
                self.h2.send_headers(number, one, end_stream=True)
            else:
                block = HeadersFrame(number, self.h2.encoder.encode(one), flags=["END_HEADERS"])
                self.h2._data_to_send += block.serialize()
        return number

    def wait(self, *numbers):
        """Send what there is to say, until these streams have ended, or the connection has."""
        while True:
            if data := self.h2.data_to_send():
                self.connection.sendall(data)
            if all(self.answers[one].ended or self.answers[one].reset is not None for one in numbers):
                return
            if not (data := self.connection.recv(65_536)):
                return
            for event in self.h2.receive_data(data):
                self._take(event)


def http2_bench(**settings):
    return Bench(settings={"http2": "on", **settings})
