"""`edgecli dns secondary add` and `dns catalog follow`: over which protocol a primary is asked."""

import pytest

from tests.cli.flaky import FlakyProxy

PRIMARY = "192.0.2.77"
NAME = "over-tls.example"


@pytest.fixture
def peers(kv_server):
    """The peers at PRIMARY, by id; all that is made is gone afterwards."""
    account = f"/accounts/{kv_server.ready['account_id']}/secondary_dns"

    def found():
        listed = kv_server.call("GET", f"{account}/peers").result
        return {one["id"]: (one["port"], one["tls"]) for one in listed if one["ip"] == PRIMARY}

    yield found
    for one in kv_server.call("GET", f"{account}/catalogs").result:
        if one["name"] == NAME:
            kv_server.call("DELETE", f"{account}/catalogs/{one['id']}")
    for one in kv_server.call("GET", f"/zones?name={NAME}").result:
        kv_server.call("DELETE", f"/zones/{one['id']}")
    for id_ in found():
        kv_server.call("DELETE", f"{account}/peers/{id_}")


@pytest.mark.parametrize("command", [("secondary", "add"), ("catalog", "follow")], ids=" ".join)
@pytest.mark.parametrize(
    ("place", "port"), [(PRIMARY, 853), (f"{PRIMARY}@8853", 8853)], ids=["default port", "own port"]
)
def test_a_primary_is_asked_over_tls(edgecli, peers, command, place, port):
    done = edgecli("dns", *command, NAME, place, "--tls")

    assert (done.code, list(peers().values())) == (0, [(port, True)]), done.err


def test_a_peer_over_tls_is_none_for_who_asked_without(edgecli, kv_server, peers):
    edgecli("dns", "secondary", "add", NAME, f"{PRIMARY}@853")
    (plain,) = peers()
    edgecli("zone", "delete", NAME, "--yes")
    edgecli("dns", "secondary", "add", NAME, PRIMARY, "--tls")
    (zone,) = kv_server.call("GET", f"/zones?name={NAME}").result
    incoming = kv_server.call("GET", f"/zones/{zone['id']}/secondary_dns/incoming").result

    assert sorted(peers().values()) == [(853, False), (853, True)]
    assert plain not in incoming["peers"]


def test_an_add_that_was_cut_short_is_run_again(edgecli, kv_server, peers, monkeypatch):
    """The peer and the zone are made by then, and what says that they belong together is not."""
    with FlakyProxy(kv_server.ready["api_base"], lambda number, _: 400 if number == 2 else None) as base:
        monkeypatch.setenv("EDGE_API_BASE", base)
        cut = edgecli("dns", "secondary", "add", NAME, PRIMARY)
    monkeypatch.setenv("EDGE_API_BASE", kv_server.ready["api_base"])
    again = edgecli("dns", "secondary", "add", NAME, PRIMARY)
    third = edgecli("dns", "secondary", "add", NAME, PRIMARY)

    assert (cut.code, again.code, third.code) == (1, 0, 1), again.err
    assert f"{NAME} already exists" in third.err
    (zone,) = kv_server.call("GET", f"/zones?name={NAME}").result
    incoming = kv_server.call("GET", f"/zones/{zone['id']}/secondary_dns/incoming").result
    assert incoming["peers"] == list(peers())
