"""From the options of a command to the namespace it works on.

Owns  which configuration, which id, and remote or local.
Not   requests, storage. Imports click and the standard library only; `cli.kv.local` when it is asked for.
"""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from edgestead.cli.failure import Failed
from edgestead.cli.kv.options import Where
from edgestead.cli.kv.project import Project, find_project

if TYPE_CHECKING:
    from edgestead.cli.http import Api

STATE_FOLDER = Path(".edge", "state")


class Write(NamedTuple):
    """What a put says besides key and value. `metadata` is JSON text."""

    ttl_seconds: int | None
    expiration_s: int | None
    metadata: str | None


class ItemRefused(Failed):
    """One item of a batch is wrong. `index` counts from 0 in the batch."""

    def __init__(self, index: int, messages: list[str]) -> None:
        self.index = index
        self.messages = messages
        super().__init__(f"Item {index} of the batch is refused.", *messages)


class Namespace(Protocol):
    """One namespace, wherever it is. Every method raises Failed; those of a batch ItemRefused."""

    id: str

    def get(self, key: str) -> Iterator[bytes]:
        """Raises Failed on the first step when there is no such key."""
        ...

    def put(self, key: str, content: "Path | bytes", write: Write) -> None: ...

    def delete(self, key: str) -> None: ...

    def entries(self, prefix: str) -> Iterator[dict[str, Any]]:
        """Objects with name, expiration (epoch seconds) and metadata, as the REST API has them."""
        ...

    def another(self) -> AbstractContextManager["Namespace"]:
        """The same namespace for another thread."""
        ...

    def put_batch(self, items: list[bytes]) -> list[str]:
        """Write entry objects, JSON as it stood in the file; returns the keys that could not be written."""
        ...

    def delete_batch(self, items: list[bytes]) -> list[str]:
        """Delete keys, JSON strings as they stood in the file; returns those that could not be deleted."""
        ...

    def get_batch(self, keys: list[str]) -> dict[str, Any]: ...


@contextmanager
def target(where: Where, *, preview_default: bool | None = None) -> Iterator[Namespace]:
    """`preview_default` is for commands that only read: they take the production namespace unasked."""
    project = find_project(where.config)
    namespace_id = namespace_id_of(project, where, preview_default=preview_default)
    if where.local:
        from edgestead.cli.kv.local import open_local

        folder = Path(where.persist_to).absolute() if where.persist_to else project.folder / STATE_FOLDER
        with open_local(folder, namespace_id) as local:
            yield local
        return
    from edgestead.cli.kv.remote import RemoteNamespace

    with remote(project, where.env) as (api, account):
        yield RemoteNamespace(api, account, namespace_id)


def namespace_id_of(project: Project, where: Where, *, preview_default: bool | None = None) -> str:
    if where.namespace_id is not None:
        return where.namespace_id
    assert where.binding is not None
    preview = preview_default if where.preview is None else where.preview
    return project.namespace_id(where.binding, where.env, preview)


@contextmanager
def remote(project: Project, env: str | None) -> Iterator[tuple["Api", str]]:
    """The server and the account there."""
    from edgestead.cli.http import Api, account_of
    from edgestead.cli.source import find_source

    otherwise = "Without a server, --local reads and writes a store in the project's folder."
    with Api(find_source(os.environ, otherwise)) as api:
        yield api, account_of(api, project.account_id(env))
