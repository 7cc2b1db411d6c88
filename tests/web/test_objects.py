"""Pages of stateful objects: what they stored, now and then, and taking them back."""

import json

import pytest

from tests.server.test_objects import make_token
from tests.web.conftest import Visitor, hold

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"


@pytest.fixture
def show(web_server, request):
    """The path of an object's page, with two seats that are held one after another."""
    name = f"show-{abs(hash(request.node.nodeid)) % 10**10}"
    hold(web_server, name, "1A", "ann")
    hold(web_server, name, "1A", "eve")
    return name


@pytest.fixture
def path(visitor, show):
    return visitor.get(f"/ui/objects/Booking?name={show}").to


def test_from_the_classes_to_what_an_object_has_stored(visitor, show):
    classes = visitor.get("/ui/objects")
    assert "Booking keys and SQL yes loaded" in classes.words
    objects = visitor.get(classes.link("Booking"))
    page = visitor.get(objects.link(show))

    assert "{'seat': '1A', 'name': 'eve'}" in page.words
    assert "1 row" in page.words
    rows = visitor.get(page.link("seats"))
    assert "1A eve" in rows.words
    assert visitor.get("/ui/objects/Booking?name=nobody").status == 404


def test_a_table_of_now_asks_for_no_moment(visitor, path):
    page = visitor.get(f"{path}/sql?table=seats")

    assert 'name="at" value=""' in page.text
    assert "eve" in visitor.post(f"{path}/sql", page, query='SELECT * FROM "seats"', at="").words


def test_sql_reads_and_does_not_write(visitor, path):
    found = visitor.post(f"{path}/sql", query="SELECT upper(name) AS who FROM seats", at="")
    assert "who EVE" in found.words

    for query in ("DELETE FROM seats", "SELEC"):
        refused = visitor.post(f"{path}/sql", query=query, at="")
        assert refused.status == 400
        assert "SQLITE_" in refused.words
        assert query in refused.text


def test_a_moment_shows_what_was_stored_and_what_going_back_changes(visitor, path):
    past = visitor.get(f"{path}/past?step=2")

    assert "What changed then" in past.words
    assert "before: 1A, eve after: 1A, ann" in past.words  # the preview
    then = json.loads(visitor.get(f"{path}/past.json?step=2").text)
    assert then["then"]["keys"][0]["value"] == "{'seat': '1A', 'name': 'ann'}"
    rows = visitor.get(past.link("seats"))
    assert "1A ann" in rows.words
    assert "Nothing is stored at that moment" in visitor.get(f"{path}/past?ago=3600").words


def test_a_restore_and_its_undo(visitor, path):
    then = json.loads(visitor.get(f"{path}/past.json?step=2").text)["then"]["bookmark"]

    back = visitor.post(f"{path}/past", visitor.get(f"{path}/past?step=2"), what="restore", bookmark=then)
    assert "The object is what it was then" in back.words
    assert "'ann'" in visitor.get(path).words
    visitor.post(f"{path}/past", back, what="undo")
    assert "'eve'" in visitor.get(path).words


def test_an_alarm_is_set_run_and_deleted(visitor, path):
    refused = visitor.post(path, what="set-alarm", time="soon")
    assert (refused.status, 'value="soon"' in refused.text) == (400, True)

    assert "Due in " in visitor.post(path, what="set-alarm", time="10m").words
    assert "The alarm's handler ran" in visitor.post(path, what="run-alarm").words
    assert "rang" in visitor.get(path).words
    visitor.post(path, what="set-alarm", time="2096-11-21T10:30:00Z")
    assert "None is set" in visitor.post(path, what="delete-alarm").words


def test_who_may_not_read_objects_sees_none_and_who_may_not_write_changes_none(web_server, path):
    for groups, status in ((("Zone Read",), 403), (("Objects Read",), 200)):
        reader = Visitor(web_server)
        reader.sign_in(make_token(web_server, *groups)[1])
        assert reader.get(path).status == status
    page = reader.get(f"{path}/past?step=1")
    refused = reader.post(f"{path}/past", page, what="undo")
    assert refused.status == 403


def test_what_objects_stored_is_text(web_server, visitor, path, show):
    hold(web_server, show, HOSTILE, HOSTILE)
    for page in (path, f"{path}/past?step=3", f"{path}/sql?table=seats"):
        shown = visitor.get(page)
        assert "alert(1)" in shown.words
        assert "<script>alert" not in shown.text
        assert "<img src=x" not in shown.text
