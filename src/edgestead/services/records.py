"""Use cases of DNS records: create, read, list, patch, put, delete.

Owns  the order of steps of each use case, the reading of list filters.
Asks  `services.record_draft` for one record's validity, `services.zone_edit` for the zone's rules, `tables`.
Tells `api.dns_records`.
Not   what makes a record valid; HTTP.

A record travels as its ready JSON body: `tables.records` keeps it, `services.record_view` shapes it.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from edgestead.model import names
from edgestead.model.call import Call
from edgestead.model.envelope import Page
from edgestead.model.names import InvalidName
from edgestead.model.records import folded_query
from edgestead.model.zone_errors import RecordNotFound, ZoneNotFound
from edgestead.services import record_draft, record_view
from edgestead.services.platform import Platform
from edgestead.services.record_draft import RecordBody
from edgestead.services.serving import Renderer
from edgestead.services.zone_edit import ZoneEdit
from edgestead.store.control import Reader, Transaction
from edgestead.tables import records, zones
from edgestead.tables.records import RecordRow
from edgestead.tables.zones import ZoneRow


class ListWish(NamedTuple):
    """What a list asks for. A filter that is None lets everything through."""

    name: str | None
    type: str | None
    content: str | None
    proxied: bool | None
    order: str
    descending: bool
    page: int
    per_page: int


class Records:
    """The use cases, bound to what this server is."""

    def __init__(self, platform: Platform, renderer: Renderer) -> None:
        self._platform = platform
        self._renderer = renderer

    def create(self, call: Call, tx: Transaction, zone_id: str, body: RecordBody) -> bytes:
        """Raises ZoneNotFound; RecordRefused and its children."""
        zone = _zone(tx, zone_id)
        draft = record_draft.draft(call, zone, self._platform, body)
        edit = self._edit(call, tx, zone)
        row = edit.create(draft)
        edit.finish()
        return record_view.body_for(call, row.body)

    def patch(self, call: Call, tx: Transaction, zone_id: str, record_id: str, body: RecordBody) -> bytes:
        """What is not sent stays. Raises ZoneNotFound, RecordNotFound; RecordRefused and its children."""
        zone = _zone(tx, zone_id)
        old = _record(tx, zone_id, record_id)
        return self._replace(call, tx, zone, old, record_draft.patched(call, zone, self._platform, body, old))

    def put(self, call: Call, tx: Transaction, zone_id: str, record_id: str, body: RecordBody) -> bytes:
        """What is not sent takes its default. Raises as `patch`."""
        zone = _zone(tx, zone_id)
        old = _record(tx, zone_id, record_id)
        draft = record_draft.draft(call, zone, self._platform, body)
        record_draft.check_same_type(body, old)
        return self._replace(call, tx, zone, old, draft)

    def delete(self, call: Call, tx: Transaction, zone_id: str, record_id: str) -> None:
        """Raises ZoneNotFound, RecordNotFound."""
        zone = _zone(tx, zone_id)
        old = _record(tx, zone_id, record_id)
        edit = self._edit(call, tx, zone)
        edit.delete(old)
        edit.finish()

    def _replace(
        self, call: Call, tx: Transaction, zone: ZoneRow, old: RecordRow, draft: record_draft.Draft
    ) -> bytes:
        edit = self._edit(call, tx, zone)
        row = edit.replace(old, draft)
        edit.finish()
        return record_view.body_for(call, row.body)

    def _edit(self, call: Call, tx: Transaction, zone: ZoneRow) -> ZoneEdit:
        return ZoneEdit(call, tx, self._platform, self._renderer, zone)


def get(call: Call, reader: Reader, zone_id: str, record_id: str) -> bytes:
    """Raises ZoneNotFound, RecordNotFound."""
    body = records.body(reader, zone_id, record_id)
    if body is None:
        _zone(reader, zone_id)
        raise RecordNotFound
    return record_view.body_for(call, body)


def listed(call: Call, reader: Reader, zone_id: str, wish: ListWish) -> Page:
    """One page of a zone's records as JSON bodies. A page past the end is empty. Raises ZoneNotFound."""
    zone = _zone(reader, zone_id)
    wanted = _wanted(wish, zone.name)
    offset = (wish.page - 1) * wish.per_page
    total = records.count(reader, zone_id, wanted) if wanted else zone.record_count
    bodies: list[bytes] = []
    if offset < total:
        bodies = records.bodies(reader, zone_id, wanted, wish.order, wish.descending, wish.per_page, offset)
    return Page([record_view.body_for(call, body) for body in bodies], wish.page, wish.per_page, total)


def _wanted(wish: ListWish, apex: str) -> Mapping[str, Any]:
    """The conditions that were asked for, in the forms that the columns hold."""
    conditions = {
        "name": None if wish.name is None else _name(wish.name, apex),
        "type": None if wish.type is None else wish.type.upper(),
        "content": None if wish.content is None else folded_query(wish.content),
        "proxied": None if wish.proxied is None else int(wish.proxied),
    }
    return {key: value for key, value in conditions.items() if value is not None}


def _name(text: str, apex: str) -> str:
    """A full name, or `@`. What cannot be a name finds nothing, which is no error."""
    if text == "@":
        return apex
    try:
        return names.text_from_wire(names.wire_from_text(text))
    except InvalidName:
        return text


def _zone(reader: Reader, zone_id: str) -> ZoneRow:
    zone = zones.zone(reader, zone_id)
    if zone is None:
        raise ZoneNotFound
    return zone


def _record(reader: Reader, zone_id: str, record_id: str) -> RecordRow:
    found = records.record(reader, zone_id, record_id)
    if found is None:
        raise RecordNotFound
    return found
