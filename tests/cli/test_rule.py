"""`edgecli rule` and `edgecli setting` against a server: what they change, print and refuse."""

import json

import pytest


@pytest.fixture
def zone(edgecli, kv_server, request, monkeypatch):
    name = f"{abs(hash(request.node.name)) % 10**8}.example"
    assert edgecli("zone", "create", name).code == 0
    monkeypatch.setenv("EDGE_ZONE", name)
    yield name
    edgecli("zone", "delete", name, "--yes")


def rules_of(edgecli, *arguments):
    return json.loads(edgecli("rule", "list", *arguments, "--json").out)


def add(edgecli, *arguments):
    done = edgecli("rule", "add", *arguments, "--json")
    assert done.code == 0, done.err
    return json.loads(done.out)


def descriptions(edgecli):
    return [rule["description"] for rule in rules_of(edgecli)]


def test_a_rule_is_added_changed_moved_and_removed(edgecli, zone):
    first = add(edgecli, "custom", "block", 'http.host eq "a"', "--description", "first", "--ref", "one")
    add(edgecli, "custom", "log", "--description", "third")
    add(edgecli, "custom", "log", "--description", "second", "--after", "one")
    assert descriptions(edgecli) == ["first", "second", "third"]

    done = edgecli("rule", "edit", "one", "--expression", 'http.host eq "b"', "--off")
    assert done.out == f"Changed the rule {first['id']} (block: first): number 1 of custom.\n"
    changed = rules_of(edgecli, "custom")[0]
    assert (changed["expression"], changed["enabled"], changed["ref"]) == ('http.host eq "b"', False, "one")
    assert edgecli("rule", "move", first["id"], "--place", "3").code == 0
    assert descriptions(edgecli) == ["second", "third", "first"]
    assert edgecli("rule", "remove", "one", stdin="n\n").out.endswith("Not removing\n")
    assert edgecli("rule", "remove", "one", "--yes").code == 0
    assert descriptions(edgecli) == ["second", "third"]


def test_parameters_go_with_an_action_that_is_changed(edgecli, zone):
    to_new = '{"from_value": {"target_url": {"value": "https://new.example/"}, "status_code": 301}}'
    made = add(edgecli, "redirect", "redirect", 'http.host eq "old"', "--parameters", to_new)
    edited = edgecli("rule", "edit", made["id"], "--description", "kept", "--json")

    assert json.loads(edited.out)["action_parameters"] == made["action_parameters"]


def test_a_dry_run_changes_nothing_and_names_a_mistake(edgecli, zone):
    words = "The server would take it. Nothing is changed.\n"
    assert edgecli("rule", "add", "custom", "block", "--dry-run").out == words
    rule = add(edgecli, "custom", "log", "--description", "only")["id"]
    assert edgecli("rule", "add", "custom", "block", "--dry-run").out == words
    assert edgecli("rule", "edit", rule, "--description", "other", "--dry-run").out == words
    bad = edgecli("rule", "add", "custom", "block", "http.hots eq 1", "--dry-run")

    assert descriptions(edgecli) == ["only"]
    assert bad.code == 1
    assert "http.hots" in bad.err


WRONG = [
    (("rule", "edit", "nope", "--on"), 1, "has no rule nope"),
    (("rule", "edit", "nope"), 2, "Name what should change"),
    (("rule", "move", "nope"), 2, "Say where"),
    (("rule", "move", "nope", "--place", "1", "--after", "x"), 2, "exclude one another"),
    (("rule", "add", "custom", "block", "--parameters", "{"), 2, "is not JSON"),
    (("rule", "add", "custom", "block", "--parameters", "[]"), 2, "is not a JSON object"),
    (("rule", "add", "costum", "block"), 1, "Phases: redirect, transform"),
    (("rule", "ad"), 2, "Did you mean"),
    (("rul",), 2, "Did you mean"),
    (("zzz",), 2, "No such command"),
    (("rule", "test", "ftp://x"), 2, "is not like http://"),
    (("rule", "test", "/", "-H", "x"), 2, "is not like"),
    (("rule", "test", "a.example/", "-H", "x"), 2, "is not like 'NAME: VALUE'"),
    (("rule", "test", "a.example/", "--ip", "x"), 2, "does not appear to be an IPv4 or IPv6 address"),
    (("rule", "test", "a.example/", "--expression", "http.hots"), 1, "http.hots"),
    (("setting", "set", "ssl"), 2, "is not like NAME=VALUE"),
    (("setting", "set", "sl=off"), 1, "Did you mean ssl"),
    (("setting", "get", "zzz"), 1, "`edgecli setting list` shows all of them."),
    (("setting", "set", "ssl=wrong"), 1, "ssl"),
    (("zone", "restore", "none.example", "1", "-y"), 1, "There is no zone none.example"),
]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    WRONG,
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_wrong_usage_is_told_with_the_next_step(edgecli, zone, arguments, code, words):
    done = edgecli(*arguments)

    assert (done.code, done.out) == (code, "")
    assert words in done.err
    assert "Traceback" not in done.err


def test_a_request_is_tried_against_the_rules_without_being_sent(edgecli, zone, tmp_path):
    add(
        edgecli,
        "custom",
        "block",
        'http.request.uri.path eq "/admin" and ip.src ne 192.0.2.9',
        "--description",
        "admin",
    )
    add(edgecli, "custom", "log", 'any(http.request.headers["x-a"][*] eq "b")', "--description", "header")
    add(edgecli, "custom", "log", "--description", "off", "--off")

    def tried(*arguments):
        rows = json.loads(edgecli("rule", "test", *arguments, "--json").out)
        return {row["description"]: (row["matches"], row["reached"]) for row in rows}

    assert tried("www.example/admin") == {
        "admin": ("yes", True),
        "header": ("no", False),
        "off": ("off", False),
    }
    assert tried("https://www.example/admin?a=1", "--ip", "192.0.2.9", "-H", "X-A: b") == {
        "admin": ("no", True),
        "header": ("yes", True),
        "off": ("off", False),
    }
    (tmp_path / "body").write_text("abc")
    own = ("--expression", 'http.request.method eq "POST" and http.request.body.size eq 3')
    for data in ("abc", f"@{tmp_path / 'body'}"):
        rows = json.loads(
            edgecli("rule", "test", "a.example/", "-X", "post", "--data", data, *own, "--json").out
        )
        assert [row["matches"] for row in rows] == ["yes"]


def test_a_trial_follows_skips_and_tells_what_would_be_counted(edgecli, zone):
    phases = '{"phases": ["http_ratelimit"]}'
    add(edgecli, "custom", "skip", 'http.host eq "in.example"', "--parameters", phases, "--ref", "in")
    limit = (
        '{"characteristics": ["ip.src"], "period": 60, "requests_per_period": 9, "mitigation_timeout": 60}'
    )
    add(edgecli, "ratelimit", "block", "--ratelimit", limit)

    def does(url):
        done = edgecli("rule", "test", url, "--json")
        return [row["does"] for row in json.loads(done.out)], done.err

    told, end = does("http://in.example/")
    assert told[0] == "skips phases http_ratelimit"
    assert told[1].startswith("skipped by the rule ")
    assert end == "The origin is asked.\n"
    told, _ = does("http://www.example/")
    assert told == ["", "counts it for ip.src = 192.0.2.1: block above 9 requests in 60 s, for 60 s"]


def test_settings_are_shown_and_set_together_or_not_at_all(edgecli, zone):
    assert edgecli("setting", "get", "ssl").out == "off\n"
    assert edgecli("setting", "set", "ssl=strict", "min_tls_version=9").code == 1
    assert edgecli("setting", "get", "ssl").out == "off\n"

    done = edgecli("setting", "set", "ssl=strict", "challenge_ttl=900")

    assert done.out == f"{zone}: ssl is strict.\n{zone}: challenge_ttl is 900.\n"
    listed = edgecli("setting", "list").out
    assert "always_use_https" in listed
    assert json.loads(edgecli("setting", "get", "challenge_ttl", "--json").out)["value"] == 900


def test_a_zone_is_paused_and_restored(edgecli, zone):
    assert edgecli("record", "create", zone, "www", "A", "192.0.2.1").code == 0
    number = json.loads(edgecli("zone", "history", zone, "--json").out)[0]["sequence"]
    assert edgecli("record", "delete", zone, "www").code == 0

    assert edgecli("zone", "restore", zone, str(number), stdin="n\n").out.endswith("Not restoring\n")
    done = edgecli("zone", "restore", zone, str(number), "--name", "www", "--yes")
    assert done.out.startswith(f"Brought back www.{zone} as of change {number}. That is change ")
    again = edgecli("zone", "restore", zone, str(number), "--yes")
    assert again.out == f"All of {zone}: nothing differs from then.\n"
    assert edgecli("zone", "pause", zone).out == f"{zone} is paused: none of its rules holds.\n"
    assert json.loads(edgecli("zone", "get", zone, "--json").out)["paused"] is True
    assert edgecli("zone", "unpause", zone).code == 0
