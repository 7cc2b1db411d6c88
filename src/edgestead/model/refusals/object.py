"""Refusals of stateful objects: of their calls, and of what operators do with them.

Owns  code, status and wording of each.
Not   where one is decided.

    NotFound (404)
    ├── NoSuchRoute  10460
    ├── NoSuchClass  10461
    ├── NoSuchMethod 10462
    └── NoSuchObject 10470
    MethodNotAllowed (405)
    ├── NotPost   10463
    └── WrongVerb 10473
    BadRequest (400)
    ├── BadCall         10464
    ├── CallRaised      10466 (422)
    ├── ResultNotJson   10467 (422)
    ├── BadObjectName   10471
    ├── OperationFailed 10472 (422)
    └── BadBookmark     10477 (422)
    TooLarge (413)
    └── CallTooLarge 10465
    Unavailable (503)
    ├── WasReset    10468
    ├── Busy        10469
    ├── Unsure      10475
    └── Quarantined 10476
    EdgeError
    └── NoWebSocket 10474 (501)

A call that raised is never answered with 5xx: clients repeat such requests, and it is unknown what the call
has done.
"""

from edgestead.model.refusals import BadRequest, EdgeError, MethodNotAllowed, NotFound, TooLarge, Unavailable


class NoSuchRoute(NotFound):
    """Neither a call, nor a fetch, nor a route for operators."""

    code, wording = 10460, "Objects are called as /objects/<class>/<name>/<method> or .../fetch/<path>."


class NoSuchClass(NotFound):
    code, wording = 10461, "No class {name} was loaded."


class NoSuchMethod(NotFound):
    """Callable are public `async def` methods that the class itself declares."""

    code, wording = 10462, "Class {class_name} has no method {name}{why}."


class NotPost(MethodNotAllowed):
    code, wording = 10463, "Methods of objects are called with POST."


class BadCall(BadRequest):
    code, wording = 10464, "The call cannot be read: {reason}"


class CallTooLarge(TooLarge):
    """The body is longer than the limit; nothing was done."""

    code, wording = 10465, "The body of a call is at most {limit} bytes long."


class CallRaised(BadRequest):
    """The method raised an exception."""

    code, status, wording = 10466, 422, "{reason}"


class ResultNotJson(BadRequest):
    """The method returned something that JSON cannot hold. What it wrote is stored."""

    code, status, wording = 10467, 422, "The result cannot be sent as JSON: {reason}"


class WasReset(Unavailable):
    """The object was reset while the call ran, and what was not acknowledged is gone. Repeat the call."""

    code, wording = 10468, "{reason}"


class Busy(Unavailable):
    """Too many calls wait, or storage cannot take writes at the moment."""

    code, wording = 10469, "{reason}"


class NoWebSocket(EdgeError):
    """`fetch` answers plain requests. A client would take the 200 of one for a broken server."""

    code, status, wording = 10474, 501, "Objects do not speak WebSocket: send the request without Upgrade."


class Unsure(Unavailable):
    """The process has lost touch with the one that knows the tokens. Repeat the call."""

    code, wording = 10475, "Whether these credentials are still good cannot be told right now. Try again."


class Quarantined(Unavailable):
    """Three processes in a row ended in one event of the object. It is not run until it is released."""

    code, wording = 10476, "{reason}."


class NoSuchObject(NotFound):
    """Operators' routes make no objects."""

    code, wording = 10470, "Class {class_name} has no object {name} that ever stored anything."


class BadObjectName(BadRequest):
    """No object can have that name or id."""

    code, wording = 10471, "{reason}"


class OperationFailed(BadRequest):
    """Storage refused it, with its reason; nothing was changed."""

    code, status, wording = 10472, 422, "{reason}"


class BadBookmark(BadRequest):
    """No bookmark, one of another object or that is not kept, or a time that nothing is kept of."""

    code, status, wording = 10477, 422, "{reason}"


class WrongVerb(MethodNotAllowed):
    """The path takes other methods, which the answer names."""

    code, wording = 10473, "This path takes {allow}."
