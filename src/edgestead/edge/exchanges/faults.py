"""Why an origin did not answer.

Owns  the causes and the status that a client sees for each (the family 52x, and 530).
Not   the pages.
"""

import ssl
from typing import NamedTuple


class Fault(NamedTuple):
    """`status` is what the client gets, `reason` is for it, too: no addresses, no secrets."""

    status: int
    reason: str


class OriginFault(Exception):
    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self.fault = fault


UNREADABLE = Fault(520, "The origin's answer could not be read.")
BROKE_OFF = Fault(520, "The origin closed the connection without an answer.")
UNTAKEN = Fault(520, "The origin did not take the request.")  # and says so: another try harms nobody
REFUSED = Fault(521, "The origin refused the connection.")
NO_CONNECTION = Fault(522, "The origin did not take the connection in time.")
UNREACHABLE = Fault(523, "The origin cannot be reached.")
NO_ANSWER = Fault(524, "The origin took the request and did not answer in time.")
NOT_TAKEN = Fault(524, "The origin stopped taking the request's body.")
NO_TLS = Fault(525, "No TLS connection to the origin could be agreed on.")
BAD_CERTIFICATE = Fault(526, "The origin's certificate is not valid for this name.")
FORBIDDEN = Fault(523, "The origin's address is not one that this server connects to.")
UNRESOLVED = Fault(530, "The origin's name has no address.")


def of(error: BaseException, *, tls: bool) -> Fault:
    """The fault that an exception of connecting means."""
    if isinstance(error, OriginFault):
        return error.fault
    if isinstance(error, ssl.SSLCertVerificationError):
        return BAD_CERTIFICATE
    if isinstance(error, ConnectionRefusedError):
        return REFUSED
    if isinstance(error, ssl.SSLError) or (tls and isinstance(error, ConnectionError)):
        return NO_TLS  # a peer that hangs up, or says nothing, in the middle of the handshake
    if isinstance(error, TimeoutError):
        return NO_CONNECTION
    return UNREACHABLE
