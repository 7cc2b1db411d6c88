"""Tables [[alert]]: what they may say, and what is refused with the reason."""

import pytest

from edgestead.config import ConfigError, load
from edgestead.config_alerts import KEYS, Receiver, receiver

MAIL = {"name": "ops", "email-to": ["ops@example.com"], "smtp": "mail.example.com:587"}
HOOK = {"name": "ops", "webhook": "https://hooks.example.com/edge?key=1"}
GOOD = [
    (HOOK, {"webhook": "https://hooks.example.com/edge?key=1", "level": "warn", "repeat_hours": 24}),
    (
        HOOK | {"checks": ["disk"], "level": "fail", "hold-seconds": 0},
        {"checks": ("disk",), "hold_seconds": 0},
    ),
    (MAIL, {"smtp_host": "mail.example.com", "smtp_port": 587, "smtp_security": "starttls"}),
    (MAIL | {"smtp": "[::1]:25"}, {"smtp_host": "::1", "smtp_port": 25}),
    (MAIL | {"smtp-user": "edge", "smtp-password-file": "/run/p"}, {"smtp_password_file": "/run/p"}),
]
BAD = [
    ("ops", "expected a table"),
    ({"webhook": "https://x/"}, "it needs a name"),
    ({"name": "Ops team"}, "name: expected at most 32 lower-case"),
    ({"name": "ops"}, "either webhook or email-to"),
    (HOOK | MAIL, "either webhook or email-to"),
    (HOOK | {"webhook": "ftp://x/"}, "webhook: expected a URL"),
    (HOOK | {"webhook": "https://user:pw@x/"}, "without credentials"),
    (HOOK | {"webhook": "https://x:99999/"}, "webhook: expected a URL"),
    (HOOK | {"webhook": "https://x/\r\nHost: y"}, "webhook: expected at most 500 printable"),
    (HOOK | {"checks": []}, "checks: expected a list"),
    (HOOK | {"checks": ["weather"]}, "there is no check 'weather'"),
    (HOOK | {"level": "ok"}, "level: expected"),
    (HOOK | {"hold-seconds": -1}, "hold-seconds: "),
    (HOOK | {"urgency": 5}, "unknown key urgency"),
    (MAIL | {"email-to": []}, "email-to: expected a list"),
    (MAIL | {"email-to": ["nobody"]}, "email-to: expected an address"),
    (MAIL | {"email-to": ["a@b\r\nBcc: c@d"]}, "email-to: expected an address"),
    ({"name": "ops", "email-to": ["ops@example.com"]}, "email-to needs smtp"),
    (MAIL | {"smtp": "mail.example.com"}, "smtp: "),
    (MAIL | {"smtp-user": "edge"}, "needs smtp-password-file"),
    (
        MAIL | {"smtp-user": "e", "smtp-password-env": "P", "smtp-security": "none"},
        "not sent without protection",
    ),
]


@pytest.mark.parametrize(("table", "expected"), GOOD)
def test_a_good_table_is_a_receiver(table, expected):
    made = receiver(table)

    assert {name: getattr(made, name) for name in expected} == expected


@pytest.mark.parametrize(("table", "words"), BAD)
def test_a_bad_table_is_refused_with_the_reason(table, words):
    with pytest.raises(ValueError, match=words):
        receiver(table)


def test_every_key_is_a_field():
    fields = set(Receiver.__struct_fields__)

    assert {key.name.replace("-", "_") for key in KEYS} - {"smtp"} <= fields


def test_the_file_holds_several_receivers_with_names_of_their_own(tmp_path):
    file = tmp_path / "edge.toml"
    table = '[[alert]]\nname = "{}"\nwebhook = "https://x/"\n'
    file.write_text(table.format("a") + table.format("b"))
    assert [one.name for one in load({}, file).alert] == ["a", "b"]

    file.write_text(table.format("a") + table.format("a").replace("x/", "y/"))
    with pytest.raises(ConfigError, match="a name of its own"):
        load({}, file)
