"""What is in the files of events, so that few of their lines are read again.

Owns  following files as they grow; marks of what each block of lines holds; events of the last day by rule,
      and by what the managed rules scored; keeping what is known of a full file beside it.
Not   searching (`usecases.events`); who may know.

    growing    a slice with each call, from where the last one ended    in memory
    full       its worker has a newer file, all of it was followed      → index-<worker>-<id>
    restart    a full file's index is read, others are followed again
    gone       the edge forgot the file                                 its index as well

Marks are a Bloom filter: a block that has not all bits of a value holds no line with it, and is not read. An
index that is damaged, or of another form, is made again from its file.

Only what is of the last day is counted: an hour that leaves it gives its room back. When the clock goes back
to an hour that was given up, everything is counted again.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import msgspec

from edgestead.model.events import event_id, is_event_id, time_of
from edgestead.usecases.events import Span, files_of, lines_from

HOUR_US: Final = 3_600_000_000
HOURS: Final = 24
BLOCK_LINES: Final = 1_000
LINES_AT_ONCE: Final = BLOCK_LINES  # of one step: about ten milliseconds
MARKS_BITS: Final = 1 << 16  # of a block: 8 KiB, with all values of 1,000 lines apart a fiftieth is wrong
BLOCKS_MAX: Final = 8_192  # with marks: 64 MiB, of eight million events. Others are read by every search
ROWS_MAX: Final = 200_000  # of hours, zones and rules: about 40 MiB. With more the counts are not complete
KINDS_MAX: Final = 20_000  # of hours, zones and scores: about 30 MiB. What comes beyond is counted alone
KINDS_SHOWN_MAX: Final = 1_000  # of one answer, the most frequent
PATH_CHARACTERS_MAX: Final = 256  # of a kind's newest request
PREFIXES: Final = (2, 4, 8, 16, 32)  # characters of a path that are marked, for searches by its beginning
MARKED: Final = (
    *("zone_id", "ray_id", "phase", "action", "status"),
    *("ruleset_id", "rule_id", "client", "method", "host"),
)
_HASHES: Final = 4  # bits of a value: two octets each
_FORM: Final = 2  # of an index's file; another one is made again
_INDEX_OCTETS_MAX: Final = 64 << 20  # of an index's file: more than one of a file that is full
_CHECK_OCTETS: Final = 16  # at the end of an index's file
_RAYS_MAX: Final = 1_000  # of a file, the newest: whose request may be decided on again
_MANAGED: Final = "http_request_firewall_managed"


class Scored(msgspec.Struct, frozen=True):
    """What one managed rule added."""

    rule_id: str
    score: int = 0


class Newest(msgspec.Struct, frozen=True):
    """The newest request of a kind."""

    id: str
    occurred_on: str
    method: str
    host: str
    path: str
    client: str
    score: int | None = None
    threshold: int | None = None


class _Line(Newest, frozen=True, kw_only=True):
    """What is looked at of an event."""

    zone_id: str | None
    ray_id: str
    phase: str
    action: str
    status: int
    ruleset_id: str | None
    rule_id: str | None
    reason: str = ""
    contributions: tuple[Scored, ...] = ()


_decode = msgspec.json.Decoder(_Line).decode


class Counted(msgspec.Struct, frozen=True):
    """Events since a time, by rule, and by ruleset for those of executed rules.

    Not `complete`: events of the last day are still being counted, or have more rules than there is room for.
    """

    since: str
    complete: bool
    rules: dict[str, int]
    rulesets: dict[str, int]


class Kind(msgspec.Struct, frozen=True):
    """Requests that the same managed rules gave the same scores. `stopped`: the edge answered them itself.

    One that could not be inspected is none. Of several decisions about one request the last one counts.
    """

    count: int
    stopped: bool
    scores: tuple[Scored, ...]
    newest: Newest


class Kinds(msgspec.Struct, frozen=True):
    """What the managed rules decided on since a time, the most frequent first. `uncounted` are in no kind."""

    since: str
    complete: bool
    uncounted: int
    kinds: list[Kind]


class _Block(msgspec.Struct, array_like=True, gc=False):
    """Lines from octet `start` to `end`, whose ids are from `first` to `last`. No marks: all may be there."""

    start: int
    end: int
    first: str
    last: str
    marks: bytes = b""


Row = tuple[int, str, str]  # hour, ruleset, rule
KindKey = tuple[int, bool, int]  # hour, whether it was stopped, `id` of its scores
K = TypeVar("K", Row, KindKey)
V = TypeVar("V")


class _Tally(msgspec.Struct, array_like=True, gc=False):
    """A kind in one hour of one file: how many, and the newest. No cycle holds one: nobody looks for it."""

    hour: int
    stopped: bool
    scores: tuple[Scored, ...]
    count: int
    newest: Newest


class _Placed(NamedTuple):
    """Where a request was counted, and what was the newest there before. `key` None: beyond."""

    zone: str
    hour: int
    key: KindKey | None
    id: str
    before: Newest | None


class _Sum(msgspec.Struct, gc=False):
    """A kind over all files: how many in each hour, and the newest request."""

    stopped: bool
    scores: tuple[Scored, ...]
    newest: Newest
    hours: dict[int, int]

    def add(self, more: _Tally) -> None:
        self.hours[more.hour] = self.hours.get(more.hour, 0) + more.count
        if more.newest.id > self.newest.id:
            self.newest = more.newest

    def take(self, hour: int, id_: str, before: Newest | None) -> None:
        """One of an hour was of another kind."""
        self.hours[hour] -= 1
        if self.newest.id == id_ and before is not None:
            self.newest = before


class _File(msgspec.Struct, array_like=True):
    """What is known of a file's first `octets`, counted from hour `first` on.

    By zone: events of rules, kinds of scores, and by hour those beyond.
    """

    form: int = _FORM
    octets: int = 0
    first: int = 0
    blocks: list[_Block] = []
    rules: dict[str, list[tuple[Row, int]]] = {}
    kinds: dict[str, list[_Tally]] = {}
    beyond: dict[str, dict[int, int]] = {}
    rows_beyond: dict[str, int] = {}


class Room:
    """What all files may hold together. The same scores are one object, and found by what it is.

    `sums` are the tallies of all files by zone: a page asks for kinds more often than a file is forgotten.
    Nothing is counted of hours before `first`.
    """

    def __init__(self, first: int = 0) -> None:
        self.first = first
        self.blocks, self.rows, self.kinds = BLOCKS_MAX, ROWS_MAX, KINDS_MAX
        self.sums: dict[str, dict[tuple[bool, int], _Sum]] = {}
        self._scored: dict[Scored, Scored] = {}
        self._scores: dict[tuple[Scored, ...], tuple[Scored, ...]] = {}

    def one_of(self, scores: tuple[Scored, ...]) -> tuple[Scored, ...] | None:
        """None where there is no room for another one."""
        found = self._scores.get(scores)
        if found is None and len(self._scores) < KINDS_MAX:
            found = tuple(self._scored.setdefault(one, one) for one in scores)
            self._scores[found] = found
        return found

    def add(self, zone: str, more: _Tally) -> Newest | None:
        """Its scores are one of ours. Returns what was the newest of the kind."""
        sums = self.sums.setdefault(zone, {})
        key = (more.stopped, id(more.scores))
        found = sums.get(key)
        if found is None:
            sums[key] = _Sum(more.stopped, more.scores, more.newest, {more.hour: more.count})
            return None
        before = found.newest
        found.add(more)
        return before

    def take(self, placed: _Placed, tally: _Tally) -> None:
        """One of a tally less."""
        self.sums[placed.zone][tally.stopped, id(tally.scores)].take(placed.hour, placed.id, placed.before)

    def keep_scores(self, used: set[int]) -> None:
        """Forget those that no kind has any more."""
        self._scores = {scores: scores for scores in self._scores.values() if id(scores) in used}
        self._scored = {one: one for scores in self._scores for one in scores}


class Followed:
    """One file, followed from `octets` on."""

    def __init__(self, room: Room, known: _File | None = None) -> None:
        known = known or _File()
        self._room = room
        self.octets, self.blocks = known.octets, known.blocks
        self.rules = {zone: dict(rows) for zone, rows in known.rules.items()}
        self.kinds: dict[str, dict[KindKey, _Tally]] = {}
        self.beyond = {zone: dict(hours) for zone, hours in known.beyond.items()}
        self.rows_beyond = dict(known.rows_beyond)  # by zone the newest hour that has some
        self._rays: dict[str, _Placed] = {}
        self.is_kept = bool(known.octets)
        self._open: dict[str, set[object]] = {}
        self._lines = 0  # of the block that is open
        room.blocks -= len(self.blocks)
        room.rows -= sum(map(len, self.rules.values()))
        for zone, tallies in known.kinds.items():
            for one in tallies:
                self._tally(zone, one.hour, one.stopped, one)
        self.forget_hours()

    def forget_hours(self) -> None:
        """Those that left the day give their room back."""
        first = self._room.first
        rows, kinds = sum(map(len, self.rules.values())), sum(map(len, self.kinds.values()))
        self.rules = _filled({zone: _since(first, held) for zone, held in self.rules.items()})
        self.kinds = _filled({zone: _since(first, held) for zone, held in self.kinds.items()})
        self.beyond = {
            zone: {hour: count for hour, count in hours.items() if hour >= first}
            for zone, hours in self.beyond.items()
        }
        self.rows_beyond = {zone: hour for zone, hour in self.rows_beyond.items() if hour >= first}
        self._rays = {ray: placed for ray, placed in self._rays.items() if placed.hour >= first}
        self._room.rows += rows - sum(map(len, self.rules.values()))
        self._room.kinds += kinds - sum(map(len, self.kinds.values()))

    def forget(self) -> None:
        self._room.blocks += len(self.blocks)
        self._room.rows += sum(map(len, self.rules.values()))
        self._room.kinds += sum(map(len, self.kinds.values()))

    def follow(self, path: Path, lines: int) -> int:
        """Look at some more lines; how many there were. Reads the file."""
        count = 0
        start = self.octets
        for line, end in lines_from(path, start):
            self._note(line, start, end)
            self.octets = start = end
            count += 1
            if count == lines:
                break
        return count

    def _note(self, line: bytes, start: int, end: int) -> None:
        if not self._lines:
            self.blocks.append(_Block(start, end, "", ""))
            self._room.blocks -= 1
        block = self.blocks[-1]
        block.end = end
        self._lines += 1
        try:
            found = _decode(line)
        except msgspec.MsgspecError:
            found = None  # torn or damaged
        if found is not None and is_event_id(found.id):
            block.first = min(block.first, found.id) if block.first else found.id
            block.last = max(block.last, found.id)
            self._mark(found)
            self._count(found)
        if self._lines == BLOCK_LINES:
            self.close()

    def close(self) -> None:
        """The open block is whole."""
        if self._lines:
            if self._room.blocks >= 0:
                self.blocks[-1].marks = _marks(self._open)
            self._open, self._lines = {}, 0

    def _mark(self, line: _Line) -> None:
        held = self._open
        for member in MARKED:
            held.setdefault(member, set()).add(getattr(line, member))
        for length in PREFIXES:
            if len(line.path) >= length:
                held.setdefault(_prefix(length), set()).add(line.path[:length])

    def _count(self, line: _Line) -> None:
        if line.zone_id is None:
            return
        hour = int(line.id[:16], 16) // HOUR_US
        if hour < self._room.first:
            return
        if line.rule_id is not None:
            row = (hour, line.ruleset_id or "", line.rule_id)
            rows = self.rules.setdefault(line.zone_id, {})
            if row in rows:
                rows[row] += 1
            elif self._room.rows > 0:
                self._room.rows -= 1
                rows[row] = 1
            else:
                self.rows_beyond[line.zone_id] = max(hour, self.rows_beyond.get(line.zone_id, 0))
        if line.phase == _MANAGED and line.score is not None and not line.reason:
            self._take(line.ray_id)
            about = {name: getattr(line, name) for name in Newest.__struct_fields__}
            newest = Newest(**about | {"path": line.path[:PATH_CHARACTERS_MAX]})
            is_stopped = line.status != 0
            tally = _Tally(hour, is_stopped, line.contributions, 1, newest)
            placed = self._tally(line.zone_id, hour, is_stopped, tally)
            if line.ray_id:
                self._rays[line.ray_id] = placed
                if len(self._rays) > _RAYS_MAX:
                    del self._rays[next(iter(self._rays))]

    def _take(self, ray: str) -> None:
        """A request is decided on again: by a rule after one that only logs, or with its later parts."""
        placed = self._rays.pop(ray, None)
        if placed is None:
            return
        if placed.key is None:
            self.beyond[placed.zone][placed.hour] -= 1
            return
        kinds = self.kinds[placed.zone]
        tally = kinds[placed.key]
        self._room.take(placed, tally)
        tally.count -= 1
        if not tally.count:
            del kinds[placed.key]
            self._room.kinds += 1
        elif tally.newest.id == placed.id and placed.before is not None:
            tally.newest = placed.before

    def _tally(self, zone: str, hour: int, is_stopped: bool, more: _Tally) -> _Placed:
        scores = self._room.one_of(more.scores)
        kinds = self.kinds.setdefault(zone, {})
        key = (hour, is_stopped, id(scores))
        if scores is None or (key not in kinds and self._room.kinds <= 0):
            hours = self.beyond.setdefault(zone, {})
            hours[hour] = hours.get(hour, 0) + more.count
            return _Placed(zone, hour, None, more.newest.id, None)
        more.scores = scores
        before = self._room.add(zone, more)
        if key in kinds:
            before = kinds[key].newest
            kinds[key].count += more.count
            kinds[key].newest = more.newest
        else:
            self._room.kinds -= 1
            kinds[key] = more
        return _Placed(zone, hour, key, more.newest.id, before)

    def _may_have(self, block: _Block, one: "_Value") -> bool:
        if self._lines and block is self.blocks[-1]:
            return one.value in self._open.get(one.member, ())
        return not block.marks or _has(block.marks, one.bits)

    def encoded(self) -> bytes:
        rules = {zone: list(rows.items()) for zone, rows in self.rules.items()}
        kinds = {zone: list(rows.values()) for zone, rows in self.kinds.items()}
        known = _File(
            _FORM, self.octets, self._room.first, self.blocks, rules, kinds, self.beyond, self.rows_beyond
        )
        return msgspec.msgpack.encode(known)

    def spans(self, wanted: Sequence["_Value"], low: str, high: str) -> Iterator[Span]:
        """Parts of the file that may hold lines with all wanted values and low <= id < high, in order."""
        for block in self.blocks:
            if block.first < high and block.last >= low and all(self._may_have(block, one) for one in wanted):
                yield Span(block.start, block.end)
        if not self.is_kept:
            yield Span(self.octets, None)


class EventIndex:
    """For one thread at a time."""

    def __init__(self) -> None:
        self._files: dict[str, Followed] = {}
        self._room = Room()
        self._complete = False

    def follow(self, folder: Path | None, now_us: int) -> bool:
        """Look at some more lines, of the newest files first; True when all were. Not for an event loop."""
        self._begin_at(_day(now_us)[0])
        workers = files_of(folder)
        names = {path.name for paths in workers.values() for path in paths}
        if gone := self._files.keys() - names:
            for name in gone:
                self._files.pop(name).forget()
            self._sum_again()
        if folder is not None:
            _sweep(folder, names)
        left = LINES_AT_ONCE
        for path, is_full in _newest_first(workers):
            left -= self._follow(path, left, is_full=is_full)
            if left <= 0:
                break
        self._complete = left > 0
        return self._complete

    def _begin_at(self, first: int) -> None:
        """The day begins with this hour."""
        if first < self._room.first:  # a clock that was set back: what is asked for now was given up
            self._files, self._room, self._complete = {}, Room(first), False
        elif first > self._room.first:
            self._room.first = first
            for file in self._files.values():
                file.forget_hours()
            self._sum_again()

    def _sum_again(self) -> None:
        """Without what was forgotten."""
        kinds = [(zone, kinds) for file in self._files.values() for zone, kinds in file.kinds.items()]
        self._room.keep_scores({key[2] for _, one in kinds for key in one})
        self._room.sums = {}
        for zone, one in kinds:
            for tally in one.values():
                self._room.add(zone, tally)

    def _follow(self, path: Path, lines: int, *, is_full: bool) -> int:
        file = self._files.get(path.name)
        if file is None:
            known = _loaded(path, self._room.first) if is_full else None
            file = self._files[path.name] = Followed(self._room, known)
        if file.is_kept and file.octets == _about(path).st_size:
            return 0
        file.is_kept = False
        count = file.follow(path, lines)
        if is_full and count < lines:
            file.close()
            _keep(path, file.encoded())
            file.is_kept = True
        return count

    def spans(
        self, path: Path, members: Mapping[str, object], path_prefix: str, low: str, high: str
    ) -> list[Span] | None:
        """Which parts of a file a search has to read; None where nothing is known of it."""
        file = self._files.get(path.name)
        if file is None:
            return None
        wanted = [_Value.of(name, value) for name, value in members.items() if name in MARKED]
        length = max((one for one in PREFIXES if one <= len(path_prefix)), default=0)
        if length:
            wanted.append(_Value.of(_prefix(length), path_prefix[:length]))
        return list(file.spans(wanted, low, high))

    def rules_of(self, zone_id: str, now_us: int) -> Counted:
        first, since = _day(now_us)
        rules: dict[str, int] = {}
        rulesets: dict[str, int] = {}
        for file in self._files.values():
            for (hour, ruleset, rule), count in file.rules.get(zone_id, {}).items():
                if hour >= first:
                    rules[rule] = rules.get(rule, 0) + count
                    rulesets[ruleset] = rulesets.get(ruleset, 0) + count
        complete = self._complete and self._room.first <= first
        complete = complete and not any(zone_id in file.rows_beyond for file in self._files.values())
        return Counted(since, complete, rules, rulesets)

    def kinds_of(self, zone_id: str, now_us: int) -> Kinds:
        first, since = _day(now_us)
        kinds = []
        for one in self._room.sums.get(zone_id, {}).values():
            count = sum([count for hour, count in one.hours.items() if hour >= first])
            if count:
                kinds.append(Kind(count, one.stopped, one.scores, one.newest))
        kinds.sort(key=lambda kind: (-kind.count, kind.newest.id))
        beyond = sum(
            count
            for file in self._files.values()
            for hour, count in file.beyond.get(zone_id, {}).items()
            if hour >= first
        )
        beyond += sum(kind.count for kind in kinds[KINDS_SHOWN_MAX:])
        complete = self._complete and self._room.first <= first
        return Kinds(since, complete, beyond, kinds[:KINDS_SHOWN_MAX])


def _day(now_us: int) -> tuple[int, str]:
    """The first hour of the last day, and when it began."""
    first = now_us // HOUR_US - HOURS + 1
    return first, time_of(event_id(first * HOUR_US, 0, 0))


def _since(first: int, held: dict[K, V]) -> dict[K, V]:
    """Those whose hour is `first` or later."""
    return {key: value for key, value in held.items() if key[0] >= first}


def _filled(held: dict[str, dict[K, V]]) -> dict[str, dict[K, V]]:
    return {zone: rows for zone, rows in held.items() if rows}


class _Listed(NamedTuple):
    path: Path
    is_full: bool


def _newest_first(workers: Mapping[str, list[Path]]) -> list[_Listed]:
    """A file is full when a newer one is there, and another one was written to after it.

    Names and times differ where a clock was set back: what is written to may have the older name.
    """
    found: list[_Listed] = []
    for paths in workers.values():
        latest = max(paths, key=lambda path: (_about(path).st_mtime_ns, path.name))
        found += [_Listed(path, path is not paths[-1] and path is not latest) for path in paths]
    return sorted(found, key=lambda one: one.path.stem.rpartition("-")[2], reverse=True)


def _prefix(length: int) -> str:
    return f"path:{length}"


class _Value(NamedTuple):
    """What is searched for in a block."""

    member: str
    value: object
    bits: tuple[int, ...]

    @classmethod
    def of(cls, member: str, value: object) -> "_Value":
        return cls(member, value, _bits(member, value))


def _bits(member: str, value: object) -> tuple[int, ...]:
    octets = blake2b(f"{member}={value}".encode("utf-8", "surrogatepass"), digest_size=2 * _HASHES).digest()
    return tuple(int.from_bytes(octets[at : at + 2], "big") for at in range(0, 2 * _HASHES, 2))


def _marks(values: Mapping[str, set[object]]) -> bytes:
    marks = bytearray(MARKS_BITS // 8)
    for member, held in values.items():
        for value in held:
            for bit in _bits(member, value):
                marks[bit >> 3] |= 1 << (bit & 7)
    return bytes(marks)


def _has(marks: bytes, bits: tuple[int, ...]) -> bool:
    return all(marks[bit >> 3] >> (bit & 7) & 1 for bit in bits)


def _index_of(path: Path) -> Path:
    return path.with_name(f"index-{path.stem.partition('-')[2]}")


class _About(NamedTuple):
    st_size: int = -1
    st_mtime_ns: int = 0


def _about(path: Path) -> _About:
    """Of a file that may be gone by now."""
    try:
        found = path.stat()
    except OSError:
        return _About()
    return _About(found.st_size, found.st_mtime_ns)


def _check(octets: bytes) -> bytes:
    return blake2b(octets, digest_size=_CHECK_OCTETS).digest()


def _loaded(path: Path, first: int) -> _File | None:
    """None where there is no index of the whole file with all hours from the first one on."""
    index = _index_of(path)
    try:
        if index.stat().st_size > _INDEX_OCTETS_MAX:
            return None
        octets = index.read_bytes()
        if _check(octets[:-_CHECK_OCTETS]) != octets[-_CHECK_OCTETS:]:
            return None
        known = msgspec.msgpack.decode(octets[:-_CHECK_OCTETS], type=_File)
        is_ours = known.form == _FORM and known.octets == path.stat().st_size and known.first <= first
        return known if is_ours else None
    except (OSError, msgspec.MsgspecError):
        return None


def _keep(path: Path, octets: bytes) -> None:
    """Durable before it has its name. Where there is no room, it is made again after a restart."""
    index = _index_of(path)
    draft = index.with_name(f"{index.name}.new")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(octets + _check(octets))
            stream.flush()
            os.fsync(descriptor)
        draft.rename(index)
    except OSError:
        draft.unlink(missing_ok=True)


def _sweep(folder: Path, names: set[str]) -> None:
    """Indexes of files that are gone."""
    kept = {_index_of(folder / name).name for name in names}
    for path in folder.glob("index-*"):
        if path.name not in kept:
            path.unlink(missing_ok=True)
