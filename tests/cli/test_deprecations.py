"""`edgecli deprecations`: uses of dated paths and members are found where people write them."""

import gzip
import json
import os
from pathlib import Path

import pytest

from edgestead.changes import CHANGES
from edgestead.cli.dated import check, files, lines

ID = "023e105f4ecef8ad9ca31a8372d0c353"
CERTAIN = (  # a line, the row that it uses, and the text that is shown
    ('get(f"/zones/{zone_id}/firewall/rules?page=1")', "firewall-rules", "zones/{zone_id}/firewall/rules"),
    ('get("/zones/" + zone["id"] + "/filters")', "firewall-rules", 'zones/" + zone["id"] + "/filters'),
    ("fetch(`/zones/${zone}/rate_limits/${id}`)", "rate-limits", "zones/${zone}/rate_limits"),
    ('u := fmt.Sprintf("/zones/%s/filters", z)', "firewall-rules", "zones/%s/filters"),
    (f"path: /client/v4/accounts/{ID}/tunnels", "tunnels", f"accounts/{ID}/tunnels"),
    (
        f'"GET /client/v4/zones/{ID}/settings/minify HTTP/1.1" 400',
        "setting-minify",
        f"zones/{ID}/settings/minify",
    ),
    (
        '"/zones/:zone/dns_settings/use_apex_ns"',
        "dns-settings-endpoints",
        "zones/:zone/dns_settings/use_apex_ns",
    ),
    (f"GET /client/v4/organizations/{ID}/members", "organizations", "/organizations"),
    ('get("/user/billing/history")', "billing", "/user/billing/history"),
    ('body["default_nameservers"] = "x"', "account-nameserver-settings", "default_nameservers"),
    ("cname_flattening: flatten_all", "setting-cname-flattening", "cname_flattening"),
    ("ciphers = ECDHE-RSA-CHACHA20-POLY1305-OLD:x", "draft-chacha20", "ECDHE-RSA-CHACHA20-POLY1305-OLD"),
)
POSSIBLE = (
    ('get(zone_url + "/firewall/rules")', "firewall-rules"),
    ('get(f"{account}/access/bookmarks/{uuid}")', "access-bookmarks"),
    ('get(base + "/organizations/" + org)', "organizations"),
    ('get(zone + "/script_monitor/scripts")', "script-monitor"),
)
NEITHER = (
    'get("/filters")',
    "filters = rate_limits = tunnels = 5",
    'get("https://api.github.com/organizations/5")',
    'get(f"/zones/{zone_id}/filters_of_mine")',
    'get(f"/zones/{zone_id}/rate_limits-2")',
    'get(f"/zones/{zone_id}/a/filters")',
    'get(f"/timezones/{zone_id}/filters")',
    f'get("/zones/{"x" * 200}/filters")',
    'get(f"/accounts/{account}/cfd_tunnel")',
    'get(f"/accounts/{account}/images/v2/direct_upload")',
    'get(f"/zones/{zone_id}/rulesets/phases/http_ratelimit/entrypoint")',
    'get(f"/zones/{zone_id}/dns_settings")',
    "my_cname_flattening_option = 1",
    "ECDHE-RSA-CHACHA20-POLY1305",
    "cipher = ChaCha20",
    'record["zone_id"], record["locked"]',  # nothing near says that it is a DNS record
    "firewall/rules",
)
FORMS = (  # how clients write a path: of an endpoint's path, one line
    lambda path: f'client.get(f"{path}")',
    lambda path: f"fetch(`${{base}}{path.replace('{', '${')}`)",
    lambda path: "url = " + '"{}"'.format('" + thing + "'.join(literals(path))),
    lambda path: (
        f'10.0.0.1 - - [21/Nov/2026:10:00:00 +0000] "GET /client/v4{filled(path)}?page=2 HTTP/1.1" 200 5'
    ),
    lambda path: json.dumps({"request": {"path": f"/client/v4{filled(path)}"}}),
)
HAR_BODY = {"type": "SRV", "name": "x", "zone_name": "x", "data": {"service": "_sip", "name": "x"}}


def literals(path):
    """The path cut at its parameters."""
    parts, rest = [], path
    while "{" in rest:
        before, _, rest = rest.partition("{")
        parts.append(before)
        rest = rest.partition("}")[2]
    return [*parts, rest]


def filled(path):
    return ID.join(literals(path))


def uses(line):
    return [(use.subject, use.text, use.is_certain) for use in lines.uses(line) if not use.near]


@pytest.mark.parametrize(("line", "subject", "text"), CERTAIN)
def test_a_whole_path_or_an_unmistakable_name_is_a_use(line, subject, text):
    assert uses(line) == [(subject, text, True)]


@pytest.mark.parametrize(("line", "subject"), POSSIBLE)
def test_a_path_without_its_zone_or_account_may_be_a_use(line, subject):
    assert [(use[0], use[2]) for use in uses(line)] == [(subject, False)]


@pytest.mark.parametrize("line", NEITHER)
def test_other_lines_are_no_uses(line):
    assert uses(line) == []


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.subject)
@pytest.mark.parametrize("form", FORMS)
def test_every_endpoint_is_found_in_every_form(change, form):
    for endpoint in change.endpoints:
        line = form(endpoint.path)

        found = [(subject, certain) for subject, _, certain in uses(line)]
        is_ours = "/v4/" in line or change.subject != "organizations"  # others have such paths too
        assert found == [(change.subject, is_ours)], line


def test_every_member_and_setting_has_a_name_that_is_looked_for():
    names = {member.rpartition("/")[2] for change in CHANGES for member in change.members}
    names |= {change.setting for change in CHANGES if change.setting}

    assert names - set(lines.NAMES) == {"name"}  # which every record has


def test_a_use_says_where_it_is_and_what_to_use(edgecli_alone, clean_environment):
    (clean_environment / "a.py").write_text('\nx = get(f"/zones/{zone}/rate_limits")\r\n')

    done = edgecli_alone("deprecations", "check", "a.py")

    assert done.code == 1
    assert done.out == (
        "a.py:2:12: rate-limits (2025-06-15): zones/{zone}/rate_limits."
        " Use rate limiting rules of the ruleset engine (phase http_ratelimit).\n"
    )
    assert done.err == "1 use in 1 of 1 file.\n"


def test_the_example_of_the_page_is_what_it_says(edgecli_alone, clean_environment):
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "dated-behaviours.md").read_text()
    (clean_environment / "src").mkdir()
    (clean_environment / "src" / "zones.py").write_text(page.split("```python\n")[1].split("```")[0])

    done = edgecli_alone("deprecations", "check", "src/")

    assert done.out == page.split("```text\n")[1].split("```")[0]


def test_nothing_found_is_success(edgecli_alone, clean_environment):
    (clean_environment / "a.py").write_text('get(f"/zones/{zone}/dns_records")\n')

    done = edgecli_alone("deprecations", "check", ".")

    assert (done.code, done.out, done.err) == (0, "", "0 uses in 0 of 1 file.\n")


def test_a_possible_use_fails_only_when_that_is_asked_for(edgecli_alone, clean_environment):
    (clean_environment / "a.py").write_text('get(url + "/firewall/rules")\n')

    done = edgecli_alone("deprecations", "check", "a.py")

    assert done.code == 0
    assert "a.py:1:13: possibly firewall-rules (2025-06-15): firewall/rules." in done.out
    assert done.err == "0 uses and 1 possible use in 1 of 1 file.\n"
    assert edgecli_alone("deprecations", "check", "--strict", "a.py").code == 1


@pytest.mark.parametrize(
    ("text", "subjects"),
    [
        ('get("/x/dns_records")\nprint(r["zone_name"], r.locked)\n', ["record-zone-fields", "record-locked"]),
        ('b = {"locked": 1}\nput("/x/dns_records", b)\n', ["record-locked"]),
        ('print(r["zone_name"])\n' + "\n" * 21 + 'get("/x/dns_records")\n', []),
        ('type = "SRV"\ndata["service"] = "_sip"\n', ["srv-data-members"]),
        ("load_balancers:\n  notification_email: a@example.com\n", ["notification-email"]),
        ("notification_email: a@example.com\n", []),
        ('"settings": [{"id": "minify"}]\n', ["setting-minify"]),
        ("locked zone_name service dns_records SRV\n", []),
    ],
)
def test_a_common_name_counts_near_what_makes_it_likely(edgecli_alone, clean_environment, text, subjects):
    (clean_environment / "a.txt").write_text(text)

    found = json.loads(edgecli_alone("deprecations", "check", "--json", "a.txt").out)

    assert [one["subject"] for one in found] == subjects
    assert not any(one["certain"] for one in found)


def test_json_holds_the_same(edgecli_alone, clean_environment):
    (clean_environment / "a.py").write_text('get("/user/billing/profile")\n')

    done = edgecli_alone("deprecations", "check", "--json", "a.py")

    assert done.code == 1
    assert json.loads(done.out) == [
        {
            "path": "a.py",
            "line": 1,
            "column": 6,
            "subject": "billing",
            "date": "2023-06-06",
            "certain": True,
            "text": "/user/billing/profile",
            "replacement": None,
        }
    ]


def test_rows_can_be_left_out_by_day_and_by_subject(edgecli_alone, clean_environment):
    (clean_environment / "a.txt").write_text(f"/zones/{ID}/filters\n/zones/{ID}/settings/minify\n")

    def found(*options):
        done = edgecli_alone("deprecations", "check", "--json", *options, "a.txt")
        return [one["subject"] for one in json.loads(done.out)], done.code

    assert found() == (["firewall-rules", "setting-minify"], 1)
    assert found("--as-of", "2025-06-14") == (["setting-minify"], 1)
    assert found("--as-of", "2024-08-04") == ([], 0)
    assert found("--ignore", "firewall-rules", "--ignore", "setting-minify") == ([], 0)
    assert edgecli_alone("deprecations", "check", "--ignore", "no-such-row", "a.txt").code == 2


def test_folders_are_read_without_what_nobody_wrote(edgecli_alone, clean_environment):
    line = f"/zones/{ID}/filters\n"
    for name in ("b/deep/x.go", "a.py", ".git/x", "node_modules/y/x.js", "b/.venv/x.py"):
        (clean_environment / name).parent.mkdir(parents=True, exist_ok=True)
        (clean_environment / name).write_text(line)
    (clean_environment / "binary").write_bytes(b"\0" + line.encode())
    (clean_environment / "link.py").symlink_to("a.py")
    os.mkfifo(clean_environment / "pipe")

    done = edgecli_alone("deprecations", "check", ".")

    assert [row.split(":")[0] for row in done.out.splitlines()] == ["./a.py", "./b/deep/x.go"]


def test_packed_logs_and_the_standard_input_are_read(edgecli_alone, clean_environment):
    line = f'"DELETE /client/v4/zones/{ID}/filters HTTP/1.1" 410\n'
    (clean_environment / "access.log.1.gz").write_bytes(gzip.compress(("\n" + line).encode()))

    done = edgecli_alone("deprecations", "check", "access.log.1.gz", "-", stdin=line)

    assert [row.split(" ")[0] for row in done.out.splitlines()] == ["access.log.1.gz:2:20:", "-:1:20:"]


def test_a_line_longer_than_a_portion_is_read_to_its_end(edgecli_alone, clean_environment):
    portion = files.LINE_BYTES_MAX
    use = f"/zones/{ID}/filters"
    for at in (portion - 60, portion - 20, 3 * portion - 5):
        (clean_environment / "app.min.js").write_text("x" * at + f'"{use}"' + "y" * portion + "\n\n" + use)

        found = json.loads(edgecli_alone("deprecations", "check", "--json", "app.min.js").out)

        assert [(one["line"], one["column"]) for one in found] == [(1, at + 3), (3, 2)]


def har(*requests):
    return json.dumps(
        {"log": {"version": "1.2", "entries": [{"request": one, "response": {}} for one in requests]}}
    )


def test_a_har_file_is_read_request_by_request(edgecli_alone, clean_environment):
    base = "https://api.example.com/client/v4"
    post = {"mimeType": "application/json", "text": json.dumps(HAR_BODY)}
    (clean_environment / "x.har").write_text(
        har(
            {"method": "GET", "url": f"{base}/zones/{ID}/dns_records?name=a"},
            {"method": "get", "url": f"{base}/zones/{ID}/firewall/rules/5?x=1"},
            {"method": "POST", "url": f"{base}/zones/{ID}/dns_records", "postData": post},
            {"method": "POST", "url": f"https://other.example.com/zones/{ID}/filters", "postData": post},
            {
                "method": "POST",
                "url": f"{base}/zones/{ID}/dns_records",
                "postData": {"text": 'no JSON: "locked"'},
            },
            {"method": "GET", "url": f"{base}/zones/{ID}/script_monitor/scripts/5"},
        )
    )

    done = edgecli_alone("deprecations", "check", "x.har")

    assert done.code == 1
    assert [row.partition(". ")[0] for row in done.out.splitlines()] == [
        f"x.har:2: firewall-rules (2025-06-15): GET /zones/{ID}/firewall/rules/5",
        f"x.har:3: record-zone-fields (2024-11-30): POST /zones/{ID}/dns_records with zone_name",
        f"x.har:3: srv-data-members (2024-05-31): POST /zones/{ID}/dns_records with data/service",
        f"x.har:3: srv-data-members (2024-05-31): POST /zones/{ID}/dns_records with data/name",
        f"x.har:6: script-monitor (2022-10-11): GET /zones/{ID}/script_monitor/scripts/5",
    ]


@pytest.mark.parametrize(
    ("name", "octets", "words"),
    [
        ("x.har", b"{", "no HAR file"),
        ("x.har", b'{"log": {}}', "no HAR file"),
        ("x.gz", gzip.compress(b"x" * 1000, mtime=0)[:-9], "no whole gzip file"),
        ("x.gz", b"\x1f\x8bx", "no whole gzip file"),
        ("x.gz", gzip.compress(b"x" * 1000, mtime=0)[:10] + b"\xff" * 20, "no whole gzip file"),
    ],
)
def test_a_file_that_cannot_be_read_fails_the_check_and_not_the_others(
    edgecli_alone, clean_environment, name, octets, words
):
    (clean_environment / name).write_bytes(octets)
    (clean_environment / "z.txt").write_text("nothing\n")

    done = edgecli_alone("deprecations", "check", ".")

    assert done.code == 1
    assert words in done.err
    assert done.err.splitlines()[-1] == "0 uses in 0 of 2 files; 1 file could not be read."


def test_reading_is_bounded(edgecli_alone, clean_environment, monkeypatch):
    (clean_environment / "a").write_text(f"/zones/{ID}/filters\n" * 20)
    (clean_environment / "b.gz").write_bytes(gzip.compress(b"x\n" * 5_000))
    (clean_environment / "c.har").write_text(har({"method": "GET", "url": "x" * 2_000}))
    monkeypatch.setattr(files, "FOUND_PER_FILE_MAX", 10)
    monkeypatch.setattr(files, "UNPACKED_BYTES_MAX", 1_000)
    monkeypatch.setattr(files, "HAR_BYTES_MAX", 1_000)

    done = edgecli_alone("deprecations", "check", ".")

    assert len(done.out.splitlines()) == 10
    assert done.err.count("holds more than 1000 bytes") == 2
    monkeypatch.setattr(check, "FOUND_MAX", 3)
    assert len(edgecli_alone("deprecations", "check", "a").out.splitlines()) == 3
    monkeypatch.setattr(files, "FILES_MAX", 2)
    refused = edgecli_alone("deprecations", "check", ".")
    assert (refused.code, refused.out) == (1, "")
    assert "more than 2 files" in refused.err


def test_a_path_that_is_not_there_is_an_error(edgecli_alone):
    done = edgecli_alone("deprecations", "check", "nowhere")

    assert done.code == 1
    assert done.err.startswith("Error: nowhere: there is no such file or folder.\n")
    assert edgecli_alone("deprecations", "check").code == 2


def test_every_row_is_listed_and_shown(edgecli_alone):
    listed = edgecli_alone("deprecations", "list").out.splitlines()[1:]
    facts = json.loads(edgecli_alone("deprecations", "list", "--json").out)

    assert [row.split()[1] for row in listed] == [change.subject for change in CHANGES]
    for change, fact in zip(CHANGES, facts, strict=True):
        assert json.loads(edgecli_alone("deprecations", "show", change.subject, "--json").out) == fact
        shown = edgecli_alone("deprecations", "show", change.subject).out
        assert str(change.day) in shown
        assert change.advice() in shown
    assert edgecli_alone("deprecations", "show", "nothing").code == 1


def test_a_server_tells_who_still_uses_what(edgecli, kv_server):
    zone_id = kv_server.make_zone("dated.example")
    for _ in range(2):
        assert kv_server.call("GET", f"/zones/{zone_id}/filters").status == 410

    route = "GET /zones/{zone_id}/filters"  # other tests have used others
    done = edgecli("deprecations", "usage")
    (row,) = (line for line in done.out.splitlines() if route in line)

    assert row.split()[0] == "token"
    assert " 2 " in row
    assert row.endswith(f"{route}  -")
    assert "firewall-rules" in row
    used = json.loads(edgecli("deprecations", "usage", "--json").out)
    (one,) = (one for one in used if route in {use["endpoint"] for use in one["uses"]})
    assert one["credential"]["type"] == "token"


@pytest.mark.parametrize("common", ['{"zone_id": "x"}\n' * 2_000, '{"zone_id": "x"} ' * 2_000 + "\n"])
def test_names_that_are_no_uses_hide_none(edgecli_alone, clean_environment, common):
    """However many there are: a use stands behind them."""
    (clean_environment / "a.txt").write_text(common + f"/client/v4/zones/{ID}/firewall/rules\n")

    done = edgecli_alone("deprecations", "check", "a.txt")

    assert done.code == 1
    assert [line.partition(" (")[0].split()[-1] for line in done.out.splitlines()] == ["firewall-rules"]
    assert "could not be read" not in done.err


def test_what_lies_behind_a_bound_is_not_said_to_be_checked(edgecli_alone, clean_environment, monkeypatch):
    (clean_environment / "a.txt").write_text('get("/dns_records")["zone_id"]\n' * 20)
    monkeypatch.setattr(files, "FOUND_PER_FILE_MAX", 10)

    done = edgecli_alone("deprecations", "check", "a.txt")

    assert (done.code, len(done.out.splitlines())) == (1, 10)
    assert "a.txt is not checked to its end: it has more than 10 uses.\n" in done.err
    monkeypatch.setattr(files, "FOUND_PER_FILE_MAX", 100)
    assert edgecli_alone("deprecations", "check", "a.txt").code == 0
    monkeypatch.setattr(check, "FOUND_MAX", 10)
    assert edgecli_alone("deprecations", "check", "a.txt").code == 1
    (clean_environment / "b.txt").write_text('"zone_id"\n' * 20)
    monkeypatch.setattr(files, "UNDECIDED_MAX", 10)
    assert edgecli_alone("deprecations", "check", "b.txt").code == 1


def test_uses_that_are_ignored_are_not_counted(edgecli_alone, clean_environment, monkeypatch):
    (clean_environment / "a.txt").write_text(f"/client/v4/zones/{ID}/firewall/rules\n" * 20)
    monkeypatch.setattr(files, "FOUND_PER_FILE_MAX", 10)

    done = edgecli_alone("deprecations", "check", "--ignore", "firewall-rules", "a.txt")

    assert (done.code, done.out, done.err) == (0, "", "0 uses in 0 of 1 file.\n")


def test_uses_are_told_in_their_order(edgecli_alone, clean_environment):
    """Also one that is decided by a later line, and not by one that is too far."""
    lines_ = ["", '"zone_name"', '"zone_id"', f"/zones/{ID}/filters", *[""] * 18, "/dns_records"]
    (clean_environment / "a.txt").write_text("\n".join(lines_))

    done = edgecli_alone("deprecations", "check", "--json", "a.txt")

    assert [(one["line"], one["text"]) for one in json.loads(done.out)] == [
        (3, "zone_id"),
        (4, f"zones/{ID}/filters"),
    ]


def test_a_folder_that_cannot_be_listed_fails_the_check(edgecli_alone, clean_environment, monkeypatch):
    (clean_environment / "a").mkdir()
    scandir = os.scandir

    def refused(path):
        if str(path).endswith("/a"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refused)
    done = edgecli_alone("deprecations", "check", ".")

    assert done.code == 1
    assert "./a is not checked: Permission denied.\n" in done.err
