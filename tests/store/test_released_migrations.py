"""A migration that somebody's database has been through never changes: a change is a new step at the end."""

import pytest

from edgestead.sqlite import kv
from edgestead.sqlite.control import SqliteControlStore
from edgestead.sqlite.objectlog import catalogue, history
from edgestead.sqlite.outbox import MIGRATIONS as FEED
from edgestead.tables.schema import MIGRATIONS as TABLES

# Add a line with each new step; never change one.
RELEASED = {
    "feed": (FEED, ["2be5f20e15b9c6e0", "323269d046688881", "95124fefdeeeb901", "f496469ee5c85aff"]),
    "tables": (
        TABLES,
        [
            "65ca3c89288924a1",
            "01f4cd9e13ac9cb0",
            "c7a6cd015e1288ef",
            "d64cba2f771b8062",
            "2773bb939920bce0",
            "3519e1a4503d5327",
            "bd73e9d28e5d9bfb",
            "73b25e48824eaf8c",
            "b31b76b2c4966a5b",
            "5d71caa1dfcadb44",
            "289c2de956bac632",
            "81c1f1f24d5ef997",
            "756a2e27712dc771",
            "ba4b789902638027",
            "75ac304b77851d3a",
            "6f072780d6c4159e",
            "74ec7e82d2dd8be3",
            "66d2391e167ace75",
            "158788064f763728",
            "4b8859026c72680d",
            "84ffdd53f4725e2c",
            "c4c611e621dd82ed",
            "c38ce20b8872e758",
            "f962407820d81e8f",
            "7a977a8a8d15338a",
            "2f47c588493d69f9",
            "23c8a9e59d9e93c4",
            "1134c56f56c37ab6",
        ],
    ),
    "key-value": (kv.MIGRATIONS, ["2f0d86c7470ef7e9", "95124fefdeeeb901", "0dfd91b1f9a1aaa1"]),
    "objects": (catalogue.MIGRATIONS, ["d145ab1d3b2d98e9", "251dad47e718b2ab", "0cdb1ce6cb590e06"]),
    "objects' history": (history.MIGRATIONS, ["66e391f857b8e174", "dd1fbcf776dd35b7"]),
}


@pytest.mark.parametrize("part", RELEASED)
def test_released_steps_are_what_they_were(part):
    steps, released = RELEASED[part]

    assert [step.checksum[:16] for step in steps] == released


def test_a_commit_reaches_the_disk_before_it_is_acknowledged(tmp_path):
    store = SqliteControlStore(tmp_path / "control.db")
    try:
        ((level,),) = store.write(lambda tx: tx.rows("PRAGMA synchronous")).result(60).value
    finally:
        store.close()

    assert level == 2  # FULL: a kill cannot show the difference, a power cut would
