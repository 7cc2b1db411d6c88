"""A zone is named by the first word, by --zone, by EDGE_ZONE, or it is the only one."""

import json

import pytest

ONLY, SECOND = "only.example", "second.example"
PERMISSIONS = ("DNS Write", "Zone Write", "Zone Settings Write")


@pytest.fixture
def seen(edgecli, kv_server, monkeypatch):
    """Two zones, and a function that leaves credentials which see only those that are named."""
    for name in (ONLY, SECOND):
        assert edgecli("zone", "create", name).code == 0

    def narrow(*names):
        asked = [word for name in PERMISSIONS for word in ("-p", name)]
        asked += [word for name in names for word in ("--zone", name)]
        made = edgecli("token", "create", "narrow", *asked)
        assert made.code == 0, made.err
        monkeypatch.setenv("EDGE_TOKEN", made.out.strip())

    yield narrow
    monkeypatch.delenv("EDGE_ZONE", raising=False)
    monkeypatch.setenv("EDGE_TOKEN", kv_server.ready["api_token"])
    for name in (ONLY, SECOND):
        edgecli("zone", "delete", name, "--yes")


def contents(edgecli, *arguments):
    return [one["content"] for one in json.loads(edgecli("record", "list", *arguments, "--json").out)]


def test_the_only_zone_need_not_be_named(edgecli, seen):
    seen(ONLY)
    assert ONLY in edgecli("record", "create", "www", "A", "192.0.2.1").out
    assert contents(edgecli) == contents(edgecli, ONLY) == ["192.0.2.1"]
    assert edgecli("record", "update", "www", "--content", "192.0.2.2").code == 0
    assert edgecli("zone", "undo", "2").code == 0
    assert contents(edgecli, "--zone", ONLY) == ["192.0.2.1"]
    shown = edgecli("dns", "dnssec", "--dry-run", "on").out
    assert shown.endswith('{"status": "active"}\nNothing is changed.\n')


def test_one_of_several_is_chosen(edgecli, seen, monkeypatch):
    seen(ONLY, SECOND)
    assert f"There are several zones ({ONLY}, {SECOND} …)" in edgecli("record", "list").err
    edgecli("record", "create", SECOND, "www", "A", "192.0.2.2")
    assert contents(edgecli, "--zone", SECOND) == ["192.0.2.2"]
    monkeypatch.setenv("EDGE_ZONE", SECOND)
    assert contents(edgecli) == ["192.0.2.2"]
    assert contents(edgecli, ONLY) == []
    assert edgecli("zone", "delete", "--yes").out == f"Deleted zone {SECOND}.\n"


def test_a_zone_is_deleted_by_its_name_only(edgecli, seen):
    seen(ONLY)
    done = edgecli("zone", "delete", "--yes")

    assert done.code == 2
    assert "Name the zone" in done.err


def test_two_names_are_one_too_many(edgecli):
    done = edgecli("record", "list", ONLY, "--zone", ONLY)
    assert (done.code, "The zone is named twice" in done.err) == (2, True)
    done = edgecli("record", "create", ONLY, "www", "TXT", "two", "words")
    assert (done.code, "Quote what holds blanks" in done.err) == (2, True)


def test_a_dry_run_shows_the_request_and_sends_none(edgecli, seen, project):
    seen(ONLY)
    shown = edgecli("record", "create", "www", "A", "192.0.2.1", "--dry-run").out
    assert shown.startswith("Would send POST /zones/")
    assert shown.endswith('"content": "192.0.2.1"}\nNothing is changed.\n')
    as_json = json.loads(edgecli("zone", "delete", ONLY, "--dry-run", "--json").out)
    assert (as_json["method"], as_json["body"]) == ("DELETE", None)
    assert edgecli("setting", "set", "ssl=strict", "--dry-run").code == 0
    assert edgecli("setting", "get", "ssl").out != "strict\n"
    (project / "zone.txt").write_text("www 300 IN A 192.0.2.1\n")
    assert "1 of 1 records would be added" in edgecli("zone", "import", "zone.txt", "--dry-run").out
    assert contents(edgecli) == []
    assert edgecli("zone", "get").code == 0


def test_a_question_leaves_stdout_to_json(edgecli, seen):
    done = edgecli("zone", "delete", ONLY, "--json", stdin="n\n")
    assert (done.out, "Not deleting" in done.err) == ("", True)
    edgecli("token", "create", "renewed", "-p", "DNS Read")
    done = edgecli("token", "roll", "renewed", stdin="y\n")
    assert (len(done.out.strip()), "stops working at once" in done.err) == (40, True)
    assert len(json.loads(edgecli("token", "roll", "renewed", "-y", "--json").out)["value"]) == 40
