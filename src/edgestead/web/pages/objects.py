"""Stateful objects: classes, the objects of one, and what one of them has stored.

Owns  these pages; SQL that reads; an object's alarm; letting one run again that is in quarantine.
Not   the past of an object (`web.pages.moments`).
"""

from edgestead.web.asker import PER_PAGE, Asker, Json, Refused
from edgestead.web.pages.shared import tried_at
from edgestead.web.times import ahead_ms
from edgestead.web.visit import ROOT, Data, Moved, Shown, Visit, segment

CELL_CHARACTERS_MAX = 500  # of a row, as shown
ROWS_SHOWN_MAX = 200  # of a query
QUERY = "SELECT name, sql FROM sqlite_schema ORDER BY name"


def asker_of(visit: Visit) -> Asker:
    """Raises Refused: 404."""
    if visit.objects is None:
        raise Refused(
            404, [{"code": 1001, "message": "This server runs no objects: `edgecli serve --objects FILE`."}]
        )
    return visit.objects


def path_of(class_name: str, object_id: str, operation: str = "") -> str:
    """The operators' path of an object."""
    one = f"/operate/ids/{segment(class_name)}/{segment(object_id)}"
    return f"{one}/{operation}" if operation else one


def page_of(class_name: str, object_id: str, below: str = "") -> str:
    one = f"{ROOT}/objects/{segment(class_name)}/{segment(object_id)}"
    return f"{one}/{below}" if below else one


async def classes(visit: Visit) -> Shown:
    found = [] if visit.objects is None else await visit.objects.result("/operate/classes")
    return Shown("classes.html", "Objects", {"classes": found, "runs_objects": visit.objects is not None})


async def of_class(class_name: str, visit: Visit) -> Shown | Moved:
    objects = asker_of(visit)
    name = visit.query.get("name", "")
    if name:
        path = f"/operate/objects/{segment(class_name)}/{segment(name)}"
        return Moved(page_of(class_name, (await objects.result(path))["id"]))
    query = {"class": class_name, "limit": PER_PAGE, "cursor": visit.query.get("cursor", "")}
    answer = await objects.get("/operate/objects", query)
    data: Data = {
        "class_name": class_name,
        "objects": answer["result"],
        "after": answer["result_info"]["cursor"],
    }
    return Shown("instances.html", class_name, data)


async def show(class_name: str, object_id: str, visit: Visit, refused: Refused | None = None) -> Shown:
    objects, path = asker_of(visit), path_of(class_name, object_id)
    prefix, after = visit.query.get("prefix", ""), visit.query.get("after", "")
    info = await objects.result(path)
    data: Data = {
        "object": info,
        "contents": await objects.result(
            f"{path}/contents", {"prefix": prefix, "after": after, "limit": PER_PAGE}
        ),
        "alarm": await objects.result(f"{path}/alarm"),
        "prefix": prefix,
        "due": visit.field("time"),
        "errors": refused.messages if refused else [],
    }
    return Shown("object.html", title_of(info), data, 200 if refused is None else 400)


def title_of(info: Json) -> str:
    return f"{info['class']} {info['name'] if info['name'] is not None else info['id'][:12]}"


async def act(class_name: str, object_id: str, visit: Visit) -> Shown | Moved:
    """Set, delete or run the alarm; release from quarantine."""
    objects, what = asker_of(visit), visit.field("what")
    alarm = path_of(class_name, object_id, "alarm")
    said, refused = "The alarm is set.", None
    if what == "release":
        await objects.send("DELETE", path_of(class_name, object_id, "quarantine"))
        said = "The object runs again when it is called."
    elif what == "delete-alarm":
        await objects.send("DELETE", alarm)
        said = "The alarm is deleted."
    elif what == "run-alarm":
        refused = await tried_at(objects, "POST", alarm, None)
        said = "The alarm's handler ran."
    else:
        refused = await tried_at(
            objects, "PUT", alarm, {"time": ahead_ms(visit.field("time")) or visit.field("time")}
        )
    if refused is not None:
        return await show(class_name, object_id, visit, refused)
    return Moved(page_of(class_name, object_id), said)


async def sql(class_name: str, object_id: str, visit: Visit) -> Shown:
    """The form, and what its query found."""
    objects, path = asker_of(visit), path_of(class_name, object_id)
    at = visit.field("at") if visit.form is not None else visit.query.get("at", "")
    table = visit.query.get("table", "")
    query = visit.field("query") or (f"SELECT * FROM {_quoted(table)} LIMIT 50" if table else QUERY)
    rows: Json | None = None
    refused = None
    if visit.form is not None or table:
        try:
            rows = (await objects.send("POST", f"{path}/sql", {"query": query} | ({"at": at} if at else {})))[
                "result"
            ]
        except Refused as error:
            if error.status not in (400, 422):
                raise
            refused = error
    data: Data = {
        "object": await objects.result(path),
        "query": query,
        "at": at,
        "rows": None if rows is None else _shown(rows),
        "errors": refused.messages if refused else [],
    }
    return Shown("object_sql.html", f"SQL of {title_of(data['object'])}", data, 400 if refused else 200)


def _shown(found: Json) -> Json:
    rows = found["rows"]
    return {
        "columns": found["columns"],
        "rows": [[cell(value) for value in row] for row in rows[:ROWS_SHOWN_MAX]],
        "more": found["truncated"] or len(rows) > ROWS_SHOWN_MAX,
    }


def cell(value: object) -> str:
    """A value of a row in one line of text."""
    if value is None:
        return "NULL"
    if isinstance(value, dict):  # a blob, an infinite number
        kind, text = next(iter(value.items()))
        value = text if kind == "real" else f"base64 {text}"
    text = str(value)
    return text if len(text) <= CELL_CHARACTERS_MAX else text[:CELL_CHARACTERS_MAX] + "…"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
