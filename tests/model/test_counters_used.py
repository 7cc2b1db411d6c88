"""A metric that nothing counts would be a lie on /metrics."""

from edgestead.model import counters
from tests.support.sources import unnamed


def test_every_metric_is_counted_somewhere():
    assert unnamed((rf'slot\("{metric.name}"' for metric in counters.METRICS), counters) == []
