"""The system's rule set compiled once for all test processes, and what is asked of it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from edgestead.crs import Catalogue, Program, build_catalogue, load, parse
from edgestead.server import waf_part
from edgestead.waf.engine import Engine, finish
from edgestead.waf.load.compile import RuleSet
from edgestead.waf.plan import scan
from edgestead.waf.transaction import Policy, Request, Verdict
from tests.support.patterns import DATABASES


def engine_of(path: Path | None = None, databases: Path = DATABASES) -> Engine:
    files = load(path)
    program = parse(files.files, files.entries)
    rule_set = RuleSet(program, build_catalogue(program))
    return Engine(rule_set, stored=waf_part.database(rule_set, databases) if scan.available() else None)


@pytest.fixture(scope="session")
def engine() -> Engine:
    """Of the system's rule set, 3.3."""
    return engine_of()


@pytest.fixture(scope="session")
def plain_engine(engine: Engine) -> Engine:
    """The same rules without a scan."""
    return Engine(engine.rule_set)


def inspect(engine: Engine, request: Request, policy: Policy | None = None) -> Verdict:
    return finish(engine.inspect(request, policy or engine.level_policy(4, 40)).request())


def ids(verdict: Verdict) -> set[int]:
    return {hit.rule_id for hit in verdict.hits}


SCORE = "setvar:'tx.anomaly_score_pl1=+5'"
_ANY = f'SecRule ARGS:never "@streq never" "id:999,phase:2,pass,severity:CRITICAL,{SCORE}"\n'


def small_engine(text: str, tx: dict[bytes, bytes] | None = None) -> Engine:
    """An engine of rules of one's own, without a scan."""
    program, catalogue = small_program(text)
    return Engine(RuleSet(program, catalogue), tx=tx)


def small_program(text: str) -> tuple[Program, Catalogue]:
    program = parse({"one.conf": text + "\n" + _ANY}, ["one.conf"])
    return program, build_catalogue(program)


@pytest.fixture
def run() -> Callable[..., list[int]]:
    """Numbers of the rules that match a request to rules of one's own, in order."""

    def matching(text: str, target: bytes = b"/", **request: object) -> list[int]:
        sent = Request(method=b"GET", target=target, **request)  # type: ignore[arg-type]
        engine = small_engine(text)
        return [hit.rule_id for hit in inspect(engine, sent).hits]

    return matching
