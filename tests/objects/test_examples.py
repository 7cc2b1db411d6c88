"""The examples do what their first lines say, within their 80 lines."""

from pathlib import Path

import pytest

from edgestead.objects.host import Host
from edgestead.objects.loader import LoadError, load
from edgestead.objects.types import module_text
from tests.objects.hosts import Client, serve

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ["rate_limiter", "leaderboard", "work_queue"]


def source(name: str) -> tuple[str]:
    return (str(EXAMPLES / f"{name}.py"),)


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_short(name: str) -> None:
    assert len((EXAMPLES / f"{name}.py").read_text().splitlines()) < 80


def test_the_rate_limiter_lets_so_many_through(tmp_path: Path) -> None:
    async def script(client: Client, host: Host) -> None:
        taken = [await client.call("RateLimiter/c/take", limit=3, window_seconds=10**9) for _ in range(5)]
        assert [answer["allowed"] for answer in taken] == [True, True, True, False, False]
        assert await client.call("RateLimiter/c/used", 10**9) == 3
        assert (await client.call("RateLimiter/c/take", 1, 10**9))["left"] == 0
        assert (await client.call("RateLimiter/other/take", limit=1))["allowed"]
        await client.call("RateLimiter/c/forget")
        assert (await client.call("RateLimiter/c/take", 3, 10**9))["left"] == 2

    serve(tmp_path, script, sources=source("rate_limiter"))


def test_the_leaderboard_ranks(tmp_path: Path) -> None:
    async def script(client: Client, host: Host) -> None:
        for player, score in (("ann", 10), ("bob", 30), ("cid", 20), ("ann", 25), ("bob", 5)):
            last = await client.call("Leaderboard/chess/submit", player, score)
        assert last == {"player": "bob", "best": 30, "games": 2, "rank": 1}
        top = await client.call("Leaderboard/chess/top", count=2)
        assert [(row["rank"], row["player"]) for row in top] == [(1, "bob"), (2, "ann")]
        assert await client.call("Leaderboard/chess/top", -1) == []
        assert await client.call("Leaderboard/chess/remove", "bob") is True
        assert await client.call("Leaderboard/chess/remove", "bob") is False
        status, text = await client.ask("GET", "/objects/Leaderboard/chess/fetch/")
        assert (status, text.split()) == (200, b"1 25 ann 2 20 cid".split())

    serve(tmp_path, script, sources=source("leaderboard"))


def test_the_work_queue_hands_a_job_to_one_worker(tmp_path: Path) -> None:
    async def script(client: Client, host: Host) -> None:
        first = await client.call("WorkQueue/mail/add", {"to": "ann"})
        second = await client.call("WorkQueue/mail/add", {"to": "bob"})
        assert await client.call("WorkQueue/mail/claim", "w1") == {
            "id": first,
            "tries": 1,
            "payload": {"to": "ann"},
        }
        assert (await client.call("WorkQueue/mail/claim", "w2"))["id"] == second
        assert await client.call("WorkQueue/mail/claim", "w3") is None
        assert await client.call("WorkQueue/mail/done", first, "w2") is False
        assert await client.call("WorkQueue/mail/done", first, "w1") is True
        assert await client.call("WorkQueue/mail/count") == 1

    serve(tmp_path, script, sources=source("work_queue"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no class derives"),
        ("x = (", "SyntaxError"),
        ("1 / 0", "ZeroDivisionError"),
        ("import missing_module", "ModuleNotFoundError"),
        ("from edgestead import StatefulObject\nclass A(StatefulObject):\n    storage = 'disk'", "must be"),
        (
            "from edgestead import StatefulObject\nclass A(StatefulObject):\n    def fetch(self, r): pass",
            "async",
        ),
    ],
)
def test_a_source_that_cannot_be_used_is_named(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(text)

    with pytest.raises(LoadError, match=words) as caught:
        load([str(path)])
    assert "mine" in str(caught.value)


def test_a_folder_is_all_of_its_files_which_may_import_one_another(tmp_path: Path) -> None:
    (tmp_path / "neighbour_of_ours.py").write_text("NUMBER = 5")
    for name in ("One", "Two"):
        text = "from edgestead import StatefulObject\nimport neighbour_of_ours\n"
        text += f"class {name}(StatefulObject):\n    number = neighbour_of_ours.NUMBER\n"
        (tmp_path / f"{name.lower()}.py").write_text(text)

    assert sorted(load([str(tmp_path)])) == ["One", "Two"]


def test_the_types_of_env_name_classes_and_bindings(tmp_path: Path) -> None:
    text = module_text(load([*source("work_queue"), *source("leaderboard")]), ["CACHE"])

    assert "import leaderboard as _0\nimport work_queue as _1\n" in text
    assert "    Leaderboard: Namespace[_0.Leaderboard]\n    WorkQueue: Namespace[_1.WorkQueue]\n" in text
    assert text.endswith("    CACHE: KeyValues\n")


def test_two_classes_of_one_name_are_refused() -> None:
    with pytest.raises(LoadError, match="already defined"):
        load([*source("work_queue"), *source("work_queue")])
    with pytest.raises(LoadError, match="missing"):
        load(["/missing.py"])
