"""Limits of resources, each with its unit and source.

Owns  the numbers that use cases check.
Asks  nobody.
Tells `services`, and the reference page of limits.
Not   limits of the DNS protocol (`model.limits`) and of requests (`api.limits`).
"""

TTL_SECONDS_MAX = 86_400  # contract "TTL and proxy"
TXT_OCTETS_PER_NAME_MAX = 8_192  # contract "Types", decoded
RRSET_OCTETS_MAX = 65_000  # one RRset fits in one DNS message over TCP (65,535) with its question and OPT
RECORD_HEAD_OCTETS = 12  # of each record in a message: compressed owner, type, class, TTL, length
COMMENT_CHARACTERS_MAX = 500  # contract "Text", the widest plan
TAGS_MAX = 20
TAG_NAME_CHARACTERS_MAX = 32
TAG_VALUE_CHARACTERS_MAX = 100
RECORDS_PER_ZONE_MAX = 1_000_000
