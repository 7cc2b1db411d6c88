"""REST face of the server itself: liveness, readiness, metrics.

Owns  the three routes at the root path, without credentials.
Asks  the context's callbacks.
Tells orchestrators and prometheus.
Not   what is counted, or what ready means.
"""

import msgspec

from edgestead.api.context import AppContext
from edgestead.api.routing import Answer, route

_METRICS_TYPE = b"text/plain; version=0.0.4; charset=utf-8"


@route("GET", "/health/live", base="", public=True)
def live() -> Answer:
    """Answers as long as the process does."""
    return Answer(body=b'{"status":"live"}')


@route("GET", "/health/ready", base="", public=True)
def ready(api: AppContext) -> Answer:
    """200 when writes are accepted and DNS answers, 503 with the reasons otherwise."""
    reasons = api.not_ready()
    result = {"status": "not ready" if reasons else "ready", "reasons": reasons}
    return Answer(body=msgspec.json.encode(result), status=503 if reasons else 200)


@route("GET", "/metrics", base="", public=True)
def metrics(api: AppContext) -> Answer:
    """Counters of every process in the prometheus text format."""
    return Answer(body=api.metrics().encode(), content_type=_METRICS_TYPE)
