"""Refusals of a request before any resource is asked: its route, its form, its paging.

Owns  code, status and wording of each.
Asks  `model.errors` for the base.
Tells `api`.
Not   credentials (`model.access_errors`); the rules of a resource.
"""

from edgestead.model.errors import (
    BadRequest,
    EdgeError,
    MethodNotAllowed,
    NotFound,
    TooLarge,
    TooManyRequests,
    Unavailable,
)

__all__ = [
    "AmbiguousLength",
    "AsOfRefused",
    "BodyTooLarge",
    "BodyTooSlow",
    "InternalError",
    "InvalidBody",
    "InvalidHostOrPath",
    "InvalidQuery",
    "JsonDecodeFailure",
    "MethodNotAllowed",
    "MissingField",
    "NeverHere",
    "NoRoute",
    "NoRouteForUri",
    "NotReady",
    "RateLimited",
    "ServerEnds",
    "ServerFull",
    "TooManyConnections",
    "Unreadable",
    "WrongContentType",
]


class NoRouteForUri(NotFound):
    """Always the second error beside NoRoute."""

    code, wording = 7000, "No route for that URI"


class NoRoute(NotFound):
    """No such route, or an identifier in it that is not 32 lower-case hex digits."""

    code, wording = 7003, "Could not route to {path}, perhaps your object identifier is invalid?"

    def __init__(self, path: str) -> None:
        super().__init__(path=path, also=(NoRouteForUri(),))


class NeverHere(BadRequest):
    """A path of a product that had ended before this server began, at an older date than its end."""

    code, wording = 1197, "This server never had what ended here on {date}. {advice}"


class InvalidHostOrPath(BadRequest):
    code, wording = 7002, "The path is not valid percent-encoded UTF-8."


class Unreadable(BadRequest):
    """Bytes that are no HTTP request, or whose length could be read in two ways. The connection is closed."""

    code, wording = 1400, "This is not an HTTP/1.1 request that can be served: {reason}."


class AmbiguousLength(BadRequest):
    """Spec "Deprecations", 2023-07-01; RFC 9112 §6.3."""

    code, wording = 1400, "A request states its length once: with Content-Length or Transfer-Encoding."


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


class TooManyConnections(TooManyRequests):
    """Contract "Generic failures": the limit of one service, not the quota."""

    code, wording = 10429, "There are {limit} connections from this address already."


class ServerFull(Unavailable):
    code, wording = 1505, "The server holds {limit} connections already. Try again."


class ServerEnds(Unavailable):
    """The server was told to end, and what was still missing of the request did not come in time."""

    code, wording = 1506, "The server ends, and the request was not complete. Nothing was changed."


class NotReady(Unavailable):
    """On /health/ready alone: other routes answer what they can."""

    code, wording = 1504, "Not ready: {reasons}."


class InternalError(EdgeError):
    """A fault of ours. The log line with the same request id holds the traceback."""

    code, status, wording = 1500, 500, "Internal error. The server's log knows request {request_id}."
