"""What is sent back of a rule is all that the API takes."""

import msgspec

from edgestead.model.rule_members import RULE_MEMBERS, sent_back
from edgestead.rest.ruleset_shapes import RuleReplaced


def test_every_member_that_the_api_takes_is_sent_back_but_the_id() -> None:
    assert set(RULE_MEMBERS) == {field.name for field in msgspec.structs.fields(RuleReplaced)} - {"id"}


def test_what_the_server_added_is_not_sent_back() -> None:
    said = dict.fromkeys(RULE_MEMBERS, "said")

    assert sent_back(said | {"id": "1", "version": "2", "last_updated": "now"}) == said
