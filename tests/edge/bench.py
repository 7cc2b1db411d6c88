"""An edge without sockets: one name, one client, one kept connection to its origin, a clock to turn."""

from edgestead.edge.exchanges.origins import Target
from edgestead.edge.http.address import NAMES, Addresses, Trust
from edgestead.edge.http.client import ClientConnection
from edgestead.edge.http.origin import OriginConnection
from edgestead.edge.http.policy import Policy
from edgestead.edge.http.pool import Pool
from edgestead.edge.http.worker import Edge
from edgestead.edge.routing import Routes
from edgestead.edge.tools.phase import local_tools
from edgestead.model import edge as documents
from edgestead.model import names
from edgestead.model.budgets.turns import Turns
from edgestead.model.call import Profile
from edgestead.model.ruleset_document import KIND_RULESET, encode
from edgestead.store.changes import Change
from tests.edge.made import Seen, ruleset

ZONE = "5" * 32
TARGET = Target("192.0.2.1", 80)
GET = b"GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: www.example.com\r\nContent-Length: 5\r\n\r\n"
HEAD_200 = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n"


class Clock:
    """As much of an event loop as deadlines need."""

    def __init__(self):
        self.now = 1_000.0

    def time(self):
        return self.now

    def call_later(self, seconds, function, *arguments):
        return None

    def call_soon(self, function, *arguments):
        function(*arguments)


class Transport:
    """Remembers what was written; `state` is open, closed or aborted."""

    def __init__(self, peer="192.0.2.9"):
        self.peer, self.written, self.state, self.is_paused = peer, b"", "open", False
        self.left = 0  # bytes that were written and not taken

    def get_extra_info(self, name, default=None):
        return (self.peer, 5) if name == "peername" else default

    def set_write_buffer_limits(self, octets):
        pass

    def write(self, data):
        self.written += data

    def get_write_buffer_size(self):
        return self.left

    def can_write_eof(self):
        return False

    def is_closing(self):
        return self.state != "open"

    def pause_reading(self):
        self.is_paused = True

    def resume_reading(self):
        self.is_paused = False

    def close(self):
        self.state = "closed"

    def abort(self):
        self.state = "aborted"

    @property
    def status(self):
        return int(self.written.split()[1]) if self.written else None


class Bench:
    """An edge with one proxied name, a client's connection, and a kept one to the origin.

    `rules` are the zone's, by phase, `settings` those that are not as usual; `decisions` is what was decided.
    """

    def __init__(self, rules=None, settings=None):
        self.clock, seen = Clock(), Seen()
        tools, self.decisions = local_tools(seen), seen.decisions
        self.routes = routes = Routes(tools)
        owner = names.wire_from_text("www.example.com")
        zone = documents.EdgeZone("example.com", "a" * 32, "free", False, settings or {})
        name = documents.EdgeName(owner, (bytes((192, 0, 2, 1)),))
        routes.load(
            [
                Change(1, ZONE, documents.KIND_EDGE_ZONE, "", documents.encode(zone)),
                Change(2, ZONE, documents.KIND_EDGE_NAME, owner.hex(), documents.encode(name)),
                *(
                    Change(number, ZONE, KIND_RULESET, phase, encode(ruleset(phase, of_phase)))
                    for number, (phase, of_phase) in enumerate((rules or {}).items(), 3)
                ),
            ]
        )
        routes.swap()
        pool = Pool(self.clock, Policy((), ()), None, None)
        trust, spelled = Trust(()), NAMES[Profile.SPEC]
        self.counted = []
        self.edge = Edge(
            self.clock,
            routes=routes,
            pool=pool,
            trust=trust,
            address=Addresses(trust, spelled, b"here"),
            names=spelled,
            tools=tools,
            count=self.counted.append,
            processor=Turns(self.clock.call_soon, self.clock.time, self.clock.time),
        )
        self.connection, self.client = ClientConnection(self.edge, port=80), Transport()
        self.connection.connection_made(self.client)
        self.edge.sweep()
        self.keep_origin()

    def keep_origin(self):
        """A kept connection to the origin, the only one there is."""
        self.origin, self.server = OriginConnection(self.edge.pool, TARGET), Transport("192.0.2.1")
        self.origin.connection_made(self.server)
        self.edge.pool.put(self.origin)

    def wait(self, seconds):
        self.clock.now += seconds
        self.edge.sweep()
