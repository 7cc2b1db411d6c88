"""Who may come from the edge: the addresses that proxied names have."""

import pytest

from tests.support.api import LocalApi

NO_ONE: dict[str, str] = {}


@pytest.fixture
def lists(tmp_path):
    """What a server with other addresses lists."""

    def ask(*addresses):
        folder = tmp_path / "-".join(("other", *addresses))
        folder.mkdir()
        api = LocalApi(folder, edge_addresses=addresses)
        try:
            return api.get("/ips", auth=NO_ONE).result
        finally:
            api.close()

    return ask


def test_everybody_hears_the_addresses_of_the_edge_as_networks(api):
    answer = api.get("/ips", auth=NO_ONE)

    assert answer.status == 200
    assert answer.result["ipv4_cidrs"] == ["203.0.113.1/32"]
    assert answer.result["ipv6_cidrs"] == ["2001:db8::1/128"]


def test_the_tag_stays_until_the_addresses_change(lists):
    first, again, other = lists("203.0.113.1"), lists("203.0.113.1", "203.0.113.1"), lists("203.0.113.2")

    assert first == again
    assert first["etag"] != other["etag"]


def test_addresses_are_listed_in_their_order_and_an_edge_without_any_lists_none(lists):
    found, none = lists("203.0.113.20", "203.0.113.3"), lists()

    assert found["ipv4_cidrs"] == ["203.0.113.3/32", "203.0.113.20/32"]
    assert (found["ipv6_cidrs"], none["ipv4_cidrs"], none["ipv6_cidrs"]) == ([], [], [])
