"""What is refused when it is sent a second time, is sent once: its answer may be lost."""

import pytest

from edgestead.cli.http import PERHAPS
from tests.cli.conftest import call
from tests.cli.flaky import FlakyProxy

NAME = "once.example"
PEM = "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\n"


@pytest.fixture
def kv_server(lent):
    """One that nobody has to clean up."""
    return lent


@pytest.mark.parametrize(
    ("before", "command"),
    [
        ((), ("dns", "key", "add", NAME)),
        (("dns", "key", "add", NAME), ("dns", "key", "remove", NAME, "--yes")),
        (("dns", "catalog", "follow", NAME, "192.0.2.1"), ("dns", "catalog", "unfollow", NAME, "--yes")),
        (("zone", "create", NAME), ("dns", "catalog", "keep", NAME)),
        ((), ("dns", "catalog", "off")),
        (("zone", "create", NAME), ("dns", "dnssec", NAME, "roll")),
        (("zone", "create", NAME), ("certificate", "upload", NAME, "a.pem")),
        (
            ("member", "invite", "a@once.example", "--role", "read only"),
            ("member", "remove", "a@once.example", "--yes"),
        ),
    ],
)
def test_it_is_sent_once(edgecli, project, kv_server, monkeypatch, before, command):
    (project / "a.pem").write_text(PEM)
    assert not before or edgecli(*before).code == 0
    proxy = FlakyProxy(kv_server.ready["api_base"], lambda *_: "late drop")
    with proxy as base, monkeypatch.context() as through:
        through.setenv("EDGE_API_BASE", base)
        done = call(*command)

    assert (done.code, proxy.count) == (1, 1), done.err
    assert done.err.endswith(f"{PERHAPS}\n")


def test_what_was_not_sent_is_not_said_to_be_done(edgecli, kv_server, monkeypatch):
    with FlakyProxy(kv_server.ready["api_base"], lambda *_: None) as base:
        pass
    monkeypatch.setenv("EDGE_API_BASE", base)
    done = edgecli("zone", "create", NAME)

    assert (done.code, "cannot be reached" in done.err, PERHAPS in done.err) == (1, True, False)
