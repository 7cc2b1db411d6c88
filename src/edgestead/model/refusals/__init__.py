"""Every refusal that the product can speak, as classes: here what they have in common.

Owns  the base of each HTTP status, and what no resource owns.
Not   where a refusal is decided; HTTP itself.

    EdgeError
    ├── BadRequest (400)      the caller must change the request
    ├── Unauthenticated (401) nobody we know
    ├── Forbidden (403)       known, and not allowed
    ├── NotFound (404)
    ├── MethodNotAllowed (405)
    ├── Gone (410)            removed on a date (`changes`)
    ├── TooLarge (413)
    ├── TooManyRequests (429)
    └── Unavailable (503)     try again
        └── DiskFull (507)    an operator has to make room first

    request     of any request, before a resource is asked: route, form, paging
    access      of credentials, and of what they may not do
    token       of making and changing API tokens
    account     of accounts, their members and roles
    zone        of zones, and of their history
    setting     of zone settings, DNS settings, plans, holds, custom name servers
    record      of DNS records: by themselves, among others, in zone files
    secondary   of catalog zones
    outgoing    of outgoing transfers, and of who may ask for them
    tsig        of TSIG keys
    certificate of certificates that are uploaded or ordered
    ruleset     of rulesets and rules
    firewall    of access rules and user agent rules
    kv          of key-values and their namespaces
    object      of stateful objects, for callers and operators

The class holds what never changes; the instance holds the facts that its wording names. Permanent
conflicts are 400, never 409: the SDKs retry 409, 429 and 5xx.
"""

import errno
from typing import Any, ClassVar, Final

CLIENTS_TAKE_IT: Final = (
    "a server with --profile clients takes it"  # ends a refusal of the profile spec alone
)


class EdgeError(Exception):
    """A refusal with its code, status and words.

    `facts` fill the wording; `pointer` is a JSON pointer (RFC 6901) into the request body;
    `also` holds further refusals that are answered in the same list; `chain` holds the causes that are
    answered inside this one as its `error_chain`. `remarks` are answered as `messages`: what helps people
    beside words that programs know. `result` is JSON that is answered with the refusal.
    """

    code: ClassVar[int] = 1000
    status: ClassVar[int] = 400
    wording: ClassVar[str] = "The request cannot be served."

    def __init__(
        self,
        *,
        pointer: str | None = None,
        also: tuple["EdgeError", ...] = (),
        chain: tuple["EdgeError", ...] = (),
        remarks: tuple[str, ...] = (),
        result: bytes = b"null",
        **facts: Any,
    ) -> None:
        self.facts = facts
        self.pointer = pointer
        self.also = also
        self.chain = chain
        self.remarks = remarks
        self.result = result
        super().__init__(self.message)

    @property
    def message(self) -> str:
        return self.wording.format(**self.facts)

    def with_remarks(self, remarks: tuple[str, ...]) -> "EdgeError":
        """The same refusal with more to say. This one stays as it is: other callers may have it, too."""
        found = type(self).__new__(type(self), *self.args)
        found.__dict__.update(self.__dict__, remarks=self.remarks + remarks)
        return found


class BadRequest(EdgeError):
    """The request is wrong and stays wrong when repeated."""

    code, wording = 1001, "{reason}"


class Unauthenticated(EdgeError):
    code, status, wording = 1000, 401, "Invalid API Token"


class Forbidden(EdgeError):
    code, status, wording = 9109, 403, "Unauthorized to access requested resource"


class NotFound(EdgeError):
    code, status, wording = 1001, 404, "Not found"


class MethodNotAllowed(EdgeError):
    code, status, wording = 7001, 405, "Method {method} not available for that URI."


class Gone(EdgeError):
    code, status, wording = 1199, 410, "This endpoint was removed on {date}. {advice}"


class TooLarge(EdgeError):
    code, status, wording = 1413, 413, "The request body is larger than {limit} bytes."


class TooManyRequests(EdgeError):
    code, status, wording = 971, 429, "Please wait and consider throttling your request speed"


class Unavailable(EdgeError):
    code, status, wording = 1503, 503, "The service cannot do this right now. Try again."


NO_SPACE_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT})


class DiskFull(Unavailable):
    """Nobody can add anything, and trying again does not help: RFC 4918 §11.5."""

    code, status = 1507, 507
    wording = (
        "The server's disk is full: nothing can be added. Delete what is not needed, or make room on the "
        "disk; reading, deleting and revoking go on."
    )
