"""Rulesets over REST: every route, for zones and for accounts."""

import pytest

from edgestead.usecases.limits import REGEXES_PER_RULESET_MAX, RULES_PER_RULESET_MAX
from tests.rest.rulesets import ACCOUNT, NO_ID, new
from tests.usecases.ruleset_samples import (
    CUSTOM_PHASE,
    MANAGED,
    MANAGED_PHASE,
    block,
    execute,
    skip,
)


@pytest.fixture
def managed():
    return MANAGED


def names(ruleset) -> str:
    return "".join(rule["description"] for rule in ruleset["rules"])


# Entry points


def test_an_entry_point_is_made_by_its_first_put_and_answers_in_the_golden_shape(api, rulesets, entrypoint):
    made = api.put(entrypoint, {"rules": [block()]}).result

    assert list(made) == [
        "id", "name", "description", "kind", "version", "rules", "last_updated", "phase"
    ]  # fmt: skip
    assert (made["name"], made["description"], made["kind"], made["version"]) == ("default", "", "zone", "1")
    (rule,) = made["rules"]
    assert rule["ref"] == rule["id"] != made["id"]
    assert (rule["version"], rule["enabled"], rule["description"]) == ("1", True, "")
    assert rule["last_updated"] == made["last_updated"]
    assert "logging" not in rule
    assert api.get(entrypoint).result == api.get(f"{rulesets}/{made['id']}").result == made


def test_the_managed_phase_names_its_source(api, rulesets):
    assert api.put(f"{rulesets}/phases/{MANAGED_PHASE}/entrypoint", {}).result["source"] == "firewall_managed"


def test_an_entry_point_without_rules_shows_an_empty_list(api, entrypoint):
    assert api.put(entrypoint, {}).result["rules"] == []


def test_a_put_changes_only_what_it_sends(api, entrypoint):
    api.put(entrypoint, {"name": "mine", "description": "first", "rules": [block()]})

    changed = api.put(entrypoint, {"rules": []}).result
    again = api.put(entrypoint, {"description": ""}).result

    assert (changed["name"], changed["description"], changed["rules"]) == ("mine", "first", [])
    assert (again["description"], again["version"]) == ("", "3")


@pytest.mark.parametrize("body", [{}, {"rules": None}, {"description": "first"}, {"name": "mine"}])
def test_a_put_that_sends_nothing_new_makes_no_version(api, entrypoint, rulesets, body):
    made = api.put(entrypoint, {"name": "mine", "description": "first", "rules": [block()]}).result

    assert api.put(entrypoint, body).result == made
    assert api.put(f"{rulesets}/{made['id']}", body).result == made
    assert len(api.get(f"{entrypoint}/versions").result) == 1


def test_the_account_has_entry_points_of_its_own(api, rulesets, entrypoint):
    path = f"{ACCOUNT}/phases/{CUSTOM_PHASE}/entrypoint"
    api.put(entrypoint, {})

    assert api.get(path).status == 404
    assert api.put(path, {}).result["kind"] == "root"


# Create, list, get, replace, delete


def test_a_ruleset_lives_in_both_scopes(api, scope):
    path, kind = scope
    made = api.post(path, new(kind, description="text", rules=[])).result
    one = f"{path}/{made['id']}"

    changed = api.put(
        one, {"name": "mine", "kind": kind, "phase": CUSTOM_PHASE, "description": "other"}
    ).result

    assert (made["version"], changed["version"]) == ("1", "2")
    assert api.get(one).result["description"] == "other"
    assert [row["id"] for row in api.get(path).result if row["kind"] == kind] == [made["id"]]
    assert api.get(f"{path}/phases/{CUSTOM_PHASE}/entrypoint").result["id"] == made["id"]

    gone = api.delete(one)

    assert (gone.status, gone.body) == (204, b"")
    assert not {"content-length", "content-type"} & gone.headers.keys()
    assert api.get(one).codes == [10001]
    assert api.get(f"{path}/phases/{CUSTOM_PHASE}/entrypoint").codes == [10003]


def test_a_list_shows_summaries_the_managed_ruleset_first(api, entrypoint, rulesets):
    api.put(entrypoint, {"rules": [block()]})

    managed, own = api.get(rulesets).result

    assert (managed["kind"], managed["phase"], managed["version"]) == ("managed", MANAGED_PHASE, "7")
    assert own["kind"] == "zone"
    assert "rules" not in managed | own
    assert "result_info" not in api.get(rulesets).json


def test_a_zone_lists_the_custom_rulesets_that_it_may_execute_but_does_not_own_them(api, rulesets):
    custom = api.post(ACCOUNT, new("custom")).result
    api.post(ACCOUNT, new("root"))

    assert [row["kind"] for row in api.get(rulesets).result] == ["managed", "custom"]
    assert api.get(f"{rulesets}/{custom['id']}").codes == [10001]
    assert [row["kind"] for row in api.get(ACCOUNT).result] == ["managed", "custom", "root"]


def test_a_list_is_paged_by_cursor(api, rulesets):
    phases = [CUSTOM_PHASE, MANAGED_PHASE, "http_ratelimit"]
    for phase in phases:
        api.put(f"{rulesets}/phases/{phase}/entrypoint", {})

    first = api.get(f"{rulesets}?per_page=3").json
    cursor = first["result_info"]["cursors"]["after"]
    second = api.get(f"{rulesets}?per_page=3&cursor={cursor}").json

    seen = [row["phase"] for row in first["result"] + second["result"]]
    assert seen == [MANAGED_PHASE, CUSTOM_PHASE, "http_ratelimit", MANAGED_PHASE]
    assert "result_info" not in second
    assert len(api.get(f"{rulesets}?per_page=&cursor=").result) == 4
    assert len(api.get(f"{rulesets}?per_page=999999").result) == 4


NO_PAGES = [
    "per_page=0",
    "per_page=-1",
    "per_page=many",
    "cursor=zzz",
    "cursor=0",
    f"cursor=2{NO_ID}",
    f"cursor=1x1{NO_ID}",
    f"cursor=101{NO_ID[:-1]}G",
    f"cursor=101{NO_ID}1",
]


@pytest.mark.parametrize("query", NO_PAGES)
def test_a_page_that_no_list_has_is_refused(api, rulesets, query):
    answer = api.get(f"{rulesets}?{query}")

    assert (answer.status, answer.codes) == (400, [1001])
    assert f"Query parameter {query.partition('=')[0]} is invalid" in answer.json["errors"][0]["message"]


def test_a_cursor_whose_ruleset_is_gone_still_leads_on(api, rulesets):
    made = api.put(f"{rulesets}/phases/{CUSTOM_PHASE}/entrypoint", {}).result["id"]
    api.put(f"{rulesets}/phases/{MANAGED_PHASE}/entrypoint", {})
    cursor = api.get(f"{rulesets}?per_page=2").json["result_info"]["cursors"]["after"]

    api.delete(f"{rulesets}/{made}")

    assert [row["phase"] for row in api.get(f"{rulesets}?cursor={cursor}").result] == [MANAGED_PHASE]


def test_custom_rulesets_are_several_in_a_phase(api):
    for _ in range(2):
        api.post(ACCOUNT, new("custom", rules=[block()]))

    assert [row["kind"] for row in api.get(ACCOUNT).result] == ["managed", "custom", "custom"]


def test_rulesets_of_another_zone_are_not_found(api, rulesets, three):
    other = api.post("/zones", {"name": "example.net"}).result["id"]

    for method in ("GET", "DELETE"):
        assert api.call(method, f"/zones/{other}/rulesets/{three['id']}").codes == [10001]
    assert api.get(f"{ACCOUNT}/{three['id']}").codes == [10001]
    assert api.get(f"{rulesets}/{three['id']}").status == 200


def test_a_deleted_zone_takes_its_rulesets_along(api, zone_id, three):
    api.delete(f"/zones/{zone_id}")

    left = api.store.read(lambda reader: reader.rows("select * from ruleset_versions"))
    assert left == []


# Rules: identity


def test_a_put_keeps_the_rules_that_id_or_ref_name(api, entrypoint, three):
    a, _, c = three["rules"]
    named = api.put(
        entrypoint, {"rules": [block(description="c", ref=c["ref"]), block(description="a2", id=a["id"])]}
    )
    kept_c, kept_a = named.result["rules"]

    assert (kept_c["id"], kept_c["version"], kept_c["last_updated"]) == (c["id"], "1", c["last_updated"])
    assert (kept_a["id"], kept_a["version"], kept_a["ref"]) == (a["id"], "2", a["ref"])
    assert kept_a["last_updated"] > a["last_updated"]


def test_a_put_without_names_makes_new_rules(api, entrypoint, three):
    again = api.put(entrypoint, {"rules": [block(description="a")]}).result

    assert again["rules"][0]["id"] not in [rule["id"] for rule in three["rules"]]


def test_what_was_answered_can_be_sent_back(api, entrypoint, rulesets, three):
    again = api.put(entrypoint, {"rules": three["rules"]}).result

    assert again["rules"] == three["rules"]
    assert again["version"] == "2"


def test_an_id_from_elsewhere_gets_one_of_its_own_here(api, entrypoint):
    (rule,) = api.put(entrypoint, {"rules": [block(id=NO_ID, ref="mine")]}).result["rules"]

    assert (rule["id"] == NO_ID, rule["ref"]) == (False, "mine")


def test_a_patch_replaces_the_definition_and_keeps_who_the_rule_is(api, rulesets, entrypoint):
    made = api.put(entrypoint, {"rules": [block(ref="mine", description="old", enabled=False)]}).result
    rule = made["rules"][0]

    answer = api.patch(
        f"{rulesets}/{made['id']}/rules/{rule['id']}", {"action": "log", "expression": "true"}
    ).result

    (changed,) = answer["rules"]
    assert (answer["id"], answer["version"]) == (made["id"], "2")
    assert (changed["id"], changed["ref"], changed["version"]) == (rule["id"], "mine", "2")
    assert (changed["action"], changed["description"], changed["enabled"]) == ("log", "", True)


def test_a_patch_that_changes_nothing_leaves_the_rules_version(api, rulesets, three):
    rule = three["rules"][0]
    same = {name: rule[name] for name in ("action", "expression", "description", "enabled")}

    answer = api.patch(f"{rulesets}/{three['id']}/rules/{rule['id']}", same).result

    assert (answer["version"], answer["rules"][0]["version"]) == ("2", "1")


def test_a_rule_is_deleted_and_the_ruleset_answered(api, rulesets, three):
    gone = api.delete(f"{rulesets}/{three['id']}/rules/{three['rules'][1]['id']}")

    assert (gone.status, names(gone.result), gone.result["version"]) == (200, "ac", "2")


def test_a_patch_for_another_version_than_the_rules_is_refused(api, rulesets, three):
    rule = three["rules"][0]
    path = f"{rulesets}/{three['id']}/rules/{rule['id']}"

    first = api.patch(f"{path}?if_version=1", block(description="first"))
    late = api.patch(f"{path}?if_version=1", block(description="late"))
    moved = api.patch(f"{path}?if_version=1", {"position": {"after": ""}})
    again = api.patch(f"{path}?if_version=1", block(description="first"))

    assert (first.status, names(first.result)) == (200, "firstbc")
    assert (late.status, late.codes) == (400, [20225])
    assert moved.codes == [20225]
    assert (again.status, again.result["rules"][0]["version"]) == (200, "2"), "nobody's change is lost by it"
    assert api.patch(f"{path}?if_version=x", block()).status == 400
    assert names(api.get(f"{rulesets}/{three['id']}").result) == "firstbc"


# Rules: positions

ADDED = [
    (None, "abcx"),
    ({"before": ""}, "xabc"),
    ({"after": ""}, "abcx"),
    ({"before": "b"}, "axbc"),
    ({"after": "b"}, "abxc"),
    ({"index": 1}, "xabc"),
    ({"index": 3}, "abxc"),
    ({"index": 4}, "abcx"),
]
MOVED = [
    ({"before": ""}, "bac"),
    ({"after": ""}, "acb"),
    ({"before": "a"}, "bac"),
    ({"after": "c"}, "acb"),
    ({"index": 1}, "bac"),
    ({"index": 2}, "abc"),
    ({"index": 3}, "acb"),
]
MISPLACED = [
    ({"index": 5}, "/position/index", 20129),
    ({"index": 0}, "/position/index", 20121),
    ({"index": "1"}, "/position/index", 10026),
    ({"before": NO_ID}, "/position/before", 20129),
    ({"after": "short"}, "/position/after", 20121),
    ({}, "/position", 20121),
    ({"before": "", "index": 1}, "/position", 20121),
    ({"first": True}, "/position/first", 10026),
    ([], "/position", 10026),
]


def placed(position, ruleset):
    """A position whose rules are named by their descriptions."""
    ids = {rule["description"]: rule["id"] for rule in ruleset["rules"]}
    if not isinstance(position, dict):
        return position
    return {how: ids.get(where, where) for how, where in position.items()}


@pytest.mark.parametrize(("position", "order"), ADDED)
def test_a_new_rule_goes_to_its_position(api, rulesets, three, position, order):
    rule = block(description="x")
    if position is not None:
        rule["position"] = placed(position, three)

    answer = api.post(f"{rulesets}/{three['id']}/rules", rule)

    assert names(answer.result) == order
    assert "position" not in answer.body.decode()


@pytest.mark.parametrize(("position", "order"), MOVED)
def test_a_patch_with_a_position_alone_moves_and_changes_nothing(api, rulesets, three, position, order):
    path = f"{rulesets}/{three['id']}/rules/{three['rules'][1]['id']}"

    answer = api.patch(path, {"position": placed(position, three)}).result

    assert names(answer) == order
    assert answer["version"] == "2"
    assert sorted(answer["rules"], key=names_of) == three["rules"]


def names_of(rule) -> str:
    return rule["description"]


def test_a_patch_may_move_and_change_at_once(api, rulesets, three):
    path = f"{rulesets}/{three['id']}/rules/{three['rules'][1]['id']}"

    answer = api.patch(path, block(description="B", position={"index": 1})).result

    assert names(answer) == "Bac"
    assert [rule["version"] for rule in answer["rules"]] == ["2", "1", "1"]


@pytest.mark.parametrize(("position", "pointer", "code"), MISPLACED)
def test_a_position_that_is_none_is_refused(api, rulesets, entrypoint, three, position, pointer, code):
    answer = api.post(f"{rulesets}/{three['id']}/rules", block(position=position))

    (error,) = answer.json["errors"]
    assert (answer.status, error["code"], error["source"]["pointer"]) == (400, code, pointer)
    assert api.get(entrypoint).result == three


def test_a_rule_has_no_place_next_to_itself(api, rulesets, three):
    rule_id = three["rules"][0]["id"]

    answer = api.patch(f"{rulesets}/{three['id']}/rules/{rule_id}", {"position": {"after": rule_id}})

    assert answer.codes == [20129]


# Versions


def test_every_change_makes_a_version_that_stays_as_it_was(api, rulesets, entrypoint, three):
    one = f"{rulesets}/{three['id']}"
    api.delete(f"{one}/rules/{three['rules'][0]['id']}")
    api.put(one, {"rules": []})

    listed = api.get(f"{one}/versions").result

    assert [row["version"] for row in listed] == ["1", "2", "3"]
    assert all("rules" not in row for row in listed)
    assert api.get(f"{one}/versions/1").result == three
    assert [names(api.get(f"{one}/versions/{n}").result) for n in (1, 2, 3)] == ["abc", "bc", ""]
    assert api.get(f"{entrypoint}/versions").result == listed
    assert api.get(f"{entrypoint}/versions/1").result == three


def test_an_old_version_can_be_deleted_the_current_one_cannot(api, rulesets, entrypoint, three):
    one = f"{rulesets}/{three['id']}"
    api.put(one, {"rules": []})

    assert api.delete(f"{one}/versions/1").status == 204
    assert api.get(f"{one}/versions/1").codes == [10004]
    assert api.delete(f"{one}/versions/2").codes == [20223]
    assert api.get(entrypoint).result["version"] == "2"


def test_versions_of_a_phase_without_an_entry_point_are_an_empty_list(api, entrypoint):
    assert api.get(f"{entrypoint}/versions").result == []
    assert api.get(f"{entrypoint}/versions/1").codes == [10003]


@pytest.mark.parametrize("number", ["9", "x", "latest", "-1", "9" * 30, "%D9%A1"])
def test_a_version_that_is_none_is_not_found(api, rulesets, three, number):
    assert api.get(f"{rulesets}/{three['id']}/versions/{number}").codes == [10004]


# Size


def test_a_thousand_rules_fit_and_one_more_does_not(api, rulesets, entrypoint):
    many = [block("true", description=str(number)) for number in range(RULES_PER_RULESET_MAX)]
    made = api.put(entrypoint, {"rules": many}).result

    refused = api.post(f"{rulesets}/{made['id']}/rules", block())

    assert len(made["rules"]) == RULES_PER_RULESET_MAX
    assert refused.codes == [20217]
    assert (
        f"{RULES_PER_RULESET_MAX + 1} out of {RULES_PER_RULESET_MAX}" in refused.json["errors"][0]["message"]
    )
    assert api.put(entrypoint, {"rules": [*many, block()]}).codes == [20217]


def test_a_ruleset_has_a_limit_of_regular_expressions(api, rulesets, entrypoint):
    each = REGEXES_PER_RULESET_MAX // 20
    many = block(" or ".join(['http.host ~ "^a"'] * each))
    made = api.put(entrypoint, {"rules": [many] * 20}).result

    refused = api.put(entrypoint, {"rules": [many] * 20 + [block('http.host matches "a"')]})
    added = api.post(f"{rulesets}/{made['id']}/rules", block('http.host matches "a"'))

    assert [(one.status, one.codes) for one in (refused, added)] == [(400, [20219])] * 2
    assert refused.json["errors"][0]["source"] == {"pointer": "/rules"}
    assert f"{REGEXES_PER_RULESET_MAX + 1} times" in added.json["errors"][0]["message"]
    assert api.get(entrypoint).result == made
    assert api.post(f"{rulesets}/{made['id']}/rules", block()).status == 200


def test_rules_that_no_document_of_the_feed_could_hold_are_refused(api, entrypoint):
    long = 'http.host in {"' + "x" * 4_000 + '"}'

    answer = api.put(
        entrypoint, {"rules": [block(long, id=f"{n:032x}", ref="r" * 100 + str(n)) for n in range(218)]}
    )

    assert answer.codes == [20218]
    assert api.get(entrypoint).status == 404


# A PUT that names what stays


@pytest.mark.parametrize("named", [("id",), ("ref",), ("id", "ref"), ("id", "version", "last_updated")])
def test_a_rule_that_is_only_named_stays_as_it_is(api, rulesets, scope, named):
    path, kind = scope
    phase = f"{path}/phases/{MANAGED_PHASE}/entrypoint"
    (old,) = api.put(phase, {"rules": [execute() | {"ref": "mine", "enabled": False}]}).result["rules"]

    put = api.put(phase, {"rules": [skip(ruleset="current"), {name: old[name] for name in named}]}).result

    assert (put["kind"], put["version"]) == (kind, "2")
    assert put["rules"][1] == old
    by_id = api.put(f"{path}/{put['id']}", {"rules": [{name: old[name] for name in named}]}).result
    assert by_id["rules"] == [old]


def test_a_rule_that_is_only_named_has_to_be_there(api, rulesets, entrypoint, three):
    unknown = {"id": NO_ID}
    for body in ({"rules": [unknown]}, {"rules": [{"id": three["rules"][0]["id"]}, {"ref": "nobody"}]}):
        (error,) = api.put(entrypoint, body).json["errors"]
        assert (error["code"], error["message"].split(":")[0]) == (20114, "action is required")
        assert error["source"]["pointer"] == f"/rules/{len(body['rules']) - 1}/action"
    assert api.put(f"{rulesets}/phases/http_ratelimit/entrypoint", {"rules": [unknown]}).codes == [20114]
    assert api.post(rulesets, new("zone", phase="http_ratelimit", rules=[unknown])).codes == [20114]
    assert api.post(f"{rulesets}/{three['id']}/rules", {"id": three["rules"][0]["id"]}).codes == [20114]
    assert api.get(entrypoint).result == three


@pytest.mark.parametrize("more", [{"enabled": False}, {"expression": "ssl"}, {"action": ""}])
def test_a_rule_with_anything_else_is_defined_anew(api, entrypoint, three, more):
    answer = api.put(entrypoint, {"rules": [{"id": three["rules"][0]["id"], **more}]})

    assert answer.status == 400
    assert api.get(entrypoint).result == three
