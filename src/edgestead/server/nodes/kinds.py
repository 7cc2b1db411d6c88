"""What of the feed a node without control may have: what its processes serve, and nothing else.

Owns  the table, by group of the feed.
Not   checking it (`feed.publisher`). No token, no hash, no comment is of these kinds.
"""

from collections.abc import Mapping
from types import MappingProxyType

from edgestead.model.edge import KINDS as EDGE_KINDS
from edgestead.model.served import KIND_JOURNAL, KIND_NAME, KIND_ZONE
from edgestead.model.transfers import KIND_ACL, KIND_OUTGOING
from edgestead.model.tsig import KIND_KEY, KIND_OWNER
from edgestead.server.messages import DNS_GROUP, EDGE_GROUP

CERTIFICATES = "certificates"  # secrets of the edge's group, in memory alone: with their keys
CHALLENGE_KEYS = "challenge-keys"  # what clearances are signed with
DNS_SECRETS = "dns-secrets"  # of the group dns: what opens TSIG keys, and makes cookies
NODE_KINDS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        DNS_GROUP: frozenset(
            (KIND_ZONE, KIND_NAME, KIND_KEY, KIND_OWNER, KIND_OUTGOING, KIND_ACL, KIND_JOURNAL)
        ),
        EDGE_GROUP: frozenset(EDGE_KINDS),
    }
)
