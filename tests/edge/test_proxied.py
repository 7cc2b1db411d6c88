"""A proxied name serves its origin's pages, from the answer of the API on."""

import pytest

from tests.edge.origin import headers_of


def test_a_proxied_name_serves_its_origin(site):
    host, origin = site.origin()
    answer = site.get(host, "/hello?a=1")
    assert (answer.status, answer.body) == (200, b"ok")
    head = origin.heads[0]
    assert head.startswith(b"GET /hello?a=1 HTTP/1.1\r\nhost: " + host.encode())


def test_a_name_that_is_not_proxied_is_not_served(site):
    host = site.name(site.first.host, proxied=False)
    assert site.get(host).status == 530


@pytest.mark.parametrize("host", ["elsewhere.example", "nobody.edge.example", "127.0.0.1"])
def test_an_unknown_host_is_not_served(site, host):
    assert site.get(host).status == 530


@pytest.mark.parametrize("spelling", ["{}:80", "{}.", "{}.:8080"])
def test_a_host_is_found_in_any_spelling(site, spelling):
    host, _ = site.origin()
    assert site.get(spelling.format(host).upper()).status == 200


def test_a_wildcard_serves_names_below_it(site):
    _, origin = site.origin()
    answer = site.server.make_record(site.zone_id, "A", f"*.wild.{site.zone}", origin.host, proxied=True)
    assert answer.status == 200
    assert site.get(f"a.wild.{site.zone}").status == 200
    assert site.get(f"a.b.wild.{site.zone}").status == 200
    assert site.get(f"wild.{site.zone}").status == 530


def test_another_origin_is_asked_as_soon_as_the_api_has_answered(site):
    host, before = site.origin(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nbefore")
    _, after = site.origin(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nafter")
    records = site.server.call("GET", f"/zones/{site.zone_id}/dns_records?name={host}").result
    for number in range(20):
        target, body = ((after, b"after"), (before, b"before"))[number % 2]
        path = f"/zones/{site.zone_id}/dns_records/{records[0]['id']}"
        assert site.server.call("PATCH", path, {"content": target.host}).status == 200
        assert site.get(host).body == body


def test_a_zone_that_is_deleted_is_not_served_any_more(site):
    zone_id = site.server.make_zone("gone.example")
    site.server.make_record(zone_id, "A", "www.gone.example", site.first.host, proxied=True)
    assert site.get("www.gone.example").status == 200
    assert site.server.call("DELETE", f"/zones/{zone_id}").status == 200
    assert site.get("www.gone.example").status == 530


def test_the_origin_hears_who_asked_and_nothing_that_was_forged(site):
    host, origin = site.origin()
    site.get(
        host,
        "/",
        "X-Forwarded-For: 6.6.6.6",
        "X-Real-IP: 6.6.6.6",
        "True-Client-IP: 6.6.6.6",
        "CF-Connecting-IP: 6.6.6.6",
        "Edge-Connecting-IP: 6.6.6.6",
        "Forwarded: for=6.6.6.6",
        "X-Forwarded-Proto: https",
        "Accept: text/html",
    )
    head = origin.heads[0]
    headers = headers_of(head)
    assert b"6.6.6.6" not in head
    assert headers[b"x-forwarded-for"] == headers[b"edge-connecting-ip"] == b"127.0.0.1"
    assert headers[b"x-forwarded-proto"] == b"http"
    assert headers[b"accept"] == b"text/html"


def test_the_ray_id_is_the_same_for_origin_and_client_and_new_each_time(site):
    host, origin = site.origin()
    rays = [site.get(host).headers[b"edge-ray"] for _ in range(2)]
    assert [headers_of(head)[b"edge-ray"] for head in origin.heads] == rays
    assert rays[0] != rays[1]
