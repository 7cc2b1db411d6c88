"""The API's own description, served by the API.

Owns  /openapi.json, the page /docs, and the page of dated changes that `Link` headers lead to.
Not   what the routes are.

Public: a description holds no secret, and tools fetch it before they have a token.
"""

from functools import cache
from typing import Any

from edgestead.model.envelope import encode
from edgestead.rest import deprecation, openapi, openapi_page
from edgestead.rest.declared import Answers
from edgestead.rest.deprecation import PAGE
from edgestead.rest.routing import ROUTES, Answer, route

# The page brings everything with it: no script, no picture, no other host.
_POLICY = b"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_HTML = "text/html"


@route("GET", "/openapi.json", base="", public=True, answers=Answers(dict[str, Any], bare=True))
def show_document() -> Answer:
    """This API in OpenAPI 3.1."""
    return Answer(body=_document())


@route("GET", "/docs", base="", public=True, answers=Answers(media=_HTML))
def show_page() -> Answer:
    """This API as a page for people."""
    return _html(_page())


@route("GET", PAGE, base="", public=True, answers=Answers(media=_HTML))
def show_deprecations() -> Answer:
    """What dates ended and replaced, as a page for people."""
    return _html(deprecation.render())


def _html(page: bytes) -> Answer:
    policy = ((b"content-security-policy", _POLICY),)
    return Answer(body=page, content_type=b"text/html; charset=utf-8", headers=policy)


@cache
def _document() -> bytes:
    return encode(openapi.document(ROUTES))


@cache
def _page() -> bytes:
    return openapi_page.render(openapi.document(ROUTES)).encode()
