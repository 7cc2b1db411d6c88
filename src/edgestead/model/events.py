"""Security events of the edge: their form, in memory and in files.

Owns  `Decision` and `Contribution`, which the edge's phases fill; `Event`, one line of a file; ids and
      names of files.
Not   what is worth an event, hiding secrets (`edge`); searching (`usecases.events`).

Every edge process appends lines of JSON to files of its own in one folder: ``edge-<worker>-<id>.jsonl``,
where the id is the first event's. Ids are 32 hexadecimal digits that sort by time: 16 of microseconds, 4 of
the worker, 12 of a count.
"""

import msgspec

from edgestead.model.times import six_digits

SUFFIX = ".jsonl"
ID_DIGITS = 32
LINE_START = b'{"id":"'
_TIME_DIGITS, _WORKER_DIGITS, _COUNT_DIGITS = 16, 4, 12
_COUNT = (1 << 4 * _COUNT_DIGITS) - 1
_DIGITS = frozenset("0123456789abcdef")


class Contribution(msgspec.Struct, frozen=True):
    """What one managed rule added to a decision. `variable` as rules name it: `ARGS:q`.

    `matched` is the part of it that matched; the writer bounds it and hides credentials.
    """

    rule_id: str
    description: str = ""
    score: int = 0
    variable: str = ""
    matched: str = ""


class Decision(msgspec.Struct, frozen=True):
    """What a phase decided about a request. `status` is the edge's answer, 0 when the request went on.

    `inspected` is how many requests a rule of managed rules looked at since it decided last, in this process.
    """

    phase: str
    action: str
    status: int = 0
    ruleset_id: str | None = None
    rule_id: str | None = None
    description: str = ""
    reason: str = ""
    score: int | None = None
    threshold: int | None = None
    contributions: tuple[Contribution, ...] = ()
    inspected: int = 0


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One decision or refusal, as files and answers hold it. Text from clients is bounded and printable.

    `dropped` counts the events before this one that the process did not write down because there were too
    many; `inspected` the requests that its rule of managed rules looked at since the one before, with this.
    """

    id: str
    occurred_on: str
    zone_id: str | None
    ray_id: str
    phase: str
    action: str
    status: int
    ruleset_id: str | None
    rule_id: str | None
    description: str
    reason: str
    client: str
    method: str
    scheme: str
    host: str
    path: str
    query: str
    user_agent: str
    score: int | None
    threshold: int | None
    contributions: tuple[Contribution, ...]
    dropped: int
    inspected: int = 0


encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(Event).decode


def event_id(time_us: int, worker: int, count: int) -> str:
    return f"{time_us:0{_TIME_DIGITS}x}{worker:0{_WORKER_DIGITS}x}{count & _COUNT:0{_COUNT_DIGITS}x}"


def id_of_line(line: bytes) -> str:
    """Of a line of a file, torn or not; "" where it has none."""
    id_ = line[len(LINE_START) : len(LINE_START) + ID_DIGITS].decode("ascii", "replace")
    return id_ if line.startswith(LINE_START) and is_event_id(id_) else ""


def time_us_of(id_: str) -> int:
    """Microseconds; 0 of what is no id."""
    return int(id_[:_TIME_DIGITS], 16) if is_event_id(id_) else 0


def time_of(id_: str) -> str:
    """When an event occurred, from its id."""
    return six_digits(int(id_[:_TIME_DIGITS], 16))


def is_event_id(text: str) -> bool:
    return len(text) == ID_DIGITS and _DIGITS.issuperset(text)


def file_prefix(worker: int) -> str:
    return f"edge-{worker}-"
