"""A question by UDP that is asked again, as resolvers do: a process that dies takes along what it has read.

Owns  repeating it.
Not   what is asked, and what an answer has to be.
"""

import time
from typing import Any

import dns.exception
import dns.message
import dns.query

TRY_SECONDS = 5.0
SECONDS_MAX = 300.0


def by_udp(query: dns.message.Message, host: str, port: int, **more: Any) -> dns.message.Message:
    """Raises dns.exception.Timeout."""
    end = time.monotonic() + SECONDS_MAX
    while True:
        try:
            return dns.query.udp(query, host, TRY_SECONDS, port, **more)
        except dns.exception.Timeout:
            if time.monotonic() > end:
                raise
