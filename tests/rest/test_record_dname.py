"""DNAME, which the specification does not have: the profile `clients` takes it, as RFC 6672 has it."""

import pytest

from edgestead.model.call import Profile
from tests.rest.test_zone_files import form

DNAME = {"type": "DNAME", "name": "old", "content": "new.example.net"}
A, TXT = {"type": "A", "content": "192.0.2.1"}, {"type": "TXT", "content": "text"}
CNAME, NS = {"type": "CNAME", "content": "a.example.net"}, {"type": "NS", "content": "ns.example.net"}


def imported(api, records, *lines):
    body, headers = form(file="\n".join(lines))
    return api.post(f"{records}/import", body, headers=headers)


def test_the_profile_of_the_specification_does_not_know_it(api, records):
    answer = api.post(records, DNAME)

    assert (answer.status, answer.causes) == (400, [9002])


class TestClients:
    @pytest.fixture
    def profile(self):
        return Profile.CLIENTS

    def test_it_is_stored_and_answered(self, api, records):
        made = api.post(records, DNAME).result

        assert (made["type"], made["name"], made["content"]) == (
            "DNAME",
            "old.example.com",
            "new.example.net",
        )
        assert api.get(f"{records}/{made['id']}").result == made
        assert made["proxiable"] is False

    @pytest.mark.parametrize(
        "other", [{**DNAME, "content": "b.example.net"}, CNAME, NS], ids=lambda row: row["type"]
    )
    def test_it_stands_beside_no_other_and_no_alias_or_delegation(self, api, records, other):
        first, second = DNAME, {"name": "old", **other}
        api.post(records, first)
        assert api.post(records, second).causes == [9000]
        api.post(records, {**second, "name": "b"})
        assert api.post(records, {**first, "name": "b"}).causes == [9000]

    @pytest.mark.parametrize("other", [A, TXT], ids=lambda row: row["type"])
    def test_other_records_may_have_its_name(self, api, records, other):
        api.post(records, DNAME)
        assert api.post(records, {"name": "old", **other}).status == 200

    def test_nothing_stands_below_it(self, api, records):
        made = api.post(records, DNAME).result
        for name in ("www.old", "a.b.c.old"):
            assert api.post(records, {**A, "name": name}).causes == [9000]
        api.delete(f"{records}/{made['id']}")
        assert api.post(records, {**A, "name": "www.old"}).status == 200
        assert api.post(records, DNAME).causes == [9000]
        assert api.post(records, {**DNAME, "name": "@"}).causes == [9000]

    def test_a_record_cannot_be_moved_below_it(self, api, records):
        api.post(records, DNAME)
        other = api.post(records, {**A, "name": "www"}).result
        assert api.patch(f"{records}/{other['id']}", {"name": "www.old"}).causes == [9000]

    def test_the_apex_may_have_one(self, api, records):
        assert api.post(records, {**DNAME, "name": "@"}).status == 200
        assert api.post(records, {**TXT, "name": "@"}).status == 200
        assert api.post(records, {**A, "name": "www"}).causes == [9000]

    def test_an_asterisk_has_none(self, api, records):
        assert api.post(records, {**DNAME, "name": "*.old"}).causes == [9000]

    @pytest.mark.parametrize("content", [".", "", "a..b"])
    def test_its_target_is_a_name(self, api, records, content):
        assert api.post(records, {**DNAME, "content": content}).status == 400

    def test_a_file_may_hold_them_in_any_order(self, api, records):
        lines = ["old DNAME new.example.net.", "old A 192.0.2.1", "a.b DNAME c", "b TXT t"]
        assert imported(api, records, *lines).result["recs_added"] == 4
        again = api.get(f"{records}/export").body.decode()
        assert "old.example.com.\t1\tIN\tDNAME\tnew.example.net." in again

    @pytest.mark.parametrize(
        "lines", [["a.old A 192.0.2.1", "old DNAME x"], ["old DNAME x", "a.old DNAME y"]]
    )
    def test_a_line_of_a_file_below_another_ones_is_named(self, api, records, lines):
        answer = imported(api, records, *lines)
        assert (answer.status, answer.causes) == (400, [9000])
        assert api.get(records).result == []
