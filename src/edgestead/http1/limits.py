"""Limits of one HTTP/1.1 connection, each with its unit and source.

Owns  the numbers, for every address of the server.
Not   limits of an application, which it checks itself.
"""

HEAD_BYTES_MAX = 64 * 1024  # request line and headers together
HEADERS_MAX = 128  # browsers send about 20, proxies add some
OVERHEAD_BYTES_PER_BYTE_MAX = 8  # of a chunked body, around its content; chunks of one byte have 5
HEAD_SECONDS_MAX = 10.0  # from the first byte of a head, or the beginning of a connection, to the head's end
IDLE_SECONDS_MAX = 75.0  # between two requests
BODY_SECONDS_MAX = 60.0  # without a byte of a body that is awaited
BODY_BUFFER_BYTES = 256 * 1024  # received and not read yet: then the peer has to wait
REQUESTS_WAITING_MAX = 16  # pipelined behind the one that is served: then the peer has to wait
PIECE_BYTES = 16 * 1024  # parsed before it is looked at how many requests they were
LINGER_SECONDS_MAX = 2.0  # that a refused client's bytes are still read, so that it sees the refusal
LINGER_BYTES_MAX = 1 << 20  # that are read in that time
UNREAD_BODY_SECONDS_MAX = 30.0  # the same of a body whose request is answered before it was read
UNREAD_BODY_BYTES_MAX = 160 << 20  # the same: most clients send all of it, 100 MB say, before they read
STALL_SECONDS_MAX = 60.0  # in which a slow reader must take STALL_BYTES_MIN of what waits for it
STALL_BYTES_MIN = 64 * 1024  # so a reader slower than 1 KiB a second is given up
CONNECTIONS_REFUSED_MAX = 512  # turned away, that wait for their answer; further ones get none
SWEEP_SECONDS = 1.0  # between two looks for connections that are late
WRITE_BUFFER_BYTES = 256 * 1024
"""Sent and not taken yet: then a streaming answer has to wait."""
