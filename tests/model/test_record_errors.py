"""The refusals of records: each has its own code, and words that name the facts."""

import pytest

from edgestead.model import record_errors
from edgestead.model.errors import EdgeError
from edgestead.model.record_errors import FieldMissing, FieldRefused, RecordRefused

REFUSALS = [one for one in RecordRefused.__subclasses__() if one.__module__ == record_errors.__name__]


def test_no_two_refusals_share_a_code():
    assert sorted(refusal.code for refusal in REFUSALS) == [9000, 9002, 9005, 9006, 9007, 9015, 9101, 9102]


@pytest.mark.parametrize("refusal", REFUSALS)
def test_the_tree_on_top_of_the_module_is_complete(refusal):
    assert f"{refusal.__name__}" in record_errors.__doc__
    assert str(refusal.code) in record_errors.__doc__


def test_a_refusal_carries_its_facts_and_where_they_stand():
    refusal = FieldRefused(type="SRV", field="data/port", reason="must be 0 to 65535")

    assert isinstance(refusal, EdgeError)
    assert (refusal.type, refusal.field, refusal.reason) == ("SRV", "data/port", "must be 0 to 65535")
    assert refusal.pointer == "/data/port"
    assert refusal.message == "port for SRV record is invalid: must be 0 to 65535."


def test_braces_from_outside_stay_braces():
    assert "{type}" in FieldRefused(type="TXT", field="content", reason="{type}").message


def test_a_missing_priority_has_the_words_that_clients_look_for():
    assert "priority is a required field" in FieldMissing(type="MX", field="priority").message
