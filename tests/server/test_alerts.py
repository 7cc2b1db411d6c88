"""Alerts reach their receivers: by webhook and by mail, once, again and to the end, whatever dies."""

import email
import hmac
import json
import os
import re
import signal
import ssl
from datetime import UTC, datetime, timedelta
from email import policy
from hashlib import sha256
from pathlib import Path

import pytest
from click.testing import CliRunner

from edgestead.cli.main import cli
from edgestead.cli.server.authority import Authority
from edgestead.config import load
from edgestead.config_alerts import Receiver
from edgestead.health import messages
from edgestead.health.alerting import Alert, Item
from edgestead.health.rows import Row
from edgestead.server.alerts import delivery, state_file
from edgestead.server.alerts.delivery import NotDelivered, deliver
from edgestead.server.alerts.state_file import AlertsState, ReceiverState, Sent
from tests.support.health import rows as health_rows
from tests.support.receivers import MailServer, Silent, Webhook

NOW_US = 1_800_000_000_000_000
ROW = Row("certificates", "www.example.com", "fail", "the certificate ended", "Put a new one.", NOW_US)
ITEMS = [Item("a1", 1, "firing", ROW)]
WAIT_SECONDS = 300
NO_ROW = {"state": ""}


@pytest.fixture
def closing():
    made = []
    yield lambda one: made.append(one) or one
    for one in made:
        one.close()


@pytest.fixture
def authority(tmp_path):
    """A context for servers, and the file that vouches for them."""
    now = datetime.now(UTC)
    issuer = Authority.new(now)
    (tmp_path / "leaf.pem").write_bytes(issuer.issue(["127.0.0.1"], now, timedelta(days=2)).pem)
    (tmp_path / "ca.pem").write_bytes(issuer.certificate_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "leaf.pem")
    return context, str(tmp_path / "ca.pem")


def told(items=ITEMS):
    return messages.payload("edge-1", items, NOW_US)


def mailing(server, **more):
    given = {"email_to": ("ops@example.com",), "smtp_host": "127.0.0.1", "smtp_port": server.port}
    return Receiver(**({"name": "ops", "smtp_security": "none"} | given | more))


# One message.


def test_a_webhook_is_a_signed_post(closing, tmp_path):
    hook = closing(Webhook())
    (tmp_path / "secret").write_text("key of both\nnot this\n")

    deliver(Receiver(name="ops", webhook=hook.url, secret_file=str(tmp_path / "secret")), told(), NOW_US)

    ((path, headers, body),) = hook.got
    assert path == "/hook?of=edge"
    assert headers["content-type"] == "application/json"
    signed = hmac.new(b"key of both", b"1800000000." + body, sha256).hexdigest()
    assert headers["Edge-Signature"] == f"t=1800000000,v1={signed}"
    assert json.loads(body) == {
        "version": 1,
        "server": "edge-1",
        "kind": "alerts",
        "sent": "2027-01-15T08:00:00Z",
        "alerts": [
            {
                "id": "a1",
                "number": 1,
                "status": "firing",
                "check": "certificates",
                "subject": "www.example.com",
                "state": "fail",
                "message": "the certificate ended",
                "next_step": "Put a new one.",
                "since": "2027-01-15T08:00:00Z",
            }
        ],
        "more": 0,
    }


def test_a_webhook_by_tls_trusts_who_is_vouched_for_and_nobody_else(closing, authority):
    context, ca_file = authority
    hook = closing(Webhook(context))
    url = f"https://127.0.0.1:{hook.port}/"

    deliver(Receiver(name="ops", webhook=url, ca_file=ca_file), told(), NOW_US)
    with pytest.raises(NotDelivered, match="CERTIFICATE_VERIFY_FAILED"):
        deliver(Receiver(name="ops", webhook=url), told(), NOW_US)

    assert len(hook.got) == 1


def test_a_mail_has_a_subject_that_says_it(closing, authority, monkeypatch):
    context, ca_file = authority
    server = closing(MailServer(context, accounts={"edge": "open sesame"}))
    monkeypatch.setenv("MAIL_PASSWORD", "open sesame")
    receiver = mailing(
        server,
        smtp_security="starttls",
        ca_file=ca_file,
        smtp_user="edge",
        smtp_password_env="MAIL_PASSWORD",
        email_to=("ops@example.com", "boss@example.com"),
    )

    deliver(receiver, told(), NOW_US)
    deliver(receiver, told(), NOW_US)

    first, second = (email.message_from_bytes(one["content"], policy=policy.default) for one in server.got)
    assert server.got[0]["private"]
    assert len(server.got[0]["to"]) == 2
    assert first["Subject"] == "[edge-1] fail: certificates/www.example.com: the certificate ended"
    assert first["From"] == "ops@example.com"
    assert first["Auto-Submitted"] == "auto-generated"
    assert first["Message-ID"] == second["Message-ID"], "the same alert, sent again"
    said = first.get_content()
    assert "FAIL  certificates/www.example.com, since 2027-01-15T08:00:00Z" in said
    assert "Put a new one." in said


def test_a_mail_of_many_says_the_worst_and_counts_the_others():
    many = [Item(str(n), 1, "firing", ROW) for n in range(messages.ITEMS_MAX + 7)]
    shown = told([*many[:-1], Item("x", 3, "resolving", ROW)])

    assert len(shown.alerts) == messages.ITEMS_MAX
    assert shown.more == 7
    assert messages.headline(shown).endswith("the certificate ended (and 56 more)")
    over = told([Item("x", 3, "resolving", ROW)])
    assert messages.headline(over) == "resolved: certificates/www.example.com"
    assert (over.alerts[0].status, over.alerts[0].state) == ("resolved", "ok")
    assert "RESOLVED" in messages.mail(over, "a@example.com", ["b@example.com"], "<i@x>").get_content()


def test_words_from_outside_make_no_header_of_their_own():
    row = Row("processes", "x", "fail", "died:\r\nBcc: all@example.com", "", 0)

    made = messages.mail(told([Item("a", 1, "firing", row)]), "a@example.com", ["b@example.com"], "<i@x>")

    assert made["Bcc"] is None
    assert "\n" not in made["Subject"]


def refusals(closing, tmp_path):
    (tmp_path / "empty").touch()
    busy, mails = closing(Webhook()), closing(MailServer(refused=["ops"]))
    busy.server.status = 500
    plain = closing(MailServer())
    gone = Webhook()
    gone.close()
    return [
        (Receiver(name="a", webhook=busy.url), "500 Internal Server Error sorry"),
        (Receiver(name="a", webhook=gone.url), "Connection refused"),
        (Receiver(name="a", webhook=busy.url, secret_file=str(tmp_path / "empty")), "holds no secret"),
        (Receiver(name="a", webhook=busy.url, secret_file=str(tmp_path / "none")), "No such file"),
        (Receiver(name="a", webhook=busy.url, secret_env="NOT_SET_ANYWHERE"), "NOT_SET_ANYWHERE holds no"),
        (mailing(mails), "every recipient was refused: ops@example.com"),
        (mailing(mails, email_to=("ops@example.com", "b@example.com")), "some recipients were refused: ops"),
        (mailing(plain, smtp_security="starttls"), "STARTTLS extension not supported"),
        (mailing(plain, smtp_user="u", smtp_password_env="HOME"), "AUTH extension not supported"),
    ]


def test_what_a_receiver_says_against_it_is_told_in_words(closing, tmp_path):
    for receiver, words in refusals(closing, tmp_path):
        with pytest.raises(NotDelivered, match=words):
            deliver(receiver, told(), NOW_US)


def test_a_wrong_password_is_not_in_the_words(closing, authority, monkeypatch):
    context, ca_file = authority
    server = closing(MailServer(context, accounts={"edge": "right"}))
    monkeypatch.setenv("MAIL_PASSWORD", "wrong-one")
    receiver = mailing(
        server, smtp_security="starttls", ca_file=ca_file, smtp_user="edge", smtp_password_env="MAIL_PASSWORD"
    )

    with pytest.raises(NotDelivered, match=r"535 5\.7\.8 no such user") as raised:
        deliver(receiver, told(), NOW_US)
    assert "wrong-one" not in str(raised.value)


@pytest.mark.parametrize("limit", ["SOCKET_SECONDS", "DELIVERY_SECONDS"])
def test_a_receiver_that_says_nothing_is_given_up(closing, monkeypatch, limit):
    silent = closing(Silent())
    monkeypatch.setattr(delivery, limit, 0.2)

    with pytest.raises(NotDelivered):
        deliver(Receiver(name="a", webhook=f"http://127.0.0.1:{silent.port}/"), told(), NOW_US)


def test_a_mail_server_whose_banner_has_no_end_is_given_up(closing, monkeypatch):
    slow = closing(MailServer(banner_lines=2_000))  # no single read waits for long
    monkeypatch.setattr(delivery, "DELIVERY_SECONDS", 0.2)

    with pytest.raises(NotDelivered):
        deliver(mailing(slow), told(), NOW_US)
    assert slow.got == []


def test_the_page_for_operators_shows_settings_that_load_and_a_signature_that_holds(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "operate.md").read_text()
    chapter = page.partition("## Be told\n")[2]
    settings, code = (
        re.search(rf"^```{kind}\n(.*?)^```", chapter, re.M | re.S)[1] for kind in ("toml", "python")
    )
    (tmp_path / "edge.toml").write_text(settings)
    assert [one.name for one in load({}, tmp_path / "edge.toml").alert] == ["ops", "pager"]

    said = {}
    exec(code, said)
    header = messages.signature(b"key", b"body", NOW_US)
    now = NOW_US / 1_000_000
    assert said["is_genuine"](b"key", header, b"body", now)
    assert not said["is_genuine"](b"key", header, b"bodY", now)
    assert not said["is_genuine"](b"yek", header, b"body", now)
    assert not said["is_genuine"](b"key", header, b"body", now + 301)


# What is stored.


def test_what_is_stored_comes_back_and_a_damaged_file_is_none(tmp_path):
    state = AlertsState({"ops": ReceiverState([Alert("a1", ROW, "sent", 2, True, "fail", 1, 2, 3)], "no", 5)})
    for number in range(state_file.HISTORY_MAX + 1):
        state.note(Sent(number, "ops", "delivered", "words"))

    state_file.write(tmp_path, state_file.encode(state))

    assert state_file.read(tmp_path) == state
    assert [state.history[0].time_us, len(state.history)] == [1, state_file.HISTORY_MAX]
    (tmp_path / state_file.FILE_NAME).write_text('{"receivers": 5')
    assert state_file.read(tmp_path) == AlertsState()


# The whole server.


@pytest.fixture
def hook(closing):
    return closing(Webhook())


@pytest.fixture
def settings(tmp_path, hook):
    """Of a server with a certificate that has ended: its alert is sent at once."""
    tls = tmp_path / "tls"
    tls.mkdir()
    settings = tmp_path / "edge.toml"
    settings.write_text(
        f'silence-seconds = 600\nhttps = "127.0.0.1:0"\ntls-dir = "{tls}"\n'
        f'[[alert]]\nname = "ops"\nwebhook = "{hook.url}"\nchecks = ["certificates"]\nhold-seconds = 1\n'
    )
    expire(tls)
    return settings


@pytest.fixture
def resting(new_server, settings):
    """It is not started yet."""
    return new_server("--config", str(settings))


@pytest.fixture
def server(resting):
    return resting.start()


def expire(folder, days=1):
    made = datetime.now(UTC) - timedelta(days=90 + days)
    issued = Authority.new(made).issue(["www.example.com"], made, timedelta(days=90))
    (folder / "www.example.com.pem").write_bytes(issued.pem)


def sent(hook):
    """(id, number, status, check) of everything that arrived."""
    shown = [one for _, _, body in hook.got for one in json.loads(body)["alerts"]]
    return [(one["id"], one["number"], one["status"], one["check"]) for one in shown]


def edgecli(server, *words):
    return CliRunner().invoke(cli, ["alert", *words, "--data-dir", str(server.data_dir)])


def test_an_expired_certificate_reaches_somebody_once_over_restarts_and_until_it_is_over(
    server, hook, tmp_path
):
    server.wait_until(lambda: sent(hook), WAIT_SECONDS)
    ((identity, number, status, check),) = sent(hook)
    assert (number, status, check) == (1, "firing", "certificates")
    server.wait_until(lambda: "ops       sent" in edgecli(server, "list").output, WAIT_SECONDS)

    pid = server.children()["alerts"]
    os.kill(pid, signal.SIGKILL)
    server.wait_for_life("alerts", pid)
    assert edgecli(server, "test", "ops").output == "ops took the message.\n"
    assert json.loads(hook.got[-1][2])["kind"] == "test"
    server.kill()
    server.start()
    assert edgecli(server, "test", "ops").exit_code == 0
    assert sent(hook) == [(identity, 1, "firing", "certificates")], "it was told before"

    CliRunner().invoke(cli, ["tls", "dev", "www.example.com", "--tls-dir", str(tmp_path / "tls")])
    server.wait_until(lambda: len(sent(hook)) == 2, WAIT_SECONDS)
    assert sent(hook)[-1] == (identity, 2, "resolved", "certificates")
    server.wait_until(lambda: "ops" not in edgecli(server, "list").output, WAIT_SECONDS)
    lines = edgecli(server, "history").output.splitlines()
    assert [line.split()[2] for line in lines[1:]] == ["delivered"] * 4


def test_a_receiver_that_fails_is_a_row_and_is_tried_again(resting, hook):
    hook.server.status = 500
    server = resting.start()
    server.wait_until(lambda: sent(hook), WAIT_SECONDS)

    def row():
        return next((one for one in health_rows(server) if one["check"] == "alerts"), NO_ROW)

    server.wait_until(lambda: row()["state"] == "fail", WAIT_SECONDS)
    assert row()["subject"] == "ops"
    assert "500 Internal Server Error" in row()["message"]
    assert 'edge_alerts_receivers_failing{process="alerts"} 1' in server.call("GET", "//metrics").body
    assert "did not take it: 500" in edgecli(server, "test", "ops").output
    assert "failing" in edgecli(server, "list").output
    unknown = edgecli(server, "test", "nobody").output
    assert "The server has no receiver nobody. It has: ops." in unknown

    hook.server.status = 204
    assert edgecli(server, "test", "ops").exit_code == 0, "and what waits follows at once"
    server.wait_until(lambda: "ops       sent" in edgecli(server, "list").output, WAIT_SECONDS)
    identities = {identity for identity, _, status, _ in sent(hook) if status == "firing"}
    assert len(identities) == 1, "each attempt is the same alert"
    server.wait_until(lambda: row()["state"] == "ok", WAIT_SECONDS)


def test_a_kill_while_a_message_is_under_way_sends_the_same_one_again(resting, hook):
    hook.server.go_on.clear()
    server = resting.start()
    server.wait_until(lambda: sent(hook), WAIT_SECONDS)
    pid = server.children()["alerts"]

    os.kill(pid, signal.SIGKILL)
    server.wait_for_life("alerts", pid)
    server.wait_until(lambda: len(sent(hook)) == 2, WAIT_SECONDS)
    hook.server.go_on.set()

    server.wait_until(lambda: "ops       sent" in edgecli(server, "list").output, WAIT_SECONDS)
    first, again = sent(hook)
    assert first == again


def test_a_control_that_does_not_answer_is_an_alert_and_what_else_was_wrong_stays_so(
    resting, settings, hook, freeze
):
    with settings.open("a") as more:
        more.write(
            f'[[alert]]\nname = "pager"\nwebhook = "{hook.url}"\nchecks = ["control"]\nhold-seconds = 0\n'
        )
    server = resting.start()
    server.wait_until(lambda: sent(hook), WAIT_SECONDS)
    server.wait_until(lambda: "ops       sent" in edgecli(server, "list").output, WAIT_SECONDS)
    hung = freeze(server.children()["control"])

    server.wait_until(lambda: ("firing", "control") in [one[2:] for one in sent(hook)], WAIT_SECONDS)
    assert ("resolved", "certificates") not in [one[2:] for one in sent(hook)], "of it nothing is known"
    hung.thaw()
    server.wait_until(lambda: ("resolved", "control") in [one[2:] for one in sent(hook)], WAIT_SECONDS)
