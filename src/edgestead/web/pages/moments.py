"""An object's past: a slider over its moments, what it stored at one, and taking it back there.

Owns  the page; which moments it shows; the restore, behind its preview, and undoing it.
Not   what is kept of the past: the objects' address says.

    span       what the slider covers                 hour, day, week, month, up to `until`
    step       a moment of these, from the oldest     the form's slider
    at         a bookmark, instead of a step          links
    ago        seconds before now, instead of both    "an hour ago"
"""

from edgestead.web.asker import PER_PAGE, Asker, Json, Refused
from edgestead.web.pages.objects import asker_of, cell, page_of, path_of, title_of
from edgestead.web.times import now_ms
from edgestead.web.visit import Data, Moved, Shown, Visit

SPANS_SECONDS = {"hour": 3_600, "day": 86_400, "week": 7 * 86_400, "month": 30 * 86_400 - 60}
MOMENTS_MAX = 1_000  # of one slider, the newest of its span
WIDTH, HEIGHT, BARS = 600, 48, 60  # of the chart above the slider


async def show(class_name: str, object_id: str, visit: Visit) -> Shown:
    objects, path = asker_of(visit), path_of(class_name, object_id)
    until = _whole(visit.query.get("until", ""), now_ms())
    span, moments = await _span(objects, path, visit.query.get("span", ""), until)
    chosen = _chosen(visit, moments)
    data: Data = {
        "object": await objects.result(path),
        "span": span,
        "spans": list(SPANS_SECONDS),
        "until": until,
        "moments": len(moments),
        "first_us": moments[0]["time_us"] if moments else 0,
        "last_us": moments[-1]["time_us"] if moments else 0,
        "is_cut": len(moments) == MOMENTS_MAX,
        "bars": _bars(moments, until, SPANS_SECONDS[span]),
        "was_restored": any(one["event"] == "restore" for one in moments),
    }
    data |= await _look(objects, path, moments, chosen)
    return Shown("object_past.html", f"The past of {title_of(data['object'])}", data)


async def _span(objects: Asker, path: str, asked: str, until: int) -> tuple[str, list[Json]]:
    """What is asked for, else the shortest span with something in it; its moments, the oldest first."""
    found: list[Json] = []
    for span in [asked] if asked in SPANS_SECONDS else SPANS_SECONDS:
        since = until - SPANS_SECONDS[span] * 1_000
        query = {"since": since, "until": until, "limit": MOMENTS_MAX}
        found = (await objects.result(f"{path}/timeline", query))[::-1]
        if found:
            break
    return span, found


def _chosen(visit: Visit, moments: list[Json]) -> str:
    """A bookmark or a time in milliseconds; "" without any."""
    if visit.query.get("at"):
        return visit.query["at"]
    if visit.query.get("ago"):
        return str(now_ms() - _whole(visit.query["ago"], 0) * 1_000)
    step = min(_whole(visit.query.get("step", ""), len(moments)), len(moments)) - 1
    return str(moments[step]["bookmark"]) if moments and step >= 0 else ""


async def _look(objects: Asker, path: str, moments: list[Json], at: str) -> Data:
    """What was stored at a moment, what came with it, and what going back would change."""
    looked: Data = {
        "at": at,
        "then": None,
        "error": "",
        "came": None,
        "preview": None,
        "step": 0,
        "event": "commit",
        "pinned": False,
    }
    if not at:
        return looked
    try:
        looked["then"] = then = await objects.result(f"{path}/contents", {"at": at, "limit": PER_PAGE})
        place = next((n for n, one in enumerate(moments) if one["bookmark"] == then["bookmark"]), None)
        if place is not None:
            looked |= {
                "step": place + 1,
                "event": moments[place]["event"],
                "pinned": moments[place]["pinned"],
            }
        if place:
            before = moments[place - 1]["bookmark"]
            looked["came"] = await _changes(objects, path, {"since": before, "until": then["bookmark"]})
        looked["preview"] = await _changes(objects, path, {"until": then["bookmark"]})
    except Refused as refused:
        if refused.status not in (400, 422):
            raise
        looked["error"] = " ".join(refused.messages)
    return looked


async def _changes(objects: Asker, path: str, query: Json) -> Json:
    found: Json = await objects.result(f"{path}/changes", query)
    for table in found["tables"]:
        for side in ("gone", "came"):
            table[side] = [[cell(value) for value in row] for row in table[side]]
    return found


def _bars(moments: list[Json], until_ms: int, span_seconds: int) -> list[tuple[int, int, int]]:
    """(x, y, height) of how many moments there were in each part of the span."""
    counts = [0] * BARS
    since_us, part_us = (until_ms - span_seconds * 1_000) * 1_000, span_seconds * 1_000_000 // BARS
    for one in moments:
        counts[max(0, min(BARS - 1, (one["time_us"] - since_us) // part_us))] += 1
    most = max(counts)
    heights = [-(-count * HEIGHT // most) if most else 0 for count in counts]
    return [(at * WIDTH // BARS, HEIGHT - height, height) for at, height in enumerate(heights) if height]


async def act(class_name: str, object_id: str, visit: Visit) -> Moved:
    """Restore what the preview showed, or undo the last restore."""
    objects, path = asker_of(visit), path_of(class_name, object_id)
    back = page_of(class_name, object_id, "past")
    if visit.field("what") == "undo":
        await objects.send("POST", f"{path}/undo")
        return Moved(back, "The last restore is undone.")
    await objects.send("POST", f"{path}/restore", {"bookmark": visit.field("bookmark")})
    return Moved(back, "The object is what it was then. Undo the last restore takes that back.")


def _whole(text: str, otherwise: int) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 16 else otherwise
