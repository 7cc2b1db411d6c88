"""`edgecli zone` and `edgecli record` against a running server."""

import itertools
import json
import re

import pytest

from edgestead.cli import table

_numbers = itertools.count(1)
_ID = re.compile(r"\b[0-9a-f]{32}\b")
_TIME = re.compile(r"\b\d{4}-\d\d-\d\dT[0-9:.]+Z")


def plain(text):
    """Output without what differs from run to run, and without padding."""
    text = _TIME.sub("TIME", _ID.sub("ID", text))
    return [re.sub(" {2,}", "  ", line) for line in text.splitlines()]


@pytest.fixture
def zone(edgecli):
    """A zone of the test's own."""
    name = f"r{next(_numbers)}.example"
    assert edgecli("zone", "create", name).code == 0
    return name


def record(edgecli, zone, *arguments):
    done = edgecli("record", "create", zone, *arguments)
    assert done.code == 0, done.err
    return done.out


# zones


def test_a_zone_is_created_shown_listed_and_deleted(edgecli):
    made = edgecli("zone", "create", "life.example")
    assert plain(made.out) == [
        "Zone life.example is active. Its id is ID.",
        "Its parent zone delegates it to ns1.edge.internal and ns2.edge.internal.",
    ]

    assert plain(edgecli("zone", "get", "life.example").out) == [
        "name  life.example",
        "id  ID",
        "status  active",
        "type  full",
        "paused  no",
        "name servers  ns1.edge.internal, ns2.edge.internal",
        "account  ID",
        "plan  Free Website",
        "created  TIME",
        "changed  TIME",
    ]
    assert plain(edgecli("zone", "list", "--name", "life.example").out) == [
        "name  id  status  name servers",
        "life.example  ID  active  ns1.edge.internal, ns2.edge.internal",
    ]

    assert edgecli("zone", "delete", "life.example", stdin="n\n").code == 0
    assert edgecli("zone", "get", "life.example").code == 0
    assert edgecli("zone", "delete", "life.example", "-y").out == "Deleted zone life.example.\n"
    assert "There is no zone life.example" in edgecli("zone", "get", "life.example").err


def test_zones_are_json_for_programs(edgecli, zone):
    by_name = json.loads(edgecli("zone", "get", zone, "--json").out)
    by_id = json.loads(edgecli("zone", "get", by_name["id"], "--json").out)
    listed = json.loads(edgecli("zone", "list", "--json").out)
    made = json.loads(edgecli("zone", "create", f"json.{zone}", "--json").out)

    assert by_id == by_name
    assert by_name in listed
    assert made["name"] == f"json.{zone}"


def test_a_zone_that_must_not_be_is_refused_with_the_servers_words(edgecli, zone):
    done = edgecli("zone", "create", zone)

    assert (done.code, done.out) == (1, "")
    assert "[code: 1061]" in done.err


# records

CREATED = [
    (("www", "A", "192.0.2.10", "--ttl", "300"), "www.{zone} A 192.0.2.10", ["192.0.2.10"]),
    (("@", "MX", "mail.example.net", "--priority", "10"), "{zone} MX 10 mail.example.net", None),
    (("@", "txt", "v=spf1 mx -all"), '{zone} TXT "v=spf1 mx -all"', ['"v=spf1 mx -all"']),
    (
        ("_sip._tcp", "SRV", "10 5 5060 sip.example.net"),
        "_sip._tcp.{zone} SRV 10 5 5060 sip.example.net",
        None,
    ),
    (("@", "CAA", "0 issue ca.example.net"), '{zone} CAA 0 issue "ca.example.net"', None),
    (("full.{zone}", "AAAA", "2001:db8::1"), "full.{zone} AAAA 2001:db8::1", ["2001:db8::1"]),
]


@pytest.mark.parametrize(("arguments", "said", "answer"), CREATED)
def test_a_record_is_created_and_dns_answers_it(edgecli, kv_server, zone, arguments, said, answer):
    name, type_, *rest = (word.format(zone=zone) for word in arguments)

    out = record(edgecli, zone, name, type_, *rest)

    said = said.format(zone=zone)
    assert plain(out) == [f"Created {said}, id ID."]
    if answer is not None:
        assert kv_server.dig(said.partition(" ")[0], type_.upper()) == answer


def test_records_are_a_table_for_people(edgecli, zone):
    record(edgecli, zone, "www", "A", "192.0.2.10", "--ttl", "300", "--comment", "one")
    record(edgecli, zone, "www", "A", "192.0.2.11", "--proxied")
    record(edgecli, zone, "@", "MX", "mail.example.net", "--priority", "10")

    out = edgecli("record", "list", zone).out

    head, *rows = plain(out)
    assert head == "name  type  content  priority  ttl  proxied  id"
    assert sorted(rows) == [
        f"{zone}  MX  mail.example.net  10  auto  no  ID",
        f"www.{zone}  A  192.0.2.10  -  300  no  ID",
        f"www.{zone}  A  192.0.2.11  -  auto  yes  ID",
    ]
    assert len({line.index("  ", line.index("A")) for line in out.splitlines() if " A " in line}) == 1


FILTERS = [
    (("--name", "www"), 2),
    (("--name", "@"), 1),
    (("--name", "WWW.{zone}."), 2),
    (("--type", "a"), 2),
    (("--type", "A", "--content", "192.0.2.11"), 1),
    (("--name", "nothing"), 0),
]


def test_records_are_filtered(edgecli, zone):
    record(edgecli, zone, "www", "A", "192.0.2.10")
    record(edgecli, zone, "www", "A", "192.0.2.11")
    record(edgecli, zone, "@", "TXT", "x")

    for words, count in FILTERS:
        done = edgecli("record", "list", zone, "--json", *(word.format(zone=zone) for word in words))
        assert len(json.loads(done.out)) == count, words


def test_a_long_list_is_read_page_after_page(edgecli, zone, monkeypatch):
    for number in range(5):
        record(edgecli, zone, f"n{number}", "A", "192.0.2.1")
    monkeypatch.setattr("edgestead.cli.target.PAGE_ITEMS", 2)

    found = json.loads(edgecli("record", "list", zone, "--json").out)

    assert [one["name"] for one in found] == [f"n{number}.{zone}" for number in range(5)]


def test_a_record_is_shown(edgecli, zone):
    record(
        edgecli, zone, "www", "A", "192.0.2.10", "--comment", "hello you", "--tag", "team:dns", "--tag", "x"
    )

    assert plain(edgecli("record", "get", zone, "www").out) == [
        f"name  www.{zone}",
        "type  A",
        "content  192.0.2.10",
        "priority  -",
        "ttl  auto",
        "proxied  no",
        "id  ID",
        "comment  hello you",
        "tags  team:dns, x",
        "created  TIME",
        "changed  TIME",
    ]


def test_a_record_is_changed_in_what_is_named_only(edgecli, kv_server, zone):
    record(edgecli, zone, "www", "A", "192.0.2.10", "--ttl", "300", "--comment", "keep", "--tag", "a:b")

    out = edgecli("record", "update", zone, "www", "--content", "192.0.2.20").out

    assert plain(out) == [f"Changed www.{zone} A 192.0.2.20, id ID."]
    found = json.loads(edgecli("record", "get", zone, "www", "--json").out)
    assert (found["ttl"], found["comment"], found["tags"]) == (300, "keep", ["a:b"])
    assert kv_server.dig(f"www.{zone}") == ["192.0.2.20"]

    edgecli("record", "update", zone, found["id"], "--ttl", "auto", "--comment", "", "--name", "web")
    found = json.loads(edgecli("record", "get", zone, "web", "--json").out)
    assert (found["ttl"], found["comment"]) == (1, None)


def test_a_record_is_deleted_by_name_type_content_or_id(edgecli, kv_server, zone):
    for content in ("192.0.2.1", "192.0.2.2", "192.0.2.3"):
        record(edgecli, zone, "www", "A", content)
    record(edgecli, zone, "www", "TXT", "x")

    several = edgecli("record", "delete", zone, "www")
    assert several.code == 1
    assert several.err.startswith("Error: 4 records are meant. Choose one by its id:\n")
    assert len(kv_server.dig(f"www.{zone}")) == 3

    id_ = json.loads(edgecli("record", "list", zone, "--content", "192.0.2.1", "--json").out)[0]["id"]
    assert edgecli("record", "delete", zone, id_).out == f"Deleted www.{zone} A 192.0.2.1.\n"
    assert edgecli("record", "delete", zone, "www", "--content", "192.0.2.2").code == 0
    assert edgecli("record", "delete", zone, "www", "--type", "A").code == 0
    assert kv_server.dig(f"www.{zone}") == []
    assert "There is no such record" in edgecli("record", "delete", zone, "www", "--type", "A").err


REFUSED_BY_SERVER = [
    (("create", "{zone}", "www", "A", "300.1.1.1"), 9005),
    (("create", "{zone}", "www", "NOPE", "x"), None),
    (("create", "{zone}", "www", "A", "192.0.2.1", "--ttl", "5"), None),
    (("get", "{zone}", "0" * 32), 81044),
    (("update", "{zone}", "0" * 32, "--ttl", "auto"), 81044),
]


@pytest.mark.parametrize(("arguments", "code"), REFUSED_BY_SERVER)
def test_what_the_server_refuses_is_said_in_its_words(edgecli, zone, arguments, code):
    done = edgecli("record", *(word.format(zone=zone) for word in arguments))

    assert (done.code, done.out) == (1, "")
    assert "failed with status 4" in done.err
    assert f"[code: {'' if code is None else code}" in done.err


WRONG = [
    ("record", "create", "a.example", "A"),
    ("record", "create", "a.example", "www", "A", "192.0.2.1", "--ttl", "soon"),
    ("record", "create", "a.example", "www", "A", "192.0.2.1", "--ttl", "-1"),
    ("record", "create", "a.example", "www", "MX", "a.example", "--priority", "ten"),
    ("record", "update", "a.example", "www"),
    ("record", "list", "a.example", "b.example"),
    ("record", "dance"),
    ("zone", "create"),
    ("zone", "get", "a.example", "b.example"),
]


@pytest.mark.parametrize("arguments", WRONG)
def test_a_wrong_call_is_code_2(edgecli, arguments):
    assert edgecli(*arguments).code == 2


def test_without_a_server_it_says_how_to_start_one(edgecli_alone):
    done = edgecli_alone("record", "list", "example.com")

    assert done.code == 1
    assert "edgecli serve" in done.err


# zone files

FILE = "www 300 IN A 192.0.2.1\n@ IN MX 10 mail\nmail IN A 192.0.2.2\n"


@pytest.mark.parametrize("group", ["zone", "record"])
def test_a_zone_file_is_imported_exported_and_imported_elsewhere(edgecli, kv_server, zone, project, group):
    (project / "zone.txt").write_text(FILE)

    assert edgecli(group, "import", zone, "zone.txt").out == f"{zone}: 3 of 3 records are added.\n"
    assert edgecli(group, "import", zone, "-", stdin=FILE).out == f"{zone}: 0 of 3 records are added.\n"
    assert kv_server.dig(zone, "MX") == [f"10 mail.{zone}."]

    exported = edgecli(group, "export", zone).out
    assert edgecli(group, "export", zone, "--output", "out.txt").out == ""
    assert (project / "out.txt").read_text().splitlines()[1:] == exported.splitlines()[
        1:
    ]  # the time is first
    other = f"other.{zone}"
    edgecli("zone", "create", other)
    elsewhere = exported.replace(zone, other)
    done = edgecli(group, "import", other, "-", "--json", stdin=elsewhere)
    assert json.loads(done.out)["recs_added"] == 3
    assert kv_server.dig(f"www.{other}") == ["192.0.2.1"]


def test_an_import_can_proxy_what_it_adds(edgecli, zone):
    edgecli("zone", "import", zone, "-", "--proxied", stdin="www 300 IN A 192.0.2.1\n")

    assert json.loads(edgecli("record", "get", zone, "www", "--json").out)["proxied"] is True


def test_a_bad_line_is_named_and_nothing_is_imported(edgecli, zone):
    done = edgecli("zone", "import", zone, "-", stdin=FILE + "bad IN A 192.0.2.x\n")

    assert (done.code, done.out) == (1, "")
    assert f"Line 4, A bad.{zone}" in done.err
    assert json.loads(edgecli("record", "list", zone, "--json").out) == []


def test_an_import_is_one_change(edgecli, zone):
    edgecli("zone", "import", zone, "-", stdin=FILE)

    (row,) = plain(edgecli("zone", "history", zone).out)[1:]
    assert row.startswith("1  TIME  admin@edge.internal  import; + ")
    assert f"+ MX {zone} 10 mail.{zone}" in row


# history


def test_history_says_who_did_what_and_undo_takes_it_back(edgecli, kv_server, zone):
    record(edgecli, zone, "www", "A", "192.0.2.1")
    edgecli("record", "update", zone, "www", "--content", "192.0.2.2")
    edgecli("record", "delete", zone, "www")

    assert edgecli("zone", "undo", zone, "3").out == f"Took back change 3 of {zone}. That is change 4.\n"
    assert kv_server.dig(f"www.{zone}") == ["192.0.2.2"]
    assert edgecli("zone", "undo", zone, "2").code == 0
    assert kv_server.dig(f"www.{zone}") == ["192.0.2.1"]

    head, *rows = plain(edgecli("zone", "history", zone).out)
    assert head == "number  when  who  what"
    assert rows == [
        f"5  TIME  admin@edge.internal  undo 2; ~ A www.{zone} 192.0.2.1",
        f"4  TIME  admin@edge.internal  undo 3; + A www.{zone} 192.0.2.2",
        f"3  TIME  admin@edge.internal  - A www.{zone} 192.0.2.2",
        f"2  TIME  admin@edge.internal  ~ A www.{zone} 192.0.2.2",
        f"1  TIME  admin@edge.internal  + A www.{zone} 192.0.2.1",
    ]


def test_history_is_limited_filtered_and_json(edgecli, zone):
    for name in ("a", "b", "a"):
        record(edgecli, zone, name, "TXT", str(next(_numbers)))

    newest = json.loads(edgecli("zone", "history", zone, "--limit", "1", "--json").out)
    of_b = json.loads(edgecli("zone", "history", zone, "--name", "b", "--json").out)

    assert [change["sequence"] for change in newest] == [3]
    assert [change["sequence"] for change in of_b] == [2]
    assert newest[0]["changes"][0]["after"]["name"] == f"a.{zone}"


def test_what_cannot_be_undone_is_refused_in_the_servers_words(edgecli, zone):
    record(edgecli, zone, "www", "A", "192.0.2.1")
    edgecli("record", "update", zone, "www", "--content", "192.0.2.2")

    assert "was changed again since" in edgecli("zone", "undo", zone, "1").err
    assert "no change 9" in edgecli("zone", "undo", zone, "9").err
    assert edgecli("zone", "undo", zone, "0").code == 2
    assert edgecli("zone", "history", zone, "--limit", "101").code == 2


# tables


def test_what_a_terminal_would_obey_is_shown_as_an_escape():
    assert table.words("a\x1b[2Jb\nc\u202e") == "a\\x1b[2Jb\\nc\\u202e"
    assert table.words("grün") == "grün"


def test_only_a_terminal_gets_lines_cut(capsys, monkeypatch):
    monkeypatch.setattr("shutil.get_terminal_size", lambda: type("Size", (), {"columns": 10}))
    table.echo_table(("name", "content"), [("a", "x" * 20)])
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    table.echo_table(("name", "content"), [("a", "x" * 20)])

    assert capsys.readouterr().out.splitlines() == [
        "name  content",
        "a     " + "x" * 20,
        "name  con…",
        "a     xxx…",
    ]
