"""Storage interfaces are small, and each contract suite runs over two implementations."""

import pytest

from edgestead.store import alarms, changes, control, controllog, kv, objectlog, past
from tests.store.contract import conftest, kv_stores, object_stores

METHODS_MAX = 8
INTERFACES = (
    control.ControlStore,
    changes.ChangeFeed,
    controllog.ControlLog,
    kv.KvStore,
    kv.BlobStore,
    objectlog.Log,
    objectlog.Catalogue,
    objectlog.Lease,
    past.Past,
    alarms.Alarms,
)


@pytest.mark.parametrize("interface", INTERFACES, ids=lambda one: one.__name__)
def test_a_storage_interface_has_at_most_eight_methods(interface):
    methods = [name for name in vars(interface) if not name.startswith("_")]

    assert 0 < len(methods) <= METHODS_MAX


@pytest.mark.parametrize("factories", [conftest.FACTORIES, kv_stores.FACTORIES, object_stores.FACTORIES])
def test_a_contract_suite_runs_over_two_implementations(factories):
    assert len(set(factories.values())) >= 2
    assert "memory" in factories
