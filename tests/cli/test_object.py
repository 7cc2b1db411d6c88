"""`edgecli object` against a running server with two objects processes."""

import base64
import json
import sqlite3
import subprocess
import sys
from typing import Any

import pytest

from edgestead.cli import http
from edgestead.cli.failure import Failed
from edgestead.cli.object import read, written
from edgestead.cli.object.commands import COMMANDS
from edgestead.objects.values import codec
from edgestead.testing.server import EdgeServer, environment
from tests.cli.conftest import call
from tests.cli.test_main import SLOW_TO_IMPORT
from tests.support.patience import patient

NOTES = """
import asyncio

from edgestead import StatefulObject


class Notes(StatefulObject):
    storage = "sql"

    async def on_start(self):
        self.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, text, data)")

    async def add(self, text, data=None):
        return self.ctx.storage.sql.exec("INSERT INTO notes (text) VALUES (?) RETURNING id", text).one()["id"]

    async def echo(self, *arguments, **named):
        return [list(arguments), named]

    async def take_long(self, seconds):
        await asyncio.sleep(seconds)

    async def wake(self, time_ms):
        await self.ctx.storage.set_alarm(time_ms)

    async def alarm(self):
        self.ctx.storage.sql.exec("INSERT INTO notes (text) VALUES ('rang')")


class Plain(StatefulObject):
    async def put(self, key, value):
        await self.ctx.storage.put(key, value)

    async def put_odd(self):
        await self.ctx.storage.put({name: eval(text) for name, text in ODD.items()})
"""
ODD = {  # a key, the value as Python writes it, and as the document does
    "bytes": ("b'\\xff'", {"$bytes": "/w=="}),
    "tuple": ("(1, 'a')", {"$tuple": [1, "a"]}),
    "set": ("{1}", {"$set": [1]}),
    "frozen": ("frozenset((1,))", {"$frozenset": [1]}),
    "keys": ("{1: 2, '$a': 3}", {"$dict": [[1, 2], ["$a", 3]]}),
    "day": ("__import__('datetime').date(2030, 1, 2)", {"$date": "2030-01-02"}),
    "time": ("__import__('datetime').datetime(2030, 1, 2, 3)", {"$datetime": "2030-01-02T03:00:00"}),
    "nan": ("float('nan')", {"$float": "nan"}),
    "pattern": ("__import__('re').compile('a')", {"$pattern": ["a", 32]}),
    "error": ("ValueError('no', 1)", {"$error": ["ValueError", "no", 1]}),
    "large": ("2**80", 2**80),
    "half": ("'\\ud800'", "\ud800"),
    "nested": (
        "{'ä': [1.5, None, True, {'b': (b'',)}]}",
        {"ä": [1.5, None, True, {"b": {"$tuple": [{"$bytes": ""}]}}]},
    ),
}
NOTES += f"\n\nODD = { {name: text for name, (text, _) in ODD.items()}!r}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_shows_how_it_is_used(name):
    done = call("object", name, "--help")
    _, _, text = done.out.partition("\n")

    assert done.code == 0
    assert f"edgecli object {name}" in text
    assert max(map(len, done.out.splitlines())) <= 100


@pytest.fixture(scope="module")
def objects_server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("objects")
    (folder / "notes.py").write_text(NOTES)
    server = EdgeServer(
        folder / "data", *patient(folder), "--objects", str(folder / "notes.py"), "--objects-workers", "2"
    ).start()
    yield server
    server.close()


@pytest.fixture
def edgecli(clean_environment, objects_server, monkeypatch):
    """The command, in an environment that names the server."""
    monkeypatch.setenv("EDGE_OBJECTS_ADDR", objects_server.ready["objects"])
    monkeypatch.setenv("EDGE_TOKEN", objects_server.ready["api_token"])
    return call


def test_a_call_takes_words_of_the_shell_as_values(edgecli):
    words = ["5", '"5"', "five", "true", "[1, 2]", '{"a": null}', "NaN", "-1.5"]

    done = edgecli("object", "call", "Notes", "echo", "echo", "-k", "a=1", "-k", "b=x=y", "--", *words)

    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out) == [
        [5, "5", "five", True, [1, 2], {"a": None}, "NaN", -1.5],
        {"a": 1, "b": "x=y"},
    ]


def test_objects_of_every_process_are_listed_and_shown(edgecli):
    for number in range(6):
        edgecli("object", "call", "Plain", f"list/{number}", "put", "key", f"{number}")

    shown = edgecli("object", "list", "Plain").out.splitlines()
    listed = json.loads(edgecli("object", "list", "Plain", "--json").out)
    assert shown[0].split() == ["class", "name", "position", "alarm", "state", "id"]
    assert {f"list/{number}" for number in range(6)} <= {one["name"] for one in listed}
    assert [one["id"] for one in listed] == sorted(one["id"] for one in listed)
    assert len(shown) == len(listed) + 1

    facts = json.loads(edgecli("object", "info", "Plain", "list/1", "--json").out)
    by_id = edgecli("object", "info", "--id", "Plain", facts["id"]).out
    assert (facts["storage"], facts["name"]) == ("kv", "list/1")
    assert "name            list/1\n" in by_id

    there = json.loads(edgecli("object", "where", "Plain", "list/1", "--json").out)
    assert (there["id"], there["node"], there["slot"]) == (facts["id"], None, None)
    assert edgecli("object", "where", "--id", "Plain", facts["id"]).out.endswith(
        f"objects-{there['process']}\n"
    )


def test_an_object_without_a_name_is_called_by_its_id(edgecli):
    edgecli("object", "call", "Notes", "named", "add", "one")
    by_name = json.loads(edgecli("object", "info", "Notes", "named", "--json").out)

    assert edgecli("object", "call", "--id", "Notes", by_name["id"], "add", "two").out == "2\n"


def test_sql_reads_and_writes_only_when_it_is_told_to(edgecli):
    edgecli("object", "call", "Notes", "sql", "add", "one")
    table = edgecli("object", "sql", "Notes", "sql", "SELECT id, text, x'ff' AS b, 9e999 AS r FROM notes")
    assert [line.split() for line in table.out.splitlines()] == [
        ["id", "text", "b", "r"],
        ["1", "one", "base64:/w==", "Infinity"],
    ]

    refused = edgecli("object", "sql", "Notes", "sql", "DELETE FROM notes")
    assert (refused.code, refused.out) == (1, "")
    assert "only allowed to read" in refused.err

    written = edgecli("object", "sql", "--write", "Notes", "sql", "UPDATE notes SET text = ?", "uno")
    assert (written.code, written.out, written.err) == (0, "", "1 row written.\n")
    rows = json.loads(edgecli("object", "sql", "Notes", "sql", "SELECT text FROM notes", "--json").out)
    assert rows["rows"] == [["uno"]]


def test_what_an_object_does_may_take_longer_than_other_answers(edgecli, monkeypatch):
    monkeypatch.setattr(http, "SECONDS_MAX", 0.5)

    done = edgecli("object", "call", "Notes", "long", "take_long", "1")

    assert (done.code, done.out) == (0, "null\n"), done.err


def test_an_export_is_whole_or_not_there(edgecli, clean_environment):
    edgecli("object", "call", "Notes", "export", "add", "one")

    done = edgecli("object", "export", "Notes", "export", "notes.sqlite")
    assert (done.code, done.err) == (0, "")
    database = sqlite3.connect("notes.sqlite")
    assert database.execute("SELECT text FROM notes").fetchall() == [("one",)]
    database.close()

    again = edgecli("object", "export", "Notes", "export", "notes.sqlite")
    assert (again.code, "--force replaces it" in again.err) == (1, True)
    assert edgecli("object", "export", "--force", "Notes", "export", "notes.sqlite").code == 0
    assert edgecli("object", "export", "Notes", "export", "-").bytes[:15] == b"SQLite format 3"
    assert edgecli("object", "export", "Notes", "missing", "other.sqlite").code == 1
    assert [path.name for path in clean_environment.iterdir()] == ["notes.sqlite"]


def test_an_export_in_words_has_every_value(edgecli, clean_environment):
    edgecli("object", "call", "Plain", "odd", "put_odd")
    edgecli("object", "call", "Plain", "odd", "put", "deep", json.dumps(json.loads("[" * 99 + "]" * 99)))
    edgecli("object", "call", "Plain", "odd", "put", "plain", '{"a": 1}')

    done = edgecli("object", "export", "Plain", "odd", "odd.json")

    assert done.code == 0, done.err
    found = json.loads((clean_environment / "odd.json").read_text())
    assert (found["class"], found["name"], found["alarm"]) == ("Plain", "odd", None)
    deep = found["keys"].pop("deep")
    assert found["keys"] == {name: written for name, (_, written) in ODD.items()} | {"plain": {"a": 1}}
    assert deep == json.loads("[" * 99 + "]" * 99)
    assert (found["schema"], found["tables"]) == ([], {})
    assert [path.name for path in clean_environment.iterdir()] == ["odd.json"]


def test_an_export_in_words_has_tables_row_by_row(edgecli, clean_environment):
    for text in ("one", "two"):
        edgecli("object", "call", "Notes", "rows", "add", text)
    edgecli("object", "call", "Notes", "rows", "wake", str(32_503_680_000_000))

    edgecli("object", "export", "Notes", "rows", "rows.json")

    found = json.loads((clean_environment / "rows.json").read_text())
    assert found["tables"] == {
        "notes": {"columns": ["id", "text", "data"], "rows": [[1, "one", None], [2, "two", None]]}
    }
    assert found["schema"] == ["CREATE TABLE notes (id INTEGER PRIMARY KEY, text, data)"]
    assert found["alarm"] is not None
    assert (clean_environment / "rows.json").read_text().count("\n  [") == 2  # a row is a line


def test_a_value_that_contains_itself_is_left_as_it_is_stored():
    value: list[Any] = [1]
    value.append(value)
    stored = codec.encode(value)

    (only,) = written._value(stored).items()

    assert only[0] == "$stored"
    again = codec.decode(base64.b64decode(only[1]))
    assert again[1] is again


def test_verify_reads_page_after_page_and_names_what_is_wrong(capsys):
    class Server:
        """Two pages; the log is damaged, and so is one object."""

        def call(self, method: str, path: str, *, query: dict[str, Any]) -> dict[str, Any]:
            assert (method, path) == ("POST", "/operate/verify")
            name, problems, cursor, log = {
                None: ("bad", ["no room"], "Notes/1", ["segment x"]),
                "Notes/1": ("good", [], "", []),
            }[query.get("cursor")]
            verdict = {"class": "Notes", "id": "1", "name": name, "pages": 1, "keys": 2, "problems": problems}
            return {"result": [verdict], "result_info": {"count": 1, "cursor": cursor, "log_problems": log}}

    verdicts = list(read._verdicts(Server(), None, None, False))

    assert [(one["object"], one["problems"]) for one in verdicts] == [
        ("the log", ["segment x"]),
        ("bad", ["no room"]),
        ("good", []),
    ]
    tally = read._Tally()
    read._echo_verdicts(tally.tallied(verdicts), tally)
    printed = " the log: segment x\nNotes bad: no room\n3 objects checked, 2 damaged.\n"
    assert capsys.readouterr().out == printed


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_what_was_verified_is_told_before_a_later_page_fails(edgecli_alone, monkeypatch, options):
    """No verdict waits for the last: there may be millions."""

    class Server:
        def call(self, method: str, path: str, *, query: dict[str, Any]) -> dict[str, Any]:
            if "cursor" in query:
                raise Failed("gone")
            verdict = {"class": "Notes", "id": "1", "name": "bad", "pages": 1, "keys": 2, "problems": ["x"]}
            return {"result": [verdict], "result_info": {"cursor": "Notes/1", "log_problems": []}}

    monkeypatch.setattr(read, "objects_api", lambda *_, **__: Server())
    done = edgecli_alone("object", "verify", *options)

    assert (done.code, done.err) == (1, "Error: gone\n")
    assert "bad" in done.out


def test_verify_looks_at_one_or_all(edgecli):
    edgecli("object", "call", "Notes", "verify", "add", "one")
    one = edgecli("object", "verify", "Notes", "verify")
    assert (one.code, one.out) == (0, "1 object checked, 0 damaged.\n")
    (verdict,) = json.loads(edgecli("object", "verify", "Notes", "verify", "--json").out)
    assert (verdict["object"], verdict["problems"], verdict["pages"] > 1) == ("verify", [], True)
    everything = edgecli("object", "verify")
    assert everything.code == 0, everything
    assert everything.out.endswith(" objects checked, 0 damaged.\n")


def test_delete_asks_first(edgecli):
    edgecli("object", "call", "Notes", "gone", "add", "one")
    assert "Not deleting" in call("object", "delete", "Notes", "gone", stdin="n\n").out
    assert edgecli("object", "call", "Notes", "gone", "add", "two").out == "2\n"

    assert edgecli("object", "delete", "--yes", "Notes", "gone").out == "Deleted Notes gone.\n"
    assert edgecli("object", "call", "Notes", "gone", "add", "one").out == "1\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["info", "Notes", "missing"], "has no object missing"),
        (["info", "Missing", "x"], "has no object x"),
        (["info", "--id", "Notes", "x"], "64 lower-case hexadecimal digits"),
        (["call", "Missing", "x", "add"], "No class Missing was loaded"),
        (["call", "Notes", "x", "missing"], "has no method missing"),
        (["call", "Notes", "x", "add"], "TypeError"),
        (["call", "Notes", "x", "add", "-k", "text"], "NAME=VALUE"),
        (["verify", "Notes", "missing"], "has no object missing"),
    ],
)
def test_what_cannot_be_done_is_said_in_words(edgecli, words, said):
    done = edgecli("object", *words)

    assert (done.code, done.out) == (1, "")
    assert said in done.err


def test_a_token_does_only_what_it_may(edgecli, objects_server, monkeypatch):
    edgecli("object", "call", "Notes", "may", "add", "one")
    monkeypatch.setenv("EDGE_API_BASE", objects_server.ready["api_base"])
    commands = {
        "Objects Read": ["sql", "Notes", "may", "SELECT 1"],
        "Objects Write": ["sql", "--write", "Notes", "may", "SELECT 1"],
        "Objects Invoke": ["call", "Notes", "may", "add", "x"],
    }
    implied = {"Objects Write": {"Objects Read"}}
    for permission in commands:
        made = call("token", "create", permission, "-p", permission, "--account")
        monkeypatch.setenv("EDGE_TOKEN", made.out.strip())
        for needed, words in commands.items():
            allowed = needed == permission or needed in implied.get(permission, ())
            assert edgecli("object", *words).code == (0 if allowed else 1), (permission, needed)
        monkeypatch.setenv("EDGE_TOKEN", objects_server.ready["api_token"])


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({}, "No server that runs objects is named"),
        (
            {"EDGE_API_BASE": "http://127.0.0.1:1/client/v4", "EDGE_TOKEN": "x"},
            "EDGE_OBJECTS_ADDR does not say",
        ),
        ({"EDGE_OBJECTS_ADDR": "127.0.0.1:1"}, "no credentials for it"),
        ({"EDGE_OBJECTS_ADDR": "127.0.0.1:1", "EDGE_TOKEN": "x"}, "cannot be reached"),
    ],
)
def test_the_address_is_asked_for_in_words(edgecli_alone, monkeypatch, variables, said):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    done = edgecli_alone("object", "list")

    assert (done.code, said in done.err) == (1, True), done.err


def test_the_server_on_this_machine_is_found(clean_environment, objects_server, monkeypatch):
    (clean_environment.parent / "share").mkdir()
    (clean_environment.parent / "share" / "edgestead").symlink_to(objects_server.data_dir)
    monkeypatch.setenv("XDG_DATA_HOME", str(clean_environment.parent / "share"))

    assert call("object", "list").code == 0


def test_a_command_imports_nothing_heavy():
    program = f"""
import sys
from edgestead.cli.main import cli
try:
    cli.main(["object", "list"], prog_name="edgecli")
except SystemExit:
    pass
print(sorted({SLOW_TO_IMPORT!r} & sys.modules.keys()))
"""
    nowhere = environment() | {"EDGE_OBJECTS_ADDR": "127.0.0.1:1", "EDGE_TOKEN": "x"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=nowhere)

    assert "cannot be reached" in done.stderr
    assert done.stdout.splitlines()[-1] == "[]"
