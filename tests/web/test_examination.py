"""What `edgecli doctor` says is on the overview, and of many zones on a page of its own."""

import json

import pytest

from edgestead.health.setup import Listening, Machine, Setup
from edgestead.web.pages.overview import ZONES_MAX
from tests.web.local import LocalSite
from tests.web.local import LocalVisitor as Visitor
from tests.web.test_narrow import groups, token

SETUP = Setup(Machine(-1, clock_is_kept=False), Listening("0.0.0.0:8787", "127.0.0.1:53"), has_tls=False)


@pytest.fixture
def server(tmp_path):
    made = LocalSite(tmp_path)
    made.site._setup = lambda: SETUP
    yield made
    made.close()


@pytest.fixture
def visitor(server):
    made = Visitor(server)
    assert made.sign_in(server.ready["api_token"]).status == 303
    return made


def remarks(visitor, path):
    return [(one["state"], one["message"]) for one in json.loads(visitor.get(f"{path}.json").text)["remarks"]]


def record(server, zone_id, type_="A", name="@", content="192.0.2.1"):
    body = {"type": type_, "name": name, "content": content, "ttl": 300}
    assert server.api.post(f"/zones/{zone_id}/dns_records", body).status == 200


def test_the_overview_says_what_doctor_says(server, visitor):
    empty, texts, good = (server.make_zone(f"{name}.example") for name in ("empty", "texts", "good"))
    for number in range(6):
        record(server, texts, "TXT", f"t{number}", '"x"')
        record(server, good, "TXT", f"t{number}", '"x"')
    record(server, good, "CNAME", "www", "www.example.net")
    server.api.patch(f"/zones/{good}/settings/http2", {"value": "on"})

    page = visitor.get("/ui")
    assert "nothing keeps this machine's clock right." in page.words
    assert "Leave it on loopback, or put a TLS proxy before it." in page.words
    assert sorted(text.partition(":")[0].partition(", ")[0] for _, text in remarks(visitor, "/ui")) == [
        "empty.example has no record",
        "good.example",
        "nothing keeps this machine's clock right",
        "texts.example has no address",
        "the API listens at 0.0.0.0",
    ]
    server.site._setup = lambda: SETUP._replace(has_tls=True)
    assert not any("good.example" in text for _, text in remarks(visitor, "/ui"))
    record(server, empty)
    record(server, texts, "AAAA", content="2001:db8::9")
    assert remarks(visitor, "/ui/examination") == []
    assert "3 zones: nothing to say" in visitor.get("/ui/examination").words


def test_many_zones_are_examined_on_their_own_page_alone(server, visitor):
    names = [f"z{number:02}.example" for number in range(30)]
    for name in names:
        server.make_zone(name)
    assert len(names) > ZONES_MAX
    assert not any(".example" in text for _, text in remarks(visitor, "/ui"))

    seen = [text.partition(" ")[0] for n in (1, 2) for _, text in _page(visitor, n)]

    assert seen == names


def _page(visitor, number):
    answer = visitor.get(f"/ui/examination.json?page={number}")
    return [(one["state"], one["message"]) for one in json.loads(answer.text)["remarks"]]


def test_of_what_may_not_be_read_nothing_is_said(server):
    mine = server.make_zone("mine.example")
    server.make_zone("theirs.example")
    narrow = Visitor(server)
    narrow.sign_in(
        token(server, groups(server, "Zone Read"), {f"com.cloudflare.api.account.zone.{mine}": "*"})
    )

    assert remarks(narrow, "/ui/examination") == []
    assert narrow.get("/ui").status == 200
