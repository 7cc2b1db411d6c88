"""What the checks are made from.

Owns  the shape of the facts.
Not   gathering them: each process knows some, and leaves the others as they are by default.
"""

from dataclasses import dataclass
from typing import NamedTuple

SECOND_US = 1_000_000
DAY_US = 86_400 * SECOND_US


class Group(NamedTuple):
    """Processes of one kind, the names of those that answer, and how many there should be.

    `any_serves`: one that answers is enough, because each can do what the others do.
    """

    name: str
    live: tuple[str, ...]
    wanted: int
    any_serves: bool


class Behind(NamedTuple):
    """A consumer of the change feed that lacks so many changes, and has made no progress for so long."""

    name: str
    changes: int
    seconds: float


class Certificate(NamedTuple):
    """`ends_us` is None when the file cannot be read, or holds no certificate."""

    name: str
    path: str
    ends_us: int | None


class NodeCertificate(NamedTuple):
    """By which this server's other machines know it, and why it was not renewed when it was due."""

    ends_us: int  # as far as it could be read
    problem: str = ""
    unread: str = ""  # why its file cannot be read, now


class FailedOrder(NamedTuple):
    """A certificate of this zone that an authority did not issue, and why. `served`: an older one is."""

    zone: str
    error: str
    served: bool


class LateZone(NamedTuple):
    """A secondary zone that no primary has confirmed for half of the time after which it expires.

    `checked_us` is when one did last, 0 for never; `served`: it has not expired.
    """

    zone: str
    problem: str
    checked_us: int
    served: bool


class HeldZone(NamedTuple):
    """A zone that still has the serial of the backup that it was restored from, and why."""

    zone: str
    problem: str


class EndingZone(NamedTuple):
    """A zone that is served as its primary signed it, with the first signature ending soon, or ended."""

    zone: str
    ends_us: int


class TroubledCatalog(NamedTuple):
    """A catalog that is followed and was not taken (`problem`), or `refused` members of it were not."""

    name: str
    problem: str
    refused: int
    example: str


class Past(NamedTuple):
    """The past that one process of stateful objects keeps. `bytes_max` 0 is no limit."""

    process: str
    bytes: int
    bytes_max: int


class Sink(NamedTuple):
    """A receiver of alerts that does not take them, and since when."""

    name: str
    error: str
    since_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The defaults are those of a server that is well."""

    now_us: int = 0
    stuck: tuple[str, ...] = ()  # processes that neither run nor wait for a start
    control_away: bool = False
    reasons: tuple[tuple[str, str], ...] = ()  # why a process ended last, by its name
    groups: tuple[Group, ...] = ()
    silent: tuple[str, ...] = ()
    unstable: tuple[str, ...] = ()
    behind: tuple[Behind, ...] = ()
    nodes_away: tuple[tuple[str, float], ...] = ()  # machines that should follow and do not; for seconds
    disk_full: str = ""  # in words
    disk_free_bytes: int = 1 << 62
    disk_total_bytes: int = 1 << 62
    objects_read_only: bool = False
    folder_lost: str = ""  # in words
    store_faults: tuple[tuple[str, str], ...] = ()  # by the database's file name
    cluster_cut_off: bool = False  # this node's lease is over: it answers nothing
    cluster_reads_go_on: bool = False  # but reads that may be old, as its operator chose
    cluster_leaderless: bool = False  # no process leads: nothing can be written
    cluster_has_one_copy: bool = False  # its database has no synchronous standby
    cluster_misfits: int = 0  # copies of the control data in a row that the cluster's log did not fit
    cluster_clock_seconds: float = 0.0  # this node's clock is so far ahead of the leader's; negative: behind
    writes_lost: str = ""  # in words, with the way on
    pasts: tuple[Past, ...] = ()
    pasts_damaged: tuple[str, ...] = ()  # processes that could not read a part of it since they started
    certificates_fault: str = ""  # of their folder
    certificates: tuple[Certificate, ...] = ()
    node_certificate: NodeCertificate | None = None  # where other machines reach this one
    orders_failed: tuple[FailedOrder, ...] = ()
    zones_late: tuple[LateZone, ...] = ()
    zones_held: tuple[HeldZone, ...] = ()
    zones_ending: tuple[EndingZone, ...] = ()
    catalogs_troubled: tuple[TroubledCatalog, ...] = ()
    clock_back_seconds: float = 0.0  # how far it stepped back, within the last hour
    clock_behind_seconds: float = 0.0  # the newest file of the data folder is so far in the future
    managed_ruleset: bool = True
    rules_missing: bool = False
    libinjection_missing: str = ""  # how to get it
    rules_slow: bool = False  # Hyperscan is missing, or one that misses matches
    quarantined: int = 0
    classes_apart: int = 0
    targets_unknown: int = 0
    refused_credentials: int = 0  # in the last five minutes
    sign_in_trouble: str = ""  # the OpenID provider's, where somebody had it within the last hour
    backup_tried_us: int = 0
    backup_error: str = ""  # of the last one; empty when it succeeded
    backup_made_us: int = 0  # the last that succeeded; 0 when there was none
    backup_hours_max: int = 0  # 0: none is expected
    sinks_failing: tuple[Sink, ...] = ()
