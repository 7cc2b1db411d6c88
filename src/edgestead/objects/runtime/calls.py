"""What travels between a caller and an object: arguments, results, exceptions.

Owns  their encoding, and which exceptions keep their class.
Not   delivery.

Arguments and results are cloned, also inside one process: what an object gives away cannot reach back into
it, and a call behaves the same wherever the object lives.
"""

from typing import Any, Literal

import msgspec

from edgestead.objects import errors, limits
from edgestead.objects.errors import DataCloneError, LimitError, ObjectError, RemoteError, words_of
from edgestead.objects.values.codec import decode, encode

_OWN: dict[str, type[Exception]] = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, Exception) and kind.__module__ == errors.__name__
}

Origin = Literal["platform", "method", "result"]

NOTHING = encode(None)
"""The data of a reply without a result, as most writes give one."""


class Reply(msgspec.Struct, frozen=True):
    """An encoded result, or an encoded exception."""

    ok: bool
    data: bytes


def pack_arguments(arguments: tuple[Any, ...], named: dict[str, Any]) -> bytes:
    """Raises DataCloneError, LimitError."""
    return _limited(encode([list(arguments), named]), "Arguments")


def unpack_arguments(data: bytes) -> tuple[list[Any], dict[str, Any]]:
    arguments, named = decode(data)
    return arguments, named


def pack_result(result: Any) -> Reply:
    """The reply of a method that returned. A result that cannot be sent becomes an exception."""
    try:
        return Reply(True, _limited(encode(result), "Result"))
    except (DataCloneError, LimitError) as error:
        return pack_error(error, origin="result")


def pack_error(error: BaseException, origin: Origin = "platform") -> Reply:
    """The reply of a call that failed: the platform refused it, its method raised, or its result is none.

    What a method raised was raised by an object that lives on, even if it is the reset of another one.
    """
    if type(error).__name__ in _OWN and type(error) is _OWN[type(error).__name__]:
        code = getattr(error, "code", None)
        return Reply(False, encode(["own", type(error).__name__, str(error), code, origin]))
    try:
        return Reply(False, encode(["built-in", error]))
    except DataCloneError:
        return Reply(False, encode(["own", "RemoteError", words_of(error), None, origin]))


def unpack(reply: Reply) -> Any:
    """The result, or the exception raised."""
    if reply.ok:
        return decode(reply.data)
    raise error_of(reply)


def error_of(reply: Reply) -> Exception:
    """The exception of a reply that is not ok."""
    kind, *rest = decode(reply.data)
    if kind == "built-in":
        error = rest[0]
        return error if isinstance(error, Exception) else RemoteError(str(error))
    name, message, code, origin = rest
    made = _OWN.get(name, RemoteError)
    own = made.__new__(made)
    Exception.__init__(own, message)
    if code is not None and isinstance(own, errors.SqlError | errors.KeyValueError):
        own.code = code
    if origin != "platform" and isinstance(own, ObjectError):
        own.reset = own.retryable = own.held = False
    return own


def has_no_result(reply: Reply) -> bool:
    """Whether a reply that is not ok says that the method returned what cannot be sent."""
    return bool(decode(reply.data)[-1] == "result")


def _limited(data: bytes, what: str) -> bytes:
    if len(data) > limits.MESSAGE_BYTES_MAX:
        raise LimitError(f"{what} of a call cannot be larger than {limits.MESSAGE_BYTES_MAX} bytes.")
    return data
