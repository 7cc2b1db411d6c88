"""What each construct of SecLang becomes."""

import pytest

from edgestead.crs import Control, Marker, Operator, RuleError, SetVar, Severity, Variable

from .conftest import FILE, only_rule, program

V = Variable
TARGETS = [
    ("ARGS", [V("ARGS")]),
    ("args|Request_Uri", [V("ARGS"), V("REQUEST_URI")]),
    ("&ARGS", [V("ARGS", count=True)]),
    ("REQUEST_HEADERS:User-Agent", [V("REQUEST_HEADERS", "User-Agent")]),
    ("!REQUEST_COOKIES:/^__utm|x/", [V("REQUEST_COOKIES", "^__utm|x", pattern=True, excluded=True)]),
    ("ARGS:/a\\/b|c/|FILES", [V("ARGS", "a\\/b|c", pattern=True), V("FILES")]),
    ("ARGS:'a|b'|FILES", [V("ARGS", "a|b"), V("FILES")]),
    ("ARGS:'/^a|b$/'", [V("ARGS", "^a|b$", pattern=True)]),
    ("XML:/*|XML://@*|ARGS", [V("XML", "/*"), V("XML", "//@*"), V("ARGS")]),
    ("&TX:/^header/", [V("TX", "^header", pattern=True, count=True)]),
    ("MULTIPART_PART_HEADERS:_charset_", [V("MULTIPART_PART_HEADERS", "_charset_")]),
    ("TX:1", [V("TX", "1")]),
]


@pytest.mark.parametrize(("text", "targets"), TARGETS, ids=[text for text, _ in TARGETS])
def test_targets(text: str, targets: list[Variable]) -> None:
    assert list(only_rule(f'SecRule {text} "@rx a" "id:1"').variables) == targets


OPERATORS = [
    ('"@rx a b"', Operator("rx", "a b")),
    ('"a b"', Operator("rx", "a b")),
    ('"!a"', Operator("rx", "a", negated=True)),
    ('"@rx  a "', Operator("rx", " a ")),
    ('"@rx \\"[\\"\'`]\\x5c\\d"', Operator("rx", "\"[\"'`]\\x5c\\d")),
    ("'@rx \"a\\'b'", Operator("rx", "\"a'b")),
    ('"!@within %{tx.allowed_methods}"', Operator("within", "%{tx.allowed_methods}", negated=True)),
    ('"@PM union  select"', Operator("pm", "union  select", phrases=("union", "select"))),
    ('"@pm one |74 77|o th|20|ree a|b|c || |ff|x |41"', Operator("pm",
     "one |74 77|o th|20|ree a|b|c || |ff|x |41",
     phrases=("one", "two", "th ree", "a|b|c", "||", "\udcffx", "|41"))),
    ('"@pmFromFile words.data"', Operator("pmFromFile", "words.data", phrases=("sleep(", "union select"))),
    ('"@pmf words.data words.data"',
     Operator("pmFromFile", "words.data words.data", phrases=("sleep(", "union select") * 2)),
    ('"@ipMatch 192.0.2.1, 2001:db8::/32"', Operator("ipMatch", "192.0.2.1, 2001:db8::/32")),
    ('"@validateByteRange 9,10,32-126"', Operator("validateByteRange", "9,10,32-126")),
    ('"@detectSQLi"', Operator("detectSQLi")),
    ('"@unconditionalMatch"', Operator("unconditionalMatch")),
    ('"@lt %{tx.level}"', Operator("lt", "%{tx.level}")),
    ('"@eq -1"', Operator("eq", "-1")),
    ("@streq", Operator("streq", "")),
]  # fmt: skip
WORDS = "# comment\n\nsleep(\n  union select  \n"


@pytest.mark.parametrize(("text", "operator"), OPERATORS, ids=[text for text, _ in OPERATORS])
def test_operators(text: str, operator: Operator) -> None:
    assert only_rule(f'SecRule ARGS {text} "id:1"', **{"words.data": WORDS}).operator == operator


def test_every_action_of_a_rule_has_its_field() -> None:
    rule = only_rule(r"""
        # a comment
        SecRule ARGS "@rx a" \
            "id:942100,\
            phase:request,\
            block,status:403,\
            # left out
            capture,multiMatch,nolog,auditlog,\
            t:lowercase,t:none,t:urlDecodeUni,t:normalisePath,\
            msg:'It\'s, bad: really',\
            logdata:'%{TX.0}',\
            tag:'attack-sqli',tag:paranoia-level/2,\
            ver:'OWASP_CRS/4.0.0',rev:'2',severity:'CRITICAL',\
            ctl:ruleRemoveTargetById=1;ARGS:/x/,ctl:ruleEngine=Off,\
            setvar:'tx.score=+%{tx.critical}',setvar:tx.Flag,setvar:!tx.gone,setvar:'tx.a=b=c',setvar:ip.n=-1,\
            expirevar:'ip.n=60',initcol:ip=%{remote_addr},\
            skipAfter:END,maturity:'9'"
        SecMarker "END"
    """)

    assert (rule.id, rule.phase, rule.disruptive, rule.status) == (942100, 2, "block", 403)
    assert (rule.capture, rule.multi_match, rule.log, rule.audit_log) == (True, True, False, True)
    assert rule.transformations == ("urlDecodeUni", "normalizePath")
    assert (rule.message, rule.log_data) == ("It's, bad: really", "%{TX.0}")
    assert rule.tags == ("attack-sqli", "paranoia-level/2")
    assert (rule.version, rule.revision, rule.severity) == ("OWASP_CRS/4.0.0", "2", Severity.CRITICAL)
    assert rule.controls == (
        Control("ruleRemoveTargetById", "1", Variable("ARGS", "x", pattern=True)),
        Control("ruleEngine", "Off"),
    )
    assert rule.set_vars == (
        SetVar("TX", "score", "+", "%{tx.critical}"),
        SetVar("TX", "Flag", "=", "1"),
        SetVar("TX", "gone", "!", ""),
        SetVar("TX", "a", "=", "b=c"),
        SetVar("IP", "n", "-", "1"),
    )
    assert rule.expire_vars == (SetVar("IP", "n", "=", "60"),)
    assert rule.init_collections == (("IP", "%{remote_addr}"),)
    assert (rule.skip_after, rule.other) == ("END", (("maturity", "9"),))
    assert (rule.file, rule.line) == (FILE, 3)


def test_an_action_without_a_target_always_matches() -> None:
    rule = only_rule("""SecAction "id:900000,phase:1,pass,nolog,setvar:tx.level=2" """)

    assert rule.variables == ()
    assert rule.operator == Operator("unconditionalMatch")
    assert rule.set_vars == (SetVar("TX", "level", "=", "2"),)


def test_a_chain_belongs_to_its_first_rule() -> None:
    rule = only_rule("""
        SecRule ARGS "@rx a" "id:1,phase:1,block,chain,t:none"
            SecRule &ARGS "@gt 1" "chain,t:length"
            SecRule TX:1 "@rx b" "setvar:tx.x=+1"
    """)

    assert [link.operator.name for link in rule.links] == ["rx", "gt", "rx"]
    assert [(link.id, link.phase) for link in rule.chain] == [(0, 1), (0, 1)]
    assert rule.chain[0].transformations == ("length",)


def test_the_default_action_of_the_phase_holds_where_a_rule_says_nothing() -> None:
    one, two, three = program("""
        SecDefaultAction "phase:1,deny,log,status:406,t:lowercase"
        SecRule ARGS "@rx a" "id:1,phase:1,t:trim"
        SecRule ARGS "@rx a" "id:2,phase:1,pass,nolog,status:404,t:none,t:trim"
        SecRule ARGS "@rx a" "id:3,phase:2"
    """).rules

    assert (one.disruptive, one.status, one.log, one.transformations) == (
        "deny",
        406,
        True,
        ("lowercase", "trim"),
    )
    assert (two.disruptive, two.status, two.log, two.transformations) == ("pass", 404, False, ("trim",))
    assert (three.disruptive, three.status, three.log, three.transformations) == ("", None, None, ())


def test_order_markers_and_settings_are_kept() -> None:
    read = program("""
        SecComponentSignature "OWASP_CRS/4.0.0"
        SecCollectionTimeout 600
        SecRequestBodyLimit 131072
        SecAction "id:1,pass"
        SecMarker END-ONE
        SecAction "id:2,pass"
    """)

    assert [item.name if isinstance(item, Marker) else item.id for item in read.items] == [1, "END-ONE", 2]
    assert (read.signature, read.collection_timeout_seconds) == ("OWASP_CRS/4.0.0", 600)
    assert read.settings == {"SecRequestBodyLimit": ("131072",)}


def test_rules_commented_out_by_one_sign_are_no_rules() -> None:
    read = program('#SecRule ARGS "@rx a" \\\n  "id:1,\\\n  block"\nSecAction "id:2,pass"\r\n')

    assert [rule.id for rule in read.rules] == [2]


def test_includes_stand_where_they_are_written() -> None:
    text = 'SecAction "id:1,pass"\nInclude part-*.conf\nIncludeOptional nothing/*.conf\nSecAction "id:9,pass"'

    read = program(text, **{"part-b.conf": 'SecAction "id:3,pass"', "part-a.conf": 'SecAction "id:2,pass"'})

    assert [(rule.id, rule.file) for rule in read.rules] == [
        (1, FILE),
        (2, "rules/part-a.conf"),
        (3, "rules/part-b.conf"),
        (9, FILE),
    ]


RULES = """
    SecRule ARGS|FILES "@rx a" "id:1,block,tag:attack-a,msg:'One'"
    SecRule ARGS "@rx a" "id:2,block,tag:attack-b,msg:'Two'"
    SecRule ARGS "@rx a" "id:30,block,tag:attack-b"
"""
UPDATES = [
    ("SecRuleRemoveById 1", {2: ["ARGS"], 30: ["ARGS"]}),
    ("SecRuleRemoveById 1-2 30", {}),
    ('SecRuleRemoveById "2-9,30"', {1: ["ARGS", "FILES"]}),
    ("SecRuleRemoveByTag attack-b$", {1: ["ARGS", "FILES"]}),
    ("SecRuleRemoveByMsg ^T", {1: ["ARGS", "FILES"], 30: ["ARGS"]}),
    ('SecRuleUpdateTargetById 2 "!ARGS:x"', {1: ["ARGS", "FILES"], 2: ["ARGS", "!ARGS"], 30: ["ARGS"]}),
    ('SecRuleUpdateTargetById 1-2 "XML:/*" "ARGS"', {1: ["FILES", "XML"], 2: ["XML"], 30: ["ARGS"]}),
    (
        'SecRuleUpdateTargetByTag attack "FILES"',
        {1: ["ARGS", "FILES"], 2: ["ARGS", "FILES"], 30: ["ARGS", "FILES"]},
    ),
    ('SecRuleUpdateTargetByMsg One "!ARGS:x"', {1: ["ARGS", "FILES", "!ARGS"], 2: ["ARGS"], 30: ["ARGS"]}),
]


@pytest.mark.parametrize(("update", "targets"), UPDATES, ids=[update for update, _ in UPDATES])
def test_later_lines_change_earlier_rules(update: str, targets: dict[int, list[str]]) -> None:
    read = program(RULES + update)

    assert {rule.id: ["!" * v.excluded + v.name for v in rule.variables] for rule in read.rules} == targets


def test_the_action_of_an_earlier_rule_can_be_changed() -> None:
    rule = program(RULES + 'SecRuleUpdateActionById 1 "pass,status:404,tag:more"').rules[0]

    assert (rule.disruptive, rule.status, rule.tags) == ("pass", 404, ("attack-a", "more"))


# rule text, line of the refusal, its reason
BAD = [
    ('SecRule ARGS "@rx a" "id:1"\nSecFoo bar', 2, "unknown directive 'SecFoo'"),
    ("SecRuleScript a.lua", 1, "unknown directive 'SecRuleScript'"),
    ("SecRule ARGS", 1, "SecRule takes 2 to 3 arguments"),
    ('SecMarker a b', 1, "SecMarker takes 1 arguments"),
    ('SecRule ARGS "@rx a', 1, "could not find an ending quote"),
    ('SecRule ARGS "@rx a"x "id:1"', 1, "expected a blank after a closing quote"),
    ('\n\nSecRule ARGZ "@rx a" "id:1"', 3, "unknown variable 'ARGZ'"),
    ('SecRule REQUEST_METHOD:x "@rx a" "id:1"', 1, "REQUEST_METHOD takes no selector"),
    ('SecRule ARGS: "@rx a" "id:1"', 1, "ARGS has an empty selector"),
    ('SecRule ARGS:/a|b "@rx a" "id:1"', 1, "could not find an ending /"),
    ('SecRule ARGS|"" "@rx a" "id:1"', 1, "unknown variable '\"\"'"),
    ('SecRule ARGS "@foo a" "id:1"', 1, "unknown operator '@foo'"),
    ('SecRule ARGS "@pm" "id:1"', 1, "operator @pm needs an argument"),
    ('SecRule ARGS "@gt many" "id:1"', 1, "operator @gt needs a number, not 'many'"),
    ('SecRule ARGS "@validateByteRange 1-256" "id:1"', 1,
     "a byte range is numbers from 0 to 255, not '1-256'"),
    ('SecRule ARGS "@ipMatch 1.2.3" "id:1"', 1, "'1.2.3' does not appear to be an IPv4 or IPv6 network"),
    ('SecRule ARGS "@pmFromFile none.data" "id:1"', 1, "there is no data file 'none.data'"),
    ('SecRule ARGS "@pmFromFile ../../etc/passwd" "id:1"', 1, "there is no data file '../../etc/passwd'"),
    ('SecRule ARGS "@rx a"', 1, "a rule needs an id"),
    ('SecRule ARGS "@rx a" "id:0"', 1, "id must be a number from 1 to 2147483647, not '0'"),
    ('SecRule ARGS "@rx a" "id:1,id:2"', 1, "a rule has one id"),
    ('SecAction "id:1,pass"\nSecAction "id:1,pass"', 2, f"id 1 is already taken by {FILE}:1"),
    ('SecRule ARGS "@rx a" "id:1,foo"', 1, "unknown action 'foo'"),
    ('SecRule ARGS "@rx a" "id:1,tag"', 1, "action 'tag' needs a value"),
    ('SecRule ARGS "@rx a" "id:1,capture:yes"', 1, "action 'capture' takes no value"),
    ('SecRule ARGS "@rx a" "id:1,msg:\'a"', 1, "could not find an ending ' in the actions"),
    ('SecRule ARGS "@rx a" "id:1,phase:6"', 1, "phase must be a number from 1 to 5, not '6'"),
    ('SecRule ARGS "@rx a" "id:1,severity:BAD"', 1, "unknown severity 'BAD'"),
    ('SecRule ARGS "@rx a" "id:1,t:foo"', 1, "unknown transformation 'foo'"),
    ('SecRule ARGS "@rx a" "id:1,ctl:foo=1"', 1, "unknown ctl option 'foo'"),
    ('SecRule ARGS "@rx a" "id:1,ctl:ruleRemoveTargetById=1"', 1,
     "ctl:ruleRemoveTargetById needs a rule and a target separated by a semicolon"),
    ('SecRule ARGS "@rx a" "id:1,setvar:score=1"', 1, "setvar needs collection.name, not 'score=1'"),
    ('SecRule ARGS "@rx a" "id:1,expirevar:ip.a=x"', 1,
     "expirevar needs collection.name=seconds, not 'ip.a=x'"),
    ('SecRule ARGS "@rx a" "id:1,initcol:foo=x"', 1, "initcol needs collection=key, not 'foo=x'"),
    ('SecRule ARGS "@rx a" "id:1,skipAfter:NOWHERE"', 1, "skipAfter names no marker: 'NOWHERE'"),
    ('SecRule ARGS "@rx a" "id:1,chain"', 1, "the last rule's chain goes on, but the file ends"),
    ('SecRule ARGS "@rx a" "id:1,chain"\nSecMarker A', 2, "a chain goes on: only a rule may follow"),
    ('SecRule ARGS "@rx a" "id:1,chain"\nSecRule ARGS "b" "id:2"', 2,
     "a link of a chain has no id of its own"),
    ('SecDefaultAction "log,pass"', 1, "SecDefaultAction needs a phase and a disruptive action"),
    ("SecCollectionTimeout soon", 1, "SecCollectionTimeout must be a number from 0 to 31536000, not 'soon'"),
    ("SecRuleRemoveByTag (", 1, "bad pattern '('"),
    ('SecRuleUpdateActionById 7 "pass"', 1, "there is no rule 7 to update"),
    ("Include none-*.conf", 1, "no file matches 'none-*.conf'"),
    ("Include one.conf", 0, "includes are nested deeper than 16"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "reason"), BAD, ids=[reason for _, _, reason in BAD])
def test_what_is_not_understood_is_refused_with_its_place(text: str, line: int, reason: str) -> None:
    with pytest.raises(RuleError) as caught:
        program(text)

    assert (caught.value.file, caught.value.line, caught.value.reason) == (FILE, line, reason)
    assert str(caught.value) == f"{FILE}:{line}: {reason}"


def test_a_refusal_in_an_included_file_names_that_file() -> None:
    with pytest.raises(RuleError, match=r"rules/two\.conf:2: unknown directive"):
        program("Include two.conf", **{"two.conf": "\nSecFoo"})


def test_a_refusal_quotes_little_of_a_long_text() -> None:
    with pytest.raises(RuleError) as caught:
        program("X" * 10_000)

    assert len(str(caught.value)) < 120


LIMITS = {
    "targets": ("SecRule " + "|".join(["ARGS"] * 257) + ' "a" "id:1"', "more than 256 targets"),
    "tags": ('SecAction "id:1,' + "tag:a," * 513 + 'pass"', "more than 512 tags in one rule"),
    "line": ("SecMarker " + "a" * (1 << 20), "a directive is longer than 1048576 characters"),
    "links": (
        'SecRule ARGS "a" "id:1,chain"\n' + 'SecRule ARGS "a" "chain"\n' * 65,
        "a chain has more than 64 links",
    ),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_limits(limit: str) -> None:
    text, reason = LIMITS[limit]

    with pytest.raises(RuleError, match=reason):
        program(text)
