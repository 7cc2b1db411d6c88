"""REST face of the server itself: liveness, readiness, metrics.

Owns  the three routes at the root path, without credentials.
Asks  the context's callbacks.
Tells orchestrators and prometheus.
Not   what is counted, or what ready means.
"""

from edgestead.api.context import AppContext
from edgestead.api.declared import TEXT, Answers
from edgestead.api.routing import Answer, route
from edgestead.model.request_errors import NotReady

_METRICS_TYPE = b"text/plain; version=0.0.4; charset=utf-8"


@route("GET", "/health/live", base="", public=True)
def live() -> dict[str, str]:
    """Answers as long as the process does."""
    return {"status": "live"}


@route("GET", "/health/ready", base="", public=True)
def ready(api: AppContext) -> dict[str, str]:
    """200 when writes are accepted and DNS answers, 503 with the reasons otherwise."""
    reasons = api.not_ready()
    if reasons:
        raise NotReady(reasons="; ".join(reasons))
    return {"status": "ready"}


@route("GET", "/metrics", base="", public=True, answers=Answers(media=TEXT))
def metrics(api: AppContext) -> Answer:
    """Counters of every process in the prometheus text format."""
    return Answer(body=api.metrics().encode(), content_type=_METRICS_TYPE)
