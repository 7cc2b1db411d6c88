"""Stateful objects: what operators do with all of a server's objects together.

Owns  the rows; answers of several processes made into one.
Not   what a single process answers (`objects.operate`).

Any process answers. It has the others answer for their own objects, and merges what they send: all of them
keep the order of class and id, and a cursor is the last item of a page, so no process keeps a state for it.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

import msgspec

from edgestead.model import envelope
from edgestead.model.refusals.request import InvalidQuery
from edgestead.objects.operate.shapes import (
    ClassApart,
    ClassItem,
    ListInfo,
    ObjectItem,
    ObjectVerdict,
    Quarantined,
    Released,
    VerifyInfo,
)
from edgestead.rest.declared import Answers, size, text
from edgestead.rest.query import Query
from edgestead.rest.routes.objects import ITEMS_MAX, ITEMS_USUAL, OPERATORS, READ, WRITE
from edgestead.rest.routing import OBJECTS, Answer, route

if TYPE_CHECKING:
    from edgestead.objects.operate.operator import Operator

Others = Callable[[str, str], Awaitable[list[bytes]]]
"""What each other process answers to a method and a target, without a body. Raises WasReset."""

_CLASS = text("class", "Of this class alone.")
_LIMIT = size("limit", ITEMS_USUAL, ITEMS_MAX)
_CURSOR = text("cursor", "Of the page before.")


class _Page(msgspec.Struct):
    result: list[ObjectItem]
    result_info: ListInfo


class _Classes(msgspec.Struct):
    result: list[ClassItem]


class _Verdicts(msgspec.Struct):
    result: list[ObjectVerdict]
    result_info: VerifyInfo


class _Quarantined(msgspec.Struct):
    result: list[Quarantined]


class _Released(msgspec.Struct):
    result: Released


class _Folders(msgspec.Struct):
    result: list[str]


_read_page = msgspec.json.Decoder(_Page).decode
_read_classes = msgspec.json.Decoder(_Classes).decode
_read_verdicts = msgspec.json.Decoder(_Verdicts).decode
_read_quarantined = msgspec.json.Decoder(_Quarantined).decode
_read_released = msgspec.json.Decoder(_Released).decode
_read_folders = msgspec.json.Decoder(_Folders).decode


@route(
    "GET",
    "/operate/objects",
    base="",
    face=OBJECTS,
    family=OPERATORS,
    permission=READ,
    query=(_CLASS, _LIMIT, _CURSOR),
    answers=Answers(list[ObjectItem], ListInfo),
)
async def list_objects(operator: "Operator", others: Others, query: Query) -> Answer:
    """List objects, by class and id."""
    items, cursor = await _page(operator, others, query)
    return Answer(envelope.success_with_info(items, ListInfo(len(items), cursor)))


@route(
    "GET",
    "/operate/classes",
    base="",
    face=OBJECTS,
    family=OPERATORS,
    permission=READ,
    answers=Answers(list[ClassItem]),
)
async def list_classes(operator: "Operator", others: Others) -> list[ClassItem]:
    """List the classes that are loaded, and those that have objects, by name."""
    found = {one.name: one for one in await operator.classes()}
    for theirs in map(_read_classes, await others("GET", "/operate/classes")):
        for one in theirs.result:
            ours = found.setdefault(one.name, one)
            if ours is not one:
                held, cpu_ms = ours.quarantine or one.quarantine, ours.cpu_ms + one.cpu_ms
                found[one.name] = msgspec.structs.replace(ours, quarantine=held, cpu_ms=cpu_ms)
    return [found[name] for name in sorted(found)]


@route(
    "POST",
    "/operate/verify",
    base="",
    face=OBJECTS,
    family=OPERATORS,
    permission=READ,
    query=(_CLASS, _LIMIT, _CURSOR, text("upto", "The last one to check; it takes the place of `limit`.")),
    answers=Answers(list[ObjectVerdict], VerifyInfo),
)
async def verify_objects(operator: "Operator", others: Others, query: Query) -> Answer:
    """Check objects, by class and id, in one pass; the first page also says what is wrong with the logs."""
    after, upto, cursor = _place(query, "cursor"), _place(query, "upto"), ""
    if query.text("upto") is None:  # first who is on the page, then each process looks at its own
        items, cursor = await _page(operator, others, query)
        upto = (items[-1].class_name, items[-1].id) if items else after
    found = await operator.verify_page(query.text("class"), after, upto)
    problems = await operator.verify_log() if after == ("", "") else []
    asked = {**_said(query, "class", "cursor"), "upto": "/".join(upto) if any(upto) else ""}
    for theirs in map(_read_verdicts, await others("POST", f"/operate/verify?{urlencode(asked)}")):
        found.extend(theirs.result)
        problems += theirs.result_info.log_problems
    found.sort(key=lambda one: (one.class_name, one.id))
    return Answer(envelope.success_with_info(found, VerifyInfo(len(found), cursor, problems)))


@route(
    "GET",
    "/operate/quarantine",
    base="",
    face=OBJECTS,
    family=OPERATORS,
    permission=READ,
    answers=Answers(list[Quarantined], ListInfo),
)
async def list_quarantine(operator: "Operator", others: Others) -> Answer:
    """List what is not run because it ended processes: classes, then objects."""
    found = operator.quarantined()
    for theirs in map(_read_quarantined, await others("GET", "/operate/quarantine")):
        found += theirs.result
    whole = {one.class_name: one for one in found if one.id is None}  # as several processes saw it
    objects = sorted((one for one in found if one.id is not None), key=lambda one: (one.class_name, one.id))
    items = [*(one for _, one in sorted(whole.items())), *objects]
    return Answer(envelope.success_with_info(items, ListInfo(len(items), "")))


@route(
    "DELETE",
    "/operate/quarantine/{of_class}",
    base="",
    face=OBJECTS,
    family=OPERATORS,
    permission=WRITE,
)
async def release_class(of_class: str, operator: "Operator", others: Others) -> Released:
    """Let a class run again that is in quarantine, in every process."""
    theirs = await others("DELETE", f"/operate/quarantine/{quote(of_class, safe='')}")
    released = [_read_released(one).result.released for one in theirs]
    return Released(any([await operator.release_class(of_class), *released]))


@route(
    "GET",
    "/operate/apart",
    base="",
    face=OBJECTS,
    family=OPERATORS,
    permission=READ,
    answers=Answers(list[ClassApart], ListInfo),
)
async def list_apart(operator: "Operator") -> Answer:
    """List classes that ended processes others share: apart in one of their own, or suspected."""
    items = operator.apart()
    return Answer(envelope.success_with_info(items, ListInfo(len(items), "")))


@route(
    "DELETE",
    "/operate/apart/{of_class}",
    base="",
    face=OBJECTS,
    family=OPERATORS,
    permission=WRITE,
)
async def share_class(of_class: str, operator: "Operator") -> Released:
    """Let a class share processes with others again, as soon as none of its objects is in its own."""
    return Released(operator.share_class(of_class))


@route(
    "POST",
    "/operate/backup",
    base="",
    face=OBJECTS,
    family=OPERATORS,
    permission=WRITE,
)
async def back_up_objects(operator: "Operator", others: Others) -> list[str]:
    """Copy logs for a backup into folders on the server; `edgecli backup` does the rest."""
    answers = await others("POST", "/operate/backup")  # before this one: each is busy with its own
    folders = [folder for answer in answers for folder in _read_folders(answer).result]
    return [*folders, await operator.back_up()]


async def _page(operator: "Operator", others: Others, query: Query) -> tuple[list[ObjectItem], str]:
    """One page of all processes, and where the next one begins."""
    limit = query.limit(ITEMS_USUAL, ITEMS_MAX)
    items, more = await operator.page(query.text("class"), _place(query, "cursor"), limit)
    asked = _said(query, "class", "limit", "cursor")
    for page in map(_read_page, await others("GET", f"/operate/objects?{urlencode(asked)}")):
        items += page.result
        more = more or bool(page.result_info.cursor)
    items.sort(key=lambda item: (item.class_name, item.id))
    more, items = more or len(items) > limit, items[:limit]
    return items, f"{items[-1].class_name}/{items[-1].id}" if more and items else ""


def _place(query: Query, name: str) -> tuple[str, str]:
    """A class and an id. Raises InvalidQuery."""
    class_name, slash, object_id = (query.text(name) or "").partition("/")
    if bool(class_name) != bool(slash):
        raise InvalidQuery(parameter=name, reason="it is of no list")
    return class_name, object_id


def _said(query: Query, *names: str) -> dict[str, str]:
    """Those of these parameters that were sent."""
    return {name: value for name in names if (value := query.text(name)) is not None}
