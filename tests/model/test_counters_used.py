"""A metric that nothing counts would be a lie on /metrics."""

from pathlib import Path

import pytest

import edgestead
from edgestead.model import counters

SOURCES = [path for path in Path(edgestead.__file__).parent.rglob("*.py") if path != Path(counters.__file__)]
TEXT = "\n".join(path.read_text() for path in SOURCES)


@pytest.mark.parametrize("metric", [metric.name for metric in counters.METRICS])
def test_every_metric_is_counted_somewhere(metric):
    assert f'slot("{metric}"' in TEXT
