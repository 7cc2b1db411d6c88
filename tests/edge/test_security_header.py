"""The setting security_header: what answers over TLS say, and what others do not."""

import pytest

from tests.edge.made import answer, ask

NAME, NOSNIFF = b"strict-transport-security", b"x-content-type-options"
OLD = [(NAME, b"max-age=1"), (b"server", b"origin")]


def headers(edge, scheme=b"https", said=(), **members):
    edge.serve(settings={"security_header": {"strict_transport_security": members}})
    exchange = answer(ask(scheme=scheme), headers=said)
    if edge.pipeline.has_response:
        assert edge.pipeline.response(exchange) is None
    return exchange.response.headers


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"enabled": True, "max_age": 86400}, [(NAME, b"max-age=86400")]),
        ({"enabled": True}, [(NAME, b"max-age=0")]),
        (
            {"enabled": True, "max_age": 5, "include_subdomains": True, "preload": True, "nosniff": True},
            [(NAME, b"max-age=5; includeSubDomains; preload"), (NOSNIFF, b"nosniff")],
        ),
        ({"enabled": False, "max_age": 5, "nosniff": True}, [(NOSNIFF, b"nosniff")]),
        ({"enabled": False, "max_age": 5}, []),
    ],
)
def test_answers_over_tls_say_what_the_setting_says(edge, members, said):
    assert headers(edge, **members) == said


def test_the_origins_own_header_gives_way_where_the_setting_is_on(edge):
    assert headers(edge, said=OLD, enabled=True, max_age=9) == [OLD[1], (NAME, b"max-age=9")]
    assert headers(edge, said=OLD, enabled=False) == OLD


def test_answers_without_tls_say_nothing(edge):
    assert headers(edge, scheme=b"http", said=OLD, enabled=True, nosniff=True) == OLD
