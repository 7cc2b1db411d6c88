"""REST face of the server itself: liveness, readiness, metrics.

Owns  the three routes at the root path, without credentials; that metrics are for some only, where told so.
Not   what is counted, or what is well (`health.checks`).
"""

from collections.abc import Iterable, Sequence

import msgspec

from edgestead.health.checks import unready
from edgestead.health.rows import Row
from edgestead.model import envelope
from edgestead.model.refusals.request import NotReady
from edgestead.rest.context import AppContext
from edgestead.rest.declared import TEXT, Answers
from edgestead.rest.routing import Answer, Route, route


class Readiness(msgspec.Struct, frozen=True):
    """`status` is "ready" or "not ready"."""

    status: str
    checks: Sequence[Row]


METRICS_PERMISSION = "Metrics Read"
_METRICS_TYPE = b"text/plain; version=0.0.4; charset=utf-8"


@route("GET", "/health/live", base="", public=True)
def live() -> dict[str, str]:
    """Answers as long as the process does."""
    return {"status": "live"}


@route("GET", "/health/ready", base="", public=True)
def ready(api: AppContext) -> Readiness:
    """200 when writes are accepted and DNS answers, 503 with the reasons otherwise.

    `checks` are the rows of the server's health, in either case. Where metrics are not open, a row says its
    check and its state alone.
    """
    rows = api.health()
    shown = rows if api.metrics_open else tuple(map(_without_words, rows))
    reasons = unready(rows)
    if reasons:
        answered = envelope.encode(Readiness("not ready", shown))
        raise NotReady(reasons="; ".join(row.message for row in reasons), result=answered)
    return Readiness("ready", shown)


def _without_words(row: Row) -> Row:
    return Row(row.check, "", row.state, "", "", row.since_us)


@route("GET", "/metrics", base="", public=True, answers=Answers(media=TEXT))
def metrics(api: AppContext) -> Answer:
    """Counters of every process in the prometheus text format.

    Where the API listens on more than loopback and `metrics-open` is not set, it takes a token with
    *Metrics Read*.
    """
    return Answer(body=api.metrics().encode(), content_type=_METRICS_TYPE)


def without_open_metrics(routes: Iterable[Route]) -> list[Route]:
    """The same routes, but metrics take a permission: counts tell strangers who is busy with what."""
    return [
        msgspec.structs.replace(one, public=False, permission=METRICS_PERMISSION)
        if one.handler is metrics
        else one
        for one in routes
    ]
