"""Answers to requests that rules stop.

Owns  which form a client wants: a page, JSON, plain text.
Not   errors of origins; the challenge page (`challenge_page`).
"""

from edgestead.edge.exchanges import pages
from edgestead.edge.exchanges.exchange import Exchange, Headers, Response

NO_STORE = (b"cache-control", b"private, no-store")


def wants_page(exchange: Exchange) -> bool:
    """Whether somebody looks at the answer: browsers ask for HTML by name when they open a page."""
    return b"text/html" in (exchange.header(b"accept") or b"").lower()


def _wants_json(exchange: Exchange) -> bool:
    """Asked for it, or sent it."""
    return any(b"json" in (exchange.header(name) or b"").lower() for name in (b"accept", b"content-type"))


def stopped(exchange: Exchange, status: int, words: str, more: Headers | None = None) -> Response:
    """A refusal in the form that the client wants."""
    if wants_page(exchange):
        answer = pages.page(status, words, ray=exchange.ray, host=exchange.host)
    elif _wants_json(exchange):
        answer = pages.page(status, words, ray=exchange.ray, accept=b"json")
    else:
        text = f"{words}\nRay ID: {exchange.ray.decode('ascii', 'replace')}\n"
        answer = Response(status, [(b"content-type", b"text/plain; charset=utf-8")], text.encode())
    answer.headers = [header for header in answer.headers if header[0] != NO_STORE[0]]
    answer.headers += [NO_STORE, *(more or ())]
    return answer
