"""A request that is tried: what the trial says is what the edge does."""

import json
import mmap
import random

import msgspec

from edgestead.edge.exchanges.later import finish
from edgestead.edge.phases import rate_rules, trial
from edgestead.edge.phases.pipeline import compile_zone
from edgestead.edge.rules.rules import Place, Rule
from edgestead.edge.tools.phase import Tools, ZoneRules, local_tools
from edgestead.edge.tools.rates import Rates, memory_octets
from edgestead.model.ruleset_document import encode
from edgestead.waf.transaction import Verdict
from tests.edge.made import Seen, rule, ruleset
from tests.edge.test_rates import SECRET

CUSTOM, LIMITS, MANAGED = "http_request_firewall_custom", "http_ratelimit", "http_request_firewall_managed"
REWRITES, REDIRECTS = "http_request_transform", "http_request_dynamic_redirect"
OWN, SET = "c" * 32, "e" * 32
ZONES = 300
IDS = [f"r{number}" for number in range(1, 7)]
EXPRESSIONS = (
    "true",
    "true",
    'http.request.uri.path eq "/a"',
    'http.request.uri.path ne "/b"',
    'http.user_agent contains "bot"',
    "ip.src eq 192.0.2.1",
    "not ssl",
)
CHARACTERISTICS = ("ip.src", "http.host", 'http.request.headers["x-key"]')
RULESETS = (OWN, SET, f"zone-{CUSTOM}", f"root-{CUSTOM}", f"zone-{LIMITS}", f"zone-{MANAGED}")
SETTINGS = ({}, {}, {}, {}, {"always_use_https": "on"}, {"security_level": "under_attack"})
PARAMETERS = {
    "execute": {"id": OWN, "version": "latest"},
    "inspect": {"id": SET},
    "rewrite": {"uri": {"path": {"value": "/b"}}},
    "redirect": {"from_value": {"target_url": {"expression": "http.request.uri.query"}}},
}
OFTEN = ("skip", "skip", "skip", "log", "log", "log", "block")
ENTRIES = {  # actions of the rules, and how many there are at most
    (REDIRECTS, "zone"): (("redirect",), 1),
    (REWRITES, "zone"): (("rewrite",), 2),
    (CUSTOM, "root"): (("skip", "skip", "execute"), 5),
    (CUSTOM, "zone"): ((*OFTEN, "managed_challenge", "execute"), 6),
    (LIMITS, "root"): (("skip",), 2),
    (LIMITS, "zone"): (("skip", "block", "block", "log"), 6),
    (MANAGED, "zone"): (("skip", "skip", "inspect"), 6),
}


class Chance(random.Random):
    """Rules and requests as a seed makes them."""

    def skip(self):
        rules = {self.choice(RULESETS): self.sample(IDS, self.randint(1, 3)) for _ in range(2)}
        return self.choice(
            (
                {"ruleset": "current"},
                {"phase": "current"},
                {"phases": [self.choice((CUSTOM, LIMITS, MANAGED))]},
                {"rulesets": [self.choice((OWN, SET))]},
                {"products": ["securityLevel"]},
                {"rules": rules},
                {"rules": rules},
                {"rules": {SET: self.sample(IDS, self.randint(1, 4))}},
            )
        )

    def limit(self):
        told = {
            "characteristics": self.sample(CHARACTERISTICS, self.randint(1, 3)),
            "period": self.choice((10, 60)),
            "requests_per_period": self.randint(1, 5),
        }
        more = {"counting_expression": self.choice(EXPRESSIONS), "requests_to_origin": True}
        told |= {name: value for name, value in more.items() if self.random() < 0.4}
        return told

    def rule(self, action, phase):
        more = {"action_parameters": self.skip()} if action == "skip" else {}
        if action in PARAMETERS:
            more = {"action_parameters": PARAMETERS[action]}
        elif phase == LIMITS and action != "skip":
            more = {"ratelimit": self.limit()}
        is_on = self.random() < 0.9
        name = "execute" if action == "inspect" else action
        return rule(name, self.choice(EXPRESSIONS), enabled=is_on, **more)

    def rules(self, phase, actions, most):
        return [self.rule(self.choice(actions), phase) for _ in range(self.randint(0, most))]

    def zone(self):
        """Entry points, a custom ruleset, settings."""
        found = {"zone": {}, "root": {}}
        for (phase, kind), (actions, most) in ENTRIES.items():
            if rules := self.rules(phase, actions, most):
                found[kind][phase] = ruleset(phase, rules, kind)
        custom = ruleset(CUSTOM, self.rules(CUSTOM, OFTEN, 4), "custom", OWN)
        return found, custom, self.choice(SETTINGS)

    def request(self):
        return {
            "url": self.choice(
                ("http://x.example/a", "https://x.example/b", "http://x.example/c?https://y/")
            ),
            "client": self.choice(("192.0.2.1", "2001:db8::1")),
            "headers": self.choice(([], [(b"user-agent", b"a bot")], [(b"x-key", b"k")])),
        }


def shown(document):
    """As the API shows it."""
    return json.loads(encode(document))


def rulesets(found, custom):
    return trial.Rulesets(
        [*map(shown, found["zone"].values())],
        [*map(shown, found["root"].values())],
        [shown(custom)],
        frozenset([SET]),
    )


class NoRules:
    """A managed set that inspects nothing, and remembers what it was to leave out."""

    def __init__(self):
        self.left_out, self.verdicts, self.response_octets, self.engine = [], {"pass": 0}, 0, self

    def unusable(self, ruleset_id):
        return "" if ruleset_id == SET else "unknown"

    def count(self, zone_id, rule_id):
        pass

    def policy(self, overrides, skipped):
        self.left_out.append(len(skipped))

    def inspect(self, request, policy):
        return self

    def request(self):
        yield from ()
        return Verdict()


def real(found, custom, facts, request):
    """What the edge itself does: its answer, what was decided, its counts, what inspections leave out."""
    seen, managed = Seen(), NoRules()
    rates = Rates(memoryview(mmap.mmap(-1, memory_octets(1))), SECRET)
    tools: Tools = local_tools(seen)._replace(rates=rates, managed=managed)
    zone = ZoneRules(facts, account=found["root"], zone=found["zone"], by_id={OWN: custom})
    return finish(compile_zone(zone, tools).request(request)), seen.decisions, rates, managed.left_out


def test_a_trial_says_what_the_edge_does():
    for seed in range(ZONES):
        try:
            check(Chance(seed))
        except AssertionError as error:
            raise AssertionError(f"the zone of Chance({seed}): {error}") from error


def check(chance):
    found, custom, settings = chance.zone()
    about = chance.request()
    facts = trial.ZoneFacts("5" * 32, b"x.example", "a" * 32, "free", settings)
    outcome = trial.tried(rulesets(found, custom), trial.request_of(**about, zone=facts))
    request = trial.request_of(**about, zone=facts)
    told, decisions, rates, left_out = real(found, custom, facts, request)

    assert outcome.status == (told.status if told else None)
    acted = [one for one in outcome.rows if one.acts]
    kinds = {"zone": "zone", "account": "root"}
    said = [
        (OWN if one.by else f"{kinds[one.level]}-{one.phase}", one.rule["id"])
        for one in acted
        if one.phase in (CUSTOM, MANAGED, LIMITS) and not one.rule.get("ratelimit")
        if one.rule["action"] != "execute"
    ]
    assert said == [
        (one.ruleset_id, one.rule_id)
        for one in decisions
        if one.rule_id in IDS and one.phase in (CUSTOM, MANAGED, LIMITS)
    ]
    for one in outcome.rows:
        if one.rule.get("ratelimit"):
            counts = one.acts and one.does.startswith("counts it for")
            assert rates.look(rates.key(*keyed(one, request)), rates.now_ms()).total == counts, one
        if one.matches == "yes" and not one.acts:
            assert one.does.startswith(("skipped by", "not reached: ", "the rule that executes it")) or (
                one.does == "does nothing here" and one.rule["action"] == "execute"
            ), one
            assert told is not None or not one.does.startswith("not reached: ")
    assert [inspections(one) for one in acted if one.does.startswith("inspects")] == left_out


def keyed(one, request):
    limit = rate_rules._limit(msgspec.convert(one.rule, Rule), Place("zone", LIMITS, f"zone-{LIMITS}"))
    view = rate_rules.view_of(request)
    return limit.name, [rate_rules._octets(get(view)) for get in limit.gets]


def inspections(one):
    words = one.does.split(", without ")
    return int(words[1].split()[0]) if len(words) > 1 else 0


def entry(phase, *rules):
    return shown(ruleset(phase, list(rules)))


def skip(**parameters):
    return rule("skip", action_parameters=parameters, description="let in")


def limit(**more):
    told = {"characteristics": ["ip.src"], "period": 60, "requests_per_period": 100, **more}
    return rule("block", ratelimit=told)


def does(*entries, url="http://x.example/", **more):
    outcome = trial.tried(trial.Rulesets(entries), trial.request_of(url, **more))
    return [(one.reached, one.does) for one in outcome.rows]


def test_what_a_skip_leaves_out_is_told_with_its_name():
    told = does(
        entry(CUSTOM, skip(ruleset="current", phases=[LIMITS]), rule("block")), entry(LIMITS, limit())
    )

    assert told == [
        (True, "skips the rest of this ruleset; phases http_ratelimit"),
        (False, "skipped by the rule let in"),
        (False, "skipped by the rule let in"),
    ]
    by_rule = does(entry(CUSTOM, skip(rules={f"zone-{CUSTOM}": ["r2"]}), rule("block"), rule("log")))
    assert by_rule[1:] == [(True, "skipped by the rule let in"), (True, "is logged")]


def test_what_a_rate_limit_would_count_is_told_with_key_and_limit():
    counted = "counts it for ip.src = 192.0.2.1: block above 100 requests in 60 s"
    assert does(entry(LIMITS, limit(mitigation_timeout=60))) == [(True, f"{counted}, for 60 s")]
    by = {"characteristics": ['http.request.headers["x-key"]', "ip.src"], "counting_expression": "ssl"}
    ((_, told),) = does(entry(LIMITS, limit(**by)), client="2001:db8:1:2::9")
    assert told.startswith(
        'counts nothing of it; a request of http.request.headers["x-key"] = nothing, ip.src'
    )
    assert "ip.src = 2001:db8:1:2:: is held back" in told
    ((_, waits),) = does(entry(LIMITS, limit(requests_to_origin=True)))
    assert waits == counted.replace("counts it", "counts it when its answer comes")


def test_settings_answer_before_rules():
    facts = trial.ZoneFacts("5" * 32, b"x.example", "a" * 32, "free", {"always_use_https": "on"})
    outcome = trial.tried(
        trial.Rulesets([entry(CUSTOM, rule("block"))]), trial.request_of("http://x.example/", zone=facts)
    )

    assert (outcome.status, outcome.why) == (301, "the setting always_use_https is on")
    assert [one.does for one in outcome.rows] == ["not reached: the setting always_use_https is on"]
