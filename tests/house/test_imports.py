"""The import contract says where every room stands, and has no exceptions."""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
IMPLEMENTATIONS = {"edgestead.sqlite", "edgestead.postgres", "edgestead.s3", "edgestead.feed"}


def contracts():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]


def storage():
    (found,) = (contract for contract in contracts() if contract["type"] == "protected")
    return found


def test_every_room_has_its_floor():
    floors, *_ = contracts()

    assert floors["containers"] == ["edgestead"]
    assert floors["exhaustive"]
    assert floors["ignore_imports"] == ["edgestead -> edgestead.objects.**"]


def test_rooms_with_floors_of_their_own_name_all_of_their_folders():
    _, *inside = (contract for contract in contracts() if contract["type"] == "layers")

    assert [contract["containers"] for contract in inside] == [
        [f"edgestead.{room}"] for room in ("waf", "edge", "objects", "usecases", "cli")
    ]
    assert all(contract["exhaustive"] and "ignore_imports" not in contract for contract in inside)


def test_only_the_server_knows_implementations_of_storage():
    contract = storage()

    assert set(contract["protected_modules"]) == IMPLEMENTATIONS
    assert contract["allowed_importers"] == ["edgestead.server"]
    assert "ignore_imports" not in contract


def test_what_answers_queries_and_visitors_knows_no_use_case():
    (contract,) = (contract for contract in contracts() if contract["type"] == "forbidden")

    assert set(contract["source_modules"]) == {
        f"edgestead.{room}" for room in ("edge", "objects", "dns", "waf")
    }
    assert set(contract["forbidden_modules"]) == {"edgestead.usecases", "edgestead.tables"}
    assert "ignore_imports" not in contract


def test_an_exception_that_is_not_needed_any_more_fails_the_contract():
    assert not any("unmatched_ignore_imports_alerting" in contract for contract in contracts())


def test_the_contract_holds():
    lint = Path(sys.executable).with_name("lint-imports")

    run = subprocess.run([lint, "--no-cache"], cwd=ROOT, capture_output=True, text=True)

    assert run.returncode == 0, run.stdout
