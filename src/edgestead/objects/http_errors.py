"""What the objects' own HTTP address refuses, with codes and status.

Owns  code, status and wording of each refusal.
Asks  `model.errors` for the tree.
Tells `serve`.
Not   where a refusal is decided.

A call that raised is never answered with 5xx: clients repeat those, and nobody knows what the call has done.
"""

from edgestead.model.errors import BadRequest, EdgeError, NotFound, TooLarge, Unavailable


class NoSuchRoute(NotFound):
    """Neither a call, nor a fetch, nor a route for operators."""

    code, wording = 10460, "Objects are called as /objects/<class>/<name>/<method> or .../fetch/<path>."


class NoSuchClass(NotFound):
    code, wording = 10461, "No class {name} was loaded."


class NoSuchMethod(NotFound):
    """Callable are public `async def` methods that the class itself declares."""

    code, wording = 10462, "Class {class_name} has no method {name}."


class NotPost(EdgeError):
    code, status, wording = 10463, 405, "Methods of objects are called with POST."


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


class NoSuchObject(NotFound):
    """Operators' routes make no objects."""

    code, wording = 10470, "Class {class_name} has no object {name} that ever stored anything."


class BadOperation(BadRequest):
    """A parameter or member of the body is wrong; nothing was done."""

    code, wording = 10471, "{reason}"


class OperationFailed(BadRequest):
    """Storage refused it, with its reason; nothing was changed."""

    code, status, wording = 10472, 422, "{reason}"


class WrongVerb(EdgeError):
    """The path takes other methods, which the answer names."""

    code, status, wording = 10473, 405, "{path} takes {methods}."
