"""Limits of one HTTP/1.1 connection, each with its unit and source.

Owns  the numbers.
Asks  nobody.
Tells `connection`.
Not   limits of an application, which it checks itself.
"""

HEAD_BYTES_MAX = 64 * 1024  # request line and headers together
HEADERS_MAX = 128  # browsers send about 20, proxies add some
HEAD_SECONDS_MAX = 10.0  # from the first byte of a head to its last
IDLE_SECONDS_MAX = 75.0  # between two requests
BODY_SECONDS_MAX = 60.0  # without a byte of a body that is awaited
BODY_BUFFER_BYTES = 256 * 1024  # received and not read yet: then the peer has to wait
REQUESTS_WAITING_MAX = 16  # pipelined behind the one that is served: then the peer has to wait
SWEEP_SECONDS = 1.0  # between two looks for connections that are late
WRITE_BUFFER_BYTES = 256 * 1024
"""Sent and not taken yet: then a streaming answer has to wait."""
