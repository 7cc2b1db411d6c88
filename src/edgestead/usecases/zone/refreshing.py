"""Rendering a zone's names again when no record changed but something they answer with did.

Owns  which zones wait for it, and how many names one transaction takes.
Not   when a name differs: the edit tells the feed only what does.
"""

from contextlib import suppress
from itertools import groupby

import msgspec

from edgestead.model.call import Call
from edgestead.model.refusals.setting import KeysSealed
from edgestead.store.control import Transaction
from edgestead.tables import flattened, settings, zones
from edgestead.usecases import limits
from edgestead.usecases.change.edit import ZoneEdit
from edgestead.usecases.platform import Platform
from edgestead.usecases.serving import flattening
from edgestead.usecases.serving.flattening import Answer

SERVER = "server"  # a scope of settings that no zone, account or user has
RENDERED_WITH = "serving.rendered_with"
RENDERING = 4
"""To be raised when the same records and settings are served as something else than before."""

_encode = msgspec.json.Encoder().encode


def go_on(call: Call, tx: Transaction, platform: Platform) -> bool:
    """Render the next names of a zone that waits. Returns whether there was one."""
    waiting = flattened.next_refresh(tx)
    if waiting is None:
        return False
    zone_id, after = waiting
    zone = zones.zone(tx, zone_id)
    if zone is None:
        flattened.end_refresh(tx, zone_id)
    else:
        edit = ZoneEdit(call, tx, platform, zone.id)
        edit.refresh([*(() if after else (zone.name,)), *flattening.next_names(tx, zone_id, after)])
        with suppress(KeysSealed):  # it is served as it is until its keys can be opened
            edit.finish()
    return True


def start(call: Call, tx: Transaction, platform: Platform) -> None:
    """Have every zone rendered again where this server's own names or addresses are others than last time, or
    another version rendered it."""
    flattening.mend_clock(tx, call.now_us)
    now = _encode((RENDERING, platform.nameservers, platform.edge_addresses)).decode()
    before = settings.one(tx, SERVER, RENDERED_WITH)
    if before is None or before.value != now:
        settings.put(tx, SERVER, RENDERED_WITH, now, call.now_us)
        flattened.refresh_every_zone(tx)


def answered(call: Call, tx: Transaction, platform: Platform, target: str, answer: Answer) -> None:
    """Take what the world says of a target outside, and serve it at every name that is flattened to it."""
    if not flattening.take_answer(tx, target, answer, call.now_us):
        return
    hanging = flattening.dependents(tx, (target,), limits.HANGING_MAX)
    if hanging is None:
        flattening.refresh_later(tx, (target,))
        return
    for zone_id, group in groupby(hanging, key=lambda one: one.zone_id):
        zone = zones.zone(tx, zone_id)
        if zone is not None:
            edit = ZoneEdit(call, tx, platform, zone.id)
            edit.refresh([one.name for one in group])
            edit.finish()


def zone_came_or_went(tx: Transaction, apex: str) -> None:
    """What lies at or below an apex is ours from now on, or no longer: look again at whoever hangs on it."""
    flattening.refresh_others_below(tx, apex)
