"""Limits on what comes from outside, each with its unit and source.

Owns  the numbers.
Not   checking: the room that meets the value does that.

A name ends in its unit. A limit that only one room knows stays in that room.
"""

LABEL_OCTETS_MAX = 63  # RFC 1035 §2.3.4
NAME_OCTETS_MAX = 255  # RFC 1035 §2.3.4, in wire form
RDATA_OCTETS_MAX = 65_535  # RFC 1035 §3.2.1
TTL_SECONDS_AUTO = 300  # spec "TTL rules": ttl 1 is Auto
