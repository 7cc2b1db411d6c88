"""The Python SDK 5 reads every zone setting, and refuses what its types do not allow.

Reads on standard input what test_readers.py says, here with the settings' ids; prints those that it refuses.
"""

import json
import sys

from cloudflare import APIResponseValidationError, Cloudflare

asked = json.load(sys.stdin)
client = Cloudflare(
    api_token=asked["token"], base_url=asked["base"], max_retries=0, _strict_response_validation=True
)
refused = []
for id_ in asked["ids"]:
    try:
        client.zones.settings.get(id_, zone_id=asked["zone_id"])
    except APIResponseValidationError:
        refused.append(id_)
json.dump(refused, sys.stdout)
