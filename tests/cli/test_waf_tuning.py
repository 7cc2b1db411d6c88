"""`edgecli waf explain`, `replay` and `suggest`."""

import itertools
import json

import pytest
from click.testing import CliRunner

from edgestead.cli.main import cli
from edgestead.cli.waf.suggest import path_expression
from edgestead.testing.server import EdgeServer
from edgestead.waf.plan import scan
from tests.support.patience import patient

PHASE = "http_request_firewall_managed"
RULE = (
    'SecRule ARGS "@contains evil{level}" "id:94210{level},phase:2,block,t:none,msg:\'Evil {level}\','
    'severity:CRITICAL,tag:paranoia-level/{level},setvar:tx.anomaly_score_pl{level}=+5"\n'
)
LOG = '192.0.2.1 - - [day] "GET {target} HTTP/1.1" 200 5 "-" "Agent/1"\n'
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def crs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("crs")
    (folder / "rules").mkdir()
    (folder / "crs-setup.conf").write_text('SecComponentSignature "OWASP_CRS/3.9.1"\n')
    (folder / "rules" / "one.conf").write_text("".join(RULE.format(level=level) for level in (1, 2, 3, 4)))
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory, crs):
    folder = tmp_path_factory.mktemp("server")
    made = EdgeServer(folder / "data", *patient(folder), "--crs", str(crs))
    try:
        yield made.start()
    finally:
        made.close()


@pytest.fixture
def run(crs, tmp_path_factory, monkeypatch):
    """Run edgecli waf with these rules; exit code and output."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))

    def call(command, *arguments, text=None, server=None):
        environment = {}
        if server is not None:
            environment = {
                "EDGE_API_BASE": server.ready["api_base"],
                "EDGE_TOKEN": server.ready["api_token"],
                "EDGE_ACCOUNT_ID": server.ready["account_id"],
            }
        words = ("waf", command, *arguments, "--crs", str(crs))
        done = CliRunner().invoke(cli, words, prog_name="edgecli", env=environment, input=text)
        return done.exit_code, done.output

    return call


def rows(output):
    return [line.split() for line in output.splitlines() if line]


def test_explain_says_what_would_happen_at_each_level_and_why(run):
    request = "GET /?a=evil1+evil3 HTTP/1.1\nHost: x\n\n"
    code, output = run("explain", "-", "--threshold", "10", text=request)

    table = rows(output)
    assert code == 0
    assert table[1][:3] == ["1", "5", "passes"]
    assert table[3][:3] == ["3", "10", "stopped"]
    assert ["942103", "3", "5", "ARGS:a", "evil3", "Evil", "3"] in table


def test_explain_answers_in_json_too(run):
    code, output = run("explain", "-", "--json", "--threshold", "5", text="GET /?a=evil2 HTTP/1.1\n\n")
    found = json.loads(output)

    assert (code, found["refused"]) == (0, None)
    assert [(one["level"], one["score"], one["stopped_at"]) for one in found["levels"]] == [
        (1, 0, []), (2, 5, [5]), (3, 5, [5]), (4, 5, [5])
    ]  # fmt: skip
    assert [(one["rule"], one["variable"]) for one in found["rules"]] == [(942102, "ARGS:a")]


def test_explain_tells_what_cannot_be_inspected(run):
    request = "POST / HTTP/1.1\nContent-Type: application/json\n\n{"

    assert "Refused with 400: json-syntax" in run("explain", "-", text=request)[1]


@pytest.mark.parametrize(
    ("command", "text", "words"),
    [
        ("explain", "hello\n", "no request line"),
        ("replay", "hello\n", "holds no request"),
        ("suggest", "hello\n", "holds no request"),
        ("replay", '{"log": {}}', "not a HAR file"),
    ],
)
def test_files_that_hold_no_request_are_refused_with_words(run, command, text, words):
    code, output = run(command, "-", text=text)

    assert (code, words in output) == (1, True), output


def test_rules_that_are_not_there_are_refused_with_words(run, tmp_path):
    done = CliRunner().invoke(
        cli, ["waf", "explain", "-", "--crs", str(tmp_path)], input="GET / HTTP/1.1\n\n"
    )

    assert (done.exit_code, "cannot be used" in done.output) == (1, True)


def test_replay_counts_what_would_be_stopped(run):
    log = "".join(LOG.format(target=f"/?a={word}") for word in ("evil1", "evil1+evil2", "fine", "evil4"))
    code, output = run("replay", "-", "--threshold", "10", text=log + "noise\n")

    table = rows(output)
    assert code == 0
    assert "4 requests." in output
    assert ["2", "1", "(25.0", "%)", "0", "0", "0"] in table
    assert ["942101", "2", "Evil", "1"] in table
    assert "1 lines hold no request" in output


def test_replay_reads_a_har_file(run):
    entry = {"request": {"method": "GET", "url": "http://x/?a=evil1", "headers": []}}
    code, output = run("replay", "-", "--json", text=json.dumps({"log": {"entries": [entry] * 3}}))

    assert (code, json.loads(output[output.index("{") :])["rules"]) == (0, [{"rule": 942101, "requests": 3}])


def test_suggest_proposes_an_exception_with_its_evidence(run):
    log = LOG.format(target="/cms?a=evil1") * 3 + LOG.format(target="/shop?a=fine")
    code, output = run("suggest", "-", "--level", "1", "--threshold", "5", text=log)

    assert code == 0
    assert "3 of 4 good requests would be stopped at level 1, threshold 5" in output
    assert "Leave out 942101: /cms" in output
    assert 'when http.request.uri.path eq "/cms"' in output
    assert "ARGS:a: evil1" in output
    assert "Still stopped with all of it: 0." in output


def deployed(server, run, threshold="5"):
    name = f"z{next(_numbers)}.example"
    zone_id = server.make_zone(name)
    environment = {
        "EDGE_API_BASE": server.ready["api_base"],
        "EDGE_TOKEN": server.ready["api_token"],
        "EDGE_ACCOUNT_ID": server.ready["account_id"],
    }
    done = CliRunner().invoke(
        cli, ["waf", "threshold", threshold, "--zone", name, "--deploy"], env=environment
    )
    assert done.exit_code == 0, done.output
    return name, zone_id


def rules_of(server, zone_id):
    return server.call("GET", f"/zones/{zone_id}/rulesets/phases/{PHASE}/entrypoint").result["rules"]


def test_what_is_suggested_can_be_asked_for_and_then_applied(server, run):
    name, zone_id = deployed(server, run)
    paths = ('/cms "x"\\', "/b")
    log = "".join(json.dumps({"method": "GET", "path": path, "query": "a=evil1"}) + "\n" for path in paths)
    before = rules_of(server, zone_id)

    code, output = run("suggest", "-", "--zone", name, "--dry-run", text=log, server=server)
    assert (code, "The server would take all of it." in output) == (0, True), output
    assert rules_of(server, zone_id) == before

    code, output = run("suggest", "-", "--zone", name, "--apply", text=log, server=server)
    assert (code, "Done." in output) == (0, True), output
    skip, execute = rules_of(server, zone_id)
    assert (skip["action"], execute) == ("skip", before[0])
    assert skip["expression"].startswith('http.request.uri.path in {"/b" ')


def test_a_rule_in_the_way_everywhere_is_turned_off_and_nothing_else_changes(server, run):
    name, zone_id = deployed(server, run)
    log = "".join(LOG.format(target=f"/{number}?a=evil1") for number in range(20))

    code, output = run("suggest", "-", "--zone", name, "--apply", text=log, server=server)

    assert (code, "Turn off 942101: everywhere" in output) == (0, True), output
    (execute,) = rules_of(server, zone_id)
    items = execute["action_parameters"]["overrides"]["rules"]
    assert [item.get("enabled") for item in items] == [None, False]
    assert items[0]["score_threshold"] == 5


def test_what_an_earlier_run_made_is_not_made_again(server, run):
    """Each change is told once it is made: the next one may be refused."""
    name, zone_id = deployed(server, run)
    log = LOG.format(target="/b?a=evil1")

    code, output = run("suggest", "-", "--zone", name, "--apply", "--json", text=log, server=server)
    assert (code, "Made the exception for 942101." in output) == (0, True), output
    code, output = run("suggest", "-", "--zone", name, "--apply", text=log, server=server)

    assert (code, f"{name} has the exception for 942101 already." in output) == (0, True), output
    assert [rule["action"] for rule in rules_of(server, zone_id)] == ["skip", "execute"]


def test_a_zone_without_the_ruleset_is_refused_with_words(server, run):
    name = f"z{next(_numbers)}.example"
    server.make_zone(name)
    code, output = run("suggest", "-", "--zone", name, text=LOG.format(target="/"), server=server)

    assert (code, "does not execute the managed ruleset" in output) == (1, True)


PATHS = [
    (("/a",), 'http.request.uri.path eq "/a"'),
    (("/a", "/b"), 'http.request.uri.path in {"/a" "/b"}'),
    (('/"\\',), 'http.request.uri.path eq "/\\"\\\\"'),
]


@pytest.mark.parametrize(("paths", "expression"), PATHS)
def test_paths_become_an_expression(paths, expression):
    assert path_expression(paths) == expression


def test_explain_uses_the_patterns_that_replay_keeps_and_makes_none(run, monkeypatch):
    made = []
    load = scan.load
    monkeypatch.setattr(scan, "load", lambda *given: made.append("loaded") or load(*given))
    request = "GET /?a=evil1 HTTP/1.1\nHost: x\n\n"
    assert run("explain", "-", text=request)[0] == 0
    assert made == []

    assert run("replay", "-", text=LOG.format(target="/"))[0] == 0
    assert run("explain", "-", text=request)[0] == 0

    assert made == ["loaded", "loaded"]
