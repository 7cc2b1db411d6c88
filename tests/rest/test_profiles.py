"""What the profile `clients` changes, and nothing else; the as-of date's header."""

from datetime import date

import pytest

from edgestead.model.call import Profile
from tests.rest.conftest import AT_NEWEST, WWW
from tests.support.api import LocalApi

SRV = {"priority": 1, "weight": 2, "port": 3, "target": "a.example.net"}
LEGACY = {**SRV, "service": "_sip", "proto": "_tcp", "name": "example.com"}


class TestClients:
    @pytest.fixture
    def profile(self):
        return Profile.CLIENTS

    @AT_NEWEST
    def test_old_srv_members_are_ignored(self, api, records):
        made = api.post(records, {"type": "SRV", "name": "_sip._tcp", "data": LEGACY}).result

        assert made["data"] == SRV

    def test_a_digit_may_start_a_label(self, api, records):
        assert api.post(records, {**WWW, "name": "1.2b"}).result["name"] == "1.2b.example.com"

    def test_answers_use_the_vendors_spelling(self, api, records):
        sentence = ',"managed_by_edge_tunnel":'
        made = api.post(records, {**WWW, "comment": sentence}).result

        assert "managed_by_argo_tunnel" in made["meta"]
        assert "managed_by_edge_tunnel" not in made["meta"]
        assert made["comment"] == sentence
        assert api.get(f"{records}/{made['id']}").result == made
        assert api.get(records).result == [made]

    def test_the_rules_that_stay_stay(self, api, records):
        assert api.post(records, {**WWW, "name": "a..b"}).causes == [9000]
        assert api.post(records, {**WWW, "ttl": 30}).causes == [9021]


class TestAsOf:
    @pytest.fixture
    def api(self, tmp_path):
        made = LocalApi(tmp_path, allow_as_of=True)
        yield made
        made.close()

    @pytest.mark.parametrize("text", ["2020-04-01", "2024-05-31", "2026-01-02"])
    def test_a_date_until_today_is_taken(self, api, text):
        assert api.get("/zones", headers={"edge-as-of": text}).status == 200

    @pytest.mark.parametrize("text", ["2020-03-31", "2026-01-03", "yesterday", "", "2024-13-01", "2024-5-1"])
    def test_another_one_is_refused(self, api, text):
        answer = api.get("/zones", headers={"edge-as-of": text})

        assert (answer.status, answer.codes) == (400, [1001])

    def test_the_header_chooses_the_behaviour(self, api, records):
        body = {"type": "SRV", "name": "_sip._tcp", "data": LEGACY}

        assert api.post(records, body).codes == [9102]
        assert api.post(records, body, headers={"edge-as-of": "2024-05-31"}).causes == [9102]
        assert api.post(records, body, headers={"edge-as-of": "2024-05-30"}).status == 200


@pytest.mark.inside("the nodes allow it")
def test_the_header_is_refused_where_it_is_not_allowed(api):
    answer = api.get("/zones", headers={"edge-as-of": "2024-01-01"})

    assert (answer.status, answer.codes) == (400, [1001])
    assert "--allow-as-of" in answer.json["errors"][0]["message"]


def test_without_a_date_of_its_own_the_server_serves_today(tmp_path):
    api = LocalApi(tmp_path, as_of=None)
    old = LocalApi(tmp_path / "..", as_of=date(2024, 5, 30))
    try:
        for server, status in ((api, 400), (old, 200)):
            zone_id = server.post("/zones", {"name": "example.com"}).result["id"]
            body = {"type": "SRV", "name": "_sip._tcp", "data": LEGACY}
            assert server.post(f"/zones/{zone_id}/dns_records", body).status == status
    finally:
        api.close()
        old.close()
