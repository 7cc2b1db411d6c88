"""The client against the real platform: what it asks for is what DNS answers."""

import json
import os
import subprocess
import sys

import dyndns
import pytest

FIRST, SECOND = "192.0.2.1", "192.0.2.2"
ZONE = "example.test"


@pytest.mark.as_of("2020-04-01", "2025-06-16")
def test_a_name_gets_its_address_and_keeps_it_until_it_changes(api, edge_zone):
    assert dyndns.update(api, ZONE, "home", FIRST) == "created"
    assert edge_zone.answers("home") == [FIRST]

    assert dyndns.update(api, ZONE, "home", FIRST) == "unchanged"
    assert dyndns.update(api, ZONE, "home", SECOND) == "changed"
    assert edge_zone.answers("home") == [SECOND]
    assert len(edge_zone.records()) == 1


def test_both_families_stand_beside_one_another(api, edge_zone):
    dyndns.update(api, ZONE, "home", FIRST)
    dyndns.update(api, ZONE, "home", "2001:db8::1")

    assert (edge_zone.answers("home"), edge_zone.answers("home", "AAAA")) == ([FIRST], ["2001:db8::1"])


def test_a_longer_spelling_of_an_address_is_no_change(api, edge_zone):
    dyndns.update(api, ZONE, "home", "2001:db8::1")

    assert dyndns.update(api, ZONE, "home", "2001:0db8:0:0::1") == "unchanged"


def test_other_records_stay_as_they_are(api, edge_zone):
    edge_zone.add("A", "www", FIRST)
    edge_zone.add("TXT", "home", '"hello"')

    dyndns.update(api, ZONE, "home", SECOND)

    assert edge_zone.answers("www") == [FIRST]
    assert edge_zone.answers("home", "TXT") == ['"hello"']


def test_what_is_no_address_changes_nothing(api, edge_zone):
    with pytest.raises(ValueError, match="does not appear to be"):
        dyndns.update(api, ZONE, "home", "192.0.2")

    assert edge_zone.records() == []


def test_a_zone_that_the_token_does_not_see_is_refused(api, edge):
    edge.make_zone("other.test")

    with pytest.raises(dyndns.Refused, match="does not see it"):
        dyndns.update(api, "other.test", "home", FIRST)


def test_a_token_that_may_not_write_is_refused_in_the_servers_words(edge, edge_zone):
    reader = dyndns.Api(edge.api_base, edge.make_token("Zone Read", "DNS Read", zone=edge_zone))

    with pytest.raises(dyndns.Refused, match="Authentication error"):
        dyndns.update(reader, ZONE, "home", FIRST)
    assert edge_zone.answers("home") == []


def test_the_program_finds_the_platform_in_its_environment_and_remembers(edge, edge_zone, edge_kv):
    done = subprocess.run(
        [sys.executable, dyndns.__file__, ZONE, "home", FIRST],
        env={**os.environ, **edge.environment, "EDGE_KV": edge_kv.id},
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.stdout == "created\n", done.stderr
    assert edge_zone.answers("home") == [FIRST]
    assert json.loads(edge_kv.get("home.example.test"))["address"] == FIRST
