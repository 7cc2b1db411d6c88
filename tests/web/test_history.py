"""Differences say what differs: each line of a pair has every member that is another on its other line."""

import re
from html import unescape

import pytest

from tests.web.local import LocalSite
from tests.web.local import LocalVisitor as Visitor

ZONE = "past.example"


@pytest.fixture
def server(tmp_path):
    made = LocalSite(tmp_path)
    made.zone_id = made.make_zone(ZONE)
    made.records = f"/zones/{made.zone_id}/dns_records"
    yield made
    made.close()


@pytest.fixture
def visitor(server):
    made = Visitor(server)
    assert made.sign_in(server.ready["api_token"]).status == 303
    return made


def lines(page, kind):
    """What the newest change took, or brought."""
    found = re.search(rf'<li class="{kind}">(.*?)</li>', page.text, re.DOTALL)[1]
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", found)).split())


@pytest.mark.parametrize(
    ("change", "before", "after"),
    [
        ({"proxied": True}, "proxied false, ttl 300", "proxied true, ttl 1"),
        ({"ttl": 600}, "ttl 300", "ttl 600"),
        ({"comment": "<b>"}, "comment old", "comment <b>"),
        ({"tags": ["a:b"]}, "tags []", 'tags ["a:b"]'),
        ({"content": "192.0.2.2"}, "", ""),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_pair_of_lines_says_what_is_another(server, visitor, change, before, after):
    record = {"type": "A", "name": "www", "content": "192.0.2.1", "ttl": 300, "comment": "old"}
    id_ = server.api.post(server.records, record).result["id"]
    assert server.api.call("PATCH", f"{server.records}/{id_}", change).status == 200

    history = visitor.get(f"/ui/zones/{ZONE}/history")
    undo = visitor.get(history.link("Undo"))

    contents = ("192.0.2.1", change.get("content", "192.0.2.1"))
    gone, came = (
        f"A www.{ZONE} {content}{more and ', '}{more}"
        for content, more in zip(contents, (before, after), strict=True)
    )
    assert (lines(history, "gone"), lines(history, "came")) == (f"before: {gone}", f"after: {came}")
    assert (lines(undo, "gone"), lines(undo, "came")) == (f"before: {came}", f"after: {gone}")


def test_a_line_has_its_priority(server, visitor):
    record = {"type": "MX", "name": "@", "content": "mail.example.net", "priority": 5}
    id_ = server.api.post(server.records, record).result["id"]
    server.api.call("PATCH", f"{server.records}/{id_}", {"priority": 10})

    history = visitor.get(f"/ui/zones/{ZONE}/history")

    assert lines(history, "gone") == f"before: MX {ZONE} 5 mail.example.net"
    assert lines(history, "came") == f"after: MX {ZONE} 10 mail.example.net"


def test_an_import_says_what_will_be_proxied(visitor):
    file = "www 300 IN A 192.0.2.7\nx 300 IN TXT y\n"

    coming = visitor.post(f"/ui/zones/{ZONE}/import", file=file, proxied="on", what="look")

    assert f"A www.{ZONE} 192.0.2.7, proxied" in coming.words
    assert coming.words.count(", proxied") == 1
