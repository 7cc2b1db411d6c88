"""Calls of `ctx.storage` as a type checker sees them: read by mypy (`./scripts/lint`), never run.

Owns  what is right, with the type that it gives, and what is not: an `ignore` that mypy does not need is an
      error here, so each of those lines is one that it refuses.
Not   what happens to such calls when they run (test_keys.py): each is a TypeError there, too.
"""

from datetime import datetime
from typing import Any, assert_type

from edgestead.objects.runtime.storage import Storage, Transaction


async def right(storage: Storage, txn: Transaction, now: datetime) -> None:
    assert_type(await storage.get("a"), Any)
    assert_type(await storage.get("a", default=False), Any | bool)
    assert_type(await storage.get("a", {"noCache": True}, default=""), Any | str)
    assert_type(await storage.get(["a", "b"], no_cache=True), dict[str, Any])
    assert_type(await storage.list(prefix="a", startAfter="a1", limit=10, reverse=True), dict[str, Any])
    await storage.put("a", 1, allow_unconfirmed=True)
    await storage.put({"a": 1, "b": [2]}, {"noCache": True})
    assert_type(await storage.delete("a"), bool)
    assert_type(await storage.delete(["a", "b"]), int)
    await storage.deleteAll(noCache=True)
    await storage.set_alarm(1.5, allowConcurrency=True)
    await storage.setAlarm(now)
    assert_type(await storage.get_alarm(allow_concurrency=None), int | None)
    assert_type(await storage.get_bookmark_for_time(now), str)
    assert_type(await txn.get("a", default=0), Any | int)
    assert_type(await txn.get(("a", "b")), dict[str, Any])
    assert_type(await txn.delete("a"), bool)
    await txn.put({"a": 1})


async def wrong(storage: Storage, txn: Transaction) -> None:
    await storage.put("a")  # type: ignore[call-overload]
    await storage.put({"a": 1}, 2)  # type: ignore[call-overload]
    await storage.put("a", 1, allowConcurrency=True)  # type: ignore[call-overload]
    await storage.get(1)  # type: ignore[call-overload]
    await storage.get(["a"], default={})  # type: ignore[call-overload]
    (await storage.get("a", default=0)).upper()  # type: ignore[union-attr]
    await storage.list(stat="b")  # type: ignore[call-arg]
    await storage.list(limit="b")  # type: ignore[arg-type]
    await storage.delete("a", reverse=True)  # type: ignore[call-overload]
    await storage.deleteAll(allowConcurrency=True)  # type: ignore[call-arg]
    await storage.set_alarm("tomorrow")  # type: ignore[arg-type]
    await storage.get_alarm(allow_unconfirmed=True)  # type: ignore[call-arg]
    await txn.put("a")  # type: ignore[call-overload]
    await txn.list(stat="b")  # type: ignore[call-arg]
