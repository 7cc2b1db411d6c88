"""Which fields exist, where, and by which names."""

import pytest

from edgestead.language import FIELDS, PHASES, Direction, FilterError, Value, compile_filter, fixed_view
from edgestead.language.fields import ALIASES

from .conftest import FILTERS


def test_every_field_has_a_slot_of_its_own() -> None:
    assert sorted(field.slot for field in FIELDS.values()) == list(range(len(FIELDS)))


def test_every_alias_names_a_field() -> None:
    assert set(ALIASES.values()) <= set(FIELDS)
    assert not set(ALIASES) & set(FIELDS)


GEOIP = [
    ("ip.geoip.asnum == 64500", {"ip.src.asnum": 64_500}),
    ('ip.geoip.country eq "DE"', {"ip.src.country": b"DE"}),
    ('ip.geoip.continent eq "EU"', {"ip.geoip.continent": b"EU"}),
    ("ip.geoip.is_in_european_union", {"ip.src.is_in_european_union": True}),
    ('ip.geoip.subdivision_1_iso_code eq "GB-ENG"', {"ip.src.subdivision_1_iso_code": b"GB-ENG"}),
]


@pytest.mark.parametrize(("text", "values"), GEOIP)
def test_the_old_geographical_names_mean_the_new_ones(text: str, values: dict[str, Value]) -> None:
    assert compile_filter(text, FILTERS)(fixed_view(values))
    assert not compile_filter(text, FILTERS)(fixed_view({}))


def test_a_response_field_exists_in_response_phases_only() -> None:
    for phase, direction in PHASES.items():
        if direction is Direction.RESPONSE:
            assert compile_filter("http.response.code == 404", phase)(fixed_view({"http.response.code": 404}))
        else:
            with pytest.raises(FilterError, match="unknown identifier"):
                compile_filter("http.response.code == 404", phase)


def test_a_counting_expression_may_look_at_the_response() -> None:
    text = "http.response.code in {400..499}"

    counting = compile_filter(text, "http_ratelimit", with_response=True)

    assert counting(fixed_view({"http.response.code": 404}))


@pytest.mark.parametrize("phase", [name for name, kind in PHASES.items() if kind is not Direction.NETWORK])
def test_request_fields_exist_in_every_http_phase(phase: str) -> None:
    assert compile_filter('http.host eq "a"', phase)(fixed_view({"http.host": b"a"}))


def test_packets_have_no_request_fields() -> None:
    with pytest.raises(FilterError, match="unknown identifier"):
        compile_filter('http.host eq "a"', "magic_transit")


def test_what_this_platform_does_not_compute_has_a_neutral_value() -> None:
    text = "cf.threat_score > 5 or cf.waf.score < 50 or cf.bot_management.score < 30 or cf.client.bot"

    assert not compile_filter(text, FILTERS)(fixed_view({}))
