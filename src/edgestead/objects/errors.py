"""What storage and calls refuse, as classes.

Owns  the tree of exceptions that user code and callers see; the words of any exception.
Not   the REST refusals of the platform (`model.refusals`).

    TypeError
    └── DataCloneError          the value cannot be cloned; nothing was stored
    ValueError
    └── LimitError              too large, too long, too many; nothing was stored
    ObjectError
    ├── BackendError            this class has `storage = "kv"`; the call needs `storage = "sql"`
    ├── SqlError                SQLite refused; `code` is its name, as in SQLITE_CONSTRAINT
    ├── BookmarkError           a bookmark or time that cannot be gone back to; nothing was scheduled
    ├── TransactionError        an operation on a transaction that is over
    ├── CallError               a call that could not be made
    │   ├── UnknownClass
    │   ├── UnknownMethod
    │   └── Overloaded          too many calls wait; try again
    ├── Quarantined             the object's code ended its process too often; an operator releases it
    ├── FetchError              `ctx.fetch` got no answer
    ├── KeyValueError           a namespace refused; `code` is its number
    ├── RemoteError             the method raised something that the value codec does not carry
    └── ObjectReset             the object was reset; what had not been acknowledged is gone
        ├── StorageBroken       a write could not be made durable
        └── Aborted             `ctx.abort()`
"""


def words_of(error: BaseException) -> str:
    """The class of an exception and what it says, whatever its text, which may be users' code, raises."""
    try:
        return f"{type(error).__name__}: {error}"
    except BaseException as another:  # no words of a user's exception end the process
        return f"{type(error).__name__}, which has no text: its __str__ raised {type(another).__name__}"


class DataCloneError(TypeError):
    """The value holds something that the value codec does not carry (spec: "any structured-clone type")."""


class LimitError(ValueError):
    """A key, value, list or statement is beyond its limit (spec "Limits")."""


class ObjectError(Exception):
    """The root of what objects refuse.

    `reset` tells whether the object that was called was reset, `retryable` whether the call may simply be
    repeated, `held` that it is not run: none of them when its method passed on what another object's call had
    raised.
    """

    reset: bool = False
    retryable: bool = False
    held: bool = False


class BackendError(ObjectError):
    """The call needs the SQL backend: set `storage = "sql"` in the class."""

    def __init__(self, name: str) -> None:
        super().__init__(f'{name} is available only in classes with storage = "sql".')


class SqlError(ObjectError):
    """A statement was refused. `code` names SQLite's result, and the message ends in it."""

    def __init__(self, message: str, code: str = "SQLITE_ERROR") -> None:
        super().__init__(f"{message}: {code}")
        self.code = code


class BookmarkError(ObjectError):
    """No bookmark, one of another object, one that is not kept any more, or a time out of the window."""


class TransactionError(ObjectError):
    """The transaction was rolled back or has ended (spec: "any later txn operation throws")."""


class CallError(ObjectError):
    """The call did not reach the object."""


class UnknownClass(CallError):
    """No class of that name was loaded."""


class UnknownMethod(CallError):
    """The class has no public `async def` method of that name."""


class Overloaded(CallError):
    """Too many calls wait for the object or the process."""

    retryable = True


class Quarantined(ObjectError):
    """Three processes in a row ended in one event of the object, so it is not run until it is released."""

    held = True


class RemoteError(ObjectError):
    """The method raised an exception that cannot be cloned; its class and words are in the message."""


class ObjectReset(ObjectError):
    """The object was reset: its memory is gone, its storage is at the last acknowledged commit."""

    reset = True
    retryable = True


class StorageBroken(ObjectReset):
    """A write could not be made durable, so the object was reset and its messages discarded."""


class Aborted(ObjectReset):
    """The object called `ctx.abort()`."""


class FetchError(ObjectError):
    """`ctx.fetch` got no answer, or not all of it. Whether the request had an effect is not known."""


class KeyValueError(ObjectError):
    """A key-value namespace refused a call, or did not answer (`code` 0). Then it may have acted on it."""

    def __init__(self, message: str, code: int, *, retryable: bool) -> None:
        super().__init__(message)
        self.code, self.retryable = code, retryable
