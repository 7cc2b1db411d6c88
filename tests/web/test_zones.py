"""Zones whose names have letters beyond ASCII, or end like data."""

from urllib.parse import quote

import pytest

from edgestead.model.settings import SETTINGS
from tests.web.local import LocalSite
from tests.web.local import LocalVisitor as Visitor
from tests.web.test_rows import PAGE_BYTES_MAX
from tests.web.walking import Read


@pytest.fixture
def server(tmp_path):
    made = LocalSite(tmp_path)
    yield made
    made.close()


@pytest.fixture
def visitor(server):
    made = Visitor(server)
    assert made.sign_in(server.ready["api_token"]).status == 303
    return made


@pytest.mark.parametrize("name", ["bücher.example", "Bücher.example", "a.json"])
def test_a_zone_of_any_name_is_made_and_changed(server, visitor, name):
    made = visitor.post("/ui/zones", name=name)
    assert (made.status, "is a zone now" in made.words) == (200, True)

    path = visitor.get("/ui/zones").link(name.lower())
    added = visitor.post(path, type="A", name="www", content="192.0.2.1", ttl="300")
    assert "is added" in added.words
    assert visitor.post(f"{path}/settings", id="challenge_ttl", value="3600").status == 200
    (zone,) = server.api.get("/zones").result
    assert server.api.get(f"/zones/{zone['id']}/settings/challenge_ttl").result["value"] == 3600
    (record,) = server.api.get(f"/zones/{zone['id']}/dns_records").result
    gone = visitor.post(f"{path}/records/{record['id']}", what="delete")
    assert "is deleted" in gone.words


def test_a_setting_that_is_refused_keeps_what_was_typed(server, visitor):
    server.make_zone("set.example")
    path = "/ui/zones/set.example/settings"

    for id_, text in (("challenge_ttl", "17"), ("ssl", "wrong"), ("ciphers", "[")):
        refused = visitor.post(path, id=id_, value=text)

        assert refused.status == 400
        invalid = [held for _, held in Read(refused.text).elements if "aria-invalid" in held]
        assert [held["aria-label"] for held in invalid] == [id_]
        assert f'id="{invalid[0]["aria-describedby"]}"' in refused.text
        form = refused.text.partition(f'value="{id_}"')[2].partition("</form>")[0]
        assert f"<option selected>{text}</option>" in form or f'value="{text}"' in form


def test_a_setting_of_few_values_is_chosen(server, visitor):
    server.make_zone("set.example")

    page = visitor.get("/ui/zones/set.example/settings")

    form = page.text.partition('value="ssl"')[2].partition("</form>")[0]
    assert "<option>strict</option>" in form
    assert form.count(" selected") == 1


def test_a_setting_that_is_stored_only_is_a_form_when_it_is_opened(server, visitor):
    server.make_zone("set.example")
    path = "/ui/zones/set.example/settings"
    folded = visitor.get(path)
    links = [held["href"] for _, held in Read(folded.text).elements if held.get("data-place") == "set-0rtt"]

    opened = visitor.get(path + links[0].partition("#")[0])

    assert "<details>" in folded.text
    assert "<details open>" in opened.text
    row = opened.text.partition('<tr id="set-0rtt">')[2].partition("</tr>")[0]
    assert 'name="value" aria-label="0rtt"' in row
    assert 'name="id" value="aegis"' not in opened.text
    assert "0rtt is on" in visitor.post(path, opened, id="0rtt", value="on").words


@pytest.mark.parametrize("named", ["none", "ssl", "advanced_ddos", "x\"'><script>"])
def test_what_is_no_form_to_open_opens_nothing(server, visitor, named):
    server.make_zone("set.example")

    page = visitor.ask("GET", f"/ui/zones/set.example/settings?set={quote(named)}")

    assert (page.status, "<details>" in page.text) == (200, True)


def test_the_page_of_settings_is_small(server, visitor):
    """With its two files, and room for as many settings again that do something."""
    server.make_zone("set.example")
    pages = ("/ui/zones/set.example/settings?set=ciphers", "/ui/static/page.js", "/ui/static/style.css")

    sizes = [len(visitor.get(path).text.encode()) for path in pages]

    assert len(SETTINGS) > 70
    assert sum(sizes) < PAGE_BYTES_MAX * 3 / 4, sizes
