"""REST face of everything that takes or gives many records at once.

Owns  import, export, scan and usage below /zones/{zone_id}/dns_records; usage of an account.
Not   reading zone files.

Files are read and written on a thread, one at a time, which gives way to the event loop all the while.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import msgspec

from edgestead.model.call import Call
from edgestead.model.refusals import EdgeError
from edgestead.model.refusals.kv import KvBodyInvalid
from edgestead.model.refusals.record import FormExpected, RecordNotFound, ZoneFileTooLarge
from edgestead.model.refusals.request import InvalidBody, MissingField
from edgestead.rest.body import Upload
from edgestead.rest.context import AppContext, Write
from edgestead.rest.declared import FORM, TEXT, Answers, flag
from edgestead.rest.form import boundary_of, portions
from edgestead.rest.kv_data import give_way
from edgestead.rest.limits import FORM_OVERHEAD_BYTES_MAX, ZONE_FILE_BYTES_MAX
from edgestead.rest.query import Query
from edgestead.rest.routing import Answer, route
from edgestead.store.control import Transaction
from edgestead.usecases.change.neighbours import Draft
from edgestead.usecases.change.view import RecordView
from edgestead.usecases.platform import Platform
from edgestead.usecases.record import records
from edgestead.usecases.record.records import Usage
from edgestead.usecases.zone import exporting, importing
from edgestead.usecases.zone.importing import Added, Imported, Plan

_PATH = "/zones/{zone_id}/dns_records"


class ZoneFileForm(msgspec.Struct):
    """A zone file (RFC 1035 §5); `proxied` is for records of which it does not say."""

    file: str
    proxied: Literal["true", "false"] = "false"


class Review(msgspec.Struct, frozen=True):
    """What somebody thinks of the records that a scan found."""

    accepts: list[dict[str, Any]] | None = None
    rejects: list[dict[str, Any]] | None = None


class Reviewed(msgspec.Struct, frozen=True):
    accepts: list[dict[str, Any]] = []
    rejects: list[str] = []


@route(
    "POST",
    _PATH + "/import",
    permission="DNS Write",
    query=(flag("dry_run", "Add nothing, and answer `records` too: what would be added."),),
    takes={FORM: ZoneFileForm},
    answers=Answers(Imported),
)
async def import_records(
    zone_id: str,
    api: AppContext,
    call: Call,
    query: Query,
    upload: Upload,
    write: Write,
) -> Imported:
    """Add the records of a zone file: a form with `file` and `proxied`. All of them, or none."""
    is_rehearsal = query.flag("dry_run")
    with api.kv.body_slot(call.actor, upload.length):  # the file stays in memory for as long as this takes
        octets, proxied = await _form(upload)
        async with api.zone_file_turn:
            plan = await api.barrier.read_long(
                lambda reader: importing.plan(call, reader, api.platform, zone_id, octets, proxied, give_way)
            )
            if is_rehearsal:
                return plan.rehearsed()
            return Imported(await _write(zone_id, api, call, plan, write), plan.parsed)


@route("GET", _PATH + "/export", permission="DNS Read", answers=Answers(media=TEXT))
async def export_records(zone_id: str, api: AppContext, call: Call) -> Answer:
    """The zone as a zone file; imported again it makes the same records."""
    async with api.zone_file_turn:
        text = await api.barrier.read_long(
            lambda reader: exporting.export(call, reader, api.platform, zone_id, give_way)
        )
    return Answer(text, content_type=b"text/plain; charset=utf-8")


@route("GET", _PATH + "/usage", permission="DNS Read")
def show_usage(zone_id: str, api: AppContext) -> Usage:
    """How many records the zone has and may have."""
    return api.barrier.read(lambda reader: records.usage_of_zone(reader, api.platform, zone_id))


@route("GET", "/accounts/{account_id}/dns_records/usage", permission="Account DNS Settings Read")
def show_account_usage(account_id: str, api: AppContext) -> Usage:
    """How many records all zones of the account have."""
    return api.barrier.read(lambda reader: records.usage_of_account(reader, account_id))


@route("POST", _PATH + "/scan", permission="DNS Write")
def scan(zone_id: str, api: AppContext) -> Imported:
    """Look for records elsewhere. This server asks nobody, so none is found."""
    api.barrier.read(lambda reader: records.usage_of_zone(reader, api.platform, zone_id))
    return Imported(0, 0)


@route("POST", _PATH + "/scan/trigger", permission="DNS Write")
def trigger_scan(zone_id: str, api: AppContext) -> None:
    """Look for records elsewhere, for review. This server asks nobody, so none is found."""
    api.barrier.read(lambda reader: records.usage_of_zone(reader, api.platform, zone_id))


@route("GET", _PATH + "/scan/review", permission="DNS Read", answers=Answers(list[RecordView]))
def show_scan(zone_id: str, api: AppContext) -> list[Any]:
    """Records that a scan found and nobody reviewed: none."""
    api.barrier.read(lambda reader: records.usage_of_zone(reader, api.platform, zone_id))
    return []


@route("POST", _PATH + "/scan/review", permission="DNS Write")
def review_scan(zone_id: str, api: AppContext, body: Review) -> Reviewed:
    """Accept or reject what a scan found; there is never anything to name."""
    api.barrier.read(lambda reader: records.usage_of_zone(reader, api.platform, zone_id))
    if body.accepts or body.rejects:
        raise RecordNotFound
    return Reviewed()


async def _write(zone_id: str, api: AppContext, call: Call, plan: Plan, write: Write) -> int:
    """Write the portions one after another; returns how many records were added."""
    total = 0
    done = Added(0, None)
    try:
        for drafts in plan.portions():
            done = await write(partial(_portion, call, api.platform, zone_id, drafts, done.sequence))
            total += done.records
    except EdgeError as refusal:
        if done.sequence is None:
            raise
        raise refusal.with_remarks(await _take_back(zone_id, api, call, done.sequence)) from refusal
    return total


async def _take_back(zone_id: str, api: AppContext, call: Call, sequence: int) -> tuple[str, ...]:
    """Also when the caller's own right ended meanwhile. Returns remarks on what stays."""
    try:
        return await api.barrier.write(
            lambda tx: importing.take_back(call, tx, api.platform, zone_id, sequence)
        )
    except EdgeError as trouble:
        return (f"Change {sequence} of the zone has a part of the file, and stays: {trouble.message}",)


def _portion(
    call: Call,
    platform: Platform,
    zone_id: str,
    drafts: Sequence[Draft],
    sequence: int | None,
    tx: Transaction,
) -> Added:
    return importing.add(call, tx, platform, zone_id, drafts, sequence)


async def _form(upload: Upload) -> tuple[bytes, bool]:
    """The file, and whether its records are proxied.

    Raises FormExpected, InvalidBody, MissingField, ZoneFileTooLarge, BodyTooLarge.
    """
    file: bytearray | None = None
    proxied = bytearray()
    try:
        boundary = boundary_of(upload.content_type)
        if boundary is None:
            raise FormExpected
        chunks = upload.chunks(ZONE_FILE_BYTES_MAX + FORM_OVERHEAD_BYTES_MAX)
        async for name, portion in portions(chunks, boundary):
            if name == "file":
                file = bytearray() if file is None else file
                file += portion
            elif name == "proxied":
                proxied += portion
    except KvBodyInvalid as error:
        raise InvalidBody(reason=f"{error.facts['reason']}.") from None
    if file is None:
        raise MissingField(field="file")
    if len(file) > ZONE_FILE_BYTES_MAX:
        raise ZoneFileTooLarge(limit=ZONE_FILE_BYTES_MAX, what="octets")
    if bytes(proxied) not in (b"", b"true", b"false"):
        raise InvalidBody(reason="proxied is true or false.")
    return bytes(file), proxied == b"true"
