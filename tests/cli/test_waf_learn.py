"""`edgecli waf learn` watches real traffic, and what it proposes is what the edge then does."""

import json

import pytest
from click.testing import CliRunner

from edgestead.cli.main import cli
from edgestead.cli.waf.learning import Learned
from tests.edge.conftest import Site

_RULE = (
    'SecRule ARGS "@rx {word}" "id:{id_},phase:2,block,msg:Evil,tag:paranoia-level/{level},'
    'severity:CRITICAL,setvar:tx.anomaly_score_pl{level}=+%{{tx.critical_anomaly_score}}"\n'
)
PHASE = "http_request_firewall_managed"
OWN = {"action": "skip", "expression": 'http.request.uri.path eq "/own"', "description": "mine"}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Eight rules of level 1 meet a save, eight others an attack: each is worth 40."""
    folder = tmp_path_factory.mktemp("site")
    rules = folder / "crs" / "rules"
    rules.mkdir(parents=True)
    (rules.parent / "crs-setup.conf").write_text('SecComponentSignature "OWASP_CRS/3.9.1"\n')
    lines = [_RULE.format(word=word, id_=942_100 + at, level=1) for at, word in enumerate(["save"] * 8)]
    lines += [_RULE.format(word=word, id_=942_200 + at, level=1) for at, word in enumerate(["attack"] * 8)]
    (rules / "one.conf").write_text("".join(lines))
    flags = ("--crs", str(rules.parent), "--trusted-proxies", "127.0.0.0/8")
    made = Site(folder, *flags)
    yield made
    made.close()


@pytest.fixture(scope="module")
def run(site):
    def call(*arguments):
        environment = {
            "EDGE_API_BASE": site.server.ready["api_base"],
            "EDGE_TOKEN": site.server.ready["api_token"],
            "EDGE_ACCOUNT_ID": site.server.ready["account_id"],
        }
        done = CliRunner().invoke(cli, ["waf", "learn", *arguments], prog_name="edgecli", env=environment)
        return done.exit_code, done.output

    return call


def rules_of(site):
    path = f"/zones/{site.zone_id}/rulesets/phases/{PHASE}/entrypoint"
    return site.server.call("GET", path).result["rules"]


def told(run, *more):
    code, output = run("edge.example", "--now", "--json", *more)
    assert code == 0, output
    return json.loads(output[output.index("{") :])


def test_one_network_is_one_client():
    """Who has a /64 has all of its addresses: no exception is proposed for what came from there alone."""

    def clients_of(*addresses):
        learned = Learned({"r": 1})
        for address in addresses:
            contribution = {"rule_id": "r", "description": "942100: Evil", "score": 40}
            contribution |= {"variable": "ARGS:x", "matched": "save"}
            learned.add(
                {
                    **{"dropped": 0, "occurred_on": "2026-01-01T00:00:00Z", "reason": "", "client": address},
                    **{"path": "/wp", "method": "GET", "ray_id": "1", "contributions": [contribution]},
                }
            )
        return len(learned.choice(1, 40).proposals)

    assert clients_of("2001:db8::1", "2001:db8::2", "2001:db8::3") == 0
    assert clients_of("2001:db8::1", "2001:db8:0:1::1", "192.0.2.1") == 1


def test_a_zone_is_watched_changed_and_given_back(site, run):
    host = site.name(site.first.host)
    managed = next(
        one
        for one in site.server.call("GET", f"/zones/{site.zone_id}/rulesets").result
        if one["kind"] == "managed"
    )
    acting = {"action": "execute", "expression": "true", "action_parameters": {"id": managed["id"]}}
    own = OWN | {"action_parameters": {"rulesets": [managed["id"]]}}
    path = f"/zones/{site.zone_id}/rulesets/phases/{PHASE}/entrypoint"
    assert site.server.call("PUT", path, {"rules": [own, acting]}).status == 200

    def ask(target, client):
        return site.get(host, target, f"X-Forwarded-For: 192.0.2.{client}").status

    site.server.wait_until(lambda: ask("/", 1) == 200, 180)  # the rules are ready
    assert run("edge.example", "--enforce")[0] == 1
    assert run("edge.example", "--undo")[0] == 1

    first = told(run, "--for", "1s")
    assert (first["requests"], first["scored"]) == (0, 0)
    descriptions = [rule.get("description", "") for rule in rules_of(site)]
    assert descriptions[0] == "mine"
    assert descriptions[1].startswith("learn: shadow from ")
    assert len(descriptions) == 3

    assert [ask("/", client) for client in range(10)] == [200] * 10
    assert [ask("/wp?x=save", client) for client in range(3)] == [403] * 3, "the shadow stops nothing more"
    assert ask("/own?x=save", 5) == 200, "an exception of the zone's own holds for the shadow"
    assert ask("/?x=attack", 9) == 403

    site.server.wait_until(lambda: told(run)["scored"] == 4, 180)
    found = told(run, "--stops", "10")
    assert found["requests"] == 14
    assert (found["level"], found["threshold"]) == (4, 25)
    assert (found["stopped_without_exceptions"], found["stopped"]) == (4, 1), "one client may be an attacker"
    (exception,) = found["exceptions"]
    assert exception["paths"] == ["/wp"]
    assert found["default_would_stop"] == 4
    assert len(rules_of(site)) == 3, "begun once"

    code, output = run("edge.example", "--stops", "10", "--enforce")
    assert (code, "7.14 %" in output) == (0, True), output
    assert [ask("/wp?x=save", client) for client in range(3)] == [200] * 3
    assert ask("/own?x=save", 5) == 200
    assert ask("/?x=attack", 9) == 403
    assert not [rule for rule in rules_of(site) if "shadow" in rule.get("description", "")]

    assert run("edge.example", "--undo")[0] == 0
    assert ask("/wp?x=save", 1) == 403
    assert [rule.get("description", "") for rule in rules_of(site)] == ["mine", ""]


def test_the_shadow_goes_and_nothing_else(site, run):
    told(run, "--for", "30d")
    before = [rule["id"] for rule in rules_of(site) if "shadow" not in rule.get("description", "")]

    assert run("edge.example", "--stop")[0] == 0
    assert run("edge.example", "--stop")[0] == 1
    assert len(rules_of(site)) == len(before)


@pytest.mark.parametrize(
    "arguments",
    [("--for", "0s"), ("--for", "31d"), ("--for", "1w"), ("--now", "--undo"), ("--stops", "101")],
)
def test_what_cannot_be_meant_is_refused(run, arguments):
    assert run("edge.example", *arguments)[0] == 2


def test_a_rule_that_somebody_adds_meanwhile_stays(site, run, monkeypatch):
    """The events of a day take a while to read, and then all rules of the phase are replaced."""
    told(run, "--for", "1s")
    path = f"/zones/{site.zone_id}/rulesets"
    entrypoint = site.server.call("GET", f"{path}/phases/{PHASE}/entrypoint").result
    skip = OWN["expression"].replace("own", "theirs")
    managed = next(one for one in rules_of(site) if one["action"] == "execute")["action_parameters"]["id"]
    theirs = {"action": "skip", "expression": skip, "action_parameters": {"rulesets": [managed]}}

    def events(*_):
        answer = site.server.call("POST", f"{path}/{entrypoint['id']}/rules", theirs)
        assert answer.status == 200, answer
        return iter(())

    monkeypatch.setattr("edgestead.cli.waf.learn._events", events)
    code, output = run("edge.example", "--enforce")

    assert (code, "was changed meanwhile" in output) == (1, True), output
    assert skip in [rule["expression"] for rule in rules_of(site)]
    assert run("edge.example", "--stop")[0] == 0
