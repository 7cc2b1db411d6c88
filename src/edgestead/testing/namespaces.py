"""Key-value namespaces of a simulated node: what objects reach as `self.env.CACHE`.

Owns  keys and values in memory, answers to the messages of bindings.
Not   user code's spelling: `objects.runtime.bindings`, as on a server. A namespace is no part of a node's
      disk: it outlives a crash whole.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from edgestead.model import kv
from edgestead.model.refusals import EdgeError
from edgestead.objects.runtime.bindings import (
    LIST_KEYS_MAX,
    Delete,
    Done,
    Found,
    Get,
    Key,
    Keys,
    KeyValues,
    Kind,
    List,
    Put,
    Question,
    Refused,
    Reply,
    Used,
    encode,
    read_question,
)
from edgestead.objects.runtime.env import Bindings


class Stored(NamedTuple):
    content: bytes
    metadata: bytes | None
    expires_at_s: int | None


Contents = dict[str, dict[str, Stored]]


class Namespaces:
    """Namespaces by the name that they have in `env`. `now_s` is the node's clock."""

    def __init__(self, names: Iterable[str], now_s: Callable[[], int]) -> None:
        self._contents: Contents = {name: {} for name in names}
        self._now_s = now_s

    @property
    def bindings(self) -> Bindings:
        return Bindings({name: name for name in self._contents}, self.ask)

    def contents(self) -> Contents:
        """A copy of everything."""
        return {name: dict(stored) for name, stored in self._contents.items()}

    def put_back(self, contents: Contents) -> None:
        """Hold this; namespaces that it lacks are empty."""
        self._contents = {name: dict(contents.get(name, {})) for name in self._contents}

    async def ask(self, body: bytes) -> bytes:
        """Answer one question, as a server would. Never raises."""
        try:
            return encode(self._act(read_question(body)))
        except EdgeError as refusal:
            return encode(Refused(refusal.code, str(refusal), refusal.status < 429))

    def _act(self, question: Question) -> Reply:
        if isinstance(question, Used):
            return Done()  # nobody calls with a token here
        stored = self._contents[question.namespace]
        if isinstance(question, List):
            return self._list(stored, question)
        key = kv.check_key(question.key, blanks=False)
        if isinstance(question, Get):
            value = self._fresh(stored).get(key)
            return Found(None, None) if value is None else Found(value.content, value.metadata)
        if isinstance(question, Delete):
            stored.pop(key, None)
        else:
            stored[key] = self._made(question)
        return Done()

    def _made(self, question: Put) -> Stored:
        expires = kv.expires_at_s(
            ttl_seconds=question.ttl_seconds, expiration_s=question.expiration_s, now_s=self._now_s()
        )
        kv.check_value_length(len(question.content))
        metadata = None if question.metadata is None else kv.compact_metadata(question.metadata)
        return Stored(question.content, metadata, expires)

    def _fresh(self, stored: dict[str, Stored]) -> dict[str, Stored]:
        now_s = self._now_s()
        return {
            key: value
            for key, value in stored.items()
            if value.expires_at_s is None or value.expires_at_s > now_s
        }

    def _list(self, stored: dict[str, Stored], question: List) -> Keys:
        limit = max(1, min(question.limit, LIST_KEYS_MAX))
        found = [
            (key, value)
            for key, value in sorted(self._fresh(stored).items())
            if key.startswith(question.prefix) and key > question.cursor
        ]
        page = [Key(key, value.expires_at_s, value.metadata) for key, value in found[:limit]]
        return Keys(page, page[-1].name if len(found) > limit else "")


class NamespaceAccess:
    """A namespace from outside: the same methods, without `await`. Raises KeyValueError."""

    __slots__ = ("_run", "_values")

    def __init__(self, name: str, namespaces: Namespaces, run: Callable[[Any], Any]) -> None:
        self._values = KeyValues(name, namespaces.ask, _at_once)
        self._run = run

    def get(self, key: str, type: Kind = "text") -> Any:
        """The value as text, as what its JSON says, or as bytes; None when there is no such key."""
        return self._run(self._values.get(key, type))

    def put(self, key: str, value: str | bytes, **options: Any) -> None:
        """Write a value. Options: expiration, expiration_ttl, metadata."""
        self._run(self._values.put(key, value, **options))

    def delete(self, key: str) -> None:
        """Delete a key. One that is not there is deleted too."""
        self._run(self._values.delete(key))

    def keys(self, prefix: str = "") -> list[str]:
        """The first thousand keys, in order."""
        page = self._run(self._values.list(prefix=prefix))
        return [key["name"] for key in page["keys"]]


async def _at_once() -> None:
    """Nobody's writes are waited for."""
