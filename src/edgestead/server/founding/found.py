"""`cluster init`: the first node of a cluster, of nothing or of a data folder.

Owns  the order of steps, and what happens when one is cut short: the next `init` begins again.
Not   what runs afterwards.

    tables (generation 0)  →  authority, first node  →  control data as the log's first base  →  key-values
    →  stateful objects  →  the node's own files  →  a marker in the folder that was moved in  →  a generation

Until it has a generation no node starts on the database: 1, or one more than bookmarks of the objects have.
The folder that is moved in has its marker before: never can both start. An `init` that begins again is the
same cluster, by which it knows its own marker and files.
Of the folder that is moved in the object logs are brought into their databases, as when their processes are
other ones, and become those of this release; the rest is only read.
"""

import secrets
import shutil
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from edgestead import __version__
from edgestead.config import CLUSTER_FILE
from edgestead.config_values import Address
from edgestead.postgres import controllog, schema
from edgestead.postgres.connection import Link, Misconfigured, Trouble
from edgestead.server import credentials, event_copies, files, seal, stores
from edgestead.server.control import first_account
from edgestead.server.edge import challenge_keys
from edgestead.server.errors import StartError
from edgestead.server.folder import EVENTS, MOVED, DataFolder, InUse, moved_into, moved_words
from edgestead.server.founding import values
from edgestead.server.founding.telling import Telling
from edgestead.server.nodes import identity, join
from edgestead.server.nodes.identity import FOLDER, Authority, NotANode
from edgestead.server.nodes.in_postgres import PostgresRegistry, PostgresVault
from edgestead.server.nodes.registry import Node
from edgestead.sqlite.copies import copy_database
from edgestead.sqlite.replica import copy_parts
from edgestead.store.migrations import SchemaError
from edgestead.store.objectlog import LogError, NoSpace

KEY_FILE = "cluster.key"
AUTHORITY, CERTIFICATE = "authority", "authority-cert"  # names in the vault
SECRETS = (seal.FILE_NAME, credentials.FILE_NAME, challenge_keys.FILE_NAME)
"""Files that all control nodes have alike."""

Say = Callable[[str], None]


class First(NamedTuple):
    """What the first node is. `advertise` is the address that other nodes reach it by."""

    name: str
    roles: tuple[str, ...]
    listen: Address
    advertise: Address
    region: str = ""


class Founded(NamedTuple):
    cluster: str
    standby_names: str
    values: values.Copied | None
    objects: int


def found(
    dsn: str, folder: Path, first: First, *, source: Path | None = None, say: Say = lambda words: None
) -> Founded:
    """Make a cluster, whose first node's data folder is `folder`. Raises StartError."""
    try:
        identity.check_name(first.name)
        identity.check_roles(frozenset(first.roles))
    except NotANode as error:
        raise StartError(str(error)) from None
    if "control" not in first.roles:
        raise StartError("the first node of a cluster has the role control")
    if (folder / stores.CONTROL_NAME).exists():
        raise _has_data(folder)
    try:
        with ExitStack() as held, closing(Link(dsn, name="edgestead init")) as link:
            if not held.enter_context(schema.sole_init(dsn)):
                raise StartError("another `edgecli cluster init` runs on this database: wait for its end")
            begun = schema.find(link)  # before the folder is made: a refusal leaves nothing behind
            _check_folder(folder, begun)
            if source is not None:
                held.enter_context(closing(_opened(source, begun)))
            held.enter_context(closing(DataFolder(folder)))
            return _found(link, folder, first, source, say, begun)
    except (Trouble, Misconfigured, SchemaError) as error:
        words = str(error).rstrip(".")
        raise StartError(f"the cluster's database: {words}. `--database` names all of its hosts") from error
    except (LogError, BlockingIOError) as error:
        raise StartError(not_copied(error)) from error
    except values.NotEqual as error:
        raise StartError(f"the key-values were not copied whole: {error}") from error


def not_copied(error: LogError | BlockingIOError) -> str:
    """Why objects were not, with what helps: to run it again does not where a log is damaged."""
    words = f"the stateful objects were not copied: {error}"
    if isinstance(error, NoSpace):
        return f"{words}. Make room, and run it again"
    return f"{words}. Run it again" if isinstance(error, BlockingIOError) else words


def _has_data(folder: Path) -> StartError:
    return StartError(
        f"{folder} holds data already: name a new folder for the node, and the old one with --from"
    )


def _check_folder(folder: Path, begun: schema.Cluster | None) -> None:
    """Raises StartError when the new node's folder has settings, but of what was cut short."""
    if not (folder / CLUSTER_FILE).exists():
        return
    try:
        cluster = identity.member_of(folder / FOLDER).peer.cluster
    except (OSError, NotANode):
        raise _has_data(folder) from None
    if begun is None or begun.id != cluster:
        raise _has_data(folder)
    if begun.generation:
        raise StartError(
            f"{folder} is a node of the cluster {cluster} already, which is whole: start it with"
            f" `edgecli serve --cluster {folder}`"
        )


def _opened(source: Path, begun: schema.Cluster | None) -> DataFolder:
    """The folder that is moved in, locked: its server does not run. Raises StartError."""
    if not (source / stores.CONTROL_NAME).exists():
        raise StartError(f"{source} is no data folder: it has no {stores.CONTROL_NAME}")
    if (source / MOVED).exists() and not (
        begun is not None and not begun.generation and moved_into(source) == begun.id
    ):
        raise StartError(moved_words(source))
    from edgestead.server.founding import objects  # with all that runs them: control wants the key alone

    if own := objects.own_classes(source):
        raise StartError(
            f'{source} has objects of {", ".join(own)}, with durability = "sqlite", which a cluster does not'
            " have, and nothing moves them: keep this server as it is, and make a cluster without --from"
        )
    try:
        return DataFolder(source)
    except InUse as error:
        raise StartError(
            f"{error}: stop that server first (`systemctl stop edgestead`), because what it writes meanwhile"
            " would not come along. Nothing was copied"
        ) from None


def _found(
    link: Link, folder: Path, first: First, source: Path | None, say: Say, begun: schema.Cluster | None
) -> Founded:
    from edgestead.server.founding import objects  # as in `_opened`

    cluster = secrets.token_hex(8) if begun is None else begun.id
    schema.create(link, cluster, generation=0)
    say(f"tables of the cluster {cluster} are made")
    (folder / CLUSTER_FILE).unlink(missing_ok=True)  # it says that the files beside it are whole
    _bring_secrets(source, folder)
    authority = Authority.new(cluster, datetime.now(UTC))
    key = secrets.token_bytes(32)
    vault = PostgresVault(link, key)
    vault.write(AUTHORITY, authority.key_pem)
    vault.write(CERTIFICATE, authority.certificate_pem)
    node = _write_identity(folder, authority, key, first)
    PostgresRegistry(link).add(node)
    _bring_control(link, folder, source, say)
    say("the control data is the first copy of its log")
    copied = _bring_values(link.dsn, source, say) if source is not None else None
    count, generation = objects.bring_in(link, source, say) if source is not None else (0, 1)
    if source is not None:
        event_copies.copy_events(source / EVENTS, folder / EVENTS, lambda octets: None)
    write_settings(folder, link.dsn, first)
    files.give_all_to_owner(folder)
    if source is not None:
        files.replace_private(source / MOVED, f"{cluster}\n".encode())
    link.run(schema.FOUND, (generation,))
    return Founded(cluster, link.copies.standby_names, copied, count)


def _bring_secrets(source: Path | None, folder: Path) -> None:
    """The same keys as the folder that is moved in; what is missing is made."""
    for name in SECRETS:
        content = files.read_private(source / name) if source is not None else None
        if content is not None:
            files.replace_private(folder / name, content)
    credentials.load_or_make(folder)
    seal.load_or_make(folder)
    challenge_keys.load_or_make(folder, int(time.time()))


def _write_identity(folder: Path, authority: Authority, key: bytes, first: First) -> Node:
    own = folder / FOLDER
    own.mkdir(mode=0o700, exist_ok=True)
    private = identity.new_key()
    public = identity.public_key(private)
    certificate = authority.certify(public, first.name, frozenset(first.roles), datetime.now(UTC))
    for name, content in (
        (join.KEY, private),
        (join.AUTHORITY, authority.certificate_pem),
        (KEY_FILE, key.hex().encode() + b"\n"),
        (join.ADDRESSES, f"{first.advertise}\n".encode()),
        (join.CERTIFICATE, certificate),
    ):
        files.replace_private(own / name, content)
    return Node(
        name=first.name,
        roles=tuple(sorted(first.roles)),
        key=identity.key_of(public),
        region=first.region,
        address=str(first.advertise),
        release=__version__,
    )


def cluster_key(folder: Path) -> bytes:
    """What the vault of a control node's cluster is sealed with. Raises StartError."""
    path = folder / FOLDER / KEY_FILE
    try:
        content = files.read_private(path)
        if content is None:
            raise StartError(f"{folder} is no control node of a cluster: it has no {FOLDER}/{KEY_FILE}")
        return bytes.fromhex(content.decode("ascii").strip())
    except (OSError, ValueError):
        raise StartError(f"{path} cannot be read") from None


def _bring_control(link: Link, folder: Path, source: Path | None, say: Say) -> None:
    """A copy, brought to this program's schema, becomes the first base; the node then loads that."""
    work = folder / ".founding"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(mode=0o700)
    try:
        if source is not None:
            telling = Telling(say, lambda _, octets: f"{octets >> 20:,} MiB of control data are copied")
            copy_database(source / stores.CONTROL_NAME, work / stores.CONTROL_NAME, telling.advance)
        kept = credentials.load_or_make(folder)
        store = stores.open_control(work)
        try:
            owned = store.read(lambda reader: first_account.owner_of(reader, kept))
            write = first_account.install(owned, time.time_ns() // 1_000, lambda: secrets.token_hex(16))
            store.write(write).result()
        finally:
            store.close()
        first_account.settle_file(folder, kept, owned)
        with copy_parts(work / stores.CONTROL_NAME) as (_, parts):
            controllog.begin(link, parts)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _bring_values(dsn: str, source: Path, say: Say) -> values.Copied | None:
    if not (source / "kv.db").exists():
        return None
    theirs, ours = stores.open_kv(source), stores.open_cluster_kv(dsn)
    try:
        telling = Telling(say, lambda keys, octets: f"{keys:,} keys are copied, of {octets >> 20:,} MiB")
        copied = values.copy(theirs, ours, int(time.time()), telling.advance)
    finally:
        ours.close()
        theirs.close()
    say(f"{copied.keys} keys of {copied.namespaces} namespaces are copied")
    return copied


def write_settings(folder: Path, dsn: str, node: First) -> None:
    """The node's `cluster.toml` (0600: the DSN may hold a password)."""
    import tomlkit

    table = tomlkit.table()
    table["database"] = dsn
    table["listen"] = str(node.listen)
    table["advertise"] = str(node.advertise)
    if node.region:
        table["region"] = node.region
    document = tomlkit.document()
    document.add(tomlkit.comment("Written by edgecli; what a file says that --config names wins over it."))
    document["cluster"] = table
    files.replace_private(folder / CLUSTER_FILE, tomlkit.dumps(document).encode())
