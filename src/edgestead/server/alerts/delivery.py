"""One message to one receiver: a POST, or a mail.

Owns  both clients, their deadlines, reading secrets.
Not   what a message says (`health.messages`), and when it is sent again.

Blocks. Each read and write has SOCKET_SECONDS, the whole attempt DELIVERY_SECONDS: a server that sends an
octet now and then does not keep its thread.
"""

import http.client
import os
import smtplib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from edgestead.config_alerts import Receiver
from edgestead.health import messages
from edgestead.health.messages import Payload

SOCKET_SECONDS: Final = 10.0
DELIVERY_SECONDS: Final = 30.0
CUT_AGAIN_SECONDS: Final = 1.0  # between two cuts of what goes on behind its deadline
SMTP_READY: Final = 220  # RFC 5321 §4.2: "service ready", the only banner to go on with
SECRET_BYTES_MAX: Final = 4_096  # of a file with a password or token
ANSWER_BYTES_MAX: Final = 4_096  # of which the first line is shown when it is a refusal
WORDS_MAX: Final = 200  # characters of why a delivery failed


class NotDelivered(Exception):
    """The receiver did not take the message; says why in one line, without secrets."""


def deliver(receiver: Receiver, content: Payload, now_us: int) -> None:
    """Send a message. Raises NotDelivered, whatever went wrong."""
    try:
        (_post if receiver.webhook else _mail)(receiver, content, now_us)
    except NotDelivered:
        raise
    except (OSError, ValueError, http.client.HTTPException, smtplib.SMTPException) as error:
        raise NotDelivered(_words(error)) from None


def _post(receiver: Receiver, content: Payload, now_us: int) -> None:
    url, body = urlsplit(receiver.webhook), msgspec.json.encode(content)
    headers = {"content-type": "application/json", "user-agent": "edgestead"}
    if receiver.secret_file or receiver.secret_env:
        secret = _secret(receiver.secret_file, receiver.secret_env)
        headers[messages.SIGNATURE_HEADER] = messages.signature(secret, body, now_us)
    assert url.hostname is not None
    place = (url.hostname, url.port)
    connection: http.client.HTTPConnection
    if url.scheme == "https":
        connection = http.client.HTTPSConnection(*place, timeout=SOCKET_SECONDS, context=_tls(receiver))
    else:
        connection = http.client.HTTPConnection(*place, timeout=SOCKET_SECONDS)
    target = (url.path or "/") + (f"?{url.query}" if url.query else "")
    try:
        with _deadline(lambda: connection.sock):
            connection.request("POST", target, body, headers)
            answer = connection.getresponse()
            said = answer.read(ANSWER_BYTES_MAX)
    finally:
        connection.close()
    if not 200 <= answer.status < 300:
        first = said.decode("utf-8", "replace").strip().partition("\n")[0]
        raise NotDelivered(_words(f"{answer.status} {answer.reason} {first}"))


def _mail(receiver: Receiver, content: Payload, now_us: int) -> None:
    sender = receiver.email_from or receiver.email_to[0]
    # The same message that is sent again has the same identity: mail servers and readers drop the second.
    identity = sha256(msgspec.json.encode([(one.id, one.number) for one in content.alerts] or [content.sent]))
    message_id = f"<{identity.hexdigest()[:32]}@{sender.rpartition('@')[2]}>"
    mail = messages.mail(content, sender, receiver.email_to, message_id)
    client: smtplib.SMTP
    if receiver.smtp_security == "tls":
        client = smtplib.SMTP_SSL(timeout=SOCKET_SECONDS, context=_tls(receiver))
    else:
        client = smtplib.SMTP(timeout=SOCKET_SECONDS)
    # A constructor with a host connects, and reads the banner, before a deadline can know the socket.
    client._host = receiver.smtp_host  # type: ignore[attr-defined]  # what TLS looks for in a certificate
    try:
        with _deadline(lambda: client.sock):
            code, said = client.connect(receiver.smtp_host, receiver.smtp_port)
            if code != SMTP_READY:
                raise smtplib.SMTPConnectError(code, said)
            if receiver.smtp_security == "starttls":
                client.starttls(context=_tls(receiver))
            if receiver.smtp_user:
                password = _secret(receiver.smtp_password_file, receiver.smtp_password_env)
                client.login(receiver.smtp_user, password.decode())
            refused = client.send_message(mail)
            with suppress(smtplib.SMTPException, OSError):
                client.quit()  # it has taken the message: how it says goodbye does not matter
    finally:
        client.close()
    if refused:
        raise NotDelivered(_words(f"some recipients were refused: {', '.join(refused)}"))


@contextmanager
def _deadline(socket_of: Callable[[], socket.socket | None]) -> Iterator[None]:
    """Cut the connection after DELIVERY_SECONDS: what waits for it then fails.

    Again and again, because one that is made only afterwards, or wrapped in TLS just then, is missed.
    """
    over = threading.Event()

    def cut() -> None:
        seconds = DELIVERY_SECONDS
        while not over.wait(seconds):
            seconds = CUT_AGAIN_SECONDS
            if (held := socket_of()) is not None:
                with suppress(OSError):
                    held.shutdown(socket.SHUT_RDWR)

    cutting = threading.Thread(target=cut, name="deadline", daemon=True)
    cutting.start()
    try:
        yield
    finally:
        over.set()
        cutting.join()


def _tls(receiver: Receiver) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=receiver.ca_file or None)


def _secret(file: str, variable: str) -> bytes:
    """Read for each message, so a new one needs no restart."""
    if file:
        with Path(file).open("rb") as stream:
            secret = stream.read(SECRET_BYTES_MAX).partition(b"\n")[0].strip()
    else:
        secret = os.environb.get(os.fsencode(variable), b"")
    if not secret:
        raise NotDelivered(f"{file or variable} holds no secret")
    return secret


def _words(error: object) -> str:
    """Errors of smtplib hold what the server said as bytes; one of a login never holds the password."""
    if isinstance(error, smtplib.SMTPResponseException):
        said = error.smtp_error
        error = f"{error.smtp_code} {said.decode('utf-8', 'replace') if isinstance(said, bytes) else said}"
    elif isinstance(error, smtplib.SMTPRecipientsRefused):
        error = f"every recipient was refused: {', '.join(error.recipients)}"
    elif isinstance(error, OSError) and error.strerror:
        error = f"{error.strerror}" + (f": {error.filename}" if error.filename else "")
    words = " ".join(str(error).split()) or type(error).__name__
    return "".join(one for one in words if one.isprintable())[:WORDS_MAX]
