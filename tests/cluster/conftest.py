"""PostgreSQL for the tests of a cluster, and three control nodes of a module."""

import pytest

from tests.support.cluster_nodes import ClusterNodes
from tests.support.postgres import postgres, postgres_binaries

__all__ = ["postgres", "postgres_binaries"]
NODES = ("a", "b", "c")
QUOTA = 999_999_999  # nobody gets so far, but every node counts


@pytest.fixture(scope="module")
def nodes(postgres, tmp_path_factory):
    """As they are after the tests before: any of them may lead."""
    made = ClusterNodes(
        tmp_path_factory.mktemp("cluster") / "nodes", postgres.database(), NODES, "--api-quota", str(QUOTA)
    )
    try:
        yield made.start()
    finally:
        made.close()
