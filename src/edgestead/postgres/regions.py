"""Which class of objects belongs to which region: rows that all processes of a cluster agree on.

Owns  the SQL of writing down the regions of a process's classes, and the slots that a region has.
Not   which worker is wanted for them (`cluster.placement`); a node's region (`postgres.slots`).

A class's region decides which slot an object has, and so who runs it. So all living processes have to mean
the same: a class that is new is written down, and one that is there with another region changes only when
no other process lives. Until then a process goes by what is written down, whatever its classes say: it
may be the next life of one that died after its file was edited, whose place should not stay empty for that.
"""

import time
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from edgestead.cluster.lease import LEASE_MS
from edgestead.cluster.placement import REGION_SLOTS, SLOTS, Regions
from edgestead.postgres.connection import Link
from edgestead.postgres.incarnations import IDLE_MS_MAX
from edgestead.postgres.slots import DELETE_SILENT, KINDS, NEXT_VERSION
from edgestead.store.migrations import SchemaError

SELECT_CLASSES = "SELECT class, region FROM object_classes"
SELECT_REGIONS = "SELECT name, number FROM object_regions"
SET_CLASS = (
    "INSERT INTO object_classes (class, region) VALUES (%b, %s) "
    "ON CONFLICT (class) DO UPDATE SET region = excluded.region"
)
INSERT_REGION = "INSERT INTO object_regions (number, name) VALUES (%b, %s)"
INSERT_SLOTS = "INSERT INTO slots (slot, version) SELECT generate_series(%b::int, %b::int), %b"
# As `placement.slot_of` has it: of an id the first digits, which are hexadecimal.
MOVE_OBJECTS = (
    "UPDATE objects SET slot = %b + ('x' || lpad(left(convert_from(id, 'UTF8'), %b), 8, '0'))::bit(32)::int "
    "WHERE class = %b"
)
SELECT_OTHERS = (
    f"SELECT number, renewed FROM incarnations WHERE kind IN {KINDS} AND NOT (node = %s AND place = %b)"
)
MARGIN_MS: Final = 500  # on top of a lease, for a process that is just renewing


class RegionsDiffer(SchemaError):
    """A class's region was changed by another process, after this one had settled."""


class Settled(NamedTuple):
    """`regions` are those of all classes, `classes` those of the process, by their names. `kept` says of
    each class whose region is another one here why it stays what it is.
    """

    regions: Regions
    classes: Mapping[str, str]
    kept: tuple[str, ...]


def settle(
    link: Link,
    classes: Mapping[str, str],
    *,
    node: str,
    place: int,
    lease_ms: float = LEASE_MS,
    sleep: Callable[[float], None] = time.sleep,
) -> Settled:
    """Write down the regions of a process's classes, before it registers at a place of its node.

    Blocks for a lease where a region changes. Raises as `Link.rows`.
    """
    before = _classes(link)
    changed = [name for name, region in classes.items() if before.get(name, region) != region]
    silent: dict[int, int] = {}
    if changed:
        silent = dict(link.rows(SELECT_OTHERS, (node, place)))
        if silent:
            sleep((lease_ms + MARGIN_MS) / 1000)
    with link.transaction(idle_ms_max=IDLE_MS_MAX):
        ((version,),) = link.rows(NEXT_VERSION)  # whose row's lock puts processes that begin in order
        there, kept = _classes(link), []
        if changed := [name for name, region in classes.items() if there.get(name, region) != region]:
            if silent:
                link.run(DELETE_SILENT, (list(silent), list(silent.values())))
            if link.rows(SELECT_OTHERS, (node, place)):
                kept = [_why(name, there[name], classes[name]) for name in changed]
                classes, changed = {**classes, **{name: there[name] for name in changed}}, []
        for name, region in classes.items():
            if there.get(name) != region:
                link.run(SET_CLASS, (_stored(name), region))
        numbers = _numbers(link, set(there.values()) | set(classes.values()), version)
        for name in changed:
            first, digits = (
                (SLOTS + (numbers[classes[name]] - 1) * REGION_SLOTS, 2) if classes[name] else (0, 3)
            )
            link.run(MOVE_OBJECTS, (first, digits, _stored(name)))
    regions = {**there, **classes}
    numbered = {name: numbers[region] for name, region in regions.items() if region}
    return Settled(Regions(numbered), classes, tuple(kept))


def check(link: Link, classes: Mapping[str, str]) -> None:
    """As a process registers, in that transaction: nobody has changed its classes' regions since.

    Raises RegionsDiffer, as `Link.rows`.
    """
    there = _classes(link)
    for name, region in classes.items():
        if there.get(name) != region:
            raise RegionsDiffer(_why(name, there.get(name, ""), region))


def _why(name: str, region: str, wanted: str) -> str:
    there, here = (f"the region {one}" if one else "no region" for one in (region, wanted))
    return (
        f"class {name} has {here} here, and {there} in the cluster, where other processes run its objects. It"
        " stays there until objects are stopped on all nodes, and started with the same classes; or take the"
        " change back"
    )


def _classes(link: Link) -> dict[str, str]:
    return {
        bytes(name).decode("utf-8", "surrogatepass"): region for name, region in link.rows(SELECT_CLASSES)
    }


def _stored(class_name: str) -> bytes:
    return class_name.encode("utf-8", "surrogatepass")


def _numbers(link: Link, names: set[str], version: int) -> dict[str, int]:
    """Those of all regions; new ones get slots."""
    found: dict[str, int] = dict(link.rows(SELECT_REGIONS))
    for name in sorted(names - found.keys() - {""}):
        number = found[name] = max(found.values(), default=0) + 1
        first = SLOTS + (number - 1) * REGION_SLOTS
        link.run(INSERT_REGION, (number, name))
        link.run(INSERT_SLOTS, (first, first + REGION_SLOTS - 1, version))
    return found
