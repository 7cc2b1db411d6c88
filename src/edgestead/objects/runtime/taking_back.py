"""What happens to an object that is to be taken back, before anybody uses it again.

Owns  the order: recall the moment, log the way there, change the database file, let go.
Not   bookmarks and schedules (`recovery`).
"""

import logging

import apsw

from edgestead.objects.errors import StorageBroken
from edgestead.objects.runtime import own
from edgestead.objects.runtime.asking import ask
from edgestead.objects.runtime.engine import Engine
from edgestead.store.objectlog import LogAway, LogBroken, LogError, NoSpace
from edgestead.store.past import LoggedPosition, ObjectState, Past

log = logging.getLogger(__name__)


async def take_back(past: Past, engine: Engine) -> dict[str, bytes | None]:
    """Take the object of an engine that nobody has used back to what is pending; gives its new tail.

    A moment that is not kept any more leaves it as it is, with an entry in the server's log.
    Raises StorageBroken; then it stays pending.
    """
    lease = engine.lease
    target = lease.pending
    if target is None:  # its own database was there already, and the log has been told by now
        return lease.tail
    try:
        recalled: tuple[LoggedPosition, ObjectState] = await ask(
            lambda done: past.recall(lease.ref, target, lease.life, done)
        )
        found, state = recalled
        if isinstance(engine, own.OwnEngine):
            await engine.take_back(state)
            return {}
        await ask(lambda done: past.restore(lease, state, lambda error: done(None, error)))
    except (NoSpace, LogAway, LogBroken, apsw.Error, OSError) as error:
        if lease.pending is None:  # the log has it, or may have it, and what the file has is not known
            engine.distrust_file()
        raise StorageBroken(f"The object cannot be taken back: {error}") from error
    except LogError as error:
        log.error("%s/%s stays as it is: %s", lease.ref.class_name, lease.ref.name or lease.ref.id, error)
        engine.plan_restore(None)
        return lease.tail
    log.info(
        "%s/%s was taken back to %d of session %d",
        lease.ref.class_name,
        lease.ref.name or lease.ref.id,
        found.position,
        found.session,
    )
    return state.tail
