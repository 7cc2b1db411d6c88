"""What is forgotten of a zone's history, and the changes of its settings in it."""

from functools import partial

import pytest

from edgestead.model import served
from edgestead.model.times import from_six_digits
from edgestead.tables import history as tables
from edgestead.usecases.zone import history as forgetting
from tests.rest.conftest import WWW


@pytest.fixture
def history(zone_id):
    return f"/zones/{zone_id}/history"


def without_time(record):
    return {key: value for key, value in record.items() if not key.endswith("modified_on")}


class TestForgetting:
    """What is older than so many days, or more than so many rows, is out of reach, the newest first kept."""

    @pytest.fixture
    def forget(self, api):
        def run(rows_max=1_000, older_than_us=0):
            steps = 0
            due = api.store.read(lambda reader: forgetting.due(reader, rows_max, older_than_us))
            for zone_id, sequence in due:
                more = True
                while more:
                    write = partial(forgetting.forget, zone_id=zone_id, sequence=sequence)
                    more, steps = api.store.write(write).result().value, steps + 1
            return steps

        return run

    @pytest.fixture
    def rows(self, api):
        return lambda: [
            api.store.read(lambda reader, table=table: reader.rows(f"select count(*) from {table}"))[0][0]
            for table in ("history", "history_items")
        ]

    def test_rows_beyond_the_limit_go_with_their_changes(self, api, www, history, forget, rows):
        for ttl in range(60, 69):
            api.patch(www, {"ttl": ttl})

        forget(rows_max=4)

        assert [one["sequence"] for one in api.get(history).result] == [10, 9, 8, 7]
        assert api.get(history).json["result_info"]["total_count"] == 4
        assert api.get(f"{history}?name=www").json["result_info"]["total_count"] == 4
        assert rows() == [4, 4]
        assert forget(rows_max=4) == 0

    def test_what_a_stop_left_behind_goes_the_next_time(self, api, zone_id, www, history, forget, rows):
        api.patch(www, {"ttl": 60})
        api.store.write(lambda tx: tables.raise_floor(tx, zone_id, 1)).result()

        assert rows() == [2, 2]
        assert forget() == 1
        assert rows() == [1, 1]

    def test_days_forget_what_is_older(self, api, www, history, forget, rows):
        patched = api.patch(www, {"ttl": 60}).result
        api.patch(www, {"ttl": 61})

        forget(older_than_us=from_six_digits(patched["modified_on"]) + 1)

        assert [one["sequence"] for one in api.get(history).result] == [3]
        assert rows() == [1, 1]

    def test_a_newest_change_that_is_too_large_stays(self, api, zone_id, records, history, forget):
        for last in range(1, 5):
            api.post(records, {**WWW, "content": f"192.0.2.{last}"})
        api.post(f"{history}/0/restore", {})

        forget(rows_max=1)

        assert [one["changes_count"] for one in api.get(history).result] == [4]
        api.post(f"{history}/5/undo", {})
        assert len(api.get(records).result) == 4

    def test_what_is_forgotten_cannot_be_reached_and_numbers_go_on(self, api, www, history, forget):
        for ttl in (60, 61, 62):
            api.patch(www, {"ttl": ttl})

        forget(rows_max=2)

        for answer in (
            api.get(f"{history}/2"),
            api.get(f"{history}/2/diff"),
            api.post(f"{history}/2/undo", {}),
            api.post(f"{history}/1/restore", {}),
        ):
            assert (answer.status, answer.codes) == (404, [9500])
        assert api.post(f"{history}/2/restore", {}).result == {"sequence": 5, "changes_count": 1}
        assert api.get(www).result["ttl"] == 60

    def test_many_rows_go_in_many_transactions(self, api, www, forget, rows, monkeypatch):
        monkeypatch.setattr(forgetting, "FORGOTTEN_ROWS_MAX", 3)
        for ttl in range(60, 70):
            api.patch(www, {"ttl": ttl})

        steps = forget(rows_max=1)

        assert steps > 5
        assert rows() == [1, 1]

    def test_a_zone_that_was_deleted_meanwhile_leaves_nothing(self, api, zone_id, www):
        api.delete(f"/zones/{zone_id}")

        api.store.write(partial(forgetting.forget, zone_id=zone_id, sequence=1)).result()

        assert api.store.read(lambda reader: reader.rows("select * from history_floors")) == []


class TestSettings:
    """Settings of the zone are part of its history, one change for each request."""

    @pytest.fixture
    def zone(self, api, zone_id):
        return f"/zones/{zone_id}"

    def test_a_request_is_one_change_with_each_setting(self, api, zone, history):
        items = [{"id": "ipv6", "value": "off"}, {"id": "always_online", "value": "on"}]
        api.patch(f"{zone}/settings", {"items": items})

        (change,) = api.get(history).result

        assert [(one["kind"], one["id"], one["before"], one["after"]) for one in change["changes"]] == [
            ("setting", "ipv6", None, "off"),
            ("setting", "always_online", None, "on"),
        ]
        assert change["changes_count"] == 2
        shown = api.get(f"{history}/1/diff").result[0]
        assert shown["members"] == {"value": {"before": None, "after": "off"}}

    def test_a_value_that_stays_is_no_change(self, api, zone, history):
        for _ in range(2):
            api.patch(f"{zone}/settings/ipv6", {"value": "off"})

        assert len(api.get(history).result) == 1

    def test_an_undo_sets_it_back(self, api, zone, history):
        before = api.get(f"{zone}/settings/ipv6").result["value"]
        api.patch(f"{zone}/settings/ipv6", {"value": "off"})

        assert api.post(f"{history}/1/undo", {}).result == {"sequence": 2, "changes_count": 1}
        assert api.get(f"{zone}/settings/ipv6").result["value"] == before == "on"
        assert api.get(f"{history}/2").result["origin"] == "undo"

        api.post(f"{history}/2/undo", {})
        assert api.get(f"{zone}/settings/ipv6").result["value"] == "off"

    def test_an_undo_is_refused_when_it_was_set_again(self, api, zone, history):
        api.patch(f"{zone}/settings/ipv6", {"value": "off"})
        api.patch(f"{zone}/settings/ipv6", {"value": "on"})

        answer = api.post(f"{history}/1/undo", {})

        assert (answer.status, answer.codes) == (400, [9501])
        assert "ipv6" in answer.json["errors"][0]["message"]

    def test_dns_serves_what_comes_back_along_with_records(self, api, zone, www, history):
        api.patch(f"{zone}/dns_settings", {"ns_ttl": 7_200, "soa": {"refresh": 20_000}})
        api.delete(www)

        done = api.post(f"{history}/1/restore", {}).result

        assert done == {"sequence": 4, "changes_count": 3}
        assert api.get(f"{zone}/dns_settings").result["soa"]["refresh"] == 10_000
        assert api.get(www).status == 200
        soas = [served.decode_zone(c.doc).soa_rdata for c in api.changes if c.kind == "zone"]
        assert soas[-1][-16:-12] == (10_000).to_bytes(4, "big")
        serials = [int.from_bytes(soa[-20:-16], "big") for soa in soas]
        assert serials == sorted(set(serials))
        api.post(f"{history}/4/undo", {})
        assert api.get(f"{zone}/dns_settings").result["ns_ttl"] == 7_200
        assert api.get(www).status == 404

    def test_a_name_alone_leaves_settings_as_they_are(self, api, zone, www, history):
        api.patch(f"{zone}/settings/ipv6", {"value": "off"})
        api.delete(www)

        api.post(f"{history}/1/restore", {"name": "www"})

        assert api.get(f"{zone}/settings/ipv6").result["value"] == "off"
