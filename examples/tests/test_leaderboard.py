"""The leaderboard, filled once: each test begins with a copy of it."""

from pathlib import Path

import pytest

from edgestead.testing import ObjectNode

GAMES = [("ann", 10), ("bob", 30), ("cid", 20), ("ann", 25), ("bob", 5)]


@pytest.fixture(scope="module")
def objects_start():
    with ObjectNode(Path(__file__).parents[1] / "leaderboard.py") as objects:
        for player, score in GAMES:
            objects.Leaderboard["chess"].submit(player, score)
        return objects.snapshot()


@pytest.fixture
def chess(objects):
    return objects.Leaderboard["chess"]


def test_players_are_ranked_by_their_best_game(chess):
    assert [(row["rank"], row["player"], row["best"]) for row in chess.top()] == [
        (1, "bob", 30),
        (2, "ann", 25),
        (3, "cid", 20),
    ]


def test_a_worse_game_changes_nothing_but_the_count(chess):
    assert chess.submit("bob", 1) == {"player": "bob", "best": 30, "games": 3, "rank": 1}


def test_a_player_can_be_removed_once(chess):
    assert chess.remove("bob")
    assert not chess.remove("bob")
    assert chess.top(count=1)[0]["player"] == "ann"


@pytest.mark.parametrize(("count", "rows"), [(2, 2), (0, 0), (-1, 0), (1_000, 3)])
def test_any_count_is_answered(chess, count, rows):
    assert len(chess.top(count)) == rows


def test_the_page_is_text(objects, chess):
    answer = objects.fetch(chess)

    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.text.splitlines()[0].split() == ["1", "30", "bob"]


def test_what_is_stored_is_one_row_a_player(objects, chess):
    assert objects.storage(chess).sql("SELECT player, games FROM scores ORDER BY player") == [
        {"player": "ann", "games": 2},
        {"player": "bob", "games": 2},
        {"player": "cid", "games": 1},
    ]


def test_boards_are_apart(objects):
    assert objects.Leaderboard["go"].top() == []
