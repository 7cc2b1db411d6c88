"""`edgecli kv key`: put, list, get and delete.

Owns  arguments, options and output of the four commands.
Not   how a namespace is reached. Imports click and the standard library only: `key get` is measured.
"""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from edgestead.cli.failure import Failed, counted
from edgestead.cli.kv.namespace_target import Write, target
from edgestead.cli.kv.options import NAMESPACE_AND_PLACE, KvCommand, Where, switch
from edgestead.model.kv import METADATA_BYTES_MAX, TTL_SECONDS_MIN, VALUE_BYTES_MAX


def _metadata(ctx: click.Context, parameter: click.Parameter, text: str | None) -> str | None:
    """The option's JSON, made compact. Raises BadParameter."""
    if text is None:
        return None
    from edgestead.model.kv import compact_metadata
    from edgestead.model.refusals.kv import MetadataInvalid

    try:
        compact = compact_metadata(text, object_only=True)
    except MetadataInvalid as error:
        raise click.BadParameter(error.message, ctx, parameter) from None
    return None if compact is None else compact.decode()


@click.command("put", cls=KvCommand)
@click.argument("key")
@click.argument("value", required=False)
@click.option("--path", metavar="FILE", type=click.Path(), help="Read the value from a file instead.")
@click.option(
    "--ttl",
    metavar="SECONDS",
    type=click.IntRange(min=TTL_SECONDS_MIN),
    help=f"Seconds until the key expires, at least {TTL_SECONDS_MIN}. Takes precedence over --expiration.",
)
@click.option("--expiration", metavar="TIME", type=int, help="When the key expires, in seconds since 1970.")
@click.option(
    "--metadata",
    metavar="JSON",
    callback=_metadata,
    help=f"A JSON object to keep beside the value, up to {METADATA_BYTES_MAX} bytes.",
)
@NAMESPACE_AND_PLACE
def key_put(
    where: Where,
    key: str,
    value: str | None,
    path: str | None,
    ttl: int | None,
    expiration: int | None,
    metadata: str | None,
) -> None:
    """Write KEY. It replaces the value, its expiry and its metadata.

    The value is VALUE, or the content of the file that --path names; so a secret stays out of the
    terminal's history.

    \b
      edgecli kv key put greeting hello --binding TEXTS --ttl 3600
      edgecli kv key put logo --path logo.png --binding TEXTS
    """
    if (value is None) == (path is None):
        raise click.UsageError("Exactly one of VALUE and --path is needed.")
    if path is not None:
        content, what = _content_of(Path(path)), f"the content of {path}"
    else:
        content = (value or "").encode("utf-8", "surrogateescape")
        what = counted(len(content), "byte")
    with target(where) as namespace:
        click.echo(f'Writing {what} to key "{key}" in namespace {namespace.id}.')
        namespace.put(key, content, Write(ttl, expiration, metadata))


def _content_of(path: Path) -> Path | bytes:
    """The path of a regular file; what comes out of anything else, because it comes once. Raises Failed."""
    try:
        with path.open("rb") as file:
            if path.is_file():
                content, length = b"", path.stat().st_size
            else:
                content = file.read(VALUE_BYTES_MAX + 1)
                length = len(content)
    except OSError as error:
        raise Failed(f"{path} cannot be read: {error.strerror}") from None
    if length > VALUE_BYTES_MAX:
        raise Failed(f"{path} is too long: a value may have {VALUE_BYTES_MAX} bytes.")
    return path if path.is_file() else content


@click.command("list", cls=KvCommand)
@click.option("--prefix", metavar="TEXT", default="", help="Only keys that start with this.")
@switch("with_metadata", "--with-metadata", help="Show each key's metadata too.")
@switch("epoch", "--epoch", help="Show expirations in seconds since 1970.")
@NAMESPACE_AND_PLACE
def key_list(where: Where, prefix: str, with_metadata: bool, epoch: bool) -> None:
    """Print the keys as a JSON array of objects with name and, where it expires, expiration.

    \b
      edgecli kv key list --binding TEXTS --prefix user:
    """
    from edgestead.cli.output import echo_array, iso_time

    def shown(entries: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for entry in entries:
            line: dict[str, Any] = {"name": entry["name"]}
            if entry.get("expiration") is not None:
                line["expiration"] = entry["expiration"] if epoch else iso_time(entry["expiration"])
            if with_metadata and entry.get("metadata") is not None:
                line["metadata"] = entry["metadata"]
            yield line

    with target(where, preview_default=False) as namespace:
        echo_array(shown(namespace.entries(prefix)))


@click.command("get", cls=KvCommand)
@click.argument("key")
@switch("text", "--text", help="Decode the value as UTF-8 and end it with a newline.")
@NAMESPACE_AND_PLACE
def key_get(where: Where, key: str, text: bool) -> None:
    """Print the value of KEY, byte for byte and with nothing added.

    \b
      edgecli kv key get greeting --binding TEXTS
    """
    with target(where, preview_default=False) as namespace:
        chunks = namespace.get(key)
        out = sys.stdout.buffer
        for chunk in _as_text(chunks) if text else chunks:
            out.write(chunk)
        out.flush()


def _as_text(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Valid UTF-8 and a line end; U+FFFD stands for what is not."""
    import codecs

    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for chunk in chunks:
        yield decoder.decode(chunk).encode()
    yield (decoder.decode(b"", final=True) + "\n").encode()


@click.command("delete", cls=KvCommand)
@click.argument("key")
@NAMESPACE_AND_PLACE
def key_delete(where: Where, key: str) -> None:
    """Delete KEY. A key that is not there is deleted too.

    \b
      edgecli kv key delete greeting --binding TEXTS
    """
    with target(where) as namespace:
        click.echo(f'Deleting key "{key}" in namespace {namespace.id}.')
        namespace.delete(key)
