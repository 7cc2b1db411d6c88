"""A zone's history: who changed what, undoing one change, restoring a name or the whole zone."""

import pytest

from tests.rest.conftest import AT_NEWEST, WWW
from tests.rest.tokens import RESTRICTED, policy, put_token, zone
from tests.support.api import CREDENTIALS, KEY_PAIR

MX = {"type": "MX", "name": "@", "content": "mail.example.net", "priority": 5}
SRV = {
    "type": "SRV",
    "name": "_xmpp._tcp",
    "data": {"priority": 10, "weight": 5, "port": 5223, "target": "server.example.com"},
}
# One of each way that a record is written, so that what comes back is the same in each.
RECORDS = {
    "A": {**WWW, "comment": "the über site", "tags": ["owner:dns-team"]},
    "proxied": {**WWW, "proxied": True, "settings": {"ipv4_only": True}},
    "DNS only, waiting": {**WWW, "settings": {"ipv6_only": True}},
    "CNAME": {"type": "CNAME", "name": "a", "content": "b.example.net", "settings": {"flatten_cname": True}},
    "MX": MX,
    "SRV": SRV,
    "TXT": {"type": "TXT", "name": "t", "content": 'one \\"two\\"'},
    "CAA": {"type": "CAA", "name": "@", "data": {"flags": 0, "tag": "issue", "value": "ca.example"}},
    "URI": {"type": "URI", "name": "u", "priority": 5, "data": {"weight": 1, "target": "http://x.test/"}},
    "HTTPS": {"type": "HTTPS", "name": "h", "data": {"priority": 1, "target": ".", "value": 'alpn="h2"'}},
}
NOT_THERE = ["0", "2", "999999", "-1", "x", "1.5", "9" * 19, "²"]
RESTORE_REFUSED = {
    "unknown member": ({"names": "www"}, 9207),
    "no name": ({"name": "a..b"}, 9000),
    "no object": ([], 9207),
}


@pytest.fixture
def history(zone_id):
    return f"/zones/{zone_id}/history"


def without_time(record):
    return {key: value for key, value in record.items() if not key.endswith("modified_on")}


class TestList:
    @AT_NEWEST
    def test_each_write_is_one_change_with_who_when_before_and_after(self, api, records, history):
        made = api.post(records, WWW).result
        changed = api.patch(f"{records}/{made['id']}", {"content": "192.0.2.2"}, auth=KEY_PAIR).result
        api.delete(f"{records}/{made['id']}")

        gone, patched, born = api.get(history).result

        assert [one["sequence"] for one in (gone, patched, born)] == [3, 2, 1]
        assert [(one["before"], one["after"]) for one in born["changes"]] == [(None, made)]
        assert [(one["before"], one["after"]) for one in patched["changes"]] == [(made, changed)]
        assert [(one["before"], one["after"]) for one in gone["changes"]] == [(changed, None)]
        assert born["made_on"] == made["created_on"]
        assert patched["made_on"] == changed["modified_on"]
        assert patched["made_by"] == {
            "kind": "user",
            "id": born["made_by"]["id"],
            "email": CREDENTIALS.email,
            "token_id": None,
        }
        assert born["made_by"]["token_id"] is not None
        assert born["origin"] == "edit"
        assert born["request_id"] != patched["request_id"]

    def test_a_batch_is_one_change_and_one_undo_takes_it_back(self, api, records, www, history):
        before = api.get(www).result
        api.post(
            f"{records}/batch",
            {
                "patches": [{"id": before["id"], "ttl": 60}],
                "puts": [{"id": before["id"], **WWW, "content": "192.0.2.2"}],
                "posts": [MX, {**WWW, "name": "web"}],
            },
        )

        changes = api.get(f"{history}/2").result["changes"]
        api.post(f"{history}/2/undo", {})

        assert [(one["name"], one["before"] is None) for one in changes] == [
            ("www.example.com", False),
            ("example.com", True),
            ("web.example.com", True),
        ]
        assert [without_time(record) for record in api.get(records).result] == [without_time(before)]

    def test_a_write_that_changes_nothing_is_no_change(self, api, records, www, history):
        api.patch(www, {"content": "192.0.2.1"})
        api.post(records, WWW)  # refused: it is there

        assert len(api.get(history).result) == 1

    def test_it_pages_in_both_directions(self, api, records, history):
        for last in range(1, 6):
            api.post(records, {**WWW, "content": f"192.0.2.{last}"})

        page = api.get(f"{history}?page=2&per_page=2").json
        upwards = api.get(f"{history}?direction=asc&per_page=3").result

        assert [one["sequence"] for one in page["result"]] == [3, 2]
        assert page["result_info"] == {
            "page": 2,
            "per_page": 2,
            "count": 2,
            "total_count": 5,
            "total_pages": 3,
        }
        assert [one["sequence"] for one in upwards] == [1, 2, 3]
        assert api.get(f"{history}?page=9").result == []

    def test_a_name_has_its_own_story(self, api, records, www, history):
        api.post(records, MX)
        api.patch(www, {"name": "web"})

        def story(name):
            return [
                (one["sequence"], [item["name"] for item in one["changes"]])
                for one in api.get(f"{history}?name={name}").result
            ]

        assert story("www") == [(3, ["www.example.com"]), (1, ["www.example.com"])]
        assert story("WEB.example.com.") == [(3, ["web.example.com"])]
        assert story("@") == [(2, ["example.com"])]
        assert story("nobody") == []
        assert api.get(f"{history}?name=a..b").codes == [9000]

    def test_a_zone_without_changes_has_an_empty_one_and_an_unknown_zone_none(self, api, history):
        assert api.get(history).result == []
        assert api.get(f"/zones/{'f' * 32}/history").status == 404


class TestDiff:
    def test_it_names_the_members_that_differ(self, api, records, www, history):
        api.patch(www, {"content": "192.0.2.2", "comment": "new"})

        (changed,) = api.get(f"{history}/2/diff").result

        members = dict(changed["members"])
        assert (changed["action"], changed["type"], changed["name"]) == ("changed", "A", "www.example.com")
        assert members.pop("content") == {"before": "192.0.2.1", "after": "192.0.2.2"}
        assert members.pop("comment") == {"before": None, "after": "new"}
        assert set(members) == {"comment_modified_on"}

    def test_a_birth_and_a_death_show_everything(self, api, www, history):
        api.delete(www)

        (born,), (gone,) = (api.get(f"{history}/{number}/diff").result for number in (1, 2))

        assert (born["action"], gone["action"]) == ("created", "deleted")
        assert born["members"]["content"] == {"before": None, "after": "192.0.2.1"}
        assert gone["members"]["content"] == {"before": "192.0.2.1", "after": None}

    @pytest.mark.parametrize("number", NOT_THERE)
    def test_what_is_not_there_is_not_found(self, api, www, history, number):
        number = number.replace("²", "%C2%B2")
        for answer in (
            api.get(f"{history}/{number}"),
            api.get(f"{history}/{number}/diff"),
            api.post(f"{history}/{number}/undo", {}),
        ):
            assert (answer.status, answer.codes) == (404, [9500])


class TestUndo:
    @pytest.mark.parametrize("body", RECORDS.values(), ids=RECORDS)
    def test_a_deleted_record_returns_as_it_was(self, api, records, history, body):
        made = api.post(records, body).result
        api.delete(f"{records}/{made['id']}")
        api.changes.clear()

        done = api.post(f"{history}/2/undo", {}).result

        assert done == {"sequence": 3, "changes_count": 1}
        back = api.get(f"{records}/{made['id']}").result
        assert without_time(back) == without_time(made)
        assert back["modified_on"] > made["modified_on"]
        told = {"edge:name"} if made["proxied"] else set()
        assert {change.kind for change in api.changes} - told == {"name", "zone", "log:journal"}
        entry = api.get(f"{history}/3").result
        assert (entry["origin"], entry["reverts"]) == ("undo", 2)

    def test_a_created_record_goes_and_a_changed_one_is_what_it_was(self, api, records, www, history):
        before = api.get(www).result
        api.patch(www, {"content": "192.0.2.2", "name": "web", "comment": "x", "ttl": 60})
        mx = api.post(records, MX).result

        api.post(f"{history}/3/undo", {})
        api.post(f"{history}/2/undo", {})

        assert without_time(api.get(www).result) == without_time(before)
        assert api.get(f"{records}/{mx['id']}").status == 404
        assert api.get(records).json["result_info"]["total_count"] == 1

    def test_an_undo_can_be_undone(self, api, www, history):
        api.delete(www)

        api.post(f"{history}/2/undo", {})
        api.post(f"{history}/3/undo", {})

        assert api.get(www).status == 404

    def test_it_is_refused_when_something_came_later(self, api, www, history):
        api.patch(www, {"content": "192.0.2.2"})
        api.patch(www, {"content": "192.0.2.3"})

        answer = api.post(f"{history}/2/undo", {})

        assert (answer.status, answer.codes) == (400, [9501])
        assert "A www.example.com" in answer.json["errors"][0]["message"]
        assert api.get(www).result["content"] == "192.0.2.3"
        assert len(api.get(history).result) == 3

    def test_what_returns_meets_the_rules_of_today(self, api, records, www, history):
        api.delete(www)
        api.post(records, {"type": "CNAME", "name": "www", "content": "other.example.net"})

        answer = api.post(f"{history}/2/undo", {})

        assert (answer.status, answer.codes) == (400, [9502])
        assert [cause["code"] for cause in answer.json["errors"][0]["error_chain"]] == [81054]
        assert [record["type"] for record in api.get(records).result] == ["CNAME"]
        assert len(api.get(history).result) == 3

    def test_a_change_that_an_earlier_version_wrote_down_can_be_undone(self, api, records, history):
        """It showed settings of proxied records that nobody had set. History shows them still."""
        www = f"{records}/{api.post(records, {**WWW, 'proxied': True}).result['id']}"
        api.patch(www, {"content": "192.0.2.7"})
        settings = '{"ipv4_only":false,"ipv6_only":false}'
        older = "cast(replace(cast(became as text), '\"settings\":{}', ?) as blob)"
        write = f"update history_items set became = {older} where sequence = 2"
        api.store.write(lambda tx: tx.run(write, (f'"settings":{settings}',))).result()

        assert api.post(f"{history}/2/undo", {}).status == 200
        assert api.get(www).result["content"] == WWW["content"]


class TestRestore:
    def test_a_name_becomes_what_it_was(self, api, records, www, history):
        api.post(records, MX)
        was = api.get(f"{records}?name=www.example.com").result
        api.patch(www, {"content": "192.0.2.7"})
        api.post(records, {**WWW, "content": "192.0.2.8"})
        api.delete(www)

        done = api.post(f"{history}/2/restore", {"name": "www"}).result

        assert done == {"sequence": 6, "changes_count": 2}
        assert list(map(without_time, api.get(f"{records}?name=www.example.com").result)) == list(
            map(without_time, was)
        )
        assert api.get(records).json["result_info"]["total_count"] == 2

    def test_the_whole_zone_becomes_what_it_was_and_back(self, api, records, www, history):
        ds = {"key_tag": 1, "algorithm": 13, "digest_type": 2, "digest": "ab" * 32}
        api.post(records, {"type": "NS", "name": "sub", "content": "ns.example.net"})
        api.post(records, {"type": "DS", "name": "sub", "data": ds})
        was = api.get(records).result
        for record in reversed(was):
            api.delete(f"{records}/{record['id']}")
        api.post(records, {"type": "CNAME", "name": "www", "content": "other.example.net"})

        restored = api.post(f"{history}/3/restore", {}).result

        assert restored == {"sequence": 8, "changes_count": 4}
        assert list(map(without_time, api.get(records).result)) == list(map(without_time, was))
        api.post(f"{history}/7/restore", {})
        assert [record["type"] for record in api.get(records).result] == ["CNAME"]

    def test_an_asterisk_that_was_delegated_before_that_was_refused_comes_back(
        self, api, records, history, monkeypatch
    ):
        ns = {"type": "NS", "name": "*.a", "content": "ns.example.net"}
        with monkeypatch.context() as before:
            before.setattr("edgestead.usecases.change.neighbours.check_delegable", lambda draft, old: None)
            stored = api.post(records, ns).result
        api.delete(f"{records}/{stored['id']}")

        undone = api.post(f"{history}/2/undo", {}).result

        assert undone == {"sequence": 3, "changes_count": 1}
        assert list(map(without_time, api.get(records).result)) == [without_time(stored)]
        api.delete(f"{records}/{stored['id']}")
        assert api.post(f"{history}/1/restore", {}).result == {"sequence": 5, "changes_count": 1}
        assert api.post(records, {**ns, "content": "ns2.example.net"}).causes == [9000]

    def test_before_the_first_change_there_was_nothing(self, api, records, www, history):
        assert api.post(f"{history}/0/restore", {}).result == {"sequence": 2, "changes_count": 1}
        assert api.get(records).result == []

    def test_a_record_that_moved_comes_back_from_where_it_is(self, api, records, www, history):
        api.patch(www, {"name": "web"})
        api.patch(www, {"name": "app"})

        assert api.post(f"{history}/1/restore", {"name": "web"}).result["sequence"] is None
        assert api.get(www).result["name"] == "app.example.com"
        api.post(f"{history}/1/restore", {"name": "www"})
        assert api.get(www).result["name"] == "www.example.com"
        assert api.get(records).json["result_info"]["total_count"] == 1

    def test_where_nothing_differs_nothing_happens(self, api, www, history):
        api.patch(www, {"ttl": 60})
        api.patch(www, {"ttl": 3600})
        api.changes.clear()

        assert api.post(f"{history}/1/restore", {}).result == {"sequence": None, "changes_count": 0}
        assert api.changes == []
        assert len(api.get(history).result) == 3

    @pytest.mark.parametrize(("body", "code"), RESTORE_REFUSED.values(), ids=RESTORE_REFUSED)
    def test_a_body_that_could_mean_too_much_is_refused(self, api, www, history, body, code):
        api.delete(www)

        answer = api.post(f"{history}/1/restore", body)

        assert (answer.status, answer.codes) == (400, [code])
        assert api.get(www).status == 404

    def test_a_change_that_is_not_there_restores_nothing(self, api, www, history):
        assert api.post(f"{history}/2/restore", {}).codes == [9500]


# What changes a zone beside its records: how, what the change is called, and what shows that it is undone.
OF_THE_ZONE = {
    "paused": ("PATCH", "", {"paused": True}, "zone.paused", lambda zone: zone["paused"]),
    "plan": ("PATCH", "", {"plan": {"id": "pro"}}, "zone.plan", lambda zone: zone["plan"]["legacy_id"]),
    "subscription": (
        "PUT",
        "/subscription",
        {"rate_plan": {"id": "pro_plus"}},
        "zone.rate_plan zone.plan",
        lambda zone: zone["plan"]["legacy_id"],
    ),
    "own name servers": (
        "PATCH",
        "",
        {"vanity_name_servers": ["ns1.example.com"]},
        "zone.vanity_name_servers dns.nameservers",
        lambda zone: zone["name_servers"],
    ),
}


class TestOfTheZone:
    @pytest.mark.parametrize(
        ("method", "path", "body", "ids", "shown"), OF_THE_ZONE.values(), ids=OF_THE_ZONE
    )
    def test_it_has_a_history_and_a_way_back(self, api, zone_id, history, method, path, body, ids, shown):
        own = f"/zones/{zone_id}"
        before = shown(api.get(own).result)

        assert api.call(method, own + path, body).status == 200
        assert api.call(method, own + path, body).status == 200  # again is no change

        after = shown(api.get(own).result)
        assert after != before
        (change,) = api.get(history).result
        assert [(one["kind"], one["id"]) for one in change["changes"]] == [
            ("setting", id_) for id_ in ids.split()
        ]
        api.post(f"{history}/1/undo", {})
        assert shown(api.get(own).result) == before
        api.post(f"{history}/1/restore", {})
        assert shown(api.get(own).result) == after

    def test_all_members_of_one_patch_are_one_change(self, api, zone_id, history):
        body = {"paused": True, "plan": {"id": "business"}, "vanity_name_servers": ["ns1.example.com"]}
        api.patch(f"/zones/{zone_id}", body)

        (change,) = api.get(history).result
        values = {one["id"]: (one["before"], one["after"]) for one in change["changes"]}
        assert values["zone.paused"] == (False, True)
        assert values["zone.plan"] == ("free", "business")

    def test_a_refused_member_changes_nothing(self, api, zone_id, history):
        zone = api.get(f"/zones/{zone_id}").result

        for plan in ({"id": "none"}, {}):
            answer = api.patch(f"/zones/{zone_id}", {"paused": True, "plan": plan})
            assert (answer.status, answer.codes) == (400, [1001])
            assert answer.json["errors"][0]["source"] == {"pointer": "/plan/id"}

        assert api.get(f"/zones/{zone_id}").result == zone
        assert api.get(history).result == []

    def test_a_hold_has_a_history(self, api, zone_id, history):
        hold = f"/zones/{zone_id}/hold"
        api.post(f"{hold}?include_subdomains=true", None)
        api.delete(hold)
        api.delete(hold)  # there is none: no change

        api.post(f"{history}/2/undo", {})

        assert api.get(hold).result == {"hold": True, "include_subdomains": True}
        assert [one["sequence"] for one in api.get(history).result] == [3, 2, 1]

    def test_own_name_servers_return_with_the_choice_of_them_whatever_left_first(self, api, zone_id, history):
        own = f"/zones/{zone_id}"
        api.patch(own, {"vanity_name_servers": ["ns1.example.com"]})
        api.patch(f"{own}/dns_settings", {"nameservers": {"type": "edge.standard"}})
        api.patch(own, {"vanity_name_servers": []})

        done = api.post(f"{history}/1/restore", {}).result

        assert done["changes_count"] == 2
        assert api.get(own).result["name_servers"] == ["ns1.example.com"]

    def test_a_set_without_name_servers_does_not_stand_in_the_way_of_others(self, api):
        """An account may give its zones a set before it has a name server."""
        defaults = {"zone_defaults": {"nameservers": {"type": "custom.account"}}}
        api.patch(f"/accounts/{CREDENTIALS.account_id}/dns_settings", defaults)
        own = f"/zones/{api.post('/zones', {'name': 'later.test'}).result['id']}"
        api.patch(f"{own}/settings/ssl", {"value": "full"})

        assert api.post(f"{own}/history/1/undo", {}).status == 200
        assert api.get(f"{own}/settings/ssl").result["value"] == "off"

    @AT_NEWEST
    def test_what_returns_meets_the_plan_that_returns_with_it(self, api, zone_id, records, history):
        own = f"/zones/{zone_id}"
        api.patch(own, {"plan": {"id": "enterprise"}})
        short = api.post(records, {**WWW, "ttl": 30}).result
        api.delete(f"{records}/{short['id']}")
        api.patch(own, {"plan": {"id": "free"}})

        assert api.post(f"{history}/3/undo", {}).codes == [9502]
        assert api.post(f"{history}/2/restore", {}).result["changes_count"] == 2
        assert api.get(f"{records}/{short['id']}").result["ttl"] == 30


# A change of one setting, by its area.
OF_SETTINGS = {
    "DNS": ("/dns_settings", {"ns_ttl": 600}),
    "Zone": ("", {"paused": True}),
    "Zone Settings": ("/settings/ssl", {"value": "full"}),
}


@AT_NEWEST
class TestPermissions:
    """The way back takes the permissions of the way there, and looking at settings those of their routes."""

    @pytest.fixture(params=OF_SETTINGS)
    def area(self, api, zone_id, www, request):
        path, body = OF_SETTINGS[request.param]
        assert api.patch(f"/zones/{zone_id}{path}", body).status == 200
        return request.param

    def test_a_setting_returns_only_by_who_may_write_it(self, api, zone_id, history, area):
        put_token(api, policy("DNS Write", resources=zone(zone_id)))
        status = 200 if area == "DNS" else 403

        for answer in (
            api.post(f"{history}/2/undo", {}, auth=RESTRICTED),
            api.post(f"{history}/1/restore", {}, auth=RESTRICTED),
        ):
            assert answer.status == status
            assert status == 200 or answer.codes == [10000]
        assert len(api.get(history).result) == (3 if area == "DNS" else 2)

    def test_who_may_write_both_brings_it_back(self, api, zone_id, history, area):
        put_token(api, policy("DNS Write", f"{area} Write", resources=zone(zone_id)))

        assert api.post(f"{history}/2/undo", {}, auth=RESTRICTED).status == 200

    def test_a_name_returns_whatever_happened_to_settings(self, api, zone_id, history, area):
        put_token(api, policy("DNS Write", resources=zone(zone_id)))

        done = api.post(f"{history}/0/restore", {"name": "www"}, auth=RESTRICTED)

        assert done.result["changes_count"] == 1

    def test_values_are_shown_to_who_may_read_them(self, api, zone_id, history, area):
        put_token(api, policy("DNS Read", resources=zone(zone_id)))
        full = api.get(f"{history}/2").result

        shown = api.get(f"{history}/2", auth=RESTRICTED).result
        listed = api.get(history, auth=RESTRICTED).result[0]
        (diff,) = api.get(f"{history}/2/diff", auth=RESTRICTED).result

        if area != "DNS":
            full["changes"][0] |= {"before": None, "after": None}
        assert shown == listed == full
        assert bool(diff["members"]) == (area == "DNS")


def test_a_deleted_zone_takes_its_history_along(api, zone_id, www):
    api.delete(f"/zones/{zone_id}")

    assert api.get(f"/zones/{zone_id}/history").status == 404
    tables = ("history", "history_items", "history_floors")
    left = api.store.read(lambda reader: [reader.rows(f"select * from {table}") for table in tables])
    assert left == [[], [], []]


def test_a_restore_is_shown_before_it_is_made(api, records, history, zone_id):
    first = api.post(records, WWW).result
    changed = api.patch(f"{records}/{first['id']}", {"content": "192.0.2.2"}).result
    other = api.post(records, MX).result
    api.patch(f"/zones/{zone_id}/settings/ssl", {"value": "strict"})

    found = api.get(f"{history}/1/restore").result
    items = {one["id"]: (one["before"], one["after"]) for one in found["changes"]}
    assert found["changes_count"] == 3
    assert [one["content"] for one in items[first["id"]]] == [changed["content"], first["content"]]
    assert (items[other["id"]][0]["type"], items[other["id"]][1]) == ("MX", None)
    assert items["ssl"][0] == "strict"
    named = api.get(f"{history}/1/restore?name={first['name']}").result
    assert [one["id"] for one in named["changes"]] == [first["id"]]
    assert api.get(history).result[0]["sequence"] == 4

    assert api.post(f"{history}/1/restore", {}).result["changes_count"] == 3
    assert api.get(f"{history}/1/restore").result == {"changes_count": 0, "changes": []}
    assert api.get(f"{history}/99/restore").codes == [9500]
