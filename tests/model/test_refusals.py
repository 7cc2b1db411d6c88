"""Refusals stand with their resource, and the tree on top of each module is complete."""

from importlib import import_module
from pkgutil import iter_modules

import pytest

from edgestead.model import refusals
from edgestead.model.refusals import EdgeError
from edgestead.model.refusals.record import FieldMissing, FieldRefused

MODULES = [import_module(f"{refusals.__name__}.{one.name}") for one in iter_modules(refusals.__path__)]


def classes(module):
    return [one for one in vars(module).values() if getattr(one, "__module__", "") == module.__name__]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_the_tree_on_top_of_a_module_is_complete(module):
    found = [one for one in classes(module) if isinstance(one, type)]
    tree = [line for line in module.__doc__.splitlines() if "── " in line]

    assert len(found) == len(tree) > 1
    for refusal in found:
        (line,) = [line for line in tree if refusal.__name__ in line.split()]
        assert str(refusal.code) in line or {"code", "wording"} - set(vars(refusal)), line


def test_the_tree_of_all_names_each_module_and_each_status():
    for module in MODULES:
        assert f"{module.__name__.rpartition('.')[2]:9} " in refusals.__doc__, module.__name__
    for one in classes(refusals):
        assert not isinstance(one, type) or one.__name__ in refusals.__doc__


def test_a_refusal_carries_its_facts_and_where_they_stand():
    refusal = FieldRefused(type="SRV", field="data/port", reason="must be 0 to 65535")

    assert isinstance(refusal, EdgeError)
    assert (refusal.type, refusal.field, refusal.reason) == ("SRV", "data/port", "must be 0 to 65535")
    assert refusal.pointer == "/data/port"
    assert refusal.message == "port for SRV record is invalid: must be 0 to 65535."


def test_braces_from_outside_stay_braces():
    assert "{type}" in FieldRefused(type="TXT", field="content", reason="{type}").message


def test_a_missing_priority_has_the_words_that_clients_look_for():
    assert "priority is a required field" in FieldMissing(type="MX", field="priority").message
