"""Named lists: resolved when compiling, looked into when running."""

import pytest

from edgestead.language import IP, STRING, FilterError, Type, compile_filter, fixed_view, ip_value

from .conftest import FILTERS


def test_a_list_is_asked_for_by_name_and_type() -> None:
    asked: list[tuple[str, Type]] = []
    blocked = {ip_value("192.0.2.1")}

    def lists(name: str, type_: Type) -> set[int] | None:
        asked.append((name, type_))
        return blocked if type_ == IP else {b"a"}  # type: ignore[return-value]

    rule = compile_filter(
        'ip.src in $bad.ips_1 or any(http.request.headers["x"][*] in $words)', FILTERS, lists=lists
    )

    assert asked == [("bad.ips_1", IP), ("words", STRING)]
    assert rule(fixed_view({"ip.src": ip_value("192.0.2.1")}))
    assert rule(fixed_view({"http.request.headers": {b"x": [b"b", b"a"]}}))
    assert not rule(fixed_view({"ip.src": ip_value("192.0.2.2")}))


def test_a_list_that_changes_is_seen() -> None:
    members: set[int] = set()
    rule = compile_filter("ip.src in $bad", FILTERS, lists=lambda name, type_: members)
    view = fixed_view({"ip.src": ip_value("192.0.2.1")})
    assert not rule(view)

    members.add(ip_value("192.0.2.1"))

    assert rule(view)


def test_an_unknown_list_is_refused_where_it_stands() -> None:
    with pytest.raises(FilterError) as caught:
        compile_filter("ssl or ip.src in $bad", FILTERS)

    assert str(caught.value) == (
        "Filter parsing error (1:18):\nssl or ip.src in $bad\n                 ^^^^ could not find list $bad"
    )
