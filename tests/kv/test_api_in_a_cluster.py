"""REST: key-values that lie in the database of a cluster."""

import pytest

from edgestead.store.kv import INLINE_BYTES_MAX
from tests.support.api import LocalApi

from .api import NAMESPACES, Namespace


@pytest.fixture
def nodes(tmp_path, postgres):
    """The same API twice, as far as key-values are concerned."""
    dsn = postgres.emptied()
    made = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        made.append(LocalApi(tmp_path / name, cluster_database=dsn))
    yield made
    for api in made:
        api.close()


@pytest.fixture
def one(nodes):
    return Namespace(nodes[0], nodes[0].post(NAMESPACES, {"title": "things"}).result["id"])


@pytest.mark.parametrize("length", [0, 5, INLINE_BYTES_MAX + 1, 3 << 20])
def test_a_value_of_any_length_comes_back(one, length):
    content = bytes(number % 251 for number in range(length))

    assert one.put("k", content).status == 200

    assert one.get("k").body == content
    assert one.metadata("k").result is None
    assert one.delete("k").status == 200
    assert (one.get("k").status, one.metadata("k").status) == (404, 404)


def test_another_node_reads_what_one_has_written(nodes, one):
    one.put("k", b"v", "?expiration_ttl=60")
    one.bulk([{"key": "b", "value": "1", "metadata": {"m": 1}}, {"key": "a", "value": "2"}])
    created = nodes[1].post(NAMESPACES, {"title": "things"}).result["id"]  # the ids of both are counted alike
    other = Namespace(nodes[1], one.id)

    assert created == one.id
    assert [line["name"] for line in other.keys("?limit=10").result] == ["a", "b", "k"]
    assert other.get("k").body == b"v"
    assert other.metadata("b").result == {"m": 1}
    found = nodes[1].post(f"{other.path}/bulk/get", {"keys": ["a", "nothing"]}).result
    assert found == {"values": {"a": "2", "nothing": None}}


def test_a_namespace_that_is_deleted_is_not_remembered(nodes, one):
    one.put("k")
    assert one.get("k").status == 200

    assert nodes[0].call("DELETE", one.path).status == 200

    assert (one.get("k").status, one.put("k").status) == (404, 404)
