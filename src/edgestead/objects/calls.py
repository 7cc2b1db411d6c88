"""What travels between a caller and an object: arguments, results, exceptions.

Owns  their encoding, and which exceptions keep their class.
Asks  `values`.
Tells `env` and `instance`; `serve` for calls over HTTP.
Not   delivery.

Arguments and results are cloned, also inside one process: what an object gives away cannot reach back into
it, and a call behaves the same wherever the object lives.
"""

from typing import Any

import msgspec

from edgestead.objects import errors, limits
from edgestead.objects.errors import DataCloneError, LimitError, ObjectError, RemoteError
from edgestead.objects.values import decode, encode

_OWN: dict[str, type[Exception]] = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, Exception) and kind.__module__ == errors.__name__
}

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
        return pack_error(error)


def pack_error(error: BaseException) -> Reply:
    """The reply of a method that raised."""
    if type(error).__name__ in _OWN and type(error) is _OWN[type(error).__name__]:
        code = getattr(error, "code", None)
        return Reply(False, encode(["own", type(error).__name__, str(error), code]))
    try:
        return Reply(False, encode(["built-in", error]))
    except DataCloneError:
        return Reply(False, encode(["own", "RemoteError", f"{type(error).__name__}: {error}", None]))


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
    name, message, code = rest
    made = _OWN.get(name, RemoteError)
    own = made.__new__(made)
    Exception.__init__(own, message)
    if code is not None and isinstance(own, errors.SqlError | errors.KeyValueError):
        own.code = code
    return own


def is_reset(error: BaseException) -> bool:
    """Whether the object was reset: the mark that callers see."""
    return isinstance(error, ObjectError) and error.reset


def _limited(data: bytes, what: str) -> bytes:
    if len(data) > limits.MESSAGE_BYTES_MAX:
        raise LimitError(f"{what} of a call cannot be larger than {limits.MESSAGE_BYTES_MAX} bytes.")
    return data
