"""Every row of the table of spellings, in both profiles, and once more as it was answered."""

import pytest

from edgestead.model.call import Profile
from edgestead.model.records import TYPES
from tests.rest.conftest import AT_NEWEST
from tests.sent_and_answered import PAGE, ROWS, cases, page

ELSEWHERE = {"DHCID", "DNAME", "DNSKEY", "SOA"}  # the page says where
CASES = tuple(cases("example.com"))


@pytest.fixture(params=list(Profile))
def profile(request):
    return request.param


@AT_NEWEST
def test_each_spelling_is_answered_as_the_table_says_and_sending_it_again_changes_nothing(
    api, records, profile
):
    for case in CASES:
        wanted = case.clients if profile is Profile.CLIENTS else case.spec
        made = api.post(records, case.sent)

        assert made.status == 200, (case.sent, made.json)
        assert shown(made.result, wanted) == wanted
        path = f"{records}/{made.result['id']}"
        assert api.get(path).result == made.result
        for again in (case.sent, wanted):  # as a client does that keeps what it wrote, or what it read
            put = api.put(path, again)
            assert put.status == 200, (again, put.json)
            assert shown(put.result, wanted) == wanted, again
    assert len(api.get(f"{records}?per_page=1000").result) == len(CASES)


def shown(record, wanted):
    return {member: record.get(member) for member in wanted}


def test_the_table_has_every_type():
    assert {row.type for row in ROWS} == set(TYPES) - ELSEWHERE


def test_the_page_is_current():
    assert PAGE.read_text() == page(), "run `.venv/bin/python -m tests.sent_and_answered`"
