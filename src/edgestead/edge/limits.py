"""Limits of the edge, each with its unit.

Owns  the numbers. Per worker unless it says otherwise.
Not   limits of a head and of a connection that objects share (`http1.limits`).
"""

from edgestead.http1 import limits as http1

HEAD_BYTES_MAX = http1.HEAD_BYTES_MAX  # request line and headers together
HEADERS_MAX = http1.HEADERS_MAX  # browsers send about 20, proxies add some
BODY_SECONDS_MAX = http1.BODY_SECONDS_MAX  # without a byte of a body that is awaited
BODY_BYTES_PER_SECOND_MIN = 500  # of a request's body, as Apache's mod_reqtimeout has it
SLOW_BODY_SECONDS_MAX = 120.0  # in which it may come more slowly
WRITE_BUFFER_BYTES = http1.WRITE_BUFFER_BYTES  # sent and not taken yet: then the other side has to wait
SWEEP_SECONDS = http1.SWEEP_SECONDS  # between two looks for connections that are late
INSPECTION_SECONDS_MAX = 60.0  # that a request, its late parts or its answer waits for its inspection to end
INSPECTION_BYTES = 32 * 1024  # that an inspection holds while it waits, for a request without a body
INSPECTION_BYTES_PER_BYTE = 30  # of a body, on top: so much was measured at the most
STALL_SECONDS_MAX = 60.0  # that a client takes nothing of an answer that waits for it; an origin, of a body
HANDSHAKE_SECONDS_MAX = 10.0  # of TLS and of a PROXY header, together with the wait for its first byte

CONNECT_SECONDS_MAX = 5.0  # to one address of an origin
ORIGIN_HANDSHAKE_SECONDS_MAX = 4.0  # of TLS, when it is reached
CONNECTS_SECONDS_MAX = 15.0  # after which no further one is tried for a request
ADDRESSES_TRIED_MAX = 4  # of an origin for one request
RETRIES_MAX = 1  # of a request whose kept connection its origin closed just as it was taken
DOWN_SECONDS = 10.0  # that an address which did not answer is asked last
ORIGIN_BODY_SECONDS_MAX = 100.0  # without a byte of an answer that has begun
IDLE_ORIGIN_SECONDS_MAX = 4.0  # of a kept connection; common servers close theirs after 5
IDLE_HTTP2_ORIGIN_SECONDS_MAX = 30.0  # of one in HTTP/2, which is told when its origin closes it
IDLE_ORIGIN_MAX = (
    256  # kept connections to one origin: as many as two clients of HTTP/2 may ask for at a time
)
INTERIM_MAX = 100  # 1xx answers before one answer
TUNNEL_SECONDS_MAX = 600.0  # without a byte on an upgraded connection

INSPECTED_BYTES_MAX = 129 * 1024  # of a request's body that is held: what is inspected, and one more
CHUNKS_HELD_MAX = 1_024  # pieces in which it is held: then they are joined
ROUTES_KEPT_MAX = 10_000  # spellings of Host that are remembered with what they lead to
RESOLVED_NAMES_MAX = 4_096  # remembered targets of CNAME origins
RESOLVED_SECONDS_MIN = 1.0  # however short the TTL: one question a second
RESOLVED_SECONDS_MAX = 300.0  # however long the TTL: who moves is found
RESOLVED_STALE_SECONDS_MAX = 3_600.0  # that old addresses serve while nobody answers for new ones
ALIASES_FOLLOWED_MAX = 8  # through proxied names of our own
LOOPS_HOPS_MAX = 16  # entries of CDN-Loop
