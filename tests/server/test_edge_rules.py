"""What an edge process says of rules that cannot work as they should, when it reads them."""

import asyncio
import logging
from pathlib import Path
from types import SimpleNamespace

import pytest

from edgestead.edge.tools.engines import ManagedRules
from edgestead.server import waf_part
from edgestead.server.edge import rules
from edgestead.waf.plan import scan
from edgestead.waf.terms import libinjection
from tests.edge.test_managed_server import RULES

MORE = """
SecRule REMOTE_ADDR "@geoLookup" "id:910100,phase:1,pass"
SecRule ARGS "@detectSQLi" "id:942100,phase:2,pass"
"""


@pytest.fixture
def read(tmp_path, monkeypatch, caplog):
    """Words at a start, of worker `number`, without Hyperscan and libinjection."""
    (tmp_path / "rules").mkdir()
    (tmp_path / "crs-setup.conf").write_text("")
    (tmp_path / "rules" / "one.conf").write_text(RULES + MORE)
    monkeypatch.setattr(scan, "available", lambda: False)
    monkeypatch.setattr(scan, "state", lambda: "Hyperscan is not installed")
    monkeypatch.setattr(libinjection, "_library", lambda: None)

    def said(number):
        start = SimpleNamespace(crs=str(tmp_path), worker=number, rules_dir=str(tmp_path))
        managed = ManagedRules()
        with caplog.at_level(logging.WARNING):
            part = rules.RulesPart(start, managed, lambda: True)
            part.look()
            asyncio.run(part.run())
        assert managed.engine is not None
        return caplog.text

    return said


@pytest.mark.parametrize(
    "words",
    [
        "@geoLookup never matches, there is no database of places: rules 910100",
        "apt install libmodsecurity3",
        "Hyperscan is not installed; each rule looks at each request by itself",
    ],
)
def test_what_cannot_work_is_said_at_the_start(read, words):
    assert words in read(0)


@pytest.mark.skipif(not scan.available(), reason=f"NOT TESTED: {scan.state()}")
def test_rules_that_could_not_be_compiled_are_slow_and_compiled_again(tmp_path, monkeypatch, caplog):
    """The disk was full, or the process was killed: that is no reason to stay slow until a restart."""
    (tmp_path / "rules").mkdir()
    (tmp_path / "crs-setup.conf").write_text("")
    (tmp_path / "rules" / "one.conf").write_text(RULES)
    monkeypatch.setattr(rules, "AGAIN_SECONDS", 0.0)
    start = SimpleNamespace(crs=str(tmp_path), worker=0, rules_dir=str(tmp_path / "compiled"))
    managed = ManagedRules()
    part = rules.RulesPart(start, managed, lambda: True)
    slow = []

    async def stored(rule_set):
        slow.append(part.is_slow)
        if len(slow) < 3:
            raise ValueError("the process that compiles them ended with -9")
        return waf_part.database(rule_set, Path(start.rules_dir))

    monkeypatch.setattr(part, "_stored", stored)
    part.look()
    asyncio.run(part.run())

    assert slow == [False, True, True]
    assert not part.is_slow
    assert isinstance(managed.engine.scanner, scan.Scanner)
    assert "ended with -9" in caplog.text


def test_one_worker_says_it_for_all(read):
    assert read(1) == ""
