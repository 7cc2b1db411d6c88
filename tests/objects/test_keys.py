"""`ctx.storage`, keys: get, put, delete, list, deleteAll, on both backends, to the letter."""

from typing import Any

import pytest

from edgestead.objects.errors import DataCloneError, LimitError, TransactionError
from edgestead.objects.runtime.options import OPTIONS, camel
from edgestead.objects.runtime.storage import Storage
from tests.objects.logs import Logs
from tests.objects.nodes import Body, with_storage

METHODS: dict[str, tuple[Any, ...]] = {
    "get": ("key",),
    "list": (),
    "put": ("key", 1),
    "delete": ("key",),
    "delete_all": (),
    "get_alarm": (),
    "set_alarm": (9_999_999_999_999,),
    "delete_alarm": (),
}
VALUES: dict[str, Any] = {"start": "a", "start_after": "a", "end": "z", "prefix": "p", "limit": 1}
PAIRS = [(method, option) for method in METHODS for option in OPTIONS]
LISTED = {
    "allow_concurrency": {"get", "list", "get_alarm", "set_alarm", "delete_alarm"},
    "no_cache": {"get", "list", "put", "delete", "delete_all"},
    "allow_unconfirmed": {"put", "delete", "delete_all", "set_alarm", "delete_alarm"},
}

ORDER = ["", "A", "a", "aa", "b", "é", "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff"]
LISTS: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ["a", "b", "ba", "bb", "c"]),
    ({"start": "b"}, ["b", "ba", "bb", "c"]),
    ({"start_after": "b"}, ["ba", "bb", "c"]),
    ({"end": "bb"}, ["a", "b", "ba"]),
    ({"prefix": "b"}, ["b", "ba", "bb"]),
    ({"prefix": ""}, ["a", "b", "ba", "bb", "c"]),
    ({"prefix": "b", "start": "ba"}, ["ba", "bb"]),
    ({"prefix": "b", "end": "bb"}, ["b", "ba"]),
    ({"prefix": "b", "start": "c"}, []),
    ({"prefix": "b", "end": "a"}, []),
    ({"start": "c", "end": "a"}, []),
    ({"start": "b", "end": "b"}, []),
    ({"reverse": True}, ["c", "bb", "ba", "b", "a"]),
    ({"reverse": True, "start": "b", "end": "c"}, ["bb", "ba", "b"]),
    ({"limit": 2}, ["a", "b"]),
    ({"limit": 2, "reverse": True}, ["c", "bb"]),
    ({"limit": 99}, ["a", "b", "ba", "bb", "c"]),
    ({"startAfter": "a", "limit": 1}, ["b"]),
    ({"prefix": "\U0010ffff"}, []),
]

BAD_CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any], type[Exception], str]] = [
    ("get", (1,), {}, TypeError, "a key or a list of keys"),
    ("get", ("k" * 2_049,), {}, LimitError, "Keys cannot be larger than 2048 bytes. A key of size 2049"),
    ("get", ("é" * 1_025,), {}, LimitError, "size 2050"),
    ("get", ("\ud800",), {}, TypeError, "surrogate"),
    ("get", (["k"] * 129,), {}, LimitError, "Maximum number of key value pairs is 128. 129 pairs"),
    ("get", (["k", 1],), {}, TypeError, "a key must be str"),
    ("get", (["k"],), {"default": 1}, TypeError, "has no default"),
    ("get", ("k", 5), {}, TypeError, "options as a mapping"),
    ("get", ("k", {"noCache": 1}), {}, TypeError, "must be bool"),
    ("get", ("k", {"no_cache": True}), {"noCache": True}, TypeError, "twice"),
    ("put", ("k",), {}, TypeError, "without a value"),
    ("put", (1, 2), {}, TypeError, "a key must be str"),
    ("put", ({"k": 1}, 5), {}, TypeError, "options as a mapping"),
    ("put", ({"k": 1}, 5, {}), {}, TypeError, "put(entries, options)"),
    ("put", ({str(n): n for n in range(129)},), {}, LimitError, "129 pairs"),
    ("put", ("k" * 2_049, 1), {}, LimitError, "2049"),
    ("put", ("k", b"x" * 131_068), {}, LimitError, "Values cannot be larger than 131072 bytes"),
    ("put", ("k", len), {}, DataCloneError, "could not be cloned"),
    ("put", ({"good": 1, "bad": len},), {}, DataCloneError, "could not be cloned"),
    ("put", ({"good": 1, "b" * 2_049: 1},), {}, LimitError, "2049"),
    ("put", ({"good": 1, "bad": b"x" * 140_000},), {}, LimitError, "131072"),
    ("delete", (None,), {}, TypeError, "a key or a list of keys"),
    ("delete", ([str(n) for n in range(129)],), {}, LimitError, "129 pairs"),
    ("list", (), {"start": "a", "startAfter": "a"}, TypeError, "both start and startAfter"),
    ("list", (), {"limit": 0}, TypeError, "List limit must be positive"),
    ("list", (), {"limit": -1}, TypeError, "List limit must be positive"),
    ("list", (), {"limit": True}, TypeError, "must be int"),
    ("list", (), {"prefix": "\ud800"}, TypeError, "surrogate"),
    ("list", (), {"prefix": b"x"}, TypeError, "must be str"),
]


@pytest.fixture(params=["kv", "sql"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_get_gives_what_was_put_and_none_for_nothing(logs: Logs, backend: str) -> None:
    async def body(storage: Storage) -> None:
        await storage.put("a", {"n": 1})
        await storage.put("none", None)

        assert await storage.get("a") == {"n": 1}
        assert await storage.get("nothing") is None
        assert await storage.get("nothing", default=7) == 7
        assert await storage.get("none", default=7) is None
        assert await storage.get("") is None

    with_storage(logs, body, backend)


def test_a_value_is_a_fresh_copy_each_time(logs: Logs, backend: str) -> None:
    async def body(storage: Storage) -> None:
        value = [1]
        await storage.put("a", value)
        value.append(2)
        (await storage.get("a")).append(3)

        assert await storage.get("a") == [1]

    with_storage(logs, body, backend)


def test_get_of_many_is_ordered_and_leaves_out_what_is_not_there(logs: Logs, backend: str) -> None:
    async def body(storage: Storage) -> None:
        await storage.put(dict.fromkeys(ORDER, 1))

        found = await storage.get([*reversed(ORDER), "nothing", "a", "a"])

        assert list(found) == ORDER == sorted(ORDER, key=lambda key: key.encode())
        assert await storage.get([]) == {}

    with_storage(logs, body, backend)


def test_delete_says_what_existed(logs: Logs, backend: str) -> None:
    async def body(storage: Storage) -> None:
        await storage.put({"a": 1, "b": 2, "c": None})

        assert await storage.delete("a") is True
        assert await storage.delete("a") is False
        assert await storage.delete(["a", "b", "b", "c", "x"]) == 2
        assert await storage.list() == {}

    with_storage(logs, body, backend)


@pytest.mark.parametrize("where", ["memory", "log", "database"])
@pytest.mark.parametrize(("options", "expected"), LISTS)
def test_list_gives_the_range(logs: Logs, where: str, options: dict[str, Any], expected: list[str]) -> None:
    async def body(storage: Storage) -> None:
        await storage.put({key: key for key in ("c", "bb", "old", "a")})
        if where != "memory":
            await storage.sync()
        await storage.delete("old")
        await storage.put({"b": "b", "ba": "ba"})
        if where == "database":
            storage._engine.checkpoint()
            storage._engine.known.clear()

        assert list((await storage.list(options)).items()) == [(key, key) for key in expected]

    with_storage(logs, body, "kv")


def test_keys_are_ordered_by_their_bytes_wherever_they_are(logs: Logs) -> None:
    async def body(storage: Storage) -> None:
        for number, key in enumerate(ORDER):
            await storage.put(key, number)
            if number % 3 == 0:
                storage._engine.checkpoint()

        assert list(await storage.list()) == ORDER
        assert list(await storage.list(reverse=True)) == ORDER[::-1]
        assert list(await storage.list(prefix="\ud7ff")) == ["\ud7ff"]
        await storage.put({"\U0010ffff\U0010ffff": 1, "\U0010fffe": 1})
        last = ["\U0010ffff", "\U0010ffff\U0010ffff"]
        assert list(await storage.list(prefix=last[0])) == last, "nothing is behind them"
        assert list(await storage.list(prefix=last[1])) == last[1:]

    with_storage(logs, body)


@pytest.mark.parametrize(("method", "arguments", "named", "error", "words"), BAD_CALLS)
def test_a_bad_call_is_refused_and_stores_nothing(
    logs: Logs,
    backend: str,
    method: str,
    arguments: tuple[Any, ...],
    named: dict[str, Any],
    error: type[Exception],
    words: str,
) -> None:
    async def body(storage: Storage) -> None:
        await storage.put("before", 1)

        with pytest.raises(error) as caught:
            getattr(storage, method)(*arguments, **named)

        assert words in str(caught.value)
        assert await storage.list() == {"before": 1}

    with_storage(logs, body, backend)


@pytest.mark.parametrize(("method", "option"), PAIRS)
def test_each_option_goes_with_its_methods_and_no_other(logs: Logs, method: str, option: str) -> None:
    listed = method == "list" if option in VALUES or option == "reverse" else method in LISTED[option]

    async def body(storage: Storage) -> None:
        call = getattr(storage, method)
        value = VALUES.get(option, True)
        for options in ({option: value}, {camel(option): value}):
            for arguments, named in (((*METHODS[method], options), {}), (METHODS[method], options)):
                await storage.put("key", 0)
                if listed:
                    await call(*arguments, **named)
                else:
                    with pytest.raises(TypeError, match="has no option"):
                        call(*arguments, **named)
                    assert (await storage.get("key"), await storage.get_alarm()) == (0, None)

    with_storage(logs, body)


@pytest.mark.parametrize(
    ("snake", "other"),
    [
        ("delete_all", "deleteAll"),
        ("transaction_sync", "transactionSync"),
        ("get_alarm", "getAlarm"),
        ("set_alarm", "setAlarm"),
        ("delete_alarm", "deleteAlarm"),
        ("get_current_bookmark", "getCurrentBookmark"),
        ("get_bookmark_for_time", "getBookmarkForTime"),
        ("on_next_session_restore_bookmark", "onNextSessionRestoreBookmark"),
    ],
)
def test_both_spellings_are_one_method(snake: str, other: str) -> None:
    assert getattr(Storage, snake) is getattr(Storage, other)


def test_the_largest_key_and_value_are_taken(logs: Logs, backend: str) -> None:
    async def body(storage: Storage) -> None:
        key, value = "k" * 2_048, b"x" * (131_072 - 5)
        await storage.put(key, value)
        await storage.put({str(number): number for number in range(128)})

        assert await storage.get(key) == value
        assert len(await storage.get([str(number) for number in range(128)])) == 128

    with_storage(logs, body, backend)


def test_options_never_change_what_is_stored(logs: Logs, backend: str) -> None:
    async def body(storage: Storage) -> None:
        await storage.put("a", 1, no_cache=True, allow_unconfirmed=True)
        storage._engine.checkpoint()

        assert "a" not in storage._engine.known
        assert await storage.get("a", no_cache=True, allow_concurrency=True) == 1
        assert "a" not in storage._engine.known
        assert await storage.get("a") == 1
        assert "a" in storage._engine.known

    with_storage(logs, body, backend)


def test_delete_all_deletes_everything_but_the_alarm(logs: Logs, backend: str) -> None:
    async def body(storage: Storage) -> None:
        await storage.put({"a": 1, "b": 2})
        await storage.sync()
        await storage.set_alarm(9_999_999_999_999)
        await storage.put("c", 3)
        if backend == "sql":
            storage.sql.exec("CREATE TABLE t (a); INSERT INTO t VALUES (1)")

        await storage.delete_all()

        assert await storage.list() == {}
        assert await storage.get_alarm() == 9_999_999_999_999
        if backend == "sql":
            storage.sql.exec("CREATE TABLE t (a)")
        await storage.put("d", 4)
        assert await storage.list() == {"d": 4}

    with_storage(logs, body, backend)
    with_storage(logs, _expect({"d": 4}), backend)


def _expect(pairs: dict[str, Any]) -> Body:
    async def body(storage: Storage) -> None:
        assert await storage.list() == pairs

    return body


def test_delete_all_inside_a_transaction_is_refused(logs: Logs, backend: str) -> None:
    async def body(storage: Storage) -> None:
        await storage.put("a", 1)

        async def closure(txn: Any) -> None:
            storage.delete_all()

        with pytest.raises(TransactionError, match="within a transaction"):
            await storage.transaction(closure)
        assert await storage.get("a") == 1

    with_storage(logs, body, backend)


def test_writes_survive_eviction_and_restart(logs: Logs, backend: str) -> None:
    async def body(storage: Storage) -> None:
        await storage.put({str(number): number for number in range(100)})
        await storage.delete(["1", "2"])

    with_storage(logs, body, backend)

    with_storage(
        logs, _expect({k: int(k) for k in sorted(map(str, range(100))) if k not in ("1", "2")}), backend
    )


def test_many_keys_move_to_the_database_and_stay_readable(logs: Logs) -> None:
    async def body(storage: Storage) -> None:
        for number in range(3_000):
            await storage.put(f"{number:05}", number)
            if number % 100 == 0:
                await storage.sync()

        assert len(storage._engine.unflushed) < 1_500
        assert list((await storage.list(limit=3, start="01000")).values()) == [1_000, 1_001, 1_002]
        assert len(await storage.list()) == 3_000

    with_storage(logs, body, "kv", segment_bytes=1 << 20)


def test_the_cache_is_bounded(logs: Logs) -> None:
    async def body(storage: Storage) -> None:
        for number in range(60):
            await storage.put(f"{number}", b"x" * 100_000)
            await storage.sync()

        assert storage._engine._cached_bytes < 4_000_000
        assert sum(len(value or b"") for value in storage._engine.known.values()) < 4_000_000
        assert len(await storage.list()) == 60

    with_storage(logs, body, "kv", segment_bytes=1 << 22)
