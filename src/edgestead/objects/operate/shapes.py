"""What operators send about objects, and what they get back.

Owns  the shapes of both.
Not   making any of them. Nothing is imported that opens storage: the process of the REST API describes these.
"""

from typing import Any, Literal

import msgspec


class ListInfo(msgspec.Struct, frozen=True):
    """`cursor` asks for the next page; empty behind the last one."""

    count: int
    cursor: str


class VerifyInfo(ListInfo, frozen=True):
    """Of the first page also what is wrong with the logs of the processes, in words."""

    log_problems: list[str] = []


class Arguments(msgspec.Struct, forbid_unknown_fields=True):
    """What a method is called with."""

    args: list[Any] = []
    kwargs: dict[str, Any] = {}


class Deleted(msgspec.Struct, frozen=True):
    id: str


class Whereabouts(msgspec.Struct, frozen=True):
    """The process that runs an object when it is called, counted from 0 on its machine.

    `node`, its `region` ("" where it has none) and `slot` are of a cluster, and null on one machine.
    """

    id: str
    process: int
    node: str | None
    slot: int | None
    region: str | None


class Released(msgspec.Struct, frozen=True):
    """Whether the object was in quarantine."""

    released: bool


class Quarantined(msgspec.Struct, frozen=True, rename={"class_name": "class"}):
    """What is not run, and why. `id` and `name` are null for a whole class."""

    class_name: str
    id: str | None
    name: str | None
    reason: str


class ClassApart(msgspec.Struct, frozen=True, rename={"class_name": "class"}):
    """A class that ended processes others share. `state` is `suspected`, or `apart` in one of its own.

    `since` and `last` are the first and the newest of so many `ends`, in milliseconds since the epoch; `last`
    is 0 when an operator let it go back.
    """

    class_name: str
    state: Literal["suspected", "apart"]
    ends: int
    since: int
    last: int


class ObjectItem(msgspec.Struct, frozen=True, rename={"class_name": "class"}):
    """One object in a list. `position` counts its commits; `alarm` is in milliseconds since the epoch.

    In `quarantine` is what is not run because its code ended its process. `cpu_ms` is what its code
    took of a processor since the object came into memory; null while it is not there.
    """

    class_name: str
    id: str
    name: str | None
    position: int
    alarm: int | None
    in_memory: bool
    quarantine: bool
    cpu_ms: int | None = None


class ObjectInfo(msgspec.Struct, frozen=True, rename={"class_name": "class"}):
    """What there is to know of one object; `storage` only where its class is loaded.

    `unmoved` of its commits are in the log and not in its database file yet; `calls` are not answered yet.
    `quarantine` says why the object is not run.
    """

    class_name: str
    id: str
    name: str | None
    storage: str | None
    durability: Literal["log", "sqlite"]
    position: int
    unmoved: int
    alarm: int | None
    in_memory: bool
    quarantine: str | None
    cpu_ms: int | None
    calls: int
    database_bytes: int
    tables: list[str]


class ObjectVerdict(msgspec.Struct, frozen=True, rename={"class_name": "class"}):
    """The verdict on one object. `name` is None for ids that were made without one."""

    class_name: str
    id: str
    name: str | None
    pages: int
    keys: int
    problems: list[str]


class Verdict(msgspec.Struct, frozen=True):
    """What was looked at, and what is wrong with it, in words."""

    pages: int
    keys: int
    problems: list[str]


class Rows(msgspec.Struct, frozen=True):
    """The rows of a query's last statement; `truncated` when there were more than an answer holds.

    A blob is `{"base64": "…"}`, an infinite number `{"real": "Infinity"}`.
    """

    columns: list[str]
    rows: list[list[Any]]
    rows_written: int
    truncated: bool


class Moment(msgspec.Struct, frozen=True):
    """One moment to go back to: just after a commit.

    `bytes_stored` is about what history keeps for it; `event` is "commit", or "restore" where the object was
    back; `pinned`: the bookmark was handed out, so the moment is kept for the whole window.
    """

    bookmark: str
    time_us: int
    bytes_stored: int
    event: str
    pinned: bool


class StoredKey(msgspec.Struct, frozen=True):
    """One key: the length of its value as stored, and the value as Python writes it, cut where it is long."""

    key: str
    length: int
    value: str


class StoredTable(msgspec.Struct, frozen=True):
    """A table of the object's own; `rows` is null where they were not counted."""

    name: str
    rows: int | None


class Contents(msgspec.Struct, frozen=True):
    """What an object had stored at a moment; without a `bookmark` it is now.

    `keys` are those of one page in their order; `more` says whether others follow.
    """

    bookmark: str | None
    time_us: int | None
    alarm: int | None
    keys: list[StoredKey]
    more: bool
    tables: list[StoredTable]


class KeyChange(msgspec.Struct, frozen=True):
    """A key whose value differs; null where it was not stored."""

    key: str
    before: str | None
    after: str | None


class TableChange(msgspec.Struct, frozen=True):
    """The rows that one side has and the other has not. The counts stop at a limit; the lists are shorter.

    A table that is on one side only, or has other columns there, has no lists.
    """

    name: str
    rows_before: int | None
    rows_after: int | None
    columns: list[str]
    gone: list[list[Any]]
    gone_count: int
    came: list[list[Any]]
    came_count: int


class Changes(msgspec.Struct, frozen=True):
    """What differs between two moments. `more`: other keys differ, too."""

    since: str
    until: str
    alarm_before: int | None
    alarm_after: int | None
    keys: list[KeyChange]
    more: bool
    tables: list[TableChange]


class ClassItem(msgspec.Struct, frozen=True):
    """A class of objects. `storage` and `durability` are null where it has objects and is not loaded.

    `cpu_ms` is what its code took of processors since its processes began.
    """

    name: str
    storage: str | None
    durability: str | None
    alarms: bool
    quarantine: str | None
    cpu_ms: int = 0


class Bookmarked(msgspec.Struct, frozen=True):
    bookmark: str


class Undo(msgspec.Struct, frozen=True):
    """`undo` is the bookmark of the moment just before."""

    undo: str


class Alarm(msgspec.Struct, frozen=True):
    """`time` in milliseconds since the epoch, or null; `retries` failed attempts; whether it is running."""

    time: int | None
    retries: int
    running: bool


class Ran(msgspec.Struct, frozen=True):
    """Whether there was an alarm."""

    ran: bool


class SqlQuery(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    query: str
    bindings: list[Any] = []


class SqlRead(SqlQuery, forbid_unknown_fields=True, frozen=True):
    """`at` is a moment of the past: a bookmark or a time. Without it the query is about now."""

    at: int | str | None = None


class BackTo(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A bookmark, or a time: milliseconds, or RFC 3339 text."""

    bookmark: str | None = None
    time: int | str | None = None


class DueAt(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    time: int | str
