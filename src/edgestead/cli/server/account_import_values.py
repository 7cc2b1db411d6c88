"""Key-value namespaces of another server, and everything in them.

Owns  which namespace there is which here (by title), which keys are missing, sending them.
Not   zones. Imports click and the standard library only.

Values go over one by one, because only so are they never in memory together. A key that is here already is
passed over, whatever its value.
"""

import json
from collections.abc import Iterator

from edgestead.cli.http import Api, Refused
from edgestead.cli.kv.namespace_target import Write
from edgestead.cli.kv.remote import RemoteNamespace, namespaces_path
from edgestead.cli.progress import Progress
from edgestead.cli.server.account_import_report import Report
from edgestead.cli.target import Json, whole_list

NAMESPACES_PER_PAGE = 100
VALUE_BYTES_MAX = 25 << 20  # spec: of one value


def import_namespaces(there: Api, here: Api, their_account: str, our_account: str, report: Report) -> None:
    """Every namespace of their account. Raises Failed."""
    query: dict[str, object] = {"per_page": NAMESPACES_PER_PAGE}
    ours = {one["title"]: one["id"] for one in whole_list(here, namespaces_path(our_account), query)}
    for namespace in whole_list(there, namespaces_path(their_account), query):
        title, id_ = namespace["title"], ours.get(namespace["title"])
        if id_ is not None:
            report.was_there("namespaces")
        elif report.dry_run:
            report.made("namespaces")
        else:
            try:
                body = {"title": title}
                path = namespaces_path(our_account)
                id_ = here.call("POST", path, json_body=body, repeat=False)["result"]["id"]
                report.made("namespaces")
            except Refused as refusal:
                report.refuse(f"namespace {title}", refusal)
                continue
        source = RemoteNamespace(there, their_account, namespace["id"])
        target = None if id_ is None else RemoteNamespace(here, our_account, id_)
        _import_values(source, target, title, report)


def _import_values(
    source: RemoteNamespace, target: RemoteNamespace | None, title: str, report: Report
) -> None:
    present = set() if target is None else {entry["name"] for entry in target.entries("")}
    missing = [entry for entry in source.entries("") if entry["name"] not in present]
    report.was_there("values", len(present))
    if report.dry_run or target is None:
        report.made("values", len(missing))
        return
    with Progress(f"Values of {title}", "values", len(missing)) as progress:
        for entry in missing:
            _import_value(source, target, entry, title, report)
            progress.advance(1, 1)


def _import_value(
    source: RemoteNamespace, target: RemoteNamespace, entry: Json, title: str, report: Report
) -> None:
    name = entry["name"]
    try:
        content = _limited(source.get(name))
    except Refused as refusal:
        if refusal.status != 404:  # it was deleted, or has expired, since it was listed
            report.refuse(f"value {name} of {title}", refusal)
        return
    metadata = entry.get("metadata")
    write = Write(None, entry.get("expiration"), None if metadata is None else json.dumps(metadata))
    try:
        target.put(name, content, write)
        report.made("values")
    except Refused as refusal:
        report.refuse(f"value {name} of {title}", refusal)


def _limited(chunks: Iterator[bytes]) -> bytes:
    content = bytearray()
    for chunk in chunks:
        content += chunk
        if len(content) > VALUE_BYTES_MAX:
            break  # the server here says that it is too large
    return bytes(content)
