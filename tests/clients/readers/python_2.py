"""The older Python library, cloudflare 2.19: writes each record, reads it again and in the list.

Reads on standard input what test_readers.py says; prints [as made, as read, as listed] of each record.
"""

import json
import sys

import CloudFlare

asked = json.load(sys.stdin)
zone_id = asked["zone_id"]
records = CloudFlare.CloudFlare(token=asked["token"], base_url=asked["base"]).zones.dns_records
made = [records.post(zone_id, data=body) for body in asked["bodies"]]
listed = {one["id"]: one for one in records.get(zone_id, params={"per_page": 1000})}
answers = [(one, records.get(zone_id, one["id"]), listed[one["id"]]) for one in made]
json.dump(answers, sys.stdout)
