"""Rulesets of an account as part of one file: written by names, made, and compared."""

import json
from contextlib import closing

import pytest

from edgestead.cli.state import document
from edgestead.testing.server import EdgeServer
from tests.cli.test_state import write
from tests.support.patience import patient

CUSTOM = "http_request_firewall_custom"
SITE = """
[[rulesets]]
name = "office"
phase = "custom"
description = "whom the office lets in"
rules = [
  { action = "skip", expression = 'http.host eq "a"', action_parameters = SKIPPED },
  { action = "block", expression = 'http.host eq "admin"', description = "admin" },
]

[[rulesets]]
name = "bots"
phase = "custom"
rules = [ { action = "block", expression = 'http.user_agent eq "bad"', ref = "bad" } ]

[rules]
custom = [
  { action = "execute", action_parameters = { id = "custom/office" } },
  { action = "skip", action_parameters = { rulesets = ["custom/bots"] }, expression = 'http.host eq "b"' },
]

[zones."site.example".rules]
custom = [
  { action = "execute", action_parameters = { id = "custom/bots" }, expression = 'http.host eq "c"' },
]
ratelimit = [
  { action = "block", ratelimit = { characteristics = ["ip.src"], period = 60, requests_per_period = 9 } },
]
"""
SKIPPED = '{ rules = { "custom/office" = ["admin"], "custom/bots" = ["bad"] } }'


@pytest.fixture
def kv_server(lent):
    """One whose account has nothing of other tests: these commands look at all of it."""
    return lent


@pytest.fixture
def site(tmp_path):
    path = tmp_path / "site.toml"
    path.write_text(SITE.replace("SKIPPED", SKIPPED))
    return path


def rulesets_of(server):
    """The account's, with their rules, by name."""
    path = f"/accounts/{server.ready['account_id']}/rulesets"
    own = [one for one in server.call("GET", path).result if one["kind"] != "managed"]
    return {one["name"]: server.call("GET", f"{path}/{one['id']}").result for one in own}


def test_rulesets_are_made_before_the_rules_that_name_them(edgecli, kv_server, site, tmp_path):
    planned = edgecli("plan", str(site))
    assert "+ ruleset custom/office\n    description whom the office lets in\n" in planned.out, planned.out

    done = edgecli("apply", str(site), "--yes")

    assert done.code == 0, done.err
    assert edgecli("plan", str(site), "--check").out.endswith("Nothing differs.\n")
    held = rulesets_of(kv_server)
    office, bots = held["office"], held["bots"]
    assert [one["action_parameters"]["id"] for one in held["default"]["rules"][:1]] == [office["id"]]
    assert office["rules"][0]["action_parameters"]["rules"] == {
        office["id"]: [office["rules"][1]["id"]],
        bots["id"]: [bots["rules"][0]["id"]],
    }
    for form in ("toml", "json"):
        written = tmp_path / f"out.{form}"
        assert edgecli("export", "-o", str(written)).code == 0
        whole, wanted = document.read(written), document.read(site)
        assert whole["rules"] == wanted["rules"]
        by_name = {one["name"]: one for one in wanted["rulesets"]}
        assert whole["rulesets"] == [by_name["bots"], by_name["office"]]
        assert whole["zones"]["site.example"]["rules"] == wanted["zones"]["site.example"]["rules"]
        assert edgecli("plan", str(written), "--check").code == 0


def test_a_rule_that_stays_keeps_its_id_so_that_who_skips_it_still_does(edgecli, kv_server, site):
    edgecli("apply", str(site), "--yes")
    before = rulesets_of(kv_server)["office"]["rules"]
    admin = '  { action = "block", expression = \'http.host eq "admin"\''
    write(site, admin, '  { action = "log", description = "seen" },\n' + admin)
    write(site, "whom the office lets in", "who comes in")

    planned = edgecli("plan", str(site), "--check")
    assert planned.out == (
        "the account:\n  ~ ruleset custom/office\n    description who comes in\n    + log: seen\n"
        + "".join(line + "\n" for line in planned.out.splitlines() if "(stays" in line)
        + "1 change.\n"
    )
    assert edgecli("apply", str(site), "--yes").code == 0

    after = rulesets_of(kv_server)["office"]["rules"]
    assert [after[0]["id"], after[2]["id"]] == [one["id"] for one in before]
    assert edgecli("plan", str(site), "--check").code == 0


def test_the_same_file_makes_another_server_the_same(edgecli, site, tmp_path, monkeypatch):
    edgecli("apply", str(site), "--yes")
    written = tmp_path / "out.toml"
    edgecli("export", "-o", str(written))
    with closing(EdgeServer(tmp_path / "other", *patient(tmp_path)).start()) as other:
        monkeypatch.setenv("IMPORT_TOKEN", other.ready["api_token"])
        assert "ruleset custom/office" in edgecli("diff", other.ready["api_base"], str(written)).out
        ready = {"EDGE_API_BASE": "api_base", "EDGE_TOKEN": "api_token", "EDGE_ACCOUNT_ID": "account_id"}
        with monkeypatch.context() as there:
            for name, value in ready.items():
                there.setenv(name, other.ready[value])
            assert edgecli("apply", str(written), "--yes").code == 0
            assert edgecli("plan", str(written), "--check").code == 0
        compared = edgecli("diff", other.ready["api_base"], "server")
        assert (compared.code, compared.out) == (0, "Nothing differs.\n"), compared.out


def test_a_ruleset_that_nobody_has_is_told_before_anything_is_changed(edgecli, site):
    write(site, '{ id = "custom/bots" }', '{ id = "custom/bot" }')

    planned, done = edgecli("plan", str(site)), edgecli("apply", str(site), "--yes")

    assert (planned.code, done.code) == (1, 1)
    assert "site.example, rules custom: there is no ruleset custom/bot, neither here nor" in planned.err
    assert edgecli("zone", "get", "site.example").code == 1


def test_an_id_in_an_older_file_is_the_ruleset_that_has_it(edgecli, kv_server, site):
    edgecli("apply", str(site), "--yes")
    write(
        site,
        '{ id = "custom/bots" }',
        f'{{ id = "{rulesets_of(kv_server)["bots"]["id"]}", version = "latest" }}',
    )

    assert edgecli("plan", str(site), "--check").out.endswith("Nothing differs.\n")


def test_two_rulesets_of_one_name_are_told_apart(edgecli, kv_server, tmp_path):
    path = f"/accounts/{kv_server.ready['account_id']}/rulesets"
    for rule in ("a", "b"):
        body = {"name": "same", "kind": "custom", "phase": CUSTOM}
        made = kv_server.call("POST", path, body).result
        rules = [{"action": "log", "expression": f'http.host eq "{rule}"'}]
        kv_server.call("PUT", f"{path}/{made['id']}", {"rules": rules})
    written = tmp_path / "out.toml"

    edgecli("export", "-o", str(written))

    assert [one["name"] for one in document.read(written)["rulesets"]] == ["same", "same #2"]
    assert edgecli("plan", str(written), "--check").code == 0


def test_more_rulesets_than_a_page_has_hide_no_rules_of_a_zone(edgecli, tmp_path):
    path = tmp_path / "many.json"
    rules = [{"action": "log", "expression": "true", "description": "last"}]
    rulesets = [{"name": f"n{number:02}", "phase": "custom", "rules": []} for number in range(60)]
    zones = {"many.example": {"rules": {"response-headers": [], "custom": rules}}}
    path.write_text(json.dumps({"rulesets": rulesets, "zones": zones}))

    assert edgecli("apply", str(path), "--yes").code == 0

    assert edgecli("plan", str(path), "--check").out.endswith("Nothing differs.\n")
    exported = json.loads(edgecli("export", "--zone", "many.example", "--json").out)
    assert exported["zones"]["many.example"]["rules"] == {
        "custom": [{"action": "log", "description": "last"}]
    }
    assert len(json.loads(edgecli("ruleset", "list", "--account", "--json").out)) >= 60
    assert "rulesets" not in exported


def test_who_may_not_read_the_accounts_rulesets_compares_the_rest(edgecli, narrow_plan, site):
    edgecli("apply", str(site), "--yes")
    looked = narrow_plan(site)
    assert (looked.code, looked.out) == (0, "Nothing differs.\n"), (looked.out, looked.err)
    assert "rulesets of the account: " in looked.err


def test_a_chosen_zone_has_the_rulesets_that_it_executes_and_nothing_else_of_the_account(
    edgecli, site, tmp_path
):
    edgecli("apply", str(site), "--yes")
    written = tmp_path / "one.toml"

    edgecli("export", "--zone", "site.example", "-o", str(written))

    whole = document.read(written)
    assert [one["name"] for one in whole["rulesets"]] == ["bots"]
    assert whole.keys() == {"zones", "rulesets"}
    assert edgecli("plan", str(site), "--zone", "site.example", "--check").out.endswith("Nothing differs.\n")
    write(site, 'http.user_agent eq "bad"', 'http.user_agent eq "worse"')
    planned = edgecli("plan", str(site), "--zone", "site.example")
    assert "~ ruleset custom/bots" in planned.out
    assert planned.out.endswith("1 change.\n")


EVERY_PHASE = {
    "redirect": (
        "redirect",
        {"from_value": {"target_url": {"value": "https://a.example/"}, "status_code": 301}},
    ),
    "transform": ("rewrite", {"uri": {"path": {"value": "/x"}}}),
    "origin": ("route", {"host_header": "a.example", "origin": {"port": 8080}}),
    "custom": ("block", {"response": {"status_code": 403, "content": "no", "content_type": "text/plain"}}),
    "managed": ("skip", {"phases": ["http_ratelimit"], "ruleset": "current"}),
    "request-headers": ("rewrite", {"headers": {"x-a": {"operation": "set", "value": "1"}}}),
    "response-headers": ("rewrite", {"headers": {"x-a": {"operation": "add", "expression": "http.host"}}}),
    "compression": ("compress_response", {"algorithms": [{"name": "zstd"}, {"name": "auto"}]}),
    "http_config_settings": ("set_config", {"ssl": "full", "bic": True}),
    "http_request_cache_settings": ("set_cache_settings", {"cache": True}),
    "http_custom_errors": ("serve_error", {"content": "x", "content_type": "text/plain", "status_code": 500}),
    "http_log_custom_fields": ("log_custom_field", {"request_fields": [{"name": "x"}]}),
}


def test_rules_of_every_phase_are_what_they_were_after_export_and_apply(edgecli, tmp_path):
    path, written = tmp_path / "every.json", tmp_path / "out.toml"
    rules = {
        phase: [{"action": action, "expression": "true", "action_parameters": parameters}]
        for phase, (action, parameters) in EVERY_PHASE.items()
    }
    path.write_text(json.dumps({"zones": {"every.example": {"rules": rules}}}))
    done = edgecli("apply", str(path), "--yes")
    assert done.code == 0, done.err
    assert edgecli("plan", str(path), "--check").out.endswith("Nothing differs.\n")

    edgecli("export", "-o", str(written))

    exported, wanted = (document.read(one)["zones"]["every.example"]["rules"] for one in (written, path))
    assert exported == wanted


def add_rule(server, place):
    """A rule of somebody else's, at the end of the ruleset at that place."""
    held = server.call("GET", place).result
    body = {"action": "log", "expression": "true", "description": "theirs"}
    path = place.partition("/rulesets")[0] + f"/rulesets/{held['id']}/rules"
    assert server.call("POST", path, body).status == 200


@pytest.mark.parametrize("what", ["ruleset custom/office", "phase custom of site.example"])
def test_rules_that_somebody_changed_since_the_plan_stay(edgecli, kv_server, site, monkeypatch, what):
    edgecli("apply", str(site), "--yes")
    if what.startswith("ruleset"):
        place = f"/accounts/{kv_server.ready['account_id']}/rulesets/{rulesets_of(kv_server)['office']['id']}"
        write(site, 'description = "admin"', 'description = "admin", enabled = false')
    else:
        (zone,) = kv_server.call("GET", "/zones?name=site.example").result
        place = f"/zones/{zone['id']}/rulesets/phases/{CUSTOM}/entrypoint"
        write(site, 'http.host eq "c"', 'http.host eq "d"')

    def answer(*_, **__):
        add_rule(kv_server, place)
        return True

    monkeypatch.setattr("edgestead.cli.state.commands.confirmed", answer)
    done = edgecli("apply", str(site))

    assert (done.code, f"The {what} was changed meanwhile." in done.err) == (1, True), done.err
    assert kv_server.call("GET", place).result["rules"][-1]["description"] == "theirs"


def test_a_ruleset_that_somebody_made_since_the_plan_stays(edgecli, kv_server, site, monkeypatch):
    path = f"/accounts/{kv_server.ready['account_id']}/rulesets"
    rules = [{"action": "log", "expression": "true", "description": "theirs"}]

    def answer(*_, **__):
        body = {"name": "office", "kind": "custom", "phase": CUSTOM, "rules": rules}
        return kv_server.call("POST", path, body).status == 200

    monkeypatch.setattr("edgestead.cli.state.commands.confirmed", answer)
    done = edgecli("apply", str(site))

    assert (done.code, "ruleset custom/office was changed meanwhile" in done.err) == (1, True), done.err
    assert [one["description"] for one in rulesets_of(kv_server)["office"]["rules"]] == ["theirs"]


def test_rules_change_together_with_what_they_are_called_by(edgecli, site):
    """The plan's words of a rule are of before: another name for what it skips is nobody else's change."""
    write(site, '{ rulesets = ["custom/bots"] }', '{ rules = { "custom/office" = ["admin"] } }')
    assert edgecli("apply", str(site), "--yes").code == 0
    write(site, 'description = "admin"', 'description = "admins"')
    write(site, '"custom/office" = ["admin"]', '"custom/office" = ["admins"]')

    done = edgecli("apply", str(site), "--yes")

    assert done.code == 0, done.err
    assert edgecli("plan", str(site), "--check").code == 0
