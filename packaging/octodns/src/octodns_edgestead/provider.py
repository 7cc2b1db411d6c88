"""What octoDNS calls: a zone is read, compared and changed.

Owns  the provider's options, what it says that it supports, how changes are cut into batches.
Not   the API (`api`), spellings of records (`rows`).
"""

import logging
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from octodns.provider.base import BaseProvider
from octodns.provider.plan import Plan
from octodns.record import Change, Delete, Record, Update
from octodns.zone import Zone

from octodns_edgestead import rows
from octodns_edgestead.api import Api, Json
from octodns_edgestead.rows import Edits, Row

BATCH_CHANGES_MAX = 200  # of the API, in a zone of the Free plan
TTL_SECONDS_MIN, TTL_SECONDS_MAX = 60, 86_400


class EdgesteadProvider(BaseProvider):  # type: ignore[misc]
    """A server by its address (`api_base`, ends in /client/v4) and a token that may edit DNS.

    To make zones that are missing, the token needs Zone Write, and `account_id` where it has several
    accounts. Further options are those of every octoDNS provider.
    """

    SUPPORTS = rows.TYPES
    SUPPORTS_GEO = False
    SUPPORTS_DYNAMIC = False
    SUPPORTS_MULTIVALUE_PTR = True
    # The zone's own name servers stand at the apex, whatever NS records it has there.
    SUPPORTS_ROOT_NS = False

    def __init__(
        self, id: str, api_base: str, token: str, account_id: str | None = None, **options: Any
    ) -> None:
        self.log = logging.getLogger(f"EdgesteadProvider[{id}]")
        super().__init__(id, **options)
        self._api, self._account_id = Api(api_base, token), account_id
        self._zone_ids: dict[str, str] = {}  # by name, as octoDNS writes it
        self._rows: dict[str, dict[tuple[str, str], list[Row]]] = {}  # by zone; then by name and type

    def list_zones(self) -> list[str]:
        """The names of all zones that the token may read, for `*` in a configuration."""
        return sorted(zone["name"] + "." for zone in self._api.zones())

    def populate(self, zone: Zone, target: bool = False, lenient: bool = False) -> bool:
        """Read the zone; returns whether it is there."""
        found = next(self._api.zones(zone.name.removesuffix(".")), None)
        if found is None:
            self._zone_ids.pop(zone.name, None)
            self._rows[zone.name] = {}
            return False
        self._zone_ids[zone.name] = found["id"]
        records = rows.read(zone, self._api.records(found["id"]), lenient=lenient)
        for record in records:
            zone.add_record(record, lenient=lenient)
        self._rows[zone.name] = {(record.name, record._type): held for record, held in records.items()}
        self.log.info("populate: %s has %d records", zone.decoded_name, len(records))
        return True

    def _process_desired_zone(self, desired: Zone) -> Zone:
        for record in list(desired.records):
            if rows.option(record, "proxied") and record._type not in rows.PROXIED_TYPES:
                self.supports_warn_or_except(
                    f"{record._type} {record.fqdn} cannot be proxied", "the option is ignored"
                )
            nearest = min(max(record.ttl, TTL_SECONDS_MIN), TTL_SECONDS_MAX)
            if record.ttl != nearest and not rows.has_auto_ttl(record):
                self.supports_warn_or_except(
                    f"a TTL of {record.ttl} s is not supported for {record._type} {record.fqdn}",
                    f"it becomes {nearest}",
                )
                changed = record.copy()
                changed.ttl = nearest
                desired.add_record(changed, replace=True, lenient=True)
        return super()._process_desired_zone(desired)

    def _include_change(self, change: Change) -> bool:
        """An update that no row needs is none: the TTL of a proxied name, which is the server's."""
        return not isinstance(change, Update) or self._edits(change).changes > 0

    def _extra_changes(self, existing: Zone, desired: Zone, changes: list[Change]) -> list[Change]:
        """What octoDNS does not compare: `proxied`, `auto-ttl`, and rows of a name that differ in them."""
        held = {record: record for record in existing.records - {change.record for change in changes}}
        both = (Update(held[record], record) for record in desired.records if record in held)
        return [change for change in both if self._edits(change).changes]

    def _edits(self, change: Change) -> Edits:
        record: Record = change.record
        held = self._rows[record.zone.name].get((record.name, record._type), [])
        if isinstance(change, Delete):
            return Edits([{"id": row.id} for row in held], [], [])
        return rows.edits(record, held)

    def _apply(self, plan: Plan) -> None:
        """In batches, each all or nothing, that cut no name in two unless it alone has too many changes."""
        zone = plan.desired.name
        zone_id = self._zone_ids.get(zone) or self._api.create_zone(zone.removesuffix("."), self._account_id)
        by_name = sorted(plan.changes, key=_order)
        names = [
            _merged(map(self._edits, changes))
            for _, changes in groupby(by_name, key=lambda change: change.record.name)
        ]
        del self._rows[zone]
        for batch in _batches(names):
            self._api.batch(zone_id, batch._asdict())


def _order(change: Change) -> tuple[str, bool]:
    """By name. A DS needs the NS records of its name: it comes after them and goes before them."""
    return change.record.name, (change.record._type == "DS") != isinstance(change, Delete)


def _merged(parts: Iterable[Edits]) -> Edits:
    lists: tuple[list[Json], list[Json], list[Json]] = ([], [], [])
    for edits in parts:
        for whole, part in zip(lists, edits, strict=True):
            whole.extend(part)
    return Edits(*lists)


def _batches(names: list[Edits]) -> Iterator[Edits]:
    """Names together up to BATCH_CHANGES_MAX; of a name with more, first what goes, then what comes."""
    batch = Edits([], [], [])
    for edits in names:
        for part in [edits] if edits.changes <= BATCH_CHANGES_MAX else _cut(edits):
            if batch.changes + part.changes > BATCH_CHANGES_MAX:
                yield batch
                batch = Edits([], [], [])
            batch = _merged([batch, part])
    if batch.changes:
        yield batch


def _cut(edits: Edits) -> Iterator[Edits]:
    for position, changes in enumerate(edits):
        for start in range(0, len(changes), BATCH_CHANGES_MAX):
            lists: list[list[Json]] = [[], [], []]
            lists[position] = changes[start : start + BATCH_CHANGES_MAX]
            yield Edits(*lists)
