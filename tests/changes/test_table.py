"""The dated rows hold from their day on, and nobody can misspell one."""

from datetime import date, timedelta

import pytest

from edgestead.changes import CHANGES, NEWEST, OLDEST, Kind, changed


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.subject)
def test_a_row_holds_from_its_day_on(change):
    assert not changed(change.subject, change.day - timedelta(days=1))
    assert changed(change.subject, change.day)
    assert changed(change.subject, change.day + timedelta(days=1))


def test_an_unknown_subject_is_refused_rather_than_old():
    with pytest.raises(KeyError):
        changed("dns-eror-chain", date(2025, 1, 1))


def test_every_row_lies_between_oldest_and_newest():
    assert len(CHANGES) == 25
    assert OLDEST < min(change.day for change in CHANGES)
    assert max(change.day for change in CHANGES) < NEWEST


def test_subjects_are_unique_and_rows_are_newest_first():
    assert len({change.subject for change in CHANGES}) == len(CHANGES)
    days = [change.day for change in CHANGES]

    assert days == sorted(days, reverse=True)


@pytest.mark.parametrize(
    "change",
    [c for c in CHANGES if c.kind in (Kind.ENDPOINT, Kind.ALIAS, Kind.SETTING)],
    ids=lambda c: c.subject,
)
def test_a_route_that_ended_is_named_with_method_and_path(change):
    assert change.endpoints
    for endpoint in change.endpoints:
        assert endpoint.method in {"GET", "POST", "PUT", "PATCH", "DELETE"}
        assert endpoint.path.startswith("/")
