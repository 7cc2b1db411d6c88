"""The managed ruleset of a running server: found, named, or missing with words that help."""

import logging
import shutil

import pytest

from edgestead.crs import RULESET_ID, RulesMissing, RulesUnreadable, loader
from edgestead.crs.loader import SYSTEM_RULES
from edgestead.server.control import managed as managed_part
from edgestead.server.errors import StartError
from edgestead.usecases.ruleset import managed as rulesets_managed

RULE = (
    "SecRule ARGS \"@rx evil\" \"id:942100,phase:2,block,msg:'Evil',tag:'attack-sqli',tag:'paranoia-level/1',"
    "severity:'CRITICAL',setvar:'tx.anomaly_score_pl1=+%{tx.critical_anomaly_score}'\"\n"
)
OWN_ID = "5" * 32


@pytest.fixture
def folder(tmp_path):
    """A rule set with one rule."""
    rules = tmp_path / "crs" / "rules"
    rules.mkdir(parents=True)
    (rules.parent / "crs-setup.conf").write_text('SecComponentSignature "OWASP_CRS/3.9.1"\n')
    (rules / "one.conf").write_text(RULE)
    return rules.parent


def managed_of(server):
    path = f"/accounts/{server.ready['account_id']}/rulesets"
    return path, [row for row in server.call("GET", path).result if row["kind"] == "managed"]


def test_a_server_lists_the_rule_set_that_it_is_given_under_the_ids_that_are_configured(
    new_server, folder, tmp_path
):
    config = tmp_path / "edge.toml"
    config.write_text(f'managed-ruleset-id = "{OWN_ID}"\nanomaly-rule-id = "{"6" * 32}"\n')
    server = new_server("--crs", str(folder), "--config", str(config)).start()

    path, (managed,) = managed_of(server)

    assert (managed["id"], managed["version"]) == (OWN_ID, "3009001")
    rules = server.call("GET", f"{path}/{OWN_ID}").result["rules"]
    assert [rule["description"][:6] for rule in rules] == ["942100", "949110"]
    assert rules[-1]["id"] == "6" * 32


def test_the_systems_rule_set_is_found_by_itself(edge_server):
    if not SYSTEM_RULES.is_dir():
        pytest.skip("NOT TESTED: the package modsecurity-crs is not installed")

    _, (managed,) = managed_of(edge_server)

    assert managed["id"] == RULESET_ID


def test_a_named_rule_set_that_cannot_be_used_is_no_start(new_server, folder):
    (folder / "rules" / "one.conf").write_text("SecSurprise on\n")
    server = new_server("--crs", str(folder))

    server.launch()

    assert server.wait() == 1
    assert "rules/one.conf:1:" in server.log


@pytest.mark.parametrize("named", ["nothing", "empty"])
def test_a_named_place_without_rules_is_refused(tmp_path, named):
    (tmp_path / "empty").mkdir()

    with pytest.raises(StartError, match="--crs"):
        managed_part.load(str(tmp_path / named))


def test_without_a_rule_set_of_the_system_the_server_starts_and_says_what_helps(monkeypatch, caplog):
    def nothing(path):
        raise RulesMissing("/nowhere: no rule set is installed")

    monkeypatch.setattr(rulesets_managed, "load", nothing)

    with caplog.at_level(logging.WARNING):
        assert managed_part.load(None) is None

    (line,) = caplog.messages
    assert "apt install modsecurity-crs" in line
    assert "--crs PATH" in line


def test_a_machine_without_a_rule_set_is_told_apart_from_one_whose_rule_set_is_broken(tmp_path):
    with pytest.raises(RulesMissing):
        loader._load_system(tmp_path / "nothing", tmp_path / "nothing")
    with pytest.raises(RulesUnreadable) as caught:
        loader._load_system(tmp_path, tmp_path / "nothing")
    assert not isinstance(caught.value, RulesMissing)


BROKEN = [
    ('SecRule ARGS "@surprise x" "id:1,phase:2"\n', "rules/one.conf:1: "),
    ('SecAction "id:1,phase:1,nolog,pass"\n', "anomaly"),  # understood, and nothing in it scores
    (None, "expected crs-setup.conf"),
]


@pytest.mark.parametrize(("text", "named"), BROKEN)
def test_a_rule_set_of_the_system_that_cannot_be_used_is_an_error_that_says_where(
    folder, monkeypatch, caplog, text, named
):
    """The server starts: an upgrade of the package must not take DNS away."""
    one = folder / "rules" / "one.conf"
    one.unlink() if text is None else one.write_text(text)
    monkeypatch.setattr(loader._load_system, "__defaults__", (folder, folder / "nothing"))

    with caplog.at_level(logging.WARNING):
        assert managed_part.load(None) is None

    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert named in record.getMessage()
    assert "--crs PATH" in record.getMessage()
    assert "apt install" not in record.getMessage()


def test_a_release_archive_is_a_rule_set_too(folder, tmp_path):
    archive = shutil.make_archive(str(tmp_path / "release"), "gztar", folder.parent, folder.name)

    assert managed_part.load(archive).version == "3009001"
