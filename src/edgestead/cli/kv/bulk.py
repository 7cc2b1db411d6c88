"""`edgecli kv bulk`: put, get, delete and export by file.

Owns  arguments, options and output of the four commands, and what a broken-off one tells.
Not   cutting the file; how a namespace is reached.
"""

import json
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from edgestead.cli.failure import Failed, confirmed, counted, listed
from edgestead.cli.kv import batches
from edgestead.cli.kv.namespace_target import ItemRefused, Namespace, target
from edgestead.cli.kv.options import NAMESPACE_AND_PLACE, YES, KvCommand, Where
from edgestead.cli.progress import Progress
from edgestead.model.kv import BULK_GET_KEYS_MAX, TTL_SECONDS_MIN

_FILE = click.argument("filename", type=click.Path())
_SKIP = click.option(
    "--skip",
    metavar="N",
    type=click.IntRange(min=0),
    default=0,
    help="Leave out the first N items: what a broken-off command has done already.",
)


@click.command("put", cls=KvCommand)
@_FILE
@_SKIP
@click.option(
    "--skip-expired",
    is_flag=True,
    help="Leave out pairs that end within a minute, or have: of an older export.",
)
@NAMESPACE_AND_PLACE
def bulk_put(where: Where, filename: str, skip: int, skip_expired: bool) -> None:
    """Write the pairs of FILENAME: a JSON array of objects.

    Each has key and value, and may have expiration, expiration_ttl, metadata, and base64 when the value is
    base64. The file may be of any size.

    \b
      edgecli kv bulk put pairs.json --binding TEXTS
      edgecli kv bulk put exported.json --skip-expired --binding TEXTS
    """
    path = Path(filename)
    total_bytes = batches.file_bytes(path)
    send = _put_rest if skip_expired else _put
    with target(where) as namespace, Progress("Writing", "pairs", total_bytes) as progress:
        outcome = batches.send_all(
            path, _object, send, namespace.another, progress, skip=skip, key_of=_key_of_pair
        )
    if outcome.left_out:
        click.echo(
            f"{counted(outcome.left_out, 'pair')} left out: expired, or within {TTL_SECONDS_MIN} s.", err=True
        )
    _tell(outcome, "put", "written", filename, where, *(["--skip-expired"] if skip_expired else []))


@click.command("delete", cls=KvCommand)
@_FILE
@_SKIP
@NAMESPACE_AND_PLACE
@YES
def bulk_delete(where: Where, filename: str, skip: int, yes: bool) -> None:
    """Delete the keys of FILENAME, after a y/n question.

    The file is a JSON array of strings; objects with a name, as `key list` prints them, are taken too.

    \b
      edgecli kv bulk delete keys.json --binding TEXTS --yes
    """
    path = Path(filename)
    total_bytes = batches.file_bytes(path)
    with target(where) as namespace:
        if not confirmed(f"Delete all keys in {filename} from namespace {namespace.id}?", yes=yes):
            return
        with Progress("Deleting", "keys", total_bytes) as progress:
            outcome = batches.send_all(
                path,
                _key,
                lambda part, items: batches.Sent(part.delete_batch(items)),
                namespace.another,
                progress,
                skip=skip,
            )
    _tell(outcome, "delete", "deleted", filename, where)


@click.command("get", cls=KvCommand)
@_FILE
@NAMESPACE_AND_PLACE
def bulk_get(where: Where, filename: str) -> None:
    """Print the values of the keys of FILENAME as one JSON object; null where there is no such key.

    The file is a JSON array of strings, or of objects with a name as `key list` prints them.

    \b
      edgecli kv bulk get keys.json --binding TEXTS
    """
    from edgestead.cli.output import echo_object

    path = Path(filename)
    batches.file_bytes(path)
    with target(where, preview_default=False) as namespace:
        echo_object(_values(namespace, path))


@click.command("export", cls=KvCommand)
@click.option("--prefix", default="", help="Only keys that begin with this.")
@NAMESPACE_AND_PLACE
def bulk_export(where: Where, prefix: str) -> None:
    """Print a whole namespace as the JSON array that `kv bulk put` takes.

    Each pair has key and value, base64 where the value is no text, and its expiration and metadata. Keys
    come in their order; one that ends meanwhile is left out.

    \b
      edgecli kv bulk export --binding TEXTS > pairs.json
    """
    from edgestead.cli.output import echo_array

    with target(where, preview_default=False) as namespace:
        echo_array(_pairs(namespace, prefix))


def _put(namespace: Namespace, items: list[bytes]) -> batches.Sent:
    return batches.Sent(namespace.put_batch(items))


def _put_rest(namespace: Namespace, items: list[bytes]) -> batches.Sent:
    """Without pairs that a server would not take, because they end within a minute."""
    # A minute more: what is sent now may be read later.
    until_s = time.time() + 2 * TTL_SECONDS_MIN
    kept = [number for number, item in enumerate(items) if not _ends_before(item, until_s)]
    try:
        failed_keys = namespace.put_batch([items[number] for number in kept]) if kept else []
    except ItemRefused as error:  # by its number in what was sent
        raise ItemRefused(kept[error.index], error.messages) from None
    return batches.Sent(failed_keys, len(items) - len(kept))


def _ends_before(item: bytes, until_s: float) -> bool:
    if b'"expiration"' not in item:
        return False
    try:
        pair = json.loads(item)
    except (ValueError, RecursionError):
        return False  # the server says what is wrong
    ends = pair.get("expiration")
    return isinstance(ends, int) and pair.get("expiration_ttl") is None and ends < until_s


def _pairs(namespace: Namespace, prefix: str) -> Iterator[dict[str, Any]]:
    import base64

    for entry in namespace.entries(prefix):
        octets = _octets(namespace, entry["name"])
        if octets is None:
            continue
        pair: dict[str, Any] = {"key": entry["name"]}
        try:
            pair["value"] = octets.decode()
        except UnicodeDecodeError:
            pair |= {"value": base64.b64encode(octets).decode(), "base64": True}
        yield pair | {name: entry[name] for name in ("expiration", "metadata") if entry.get(name) is not None}


def _octets(namespace: Namespace, key: str) -> bytes | None:
    """The value, None when it is gone."""
    from edgestead.cli.http import Refused
    from edgestead.model.refusals.kv import KeyNotFound

    try:
        return b"".join(namespace.get(key))
    except KeyNotFound:
        return None
    except Refused as refusal:
        if KeyNotFound.code in refusal.codes:  # not when the namespace went
            return None
        raise


def _values(namespace: Namespace, path: Path) -> Iterator[tuple[str, Any]]:
    for batch in batches.batches(path, _whole_key):
        for at in range(0, len(batch.items), BULK_GET_KEYS_MAX):
            keys = [str(json.loads(item)) for item in batch.items[at : at + BULK_GET_KEYS_MAX]]
            try:
                values = namespace.get_batch(keys)
            except ItemRefused as error:
                raise batches.told(error, batch.first + at) from None
            yield from ((key, values.get(key)) for key in dict.fromkeys(keys))


def _object(item: bytes) -> bytes:
    if not item.startswith(b"{"):
        raise ValueError("expected an object with key and value")
    return item


def _key_of_pair(item: bytes) -> str | None:
    """None of what has none: the server says what is wrong."""
    try:
        key = json.loads(item).get("key")
    except (ValueError, RecursionError):
        return None
    return key if isinstance(key, str) else None


def _key(item: bytes) -> bytes:
    """A key as a JSON string. Raises ValueError."""
    if item.startswith(b'"'):
        return item
    try:
        return json.dumps(_text_of(json.loads(item), "name")).encode()
    except (ValueError, RecursionError):
        raise ValueError("expected a string, or an object with a name") from None


def _whole_key(item: bytes) -> bytes:
    """As `_key`, and it is text: a string of the file is not looked into there."""
    key = _key(item)
    try:
        str(json.loads(key)).encode()  # half a surrogate pair is JSON, but no text
    except ValueError:
        raise ValueError("the string is not valid") from None
    return key


def _text_of(value: Any, member: str) -> str:
    """Raises ValueError when it is not an object with that text."""
    text = value.get(member) if isinstance(value, dict) else None
    if not isinstance(text, str):
        raise ValueError(member)
    return text


def _tell(
    outcome: batches.Outcome, command: str, done: str, filename: str, where: Where, *options: str
) -> None:
    """The end of the story: success, or how far it came and how to go on. Raises Failed."""
    failed = f"{len(outcome.failed_keys)} are not: {listed(outcome.failed_keys)}"
    if outcome.error is None and not outcome.interrupted:
        if outcome.failed_keys:
            raise Failed(f"{outcome.done} are {done}, {failed}.")
        click.echo(f"Success! {counted(outcome.done, 'pair' if command == 'put' else 'key')} {done}.")
        return
    words = ["edgecli", "kv", "bulk", command, filename, *options, *where.as_options()]
    if outcome.leading:
        words += ["--skip", str(outcome.leading)]
    reason = outcome.error.message if outcome.error is not None else "Stopped."
    count = f"{outcome.done} items are {done}"
    raise Failed(
        reason,
        f"{count}; the first {outcome.leading} of the file need not be sent again."
        if outcome.leading
        else f"{count}.",
        *([f"{failed}."] if outcome.failed_keys else ()),
        f"Go on with:  {shlex.join(words)}",
    )
