"""Limits of one HTTP/1.1 connection, each with its unit and source.

Owns  the numbers, for every address of the server, but those that are budgets of their peers.
Not   budgets (`model.budgets.table`); limits of an application, which it checks itself.
"""

from edgestead.model.budgets import table

HEAD_BYTES_MAX = table.HTTP_HEAD_BYTES.limit  # request line and headers together
HEADERS_MAX = table.HTTP_HEADERS.limit  # of a request; as many trailers
OVERHEAD_BYTES_PER_BYTE_MAX = table.HTTP_OVERHEAD.limit  # of a chunked body, around its content
HEAD_SECONDS_MAX = float(table.HTTP_HEAD_SECONDS.limit)  # or from the beginning of a connection
IDLE_SECONDS_MAX = 75.0  # between two requests
BODY_SECONDS_MAX = 60.0  # without a byte of a body that is awaited
BODY_BUFFER_BYTES = 256 * 1024  # received and not read yet: then the peer has to wait
REQUESTS_WAITING_MAX = 1  # pipelined and read, behind the one that is served: then the peer has to wait
CONNECTION_BYTES = 4 * 1024  # that a connection takes in memory: its objects
REQUEST_BYTES = 2 * 1024  # that a request takes in memory beside its own: its objects
CHUNK_BYTES = 64  # that a piece of a body takes beside its own
PIECE_BYTES = 2 * 1024  # parsed at once, a fourth of a millisecond: of requests, of chunks of one byte
LINGER_SECONDS_MAX = 2.0  # that a refused client's bytes are still read, so that it sees the refusal
LINGER_BYTES_MAX = 1 << 20  # that are read in that time
UNREAD_BODY_SECONDS_MAX = 30.0  # the same of a body whose request is answered before it was read
UNREAD_BODY_BYTES_MAX = table.HTTP_UNREAD_BYTES.limit  # the same
STALL_SECONDS_MAX = float(table.HTTP_STALL_SECONDS.limit)  # in which a reader has to take STALL_BYTES_MIN
STALL_BYTES_MIN = 64 * 1024  # so a reader slower than 1 KiB a second is given up
CONNECTIONS_REFUSED_MAX = table.HTTP_REFUSALS.limit  # that wait for their refusal; further ones get none
SWEEP_SECONDS = 1.0  # between two looks for connections that are late
WRITE_BUFFER_BYTES = 256 * 1024
"""Sent and not taken yet: then a streaming answer has to wait."""
