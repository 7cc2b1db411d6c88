"""The day whose behaviour is shown: chosen at the start, or by a request where the operator lets it."""

import http.client
from urllib.parse import urlsplit

SRV = {
    "type": "SRV",
    "name": "_sip._tcp",
    "data": {
        "service": "_sip",
        "proto": "_tcp",
        "name": "example.com",
        "priority": 1,
        "weight": 1,
        "port": 5060,
        "target": "pbx.example.com",
    },
}


def test_the_flag_chooses_the_day_and_the_header_only_where_it_may(new_server):
    past = new_server("--as-of", "2024-05-30").start()
    zone_id = past.call("POST", "/zones", {"name": "example.com"}).result["id"]

    assert past.call("POST", f"/zones/{zone_id}/dns_records", SRV).result["name"] == "_sip._tcp.example.com"
    assert ask(past, "2024-01-01") == 400


def test_a_server_of_today_that_allows_it_takes_the_header(new_server):
    today = new_server("--allow-as-of").start()
    zone_id = today.call("POST", "/zones", {"name": "example.com"}).result["id"]

    assert today.call("POST", f"/zones/{zone_id}/dns_records", SRV).status == 400
    assert ask(today, "2024-01-01") == 200


def ask(server, day):
    base = urlsplit(server.ready["api_base"])
    connection = http.client.HTTPConnection(base.netloc, timeout=300)
    headers = {"Authorization": f"Bearer {server.ready['api_token']}", "Edge-As-Of": day}
    try:
        connection.request("GET", base.path + "/zones", headers=headers)
        return connection.getresponse().status
    finally:
        connection.close()
