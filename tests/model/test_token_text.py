"""Texts of API tokens."""

import secrets

from edgestead.model.ids import new_token_text


def test_a_token_has_forty_characters_and_no_two_are_alike():
    assert {len(new_token_text()) for _ in range(100)} == {40}
    assert new_token_text() != new_token_text()


def test_a_token_is_never_taken_for_an_option(monkeypatch):
    drawn = iter(["-BwKm", "--all", "B-wKm"])
    monkeypatch.setattr(secrets, "token_urlsafe", lambda octets: next(drawn))

    assert new_token_text() == "B-wKm"
