"""`edgecli waf` and `edgecli ruleset` against a running server."""

import itertools
import json

import pytest
from click.testing import CliRunner

from edgestead.cli.http import Api
from edgestead.cli.main import cli
from edgestead.cli.rule.entrypoint import ruleset_at
from edgestead.crs import ANOMALY_RULE_ID
from edgestead.testing.server import EdgeServer
from tests.support.patience import patient

PHASE = "http_request_firewall_managed"
CUSTOM = "http_request_firewall_custom"
_RULE = (
    'SecRule ARGS "@rx evil{level}" "id:94210{level},phase:2,block,msg:Evil,tag:paranoia-level/{level},'
    'severity:CRITICAL,setvar:tx.anomaly_score_pl{level}=+%{{tx.critical_anomaly_score}}"\n'
)
_numbers = itertools.count(1)
GOOD_RULE = {"action": "block", "expression": 'http.host eq "a"'}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    rules = folder / "crs" / "rules"
    rules.mkdir(parents=True)
    (rules.parent / "crs-setup.conf").write_text('SecComponentSignature "OWASP_CRS/3.9.1"\n')
    (rules / "one.conf").write_text("".join(_RULE.format(level=level) for level in (1, 2, 3, 4)))
    made = EdgeServer(folder / "data", *patient(folder), "--crs", str(rules.parent))
    try:
        yield made.start()
    finally:
        made.close()


@pytest.fixture
def zone(server):
    """A zone of the test's own; others exist beside it."""
    name = f"z{next(_numbers)}.example"
    server.make_zone(name)
    return name


@pytest.fixture
def run(server):
    """Run edgecli; exit code and output, errors included."""

    def call(*arguments, text=None):
        environment = {
            "EDGE_API_BASE": server.ready["api_base"],
            "EDGE_TOKEN": server.ready["api_token"],
            "EDGE_ACCOUNT_ID": server.ready["account_id"],
        }
        done = CliRunner().invoke(cli, arguments, prog_name="edgecli", env=environment, input=text)
        return done.exit_code, done.output

    return call


def shown(run, zone):
    code, output = run("waf", "show", "--zone", zone, "--json")
    assert code == 0, output
    return json.loads(output)


def test_a_zone_is_deployed_levelled_and_scored(run, zone):
    assert shown(run, zone)["deployed"] is False

    code, output = run("waf", "level", "2", "--zone", zone, "--deploy")
    assert (code, "level      2" in output) == (0, True)
    assert run("waf", "threshold", "25", "--action", "managed_challenge", "--zone", zone)[0] == 0
    assert run("waf", "level", "3", "--zone", zone)[0] == 0

    found = shown(run, zone)
    assert (found["level"], found["threshold"], found["action"]) == (3, 25, "managed_challenge")
    stored = json.loads(run("ruleset", "get", PHASE, "--zone", zone)[1])
    (rule,) = stored["rules"]
    assert (stored["version"], rule["expression"], rule["enabled"]) == ("3", "true", True)
    assert rule["action_parameters"]["overrides"] == {
        "categories": [{"category": "paranoia-level-4", "enabled": False}],
        "rules": [{"id": ANOMALY_RULE_ID, "action": "managed_challenge", "score_threshold": 25}],
    }


@pytest.mark.parametrize(("word", "threshold"), [("low", 60), ("medium", 40), ("high", 25)])
def test_sensitivities_have_names(run, zone, word, threshold):
    run("waf", "threshold", word, "--zone", zone, "--deploy")

    assert shown(run, zone)["threshold"] == threshold


def test_deploying_keeps_the_rules_that_are_there(run, zone, server):
    path = f"/zones/{_id(server, zone)}/rulesets/phases/{PHASE}/entrypoint"
    skip = {"action": "skip", "expression": "ssl", "action_parameters": {"ruleset": "current"}}
    server.call("PUT", path, {"rules": [skip]})

    run("waf", "level", "1", "--zone", zone, "--deploy")

    actions = [rule["action"] for rule in server.call("GET", path).result["rules"]]
    assert actions == ["skip", "execute"]


def _id(server, zone):
    return server.call("GET", f"/zones?name={zone}").result[0]["id"]


OFF = [{"rules": [{"id": ANOMALY_RULE_ID, "enabled": False}]}, {"enabled": False}]


@pytest.mark.parametrize("overrides", OFF)
def test_a_zone_whose_rule_that_acts_is_off_is_not_shown_as_protected(run, zone, server, overrides):
    parameters = {"id": _managed(server), "overrides": overrides}
    rule = {"action": "execute", "expression": "true", "action_parameters": parameters}
    server.call("PUT", f"/zones/{_id(server, zone)}/rulesets/phases/{PHASE}/entrypoint", {"rules": [rule]})

    assert shown(run, zone)["acts"] is False
    levelled = run("waf", "level", "2", "--zone", zone)[1]
    assert "action     none: the rule that acts on scores is off\n" in levelled
    assert "Warning: no request is acted on" in levelled
    scored = run("waf", "threshold", "25", "--zone", zone)[1]
    assert "action     block\n" in scored
    assert "Warning" not in scored
    assert shown(run, zone)["acts"] is True


def test_a_deploying_rule_that_is_disabled_is_warned_of(run, zone, server):
    rule = {"action": "execute", "expression": "true", "action_parameters": {"id": _managed(server)}}
    server.call(
        "PUT",
        f"/zones/{_id(server, zone)}/rulesets/phases/{PHASE}/entrypoint",
        {"rules": [rule | {"enabled": False}]},
    )

    assert "Warning: the rule that executes" in run("waf", "level", "2", "--zone", zone)[1]


def test_nothing_is_deployed_unasked(run, zone):
    code, output = run("waf", "level", "2", "--zone", zone)

    assert code == 1
    assert "--deploy" in output
    assert shown(run, zone)["deployed"] is False


def test_two_deploying_rules_are_not_guessed_between(run, zone, server):
    rule = {"action": "execute", "expression": "true", "action_parameters": {"id": _managed(server)}}
    server.call(
        "PUT", f"/zones/{_id(server, zone)}/rulesets/phases/{PHASE}/entrypoint", {"rules": [rule, rule]}
    )

    code, output = run("waf", "level", "2", "--zone", zone)

    assert code == 1
    assert "2 rules" in output


def _managed(server):
    return server.call("GET", f"/accounts/{server.ready['account_id']}/rulesets").result[0]["id"]


WRONG = [
    ("waf", "level", "5"),
    ("waf", "level", "0"),
    ("waf", "level"),
    ("waf", "threshold"),
    ("waf", "threshold", "0"),
    ("waf", "threshold", "-1"),
    ("waf", "threshold", "many"),
    ("waf", "threshold", "40", "--action", "explode"),
    ("ruleset", "list", "--zone", "a.example", "--account"),
]


@pytest.mark.parametrize("arguments", WRONG)
def test_a_wrong_call_is_code_2(run, arguments):
    assert run(*arguments)[0] == 2


def test_a_zone_that_is_not_there_and_one_of_several(run, zone, server):
    server.make_zone(f"other.{zone}")

    assert "no zone nowhere.example" in run("waf", "show", "--zone", "nowhere.example")[1]
    assert "--zone" in run("waf", "show")[1]
    assert run("waf", "show", "--zone", _id(server, zone))[0] == 0


# edgecli ruleset


def test_rulesets_are_listed_for_people_and_for_programs(run, zone):
    run("waf", "level", "2", "--zone", zone, "--deploy")

    _, table = run("ruleset", "list", "--zone", zone)
    found = json.loads(run("ruleset", "list", "--zone", zone, "--json")[1])

    head, managed, own = table.splitlines()
    assert head.split() == ["id", "kind", "phase", "version", "name"]
    assert [one["kind"] for one in found] == ["managed", "zone"]
    assert managed.startswith(found[0]["id"])
    assert own.split()[1:4] == ["zone", PHASE, "1"]
    assert json.loads(run("ruleset", "list", "--account", "--json")[1])[0]["kind"] == "managed"


def test_a_ruleset_is_printed_by_id_phase_and_version(run, zone):
    run("waf", "level", "2", "--zone", zone, "--deploy")
    run("waf", "level", "3", "--zone", zone)

    by_phase = json.loads(run("ruleset", "get", PHASE, "--zone", zone)[1])
    by_id = json.loads(run("ruleset", "get", by_phase["id"], "--zone", zone)[1])
    older = json.loads(run("ruleset", "get", PHASE, "--zone", zone, "--version", "1")[1])

    assert by_phase == by_id
    assert older["version"] == "1"
    assert run("ruleset", "get", CUSTOM, "--zone", zone)[0] == 1


def check(run, zone, value, *options):
    text = value if isinstance(value, str) else json.dumps(value)
    return run("ruleset", "check", "-", *(("--zone", zone) if zone else ()), *options, text=text)


FINE = [
    {"phase": CUSTOM, "rules": [GOOD_RULE]},
    {"phase": CUSTOM, "kind": "zone", "name": "anything", "description": "", "rules": []},
    {"result": {"id": "x", "version": "3", "last_updated": "", "phase": CUSTOM, "rules": [GOOD_RULE]}},
]


@pytest.mark.parametrize("value", FINE)
def test_a_good_file_is_said_to_be_good_and_nothing_changes(run, zone, value):
    code, output = check(run, zone, value)

    assert (code, "no mistake" in output) == (0, True)
    assert run("ruleset", "get", CUSTOM, "--zone", zone)[0] == 1


def test_a_list_of_rules_needs_its_phase_from_the_command_line(run, zone):
    assert check(run, zone, [GOOD_RULE], "--phase", CUSTOM)[0] == 0
    assert check(run, zone, [GOOD_RULE])[0] == 1


def test_custom_rulesets_of_the_account_are_checked_too(run):
    value = {"kind": "custom", "name": "x", "phase": CUSTOM, "rules": [GOOD_RULE, {"action": "redirect"}]}

    code, output = check(run, None, value)

    assert code == 1
    assert "/rules/1/action: 'redirect'" in output


def test_every_mistake_is_printed_with_its_place(run, zone):
    rules = [GOOD_RULE, {**GOOD_RULE, "expression": "http.hots eq 1"}, {"action": "block"}]

    code, output = check(run, zone, {"phase": CUSTOM, "rules": rules})

    assert code == 1
    assert "/rules/1/expression: 'http.hots eq 1' is not a valid value for expression" in output
    assert "\n  ^^^^^^^^^ unknown identifier\n  did you mean http.host? [code: 20127]\n" in output
    assert "/rules/2/expression: ''" in output
    assert "2 mistakes" in output


def test_every_name_that_means_nothing_is_printed_beside_the_other_mistakes(run, zone, server):
    overrides = {"rules": [{"id": "0" * 32, "enabled": False}, {"id": "1" * 32, "enabled": False}]}
    execute = {"action": "execute", "expression": "true"}
    rules = [
        {**execute, "action_parameters": {"id": _managed(server), "overrides": overrides}},
        {**execute, "action_parameters": {"id": "2" * 32}},
        {**execute, "expression": "oops"},
    ]

    code, output = check(run, zone, {"phase": PHASE, "rules": rules})

    assert code == 1
    assert [line.split(": ")[0] for line in output.splitlines() if line.startswith("/")] == [
        "/rules/0/action_parameters/overrides/rules/0/id",
        "/rules/0/action_parameters/overrides/rules/1/id",
        "/rules/1/action_parameters/id",
        "/rules/2/action_parameters",
    ]
    assert "4 mistakes" in output


def test_rules_that_are_null_are_none(run, zone):
    code, output = check(run, zone, {"phase": "http_request_origin", "rules": None})

    assert (code, output) == (0, "<stdin>: 0 rules, no mistake (phase http_request_origin).\n")


@pytest.mark.parametrize("kind", ["managed", "schema", 1, [], {}])
def test_a_ruleset_of_a_kind_that_nobody_writes_is_refused(run, zone, kind):
    code, output = check(run, zone, {"phase": CUSTOM, "kind": kind, "rules": [GOOD_RULE]})

    assert code == 1
    assert "kind is not one of zone, root, custom" in output


def test_a_zones_ruleset_is_not_checked_as_an_accounts(run, zone):
    assert check(run, None, {"phase": CUSTOM, "kind": "zone", "rules": []}, "--account")[0] == 1


@pytest.mark.parametrize(
    ("value", "options", "line"),
    [
        ({"rules": 1}, ("--phase", CUSTOM), "/rules: invalid JSON: expected a list for rules [code: 10026]"),
        ([], ("--phase", "nothing"), 'phase "nothing" is not accessible in this API [code: 20102]'),
    ],
)
def test_a_mistake_without_a_place_is_printed_without_one(run, zone, value, options, line):
    assert check(run, zone, value, *options)[1].splitlines()[0] == line


def test_the_number_of_a_threshold_may_be_left_out(run):
    assert "waf threshold [OPTIONS] [N]" in run("waf", "threshold", "--help")[1]


@pytest.mark.parametrize("text", ["", "{", "3", '"x"', "[" * 100_000])
def test_a_file_that_is_no_ruleset_is_refused(run, zone, text):
    code, output = check(run, zone, text, "--phase", CUSTOM)

    assert code == 1
    assert "Traceback" not in output


def test_a_rule_that_only_logs_is_not_taken_for_the_one_that_acts(server, run, zone):
    assert run("waf", "threshold", "25", "--zone", zone, "--deploy")[0] == 0
    zone_id = server.call("GET", f"/zones?name={zone}").result[0]["id"]
    entry = server.call("GET", f"/zones/{zone_id}/rulesets/phases/{PHASE}/entrypoint").result
    shadow = {
        "action": "execute",
        "expression": "true",
        "description": "shadow",
        "action_parameters": {
            "id": entry["rules"][0]["action_parameters"]["id"],
            "overrides": {"action": "log", "rules": [{"id": ANOMALY_RULE_ID, "score_threshold": 5}]},
        },
        "position": {"before": ""},
    }
    path = f"/zones/{zone_id}/rulesets/{entry['id']}/rules"
    assert server.call("POST", path, shadow).status == 200

    assert (shown(run, zone)["threshold"], shown(run, zone)["action"]) == (25, "block")
    assert run("waf", "threshold", "30", "--zone", zone)[0] == 0
    assert shown(run, zone)["threshold"] == 30


@pytest.mark.parametrize(
    "command",
    [
        ("rule", "add", "managed", "skip", "--parameters", '{"ruleset": "current"}'),
        ("waf", "level", "2", "--deploy"),
    ],
)
def test_the_first_rule_of_a_phase_leaves_what_somebody_else_began_with(
    run, server, zone, monkeypatch, command
):
    """Both find the phase without a ruleset, and each makes it."""
    (found,) = server.call("GET", f"/zones?name={zone}").result
    path = f"/zones/{found['id']}/rulesets"
    skip = {"action": "skip", "expression": "true", "action_parameters": {"ruleset": "current"}}
    body = {"name": "theirs", "kind": "zone", "phase": PHASE, "rules": [skip]}
    made = somebody_else(server, monkeypatch, path, body)
    code, output = run(*command, "--zone", zone)

    assert (code, made) == (0, [200]), output
    rules = server.call("GET", f"{path}/phases/{PHASE}/entrypoint").result["rules"]
    assert [rule["action"] for rule in rules] == ["skip", "skip" if command[0] == "rule" else "execute"]


@pytest.mark.parametrize("command", [("rule", "edit", "RULE", "--off"), ("waf", "level", "2")])
def test_a_change_of_a_rule_leaves_what_somebody_else_has_changed_meanwhile(
    run, server, zone, monkeypatch, command
):
    assert run("waf", "level", "1", "--deploy", "--zone", zone)[0] == 0
    (found,) = server.call("GET", f"/zones?name={zone}").result
    path = f"/zones/{found['id']}/rulesets"
    entry = server.call("GET", f"{path}/phases/{PHASE}/entrypoint").result
    (rule,) = entry["rules"]
    call = Api.call

    def late(self, method, *arguments, **named):
        if method == "PATCH":
            theirs = {name: rule[name] for name in ("action", "expression", "action_parameters")}
            where = f"{path}/{entry['id']}/rules/{rule['id']}"
            assert server.call("PATCH", where, theirs | {"description": "theirs"}).status == 200
        return call(self, method, *arguments, **named)

    monkeypatch.setattr(Api, "call", late)
    named = (rule["id"] if word == "RULE" else word for word in command)
    code, output = run(*named, "--zone", zone)

    assert (code, "was changed meanwhile" in output) == (1, True), output
    (now,) = server.call("GET", f"{path}/phases/{PHASE}/entrypoint").result["rules"]
    assert (now["description"], now["enabled"]) == ("theirs", True)


def somebody_else(server, monkeypatch, path, body):
    """Right after a command found no ruleset there, another one makes it. Its statuses."""
    made = []

    def look(*where):
        there = ruleset_at(*where)
        if there is None:
            made.append(server.call("POST", path, body).status)
        return there

    for module in ("rule.rules", "waf.commands", "state.rules"):
        monkeypatch.setattr(f"edgestead.cli.{module}.ruleset_at", look)
    return made


@pytest.mark.parametrize("begins", [True, False])
def test_of_two_that_deploy_the_managed_ruleset_at_once_one_does(run, server, zone, monkeypatch, begins):
    """The other one finds no rule, and then one: in a ruleset that is new, or that was there."""
    (found,) = server.call("GET", f"/zones?name={zone}").result
    path = f"/zones/{found['id']}/rulesets"
    managed = next(one["id"] for one in server.call("GET", path).result if one["kind"] == "managed")
    rule = {"action": "execute", "expression": "true", "action_parameters": {"id": managed}}
    body = {"name": "theirs", "kind": "zone", "phase": PHASE, "rules": [rule]}
    if begins:
        somebody_else(server, monkeypatch, path, body)
    else:

        def look(*where):
            assert server.call("POST", path, body).status == 200
            return ruleset_at(*where)

        monkeypatch.setattr("edgestead.cli.waf.commands.ruleset_at", look)

    code, output = run("waf", "level", "2", "--deploy", "--zone", zone)

    assert (code, f"The phase {PHASE} of {zone} was changed meanwhile." in output) == (1, True), output
    rules = server.call("GET", f"{path}/phases/{PHASE}/entrypoint").result["rules"]
    assert [one["action"] for one in rules] == ["execute"]
    monkeypatch.undo()
    assert run("waf", "level", "2", "--deploy", "--zone", zone)[0] == 0


def test_an_apply_leaves_the_phase_that_somebody_else_began_with(run, server, zone, monkeypatch, tmp_path):
    (found,) = server.call("GET", f"/zones?name={zone}").result
    path = f"/zones/{found['id']}/rulesets"
    body = {"name": "theirs", "kind": "zone", "phase": CUSTOM, "rules": [GOOD_RULE]}
    wanted = tmp_path / "wanted.json"
    rules = [GOOD_RULE | {"action": "log"}]
    wanted.write_text(json.dumps({"zones": {zone: {"rules": {"custom": rules}}}}))
    made = somebody_else(server, monkeypatch, path, body)

    code, output = run("apply", str(wanted), "--yes")

    assert (code, made) == (1, [200]), output
    assert f"The phase custom of {zone} was changed meanwhile." in output
    (rule,) = server.call("GET", f"{path}/phases/{CUSTOM}/entrypoint").result["rules"]
    assert rule["action"] == "block"
