"""`edgecli export`, `plan`, `apply` and `diff`: a file is made true, and then nothing differs."""

import json
import random
from contextlib import closing
from pathlib import Path

import pytest

from edgestead.cli.state import document
from edgestead.cli.state.plan import changes
from edgestead.testing.server import EdgeServer
from tests.support.patience import patient

SITE = """
namespaces = ["from-file"]

[zones."site.example"]
paused = false
settings = { ssl = "strict", challenge_ttl = 900 }
dns_settings = { flatten_all_cnames = true }
records = [
  { name = "@", type = "A", content = "192.0.2.1" },
  { name = "www.site.example.", type = "a", content = "127.0.0.1", proxied = true, comment = "the site" },
  { name = "v6", type = "AAAA", content = "2001:db8:0:0::1", ttl = 300 },
  { name = "alias", type = "CNAME", content = "WWW.Site.Example." },
  { name = "@", type = "MX", content = "mail.site.example", priority = 10 },
  { name = "mail", type = "A", content = "192.0.2.25" },
  { name = "@", type = "TXT", content = "v=spf1 mx -all", tags = ["b:2", "a:1"] },
  { name = "odd", type = "TXT", content = "\\"two\\" \\"parts\\"" },
  { name = "_sip._tcp", type = "SRV", content = "10 5 5060 sip.site.example" },
  { name = "@", type = "CAA", content = "0 issue \\"letsencrypt.org\\"" },
]

[zones."site.example".rules]
custom = [
  { action = "block", expression = "http.host eq \\"admin\\"", description = "admin", ref = "admin" },
  { action = "log" },
]
"""


@pytest.fixture
def kv_server(lent):
    """One whose account has nothing of other tests: these commands look at all of it."""
    return lent


@pytest.fixture
def site(tmp_path):
    path = tmp_path / "site.toml"
    path.write_text(SITE)
    return path


def write(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_file_is_made_true_and_then_nothing_differs(edgecli, site):
    planned = edgecli("plan", str(site))
    assert "+ zone site.example" in planned.out
    assert "+ namespace from-file" in planned.out
    assert edgecli("zone", "get", "site.example").code == 1  # a plan changes nothing

    done = edgecli("apply", str(site), "--yes")

    assert done.code == 0, done.err
    assert edgecli("plan", str(site), "--check").out.endswith("Nothing differs.\n")
    assert edgecli("apply", str(site), "--yes").out.endswith("Nothing differs.\n")
    history = json.loads(edgecli("zone", "history", "site.example", "--json").out)
    assert [one["changes_count"] for one in history].count(10) == 1  # all records in one transaction


@pytest.mark.parametrize("form", ["toml", "json"])
def test_what_is_exported_is_what_is_there(edgecli, site, tmp_path, form):
    edgecli("apply", str(site), "--yes")
    written = tmp_path / f"out.{form}"

    assert edgecli("export", "--zone", "site.example", "-o", str(written)).code == 0

    assert edgecli("plan", str(written), "--check").code == 0
    whole = document.read(written)["zones"]["site.example"]
    wanted = document.read(site)["zones"]["site.example"]
    assert {tuple(sorted(map(str, one.items()))) for one in whole["records"]} == {
        tuple(sorted(map(str, one.items()))) for one in wanted["records"]
    }
    assert (whole["rules"], whole["settings"]) == (wanted["rules"], wanted["settings"])


@pytest.mark.parametrize("form", ["toml", "json"])
def test_every_setting_is_what_it_was_after_export_and_apply(edgecli, kv_server, tmp_path, form):
    zone = kv_server.make_zone("site.example")
    settings = f"/zones/{zone}/settings"
    for one in kv_server.call("GET", settings).result:
        if one["editable"]:  # switches as they are not by default, the rest as somebody's choice
            value = {"on": "off", "off": "on"}.get(str(one["value"]), one["value"])
            if kv_server.call("PATCH", f"{settings}/{one['id']}", {"value": value}).status != 200:
                kv_server.call("PATCH", f"{settings}/{one['id']}", {"value": one["value"]})
    written = str(tmp_path / f"out.{form}")
    assert edgecli("export", "-o", written).code == 0
    edgecli("zone", "delete", "site.example", "--yes")

    assert edgecli("apply", written, "--yes").code == 0

    assert edgecli("plan", written, "--check").out.endswith("Nothing differs.\n")
    assert len(document.read(Path(written))["zones"]["site.example"]["settings"]) > 50


def test_what_is_done_is_told_before_something_fails(edgecli, site):
    """Also where JSON is printed in the end."""
    write(site, '"http.host eq', '"http.hots eq')

    done = edgecli("apply", str(site), "--yes", "--json")

    assert (done.code, done.out) == (1, "")
    assert "site.example: + record v6 AAAA 2001:db8::1\n" in done.err
    assert "rules custom" not in done.err


def test_differences_are_told_in_lines_and_an_exit_code(edgecli, site):
    edgecli("apply", str(site), "--yes")
    write(site, '"192.0.2.25"', '"192.0.2.26"')
    write(site, 'comment = "the site"', "ttl = 1")
    write(site, '  { name = "v6", type = "AAAA", content = "2001:db8:0:0::1", ttl = 300 },\n', "")
    write(site, 'ssl = "strict"', 'ssl = "full"')
    write(site, 'ref = "admin"', 'ref = "admin", enabled = false')
    write(site, "paused = false", "paused = true")

    planned = edgecli("plan", str(site), "--check")

    assert planned.code == 1
    assert planned.out == (
        "site.example:\n"
        "  ~ record www A 127.0.0.1: comment the site → default\n"
        "  ~ record mail A 192.0.2.25: content 192.0.2.25 → 192.0.2.26\n"
        "  - record v6 AAAA 2001:db8::1\n"
        "  ~ setting ssl: strict → full\n"
        "  ~ rules custom\n"
        "    - block: admin\n"
        "    + block: admin\n"
        "  ~ zone site.example: paused\n"
        + "".join(line + "\n" for line in planned.out.splitlines() if "(stays" in line)
        + "6 changes.\n"
    )
    assert edgecli("apply", str(site), stdin="n\n").out.endswith("Not making\n")
    assert edgecli("apply", str(site), "--yes").code == 0
    assert edgecli("plan", str(site), "--check").code == 0


def test_what_is_not_named_stays(edgecli, site, tmp_path):
    edgecli("apply", str(site), "--yes")
    part = tmp_path / "part.toml"
    part.write_text('[zones."site.example"]\nsettings = { challenge_ttl = 300 }\n')

    assert edgecli("apply", str(part), "--yes").code == 0

    write(site, "challenge_ttl = 900", "challenge_ttl = 300")
    assert edgecli("plan", str(site), "--check").code == 0


def test_a_refused_record_changes_no_record_of_the_zone(edgecli, site):
    write(site, '"192.0.2.25"', '"192.0.2.256"')

    done = edgecli("apply", str(site), "--yes")

    assert done.code == 1
    assert "192.0.2.256" in done.err or "address" in done.err
    assert edgecli("record", "list", "site.example", "--json").out.count('"content"') == 0


def test_more_records_than_a_transaction_takes(edgecli, tmp_path):
    path = tmp_path / "many.json"
    records = [{"name": f"n{number}", "type": "A", "content": "192.0.2.1"} for number in range(450)]
    path.write_text(json.dumps({"zones": {"many.example": {"records": records}}}))

    assert edgecli("apply", str(path), "--yes").out.endswith("451 changes made.\n")
    assert edgecli("plan", str(path), "--check").code == 0
    path.write_text(json.dumps({"zones": {"many.example": {"records": records[:5]}}}))
    assert edgecli("apply", str(path), "--yes").out.endswith("445 changes made.\n")


TOKENS = """
[[tokens]]
name = "certbot"
policies = [{ permissions = ["DNS Write", "Zone Read"], on = ["zone site.example"] }]

[[tokens]]
name = "reader"
policies = [
  { effect = "allow", permissions = ["Zone Read"], on = ["zones"] },
  { effect = "deny", permissions = ["Zone Read"], on = ["zone site.example"] },
  { permissions = ["Workers KV Storage Read"], on = ["account"] },
  { permissions = ["API Tokens Read"], on = ["user"] },
]
from = ["192.0.2.0/24"]
not_from = ["192.0.2.7"]
expires_on = "2100-01-01T00:00:00Z"

[[tokens]]
name = "off"
account = true
disabled = true
policies = [{ permissions = ["Account Settings Read"], on = ["account"] }]

[zones."site.example"]
"""


@pytest.fixture
def tokens(tmp_path):
    path = tmp_path / "tokens.toml"
    path.write_text(TOKENS)
    return path


def test_tokens_are_made_with_their_policies_and_without_a_secret(edgecli, tokens, tmp_path):
    planned = edgecli("plan", str(tokens))
    assert "+ token certbot: allow DNS Write, Zone Read on zone site.example" in planned.out

    done = edgecli("apply", str(tokens), "--yes")

    assert done.code == 0, done.err
    assert "`edgecli token roll off --account` prints a secret" in done.out
    assert edgecli("plan", str(tokens), "--check").out.endswith("Nothing differs.\n")
    (found,) = (one for one in json.loads(edgecli("token", "list", "--json").out) if one["name"] == "certbot")
    assert next(iter(found["policies"][0]["resources"])).startswith("com.edge.api.account.zone.")
    written = tmp_path / "out.toml"
    assert edgecli("export", "-o", str(written)).code == 0
    assert edgecli("plan", str(written), "--check").code == 0
    named = {one["name"]: one for one in document.read(written)["tokens"]}
    assert [named[one["name"]] for one in document.read(tokens)["tokens"]] == document.read(tokens)["tokens"]
    part = tmp_path / "zone.toml"
    edgecli("export", "--zone", "site.example", "-o", str(part))
    assert "tokens" not in document.read(part)


def test_a_token_that_differs_is_changed_and_keeps_its_secret(edgecli, tokens):
    edgecli("apply", str(tokens), "--yes")
    secret = edgecli("token", "roll", "reader", "--yes").out.strip()
    write(tokens, '"192.0.2.0/24"', '"127.0.0.0/8"')
    write(tokens, "disabled = true", "disabled = false")

    planned = edgecli("plan", str(tokens))
    assert "~ token reader: from ['192.0.2.0/24'] → ['127.0.0.0/8']" in planned.out
    assert "~ token off: disabled on → default" in planned.out
    assert edgecli("apply", str(tokens), "--yes").code == 0

    assert edgecli("plan", str(tokens), "--check").code == 0
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("EDGE_TOKEN", secret)
        assert "site.example" not in edgecli("zone", "list").out  # what it may, and what it may not
        refused = edgecli("export")
        assert "Not carried over" in refused.err
        assert "tokens of the account" in refused.err


def test_a_permission_that_is_none_is_told_before_anything_is_changed(edgecli, tokens):
    write(tokens, '"DNS Write"', '"DNS Scribble"')

    planned, done = edgecli("plan", str(tokens)), edgecli("apply", str(tokens), "--yes")

    assert (planned.code, done.code) == (1, 1)
    assert "no permission group 'DNS Scribble'" in planned.err
    assert "site.example" not in edgecli("zone", "list").out


def test_a_token_that_has_expired_is_there_already(edgecli, tokens):
    write(tokens, "2100-01-01", "2026-01-01")

    assert edgecli("apply", str(tokens), "--yes").code == 0

    assert edgecli("plan", str(tokens), "--check").out.endswith("Nothing differs.\n")


def test_who_may_not_read_tokens_compares_the_rest(edgecli, narrow_plan, tokens):
    edgecli("apply", str(tokens), "--yes")
    looked = narrow_plan(tokens)
    assert (looked.code, looked.out) == (0, "Nothing differs.\n"), looked.out
    assert "tokens of the user: " in looked.err


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"zone site.example"]', '"zone nowhere.example"]', "no 'zone nowhere.example' that it could reach"),
        ('["zones"]', '["zones", "account"]', "write two policies"),
        ('"DNS Write"', '"DNS Scribble"', "no permission group 'DNS Scribble'"),
    ],
)
def test_a_token_that_nobody_can_make_is_told(edgecli, tokens, old, new, words):
    write(tokens, old, new)

    done = edgecli("apply", str(tokens), "--yes")

    assert (done.code, words in done.err) == (1, True), done.err


BAD = [
    ("tokens = 1", "tokens are not a list"),
    ("tokens = [1]", "token 1 is not a table"),
    ('tokens = [{name = "a"}]', "token 1: name or policies are missing"),
    ('tokens = [{nam = "a"}]', "token 1: 'nam' is unknown; known are name"),
    ('tokens = [{name = "a", policies = [{on = ["user"]}]}]', "permissions and on, each a list of texts"),
    ('tokens = [{name = "a", policies = [{effect = "x"}]}]', "effect is allow or deny"),
    ('tokens = [{name = "a", policies = [1]}]', "a policy is not a table"),
    ('tokens = [{name = "a", policies = [{one = ["user"]}]}]', "'one' is unknown"),
    ('tokens = [{name = "a", disabled = 1, policies = [{}]}]', "disabled is not true or false"),
    (
        'tokens = [{name = "a", from = [1], policies = [{permissions = ["DNS Read"], on = ["user"]}]}]',
        "lists of",
    ),
    ("x = 1", "'x' is unknown; known are zones, rules, rulesets, tsig_keys, namespaces"),
    ("rules = 1", "rules is not a table"),
    ("rules = {custom = 1}", "the account: rules of custom are not a list"),
    ("rulesets = 1", "rulesets are not a list"),
    ("rulesets = [{name = 1}]", "ruleset 1: name is not a text"),
    ('rulesets = [{name = "a"}]', "ruleset 1: name or phase are missing"),
    ('rulesets = [{name = "a", phase = "custom", rules = [{}]}]', "ruleset 1, rule 1 of custom: action is"),
    (
        'rulesets = [{name = "a", phase = "custom"}, {name = "a", phase = "http_request_firewall_custom"}]',
        "the ruleset custom/a is there twice",
    ),
    ("[zones", "Expected"),
    ('namespaces = "a"', "namespaces is not a list of titles"),
    ('[zones."a.example"]\nrecord = []', "zone a.example: 'record' is unknown; known are type, primaries"),
    ('[zones."a.example"]\npaused = 1', "paused is not true or false"),
    ('[zones."a.example"]\nrecords = [{name="a", type="A"}]', "zone a.example, record 1: content is missing"),
    ('[zones."a.example"]\nrecords = [1]', "zone a.example, record 1 is not a table"),
    (
        '[zones."a.example"]\nrecords = [{name="a", type="A", content="1", tll=1}]',
        "record 1: 'tll' is unknown",
    ),
    ('[zones."a.example".rules]\ncustom = [{}]', "rule 1 of custom: action is missing"),
    ('[zones."a.example".rules]\ncustom = {}', "rules of custom are not a list"),
    ("zones = 1", "zones is not a table"),
    ('[zones."a.example"]\ntype = "partial"', "type is full or secondary"),
    ('[zones."a.example"]\ndnssec = "on"', "dnssec is active or disabled"),
    ('[zones."a.example"]\ndnssec_settings = {layout = "csk"}', "dnssec_settings: 'layout' is unknown"),
    ('[zones."a.example"]\nprimaries = []', "primaries are those of a zone with type"),
    ('[zones."a.example"]\ntype = "secondary"\nrecords = []', "is secondary: its records are its primary's"),
    ('[zones."a.example"]\ntype = "secondary"\nprimaries = [{}]', "primary 1: ip is missing"),
    ('[zones."a.example"]\ntype = "secondary"\nprimaries = [{ip = 1}]', "primary 1: ip is not a text"),
    ("tsig_keys = {}", "TSIG keys are not a list"),
    ('tsig_keys = [{name = "a", secret = "b"}]', "TSIG key 1: 'secret' is unknown"),
]


@pytest.mark.parametrize(("text", "words"), BAD)
def test_a_file_that_is_none_is_told_with_its_place(edgecli_alone, tmp_path, text, words):
    path = tmp_path / "bad.toml"
    path.write_text(text)

    done = edgecli_alone("plan", str(path))

    assert (done.code, done.out) == (1, "")
    assert words in done.err


def test_a_server_is_compared_with_one_that_gives_its_zones_away(edgecli, tmp_path, monkeypatch):
    with closing(
        EdgeServer(tmp_path / "other", *patient(tmp_path), "--transfer-to", "127.0.0.1").start()
    ) as other:
        for name, value in (
            ("EDGE_API_BASE", "api_base"),
            ("EDGE_TOKEN", "api_token"),
            ("EDGE_ACCOUNT_ID", "account_id"),
        ):
            monkeypatch.setenv(name, other.ready[value])
        path = tmp_path / "moved.toml"
        path.write_text(SITE.replace("flatten_all_cnames = true", "").replace(", proxied = true", ""))
        assert edgecli("apply", str(path), "--yes").code == 0

        same = edgecli("diff", f"@{other.ready['dns']}", "server")
        assert same.out == "Nothing differs.\n"
        edgecli("record", "create", "site.example", "new", "A", "192.0.2.7")
        edgecli("record", "delete", "site.example", "mail")
        assert edgecli("diff", str(path), f"@{other.ready['dns']}").out == (
            "site.example:\n  - record mail A 192.0.2.25\n  + record new A 192.0.2.7\n2 changes.\n"
        )
        both = edgecli("diff", "@127.0.0.1:1", "@127.0.0.1:2")
        assert (both.code, "say which zones with --zone" in both.err) == (2, True)
        refused = edgecli("diff", str(path), "@127.0.0.1:1")
        assert "does not give away site.example" in refused.err


@pytest.mark.parametrize("seed", range(20))
def test_a_plan_leads_from_any_state_to_any_other(seed):
    chance = random.Random(seed)

    def records():
        names = [f"n{number}" for number in range(4)]
        contents = [f"192.0.2.{number}" for number in range(4)]
        seen = {(chance.choice(names), "A", chance.choice(contents)) for _ in range(chance.randrange(8))}
        return [
            {
                "name": name,
                "type": type_,
                "content": content,
                **({"ttl": 60} if chance.random() < 0.3 else {}),
            }
            for name, type_, content in sorted(seen)
        ]

    now, wanted = records(), records()
    held = list(now)
    for change in changes({"zones": {"z": {"records": now}}}, {"zones": {"z": {"records": wanted}}}):
        if change.before is not None:
            held.remove(change.before)
        if change.after is not None:
            held.append(change.after)

    assert sorted(map(str, held)) == sorted(map(str, wanted))
