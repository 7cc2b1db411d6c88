"""The serial that a zone begins with."""

import pytest

from edgestead.model import served
from edgestead.tables import settings
from edgestead.usecases.serving import serials
from edgestead.usecases.serving.serials import SERIAL_END

SECOND_US = 1_000_000
NOW = 1_700_000_000
BIRTHS = (  # serial at the end of the last life, seconds until it is made again, serial it begins with
    (NOW - 5, 0, NOW),
    (NOW, 0, NOW + 1),
    (NOW + 100, 1, NOW + 101),
    (NOW + 100, 101, NOW + 101),
    (NOW + 100, 200, NOW + 200),
)


@pytest.fixture
def write(api):
    return lambda use_case, *arguments: api.store.write(lambda tx: use_case(tx, *arguments)).result().value


@pytest.mark.parametrize(("last", "seconds", "begins"), BIRTHS)
def test_a_zone_never_begins_before_it_ended(write, last, seconds, begins):
    write(serials.remember, "example.com", last, NOW * SECOND_US)

    assert write(serials.at_birth, "example.com", (NOW + seconds) * SECOND_US) == begins
    assert write(serials.at_birth, "example.net", (NOW + seconds) * SECOND_US) == NOW + seconds


def test_the_circle_of_serials_has_no_end(write):
    write(serials.remember, "example.com", 5, (SERIAL_END - 3) * SECOND_US)

    assert write(serials.at_birth, "example.com", (SERIAL_END - 2) * SECOND_US) == 6


def test_what_time_has_caught_up_with_is_forgotten(api, write):
    write(serials.remember, "one.example", NOW + 10, NOW * SECOND_US)
    write(serials.remember, "two.example", NOW + 30, (NOW + 20) * SECOND_US)

    assert list(api.store.read(lambda reader: settings.all_of(reader, "serials"))) == ["two.example"]


def test_a_zone_made_again_goes_on_where_it_ended(api):
    zone = api.post("/zones", {"name": "example.com"}).result["id"]
    for number in range(3):  # the clock of this API moves a microsecond a request
        body = {"type": "A", "name": f"www-{number}", "content": "192.0.2.1"}
        api.post(f"/zones/{zone}/dns_records", body)
    before = serial_of(api)
    api.delete(f"/zones/{zone}")
    api.post("/zones", {"name": "example.com"})

    assert serial_of(api) == before + 1


def serial_of(api):
    """As the feed said last."""
    documents = [one.doc for one in api.changes if one.kind == served.KIND_ZONE and one.doc]
    return int.from_bytes(served.decode_zone(documents[-1]).soa_rdata[-20:-16], "big")
