"""The Python SDK 5: writes each record, reads it and lists it, and refuses what its types do not allow.

Reads on standard input what test_readers.py says; prints [as made, as read, as listed] of each record.
"""

import json
import sys

from cloudflare import Cloudflare

asked = json.load(sys.stdin)
zone_id = asked["zone_id"]
client = Cloudflare(
    api_token=asked["token"], base_url=asked["base"], max_retries=0, _strict_response_validation=True
)
records = client.dns.records
made = [records.create(zone_id=zone_id, **body) for body in asked["bodies"]]
listed = {one.id: one for one in records.list(zone_id=zone_id, per_page=50)}
answers = [(one, records.get(one.id, zone_id=zone_id), listed[one.id]) for one in made]
json.dump([[record.to_dict(mode="json") for record in three] for three in answers], sys.stdout)
