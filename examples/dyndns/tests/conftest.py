"""The client and the platform that it is tested with."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # an application would be installed

import dyndns


@pytest.fixture
def api(edge, edge_zone):
    """The client, with a token that may do in the zone what it needs and nothing else."""
    return dyndns.Api(edge.api_base, edge.make_token("Zone Read", "DNS Write", zone=edge_zone))
