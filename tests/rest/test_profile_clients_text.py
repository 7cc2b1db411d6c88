"""TXT in the profile `clients`: what was sent comes back, because clients compare it (contract "Text")."""

import pytest

from edgestead.model.call import Profile

LONG = "v=DKIM1; p=" + "A" * 344


@pytest.fixture
def profile():
    return Profile.CLIENTS


@pytest.mark.parametrize(
    ("sent", "answered"),
    [
        ("abc", "abc"),
        ("v=spf1 -all", "v=spf1 -all"),
        (LONG, LONG),
        ('"abc"', '"abc"'),
        ('"two"   "strings"', '"two" "strings"'),
    ],
)
def test_text_comes_back_as_it_was_sent_and_is_found_by_either_spelling(api, records, sent, answered):
    made = api.post(records, {"type": "TXT", "name": "t", "content": sent}).result
    path = f"{records}/{made['id']}"

    assert made["content"] == answered
    assert api.get(path).result["content"] == answered
    assert [one["content"] for one in api.get(f"{records}?type=TXT&name=t.example.com").result] == [answered]
    assert api.patch(path, {"ttl": 300}).result["content"] == answered
    for asked in (sent, f'"{sent}"' if not sent.startswith('"') else sent):
        found = api.get(f"{records}?content.exact={asked}".replace(" ", "%20").replace('"', "%22")).result
        assert [one["id"] for one in found] == [made["id"]]


def test_the_other_spelling_is_the_same_text_and_can_take_its_place(api, records):
    made = api.post(records, {"type": "TXT", "name": "t", "content": "abc"}).result

    twin = api.post(records, {"type": "TXT", "name": "t", "content": '"abc"'})
    changed = api.patch(f"{records}/{made['id']}", {"content": '"abc"'}).result

    assert (twin.status, twin.codes) == (400, [81058])
    assert changed["content"] == '"abc"'


def test_what_was_deleted_comes_back_with_its_text(api, zone_id, records):
    made = api.post(records, {"type": "TXT", "name": "t", "content": "abc"}).result
    api.delete(f"{records}/{made['id']}")
    history = f"/zones/{zone_id}/history"
    newest = api.get(history).result[0]["sequence"]

    assert api.post(f"{history}/{newest}/undo", {}).status == 200

    assert [one["content"] for one in api.get(f"{records}?type=TXT").result] == ["abc"]
