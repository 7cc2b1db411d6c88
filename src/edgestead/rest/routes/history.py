"""REST face of a zone's history.

Owns  /zones/{zone_id}/history.
Not   what is written down, and when it is forgotten.
"""

from edgestead.model.call import Call
from edgestead.model.envelope import Page
from edgestead.model.refusals.zone import ChangeNotFound
from edgestead.rest import declared
from edgestead.rest.context import AppContext, WriteAs
from edgestead.rest.declared import choice, pages, text
from edgestead.rest.limits import HISTORY_PAGE_SIZE_MAX, PAGE_SIZE_DEFAULT, SEQUENCE_DIGITS_MAX
from edgestead.rest.query import Query
from edgestead.rest.routing import route
from edgestead.usecases.access.authorise import Identity
from edgestead.usecases.zone import history
from edgestead.usecases.zone import restore as zone_restore
from edgestead.usecases.zone.history import ChangeView, DiffView
from edgestead.usecases.zone.restore import Done, Preview, RestoreBody

_PATH = "/zones/{zone_id}/history"
_CHANGE = _PATH + "/{sequence}"
_PAGES = pages(PAGE_SIZE_DEFAULT, HISTORY_PAGE_SIZE_MAX)
_QUERY = (
    *_PAGES,
    text("name", "Only changes of this name."),
    choice("direction", ("asc", "desc"), "desc", "Oldest or newest first."),
)


@route("GET", _PATH, permission="DNS Read", query=_QUERY, answers=declared.page_of(ChangeView))
async def list_history(zone_id: str, api: AppContext, call: Call, identity: Identity, query: Query) -> Page:
    """Changes of a zone, newest first: who, when, before, after. Filter `name`; `direction`."""
    paging = query.paging(PAGE_SIZE_DEFAULT, HISTORY_PAGE_SIZE_MAX)
    descending = query.choice("direction", ("asc", "desc"), "desc") == "desc"
    wanted = history.Wanted(query.text("name") or None, descending, paging.per_page, paging.offset)
    found = await api.barrier.read_long(
        lambda reader: history.listed(call, reader, identity, zone_id, wanted)
    )
    return paging.of(found)


@route("GET", _CHANGE, permission="DNS Read")
def show_change(zone_id: str, sequence: str, api: AppContext, call: Call, identity: Identity) -> ChangeView:
    """One change of a zone."""
    number = _number(sequence)
    return api.barrier.read(lambda reader: history.show(call, reader, identity, zone_id, number))


@route("GET", _CHANGE + "/diff", permission="DNS Read", query=_PAGES, answers=declared.page_of(DiffView))
async def show_diff(
    zone_id: str, sequence: str, api: AppContext, call: Call, identity: Identity, query: Query
) -> Page:
    """What a change did, record by record, with the members that differ."""
    number, paging = _number(sequence), query.paging(PAGE_SIZE_DEFAULT, HISTORY_PAGE_SIZE_MAX)
    found = await api.barrier.read_long(
        lambda reader: history.diff(call, reader, identity, zone_id, number, paging.per_page, paging.offset)
    )
    return paging.of(found)


@route("POST", _CHANGE + "/undo", permission="DNS Write")
async def undo_change(zone_id: str, sequence: str, api: AppContext, call: Call, write_as: WriteAs) -> Done:
    """Take one change back; refused where something changed since."""
    number = _number(sequence)
    return await write_as(
        lambda tx, identity: zone_restore.undo(call, tx, api.platform, identity, zone_id, number)
    )


@route("POST", _CHANGE + "/restore", permission="DNS Write")
async def restore_change(
    zone_id: str, sequence: str, api: AppContext, call: Call, body: RestoreBody, write_as: WriteAs
) -> Done:
    """Make a name (`name`), or the whole zone, what it was after this change; 0 is before the first."""
    number = _number(sequence)
    return await write_as(
        lambda tx, identity: zone_restore.restore(call, tx, api.platform, identity, zone_id, number, body)
    )


@route("GET", _CHANGE + "/restore", permission="DNS Read", query=(text("name", "Only this name."),))
async def preview_restore(
    zone_id: str, sequence: str, api: AppContext, call: Call, identity: Identity, query: Query
) -> Preview:
    """What a restore would change: each record and setting as it is, and as it would be."""
    number, body = _number(sequence), RestoreBody(query.text("name") or None)
    return await api.barrier.read_long(
        lambda reader: zone_restore.preview(call, reader, identity, zone_id, number, body)
    )


def _number(text: str) -> int:
    """Raises ChangeNotFound: no number of a change."""
    if len(text) > SEQUENCE_DIGITS_MAX or not (text.isascii() and text.isdigit()):
        raise ChangeNotFound(sequence=text[:SEQUENCE_DIGITS_MAX])
    return int(text)
