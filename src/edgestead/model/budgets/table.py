"""The table of budgets: what a connection, an address, credentials, a zone or an object may cost.

Owns  the rows: whose, of what, how much, how a refusal looks from outside; their names in counters and logs.
Not   accounts (`ledger`); the rooms that draw on them.

What was drawn on a row is given back; on a row with `seconds` time gives it back. Rows of a process bound
what all its peers cost together: the room draws on both at once, and over the second one refuses only those
that hold more than SPARE_BYTES. So a crowd cannot keep out who asks for little.
"""

from enum import Enum
from typing import Final, NamedTuple


class Subject(Enum):
    """Who is charged. An address is one of IPv4, or an IPv6 network of 64 bits (`networks`)."""

    CONNECTION = "connection"
    ADDRESS = "address"
    CREDENTIALS = "credentials"
    ZONE = "zone"
    OBJECT = "object"
    PROCESS = "process"


class Resource(Enum):
    MEMORY = "memory"
    TIME = "time"
    WORK = "work"
    CONNECTIONS = "connections"


class Budget(NamedTuple):
    """One row. `unit` is what `limit` counts, `answer` what a peer over it meets, `why` the number's reason.

    `status` is that of the answer where HTTP speaks, else 0. A `setting` may choose another limit.
    """

    name: str
    subject: Subject
    resource: Resource
    limit: int
    unit: str
    answer: str
    why: str
    status: int = 0
    seconds: int = 0
    setting: str = ""


KIB: Final = 1 << 10
MIB: Final = 1 << 20
SPARE_BYTES: Final = 64 * KIB
"""What any address may hold, whatever all together hold: a record's request, many times over."""
ALONE_PART: Final = 4
"""One draw passes the limit of its subject while the others hold less than a fourth of it: a message that a
route accepts must fit, though it is as long as the limit."""
TRACKED_MAX: Final = 4_096
"""Subjects of a row with `seconds` that are counted at a time: half a megabyte; the oldest is given up."""

_CONNECTION, _ADDRESS, _CREDENTIALS, _ZONE, _OBJECT, _PROCESS = Subject
_MEMORY, _TIME, _WORK, _CONNECTIONS = Resource
_CLOSED = "closed"

# HTTP at the API and at the objects' address.

HTTP_CONNECTIONS = Budget(
    "http_connections", _PROCESS, _CONNECTIONS, 2_048, "connections", "503",
    "a descriptor and about 16 KiB each", status=503,
)  # fmt: skip
HTTP_CONNECTIONS_ADDRESS = Budget(
    "http_connections_address", _ADDRESS, _CONNECTIONS, 1_024, "connections", "429",
    "half of all: behind a proxy all clients have one address",
    status=429, setting="api-connections-per-address",
)  # fmt: skip
HTTP_REFUSALS = Budget(
    "http_refusals", _PROCESS, _CONNECTIONS, 512, "connections that wait to read their refusal", _CLOSED,
    "a refusal is a courtesy",
)  # fmt: skip
HTTP_BYTES = Budget(
    "http_bytes", _PROCESS, _MEMORY, 256 * MIB, "bytes of heads, bodies and answers", "503",
    "nobody is refused who holds 64 KiB or less", status=503,
)  # fmt: skip
HTTP_BYTES_ADDRESS = Budget(
    "http_bytes_address", _ADDRESS, _MEMORY, 32 * MIB,
    "bytes of heads, bodies and answers that are not taken", "429",
    "the longest message of an object, or 32 bodies of the API", status=429,
)  # fmt: skip
HTTP_HEAD_BYTES = Budget(
    "http_head_bytes", _CONNECTION, _MEMORY, 64 * KIB, "bytes of a request line with its headers", "431",
    "browsers send under 8 KiB", status=431,
)  # fmt: skip
HTTP_HEADERS = Budget(
    "http_headers", _CONNECTION, _MEMORY, 128, "headers of a request; as many trailers", "431",
    "browsers send about 20, proxies add some", status=431,
)  # fmt: skip
HTTP_OVERHEAD = Budget(
    "http_overhead", _CONNECTION, _WORK, 8, "bytes around each byte of a chunked body", "431",
    "chunks of one byte have 5", status=431,
)  # fmt: skip
HTTP_HEAD_SECONDS = Budget(
    "http_head_seconds", _CONNECTION, _TIME, 10, "seconds from a head's first byte to its last", "408",
    "the slowest radio link sends 8 KiB in one", status=408,
)  # fmt: skip
HTTP_UNREAD_BYTES = Budget(
    "http_unread_bytes", _CONNECTION, _WORK, 160 * MIB, "bytes of a body behind its answer", _CLOSED,
    "most clients send all of it, 100 MB say, before they read",
)  # fmt: skip
HTTP_STALL_SECONDS = Budget(
    "http_stall_seconds", _CONNECTION, _TIME, 60, "seconds in which a reader has to take 64 KiB", _CLOSED,
    "slower than 1 KiB a second is given up",
)  # fmt: skip

# Connections and inspections at the edge; the rest of HTTP is as above.

EDGE_CONNECTIONS = Budget(
    "edge_connections", _PROCESS, _CONNECTIONS, 8_192, "connections", _CLOSED,
    "a descriptor and about 16 KiB each",
)  # fmt: skip
EDGE_CONNECTIONS_ADDRESS = Budget(
    "edge_connections_address", _ADDRESS, _CONNECTIONS, 1_024, "connections", _CLOSED,
    "an eighth of all: carriers have many people behind one address; trusted proxies have no limit",
    setting="http-connections-per-address",
)  # fmt: skip
EDGE_ARRIVALS = Budget(
    "edge_arrivals", _PROCESS, _CONNECTIONS, 2_048, "connections before the end of their TLS handshake",
    _CLOSED, "each has ten seconds for it",
)  # fmt: skip
EDGE_ARRIVALS_ADDRESS = Budget(
    "edge_arrivals_address", _ADDRESS, _CONNECTIONS, 256, "connections before the end of their TLS handshake",
    _CLOSED, "an eighth of all; trusted proxies have no limit",
)  # fmt: skip
HTTP2_FRAMES = Budget(
    "http2_frames", _CONNECTION, _WORK, 1_000, "frames a second that carry nothing", _CLOSED,
    "those that answer ours are not counted; each takes about 30 µs", seconds=1,
)  # fmt: skip
HTTP2_RESETS = Budget(
    "http2_resets", _CONNECTION, _WORK, 100, "requests a second that their client takes back", _CLOSED,
    "a browser that leaves a page: as many as it may have asked for", seconds=1,
)  # fmt: skip
EDGE_INSPECTIONS = Budget(
    "edge_inspections", _PROCESS, _WORK, 256, "requests whose inspection has to wait", "503",
    "dear ones take 0.2 s, and have 60 s; the last one of the address of which most wait", status=503,
)  # fmt: skip
EDGE_INSPECTIONS_ADDRESS = Budget(
    "edge_inspections_address", _ADDRESS, _WORK, 64, "requests whose inspection has to wait", "503",
    "a fourth of all", status=503,
)  # fmt: skip
EDGE_INSPECTION_WORK = Budget(
    "edge_inspection_work", _CONNECTION, _WORK, 20_000_000, "units of work of a request's inspection", "403",
    "a unit is about 10 ns, so 0.2 s of a core; five times that for later parts of an upload", status=403,
)  # fmt: skip

# Who calls, and what is called.

ADDRESS_GUESSES = Budget(
    "address_guesses", _ADDRESS, _WORK, 60, "unknown credentials a minute", "429",
    "what TOTP and login limits commonly take", status=429, seconds=60, setting="api-guesses",
)  # fmt: skip
ADDRESS_PASSWORDS = Budget(
    "address_passwords", _ADDRESS, _WORK, 30, "passwords a minute", "429",
    "an office behind one address; each costs 0.2 s of a core", status=429, seconds=60,
)  # fmt: skip
CREDENTIALS_PASSWORDS = Budget(
    "credentials_passwords", _CREDENTIALS, _WORK, 10, "passwords for one e-mail address a minute", "429",
    "from however many addresses: 14,400 guesses a day", status=429, seconds=60,
)  # fmt: skip
PASSWORD_HASHES = Budget(
    "password_hashes", _PROCESS, _WORK, 16, "passwords that wait to be looked at", "503",
    "3 s of one core", status=503,
)  # fmt: skip
PASSWORD_HASHES_ADDRESS = Budget(
    "password_hashes_address", _ADDRESS, _WORK, 4, "passwords that wait to be looked at", "429",
    "a fourth of all", status=429,
)  # fmt: skip
DASHBOARD_STREAMS = Budget(
    "dashboard_streams", _PROCESS, _CONNECTIONS, 64, "pages that stay up to date", "503",
    "each is sent what changed with every sample", status=503,
)  # fmt: skip
DASHBOARD_STREAMS_SESSION = Budget(
    "dashboard_streams_session", _CREDENTIALS, _CONNECTIONS, 16, "pages that stay up to date", "429",
    "a fourth of all; browsers have six, and a page that was left counts for 10 s more", status=429,
)  # fmt: skip
CREDENTIALS_QUOTA = Budget(
    "credentials_quota", _CREDENTIALS, _WORK, 0, "requests in five minutes", "429",
    "contract: a user's requests, over all credentials", status=429, seconds=300, setting="api-quota",
)  # fmt: skip
CREDENTIALS_REQUESTS = Budget(
    "credentials_requests", _CREDENTIALS, _WORK, 1_024,
    "requests that wait for a body, a commit or a thread", "429",
    "as many as one address may have connections", status=429,
)  # fmt: skip
CREDENTIALS_UPLOADS = Budget(
    "credentials_uploads", _CREDENTIALS, _MEMORY, 2, "large bodies", "429",
    "each takes a file, and turns at the disk", status=429,
)  # fmt: skip
ZONE_WRITES = Budget(
    "zone_writes", _ZONE, _WORK, 256, "writes that wait for their commit", "429",
    "a sixteenth of the writer's queue: other zones have their turn", status=429,
)  # fmt: skip
CALL_VALUES = Budget(
    "call_values", _CONNECTION, _MEMORY, 250_000, "values in the JSON of a call", "400",
    "each may take 100 bytes, whatever its own", status=400,
)  # fmt: skip
OBJECT_CALLS = Budget(
    "object_calls", _OBJECT, _WORK, 10_000, "calls that are not answered yet", "503",
    "a second or two of a quick method", status=503,
)  # fmt: skip
OBJECT_BYTES = Budget(
    "object_bytes", _OBJECT, _MEMORY, 64 * MIB, "bytes of arguments of unanswered calls", "503",
    "two of the longest messages", status=503,
)  # fmt: skip

# DNS over TCP.

DNS_CONNECTIONS = Budget(
    "dns_connections", _PROCESS, _CONNECTIONS, 1_000, "connections", "the quietest one is closed",
    "RFC 7766 §6.2.3",
)  # fmt: skip
DNS_CONNECTIONS_ADDRESS = Budget(
    "dns_connections_address", _ADDRESS, _CONNECTIONS, 250, "connections", "its quietest one is closed",
    "a fourth of all",
)  # fmt: skip
DNS_BYTES = Budget(
    "dns_bytes", _PROCESS, _MEMORY, 128 * MIB, "bytes of queries and replies", _CLOSED,
    "nobody is refused who holds 64 KiB or less",
)  # fmt: skip
DNS_BYTES_ADDRESS = Budget(
    "dns_bytes_address", _ADDRESS, _MEMORY, 16 * MIB,
    "bytes of queries and replies that are not taken", _CLOSED,
    "50 connections whose replies nobody reads",
)  # fmt: skip
DNS_TRANSFERS = Budget(
    "dns_transfers", _PROCESS, _WORK, 16, "zone transfers", "SERVFAIL",
    "each holds 16 octets a name and one message",
)  # fmt: skip
DNS_TRANSFERS_ADDRESS = Budget(
    "dns_transfers_address", _ADDRESS, _WORK, 10, "zone transfers", "SERVFAIL",
    "secondaries ask for two to ten at a time, and again",
)  # fmt: skip

DNS_ARRIVALS = Budget(
    "dns_arrivals", _PROCESS, _CONNECTIONS, 512, "connections before the end of their TLS handshake", _CLOSED,
    "half as many as connections; each has ten seconds for it",
)  # fmt: skip
DNS_ARRIVALS_ADDRESS = Budget(
    "dns_arrivals_address", _ADDRESS, _CONNECTIONS, 64, "connections before the end of their TLS handshake",
    _CLOSED, "an eighth of all: handshakes are not put off, and each takes about a millisecond",
)  # fmt: skip

BUDGETS: Final = tuple(value for value in tuple(globals().values()) if isinstance(value, Budget))
NAMES: Final = tuple(budget.name for budget in BUDGETS)
