"""Refusals of a request before any resource is asked: its route, its form, its paging.

Owns  code, status and wording of each.
Not   credentials (`model.refusals.access`); the rules of a resource.

    NotFound (404)
    ├── NoRouteForUri 7000
    └── NoRoute       7003
    BadRequest (400)
    ├── NeverHere             1197
    ├── InvalidHostOrPath     7002
    ├── Unreadable            1400
    │   ├── HeadTooSlow       1400 (408)
    │   ├── HeadTooLarge      1400 (431)
    │   ├── NotOffered        1400 (501)
    │   └── VersionRefused    1400 (505)
    ├── WrongContentType      9207
    ├── InvalidBody           9207
    │   └── JsonDecodeFailure 1198
    ├── MissingField          1001
    ├── InvalidQuery          1001
    ├── AsOfRefused           1001
    └── BodyTooSlow           1408
    TooLarge (413)
    └── BodyTooLarge 1413
    TooManyRequests (429)
    ├── RateLimited 971
    └── OverBudget  10429
    Unavailable (503)
    ├── ServerFull 1505
    ├── ServerEnds 1506
    └── NotReady   1504
    EdgeError
    └── InternalError 1500 (500)
"""

from edgestead.model.absent_products import remarks_on
from edgestead.model.refusals import BadRequest, EdgeError, NotFound, TooLarge, TooManyRequests, Unavailable


class NoRouteForUri(NotFound):
    """Always the second error, after NoRoute."""

    code, wording = 7000, "No route for that URI"


class NoRoute(NotFound):
    """No such route, or an identifier in it that is not 32 lower-case hex digits. Where the path is of a
    product that this platform does not have, `messages` say so: the words here are the documented ones.
    """

    code, wording = 7003, "Could not route to {path}, perhaps your object identifier is invalid?"

    def __init__(self, path: str) -> None:
        super().__init__(path=path, also=(NoRouteForUri(),), remarks=remarks_on(path))


class NeverHere(BadRequest):
    """A path of a product that had ended before this server began, at an older date than its end."""

    code, wording = 1197, "This server never had what ended here on {date}. {advice}"


class InvalidHostOrPath(BadRequest):
    code, wording = 7002, "The path is not valid percent-encoded UTF-8."


class Unreadable(BadRequest):
    """Bytes that are no HTTP request, or whose length could be read in two ways. The connection is closed."""

    code, wording = 1400, "This is not an HTTP/1.1 request that can be served: {reason}."


class HeadTooSlow(Unreadable):
    """As Unreadable, and the client may try again."""

    status = 408


class HeadTooLarge(Unreadable):
    """Its head, the number of its headers, or what stands around its chunks."""

    status = 431


class NotOffered(Unreadable):
    """A method that is not known here, or CONNECT."""

    status = 501


class VersionRefused(Unreadable):
    """Another version than HTTP/1.1 and 1.0."""

    status = 505


class WrongContentType(BadRequest):
    code, wording = 9207, "Content-Type must be application/json."


class InvalidBody(BadRequest):
    """Not JSON, or JSON of another shape than the route takes."""

    code, wording = 9207, "Request body is invalid: {reason}"


class JsonDecodeFailure(InvalidBody):
    """Not JSON, where zones, accounts and users are concerned."""

    code, wording = 1198, "JSON decode failure: {reason}"


class MissingField(BadRequest):
    code, wording = 1001, "Field {field} is required."


class InvalidQuery(BadRequest):
    code, wording = 1001, "Query parameter {parameter} is invalid: {reason}"


class AsOfRefused(BadRequest):
    code, wording = 1001, "Header Edge-As-Of is refused: {reason}"


class BodyTooLarge(TooLarge):
    code, wording = 1413, "The request body is larger than {limit} bytes."


class BodyTooSlow(BadRequest):
    code, status, wording = 1408, 400, "The request body did not arrive within {seconds} seconds."


class RateLimited(TooManyRequests):
    """More requests than --api-quota allows one user in five minutes; all are refused for the next five."""

    code = 971
    wording = "Please wait: more than {limit} requests in five minutes. Try again in {seconds} seconds."


class OverBudget(TooManyRequests):
    """One client has too much at a time (`model.budgets`): connections, memory, requests, writes of a zone.

    Contract "Generic failures": the limit of one service, not the quota.
    """

    code, wording = 10429, "Too much at a time: {reason}. Try again when less is on its way."


class ServerFull(Unavailable):
    """All clients together have."""

    code, wording = 1505, "The server is full: {reason}. Try again."


class ServerEnds(Unavailable):
    """The server was told to end, and what was still missing of the request did not come in time."""

    code, wording = 1506, "The server ends, and the request was not complete. Nothing was changed."


class NotReady(Unavailable):
    """On /health/ready alone: other routes answer what they can."""

    code, wording = 1504, "Not ready: {reasons}."


class InternalError(EdgeError):
    """A fault of ours. The log line with the same request id holds the traceback."""

    code, status, wording = 1500, 500, "Internal error. The server's log knows request {request_id}."


_UNREADABLE: dict[int, type[EdgeError]] = {
    kind.status: kind
    for kind in (
        Unreadable,
        HeadTooSlow,
        HeadTooLarge,
        OverBudget,
        NotOffered,
        ServerFull,
        VersionRefused,
    )
}


def unreadable(status: int, reason: str) -> EdgeError:
    """The refusal of what is no request, or too much at a time (`http1.head.Refused`)."""
    return _UNREADABLE[status](reason=reason)
