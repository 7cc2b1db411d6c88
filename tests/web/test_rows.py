"""A record is edited in its row: the form's address, what the API says at its fields, the list that stays."""

import json
import re

import pytest

from edgestead.web.pages.records import ROWS_MAX
from tests.web.local import LocalSite
from tests.web.local import LocalVisitor as Visitor
from tests.web.walking import Read

ZONE = "rows.example"
PAGE_BYTES_MAX = 60_000


@pytest.fixture
def server(tmp_path):
    made = LocalSite(tmp_path)
    made.zone_id = made.make_zone(ZONE)
    made.records = {
        name: made.api.post(
            f"/zones/{made.zone_id}/dns_records", {"type": "A", "name": name, "content": content, "ttl": 300}
        ).result["id"]
        for name, content in (("www", "192.0.2.1"), ("mail", "192.0.2.2"))
    }
    yield made
    made.close()


@pytest.fixture
def visitor(server):
    made = Visitor(server)
    assert made.sign_in(server.ready["api_token"]).status == 303
    return made


def row_of(page, id_):
    return page.text.partition(f'id="record-{id_}"')[2].partition("</tr>")[0]


def fields_of(row):
    return {one["name"]: one.get("value", "") for _, one in Read(row).elements if "name" in one}


def content_of(server, id_):
    return server.api.get(f"/zones/{server.zone_id}/dns_records/{id_}").result["content"]


def test_a_link_opens_the_form_in_its_row_and_another_closes_it(server, visitor):
    www = server.records["www"]
    listed = visitor.get(f"/ui/zones/{ZONE}?q=w&type=A")
    links = [held["href"] for tag, held in Read(row_of(listed, www)).elements if tag == "a"]

    opened = visitor.get(links[-1])
    row = row_of(opened, www)

    assert {"content": "192.0.2.1", "name": f"www.{ZONE}", "record": www}.items() <= fields_of(row).items()
    assert "q=w&amp;type=A" in row, "the list stays as it was searched"
    ids = [held["id"] for _, held in Read(opened.text).elements if "id" in held]
    assert len(ids) == len(set(ids))
    back = [held["href"] for tag, held in Read(row).elements if tag == "a"][-1]
    assert "<form" not in row_of(visitor.get(back), www).partition("DNS only")[2]


def test_what_is_saved_is_in_the_row(server, visitor):
    www = server.records["www"]
    path = f"/ui/zones/{ZONE}?q=w&edit={www}"

    done = visitor.post(
        path, record=www, name="www", type="A", content="192.0.2.9", ttl="600", comment="moved"
    )

    assert "The record is changed" in done.words
    assert "192.0.2.9" in row_of(done, www)
    assert 'value="w"' in done.text
    assert content_of(server, www) == "192.0.2.9"


def test_a_mistake_is_told_in_the_row_and_not_in_the_form_below(server, visitor):
    www = server.records["www"]
    path = f"/ui/zones/{ZONE}?edit={www}"

    refused = visitor.post(path, record=www, name="www", type="A", content="not-an-address", ttl="300")

    assert refused.status == 400
    row = row_of(refused, www)
    assert 'id="edit-content" name="content" value="not-an-address" aria-invalid="true"' in row
    assert 'aria-describedby="edit-content-error"' in row
    assert "aria-invalid" not in refused.text.replace(row, "")
    assert content_of(server, www) == "192.0.2.1"


def test_a_box_that_was_unticked_stays_so_where_something_else_is_refused(server, visitor):
    www = server.records["www"]
    server.api.call("PATCH", f"/zones/{server.zone_id}/dns_records/{www}", {"proxied": True})
    path = f"/ui/zones/{ZONE}?edit={www}"
    assert "checked" in row_of(visitor.get(path), www)

    refused = visitor.post(path, record=www, name="www", type="A", content="x", ttl="300")

    assert "checked" not in row_of(refused, www)


def test_a_record_that_the_list_does_not_show_has_its_own_page(server, visitor):
    www = server.records["www"]

    moved = visitor.get(f"/ui/zones/{ZONE}?q=mail&edit={www}")
    refused = visitor.post(f"/ui/zones/{ZONE}?q=mail", record=www, name="www", type="A", content="x")

    assert (moved.status, moved.to) == (303, f"/ui/zones/{ZONE}/records/{www}")
    assert refused.status == 400
    assert 'id="content" name="content" value="x" aria-invalid="true"' in refused.text


@pytest.mark.parametrize("id_", ["f" * 32, "../../user", "x\"'><script>", "?a=b"])
def test_a_record_that_is_not_there(server, visitor, id_):
    path = f"/ui/zones/{ZONE}"

    refused = visitor.post(path, record=id_, name="www", type="A", content="192.0.2.9", ttl="300")

    assert refused.status in (400, 404)
    assert {content_of(server, one) for one in server.records.values()} == {"192.0.2.1", "192.0.2.2"}


def test_the_row_is_data_too(server, visitor):
    www = server.records["www"]

    told = json.loads(visitor.get(f"/ui/zones/{ZONE}.json?edit={www}").text)

    assert told["edit"]["form"]["content"] == "192.0.2.1"
    assert "form_key" not in json.dumps(told)


def test_the_switch_of_the_proxy_leaves_the_list_as_it_was_searched(server, visitor):
    www = server.records["www"]
    row = row_of(visitor.get(f"/ui/zones/{ZONE}?q=www&type=A"), www)
    (action,) = [held["formaction"] for _, held in Read(row).elements if "formaction" in held]

    done = visitor.post(action, visitor.get(f"/ui/zones/{ZONE}"), what="proxy")

    assert "The record is changed" in done.words
    assert 'value="www"' in done.text
    assert f'id="record-{server.records["mail"]}"' not in done.text


def test_a_full_page_of_records_is_small(server, visitor):
    """With its two files: what is sent for the first page that somebody opens."""
    for number in range(50):
        name = f"n{number:02}.a-name-that-is-long.of-a-service-in.a-part-of-the-house"
        record = {"type": "A", "name": name, "content": f"192.0.2.{number}", "comment": "c" * 100}
        done = server.api.post(f"/zones/{server.zone_id}/dns_records", record)
        assert done.status == 200, done.body

    page = visitor.get(f"/ui/zones/{ZONE}?q=a-name")
    files = [visitor.get(f"/ui/static/{name}") for name in ("page.js", "style.css")]

    assert page.text.count('<tr id="record-') == ROWS_MAX
    sizes = [len(one.text.encode()) for one in (page, *files)]
    assert sum(sizes) < PAGE_BYTES_MAX, sizes


def test_what_is_refused_is_data_where_data_was_asked_for(visitor):
    for path in ("/ui/none", "/ui/zones/none.example"):
        told = visitor.get(f"{path}.json")

        assert (told.status, told.headers["content-type"]) == (404, "application/json")
        assert json.loads(told.text)["status"] == 404


@pytest.mark.parametrize(
    ("type_", "content", "priority"),
    [
        ("LOC", "51 30 12.748 N 0 7 39.612 W 0.00m 1.00m 10000.00m 10.00m", ""),
        ("URI", '5 "https://example.com/"', "10"),
        ("CERT", "1 12345 8 AQIDBA==", ""),
        ("SRV", "5 5060 sip.example.com", "10"),
        ("CAA", '0 issue "ca.example.net"', ""),
    ],
)
def test_a_record_of_each_kind_is_added_and_stays_what_it_is_in_its_form(
    server, visitor, type_, content, priority
):
    """The form's list of types has every type: a browser sends the first one else."""
    form = {"name": "_a._tcp", "type": type_, "content": content, "ttl": "300", "priority": priority}
    assert "is added" in visitor.post(f"/ui/zones/{ZONE}", **form).words
    listed = json.loads(visitor.get(f"/ui/zones/{ZONE}.json?type={type_}").text)["records"]["items"]
    (made,) = listed
    row = row_of(visitor.get(f"/ui/zones/{ZONE}?edit={made['id']}"), made["id"])
    (chosen,) = re.findall(r"<option selected>([A-Z]+)</option>", row)
    assert chosen == type_

    sent = fields_of(row) | {"type": chosen, "comment": "changed"}
    assert "The record is changed" in visitor.post(f"/ui/zones/{ZONE}", **sent).words
    (changed,) = json.loads(visitor.get(f"/ui/zones/{ZONE}.json?type={type_}").text)["records"]["items"]
    assert (changed["content"], changed["comment"]) == (made["content"], "changed")
