"""An alert in words: the JSON of a webhook, and the text of a mail.

Owns  both forms, what signs the JSON, how long they may be.
Not   when they are sent (`health.alerting`), or how (`server.alerts`).
"""

import hmac
from collections.abc import Sequence
from datetime import UTC, datetime
from email.message import EmailMessage
from hashlib import sha256
from typing import Final, Literal

import msgspec

from edgestead.health.alerting import Item
from edgestead.health.facts import SECOND_US

VERSION: Final = 1
ITEMS_MAX: Final = 50  # of one message; further ones are counted
SUBJECT_CHARACTERS_MAX: Final = 150  # of a mail: lists of mails show less
SIGNATURE_HEADER: Final = "Edge-Signature"

Status = Literal["firing", "repeated", "resolved"]
_STATUSES: Final[dict[str, Status]] = {"firing": "firing", "repeating": "repeated", "resolving": "resolved"}


class AlertShown(msgspec.Struct, frozen=True):
    """`id` is the same from firing to resolved; with `number` it names one message of it, also when that is
    sent twice.
    """

    id: str
    number: int
    status: Status
    check: str
    subject: str
    state: str
    message: str
    next_step: str
    since: str


class Payload(msgspec.Struct, frozen=True):
    """The body of a webhook. `kind` is "test" when an operator asked for it, `more` how many are left out."""

    version: int
    server: str
    kind: Literal["alerts", "test"]
    sent: str
    alerts: list[AlertShown]
    more: int


def payload(server: str, items: Sequence[Item], now_us: int) -> Payload:
    """No items make a test."""
    shown = [
        AlertShown(
            one.id,
            one.number,
            _STATUSES[one.kind],
            one.row.check,
            one.row.subject,
            "ok" if one.kind == "resolving" else one.row.state,
            one.row.message,
            one.row.next_step,
            iso(one.row.since_us),
        )
        for one in items[:ITEMS_MAX]
    ]
    kind: Literal["alerts", "test"] = "alerts" if items else "test"
    return Payload(VERSION, server, kind, iso(now_us), shown, max(0, len(items) - ITEMS_MAX))


def signature(secret: bytes, body: bytes, now_us: int) -> str:
    """The value of SIGNATURE_HEADER: when it was signed, and HMAC-SHA256 of ``TIME.BODY``."""
    moment = str(now_us // SECOND_US)
    return f"t={moment},v1={hmac.new(secret, moment.encode() + b'.' + body, sha256).hexdigest()}"


def mail(content: Payload, sender: str, recipients: Sequence[str], message_id: str) -> EmailMessage:
    """A mail of plain text; the subject says the worst."""
    made = EmailMessage()
    made["From"], made["To"] = sender, ", ".join(recipients)
    made["Subject"] = _one_line(f"[{content.server}] {_subject(content)}")[:SUBJECT_CHARACTERS_MAX]
    made["Date"] = datetime.fromisoformat(content.sent)
    made["Message-ID"] = message_id
    made["Auto-Submitted"] = "auto-generated"  # RFC 3834 §5: no vacation notes, please
    made.set_content("\n\n".join(_paragraphs(content)) + "\n")
    return made


def headline(content: Payload) -> str:
    """One line for a log and the history."""
    return _one_line(_subject(content))


def iso(moment_us: int) -> str:
    moment = datetime.fromtimestamp(moment_us // SECOND_US, UTC)
    return moment.isoformat().replace("+00:00", "Z")


def _subject(content: Payload) -> str:
    if not content.alerts:
        return "a test of alerts"
    first = content.alerts[0]
    name = f"{first.check}/{first.subject}" if first.subject else first.check
    words = f"resolved: {name}" if first.status == "resolved" else f"{first.state}: {name}: {first.message}"
    others = len(content.alerts) + content.more - 1
    return words + (f" (and {others} more)" if others else "")


def _paragraphs(content: Payload) -> list[str]:
    if not content.alerts:
        return [f"{content.server} sends this because `edgecli alert test` asked for it. Nothing is wrong."]
    found = []
    for one in content.alerts:
        name = f"{one.check}/{one.subject}" if one.subject else one.check
        if one.status == "resolved":
            found.append(f"RESOLVED  {name}\n{one.message}: this is over.")
            continue
        again = f" (message {one.number})" if one.number > 1 else ""
        found.append(
            f"{one.state.upper()}  {name}, since {one.since}{again}\n{one.message}.\n{one.next_step}".rstrip()
        )
    if content.more:
        found.append(f"{content.more} more: `edgecli alert list` on {content.server} shows all of them.")
    return found


def _one_line(text: str) -> str:
    return " ".join(text.split())
