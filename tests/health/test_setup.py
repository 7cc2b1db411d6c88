"""What works and will surprise somebody: of the machine, the addresses, a zone."""

import pytest

from edgestead.health.setup import (
    DESCRIPTORS_MIN,
    Listening,
    Machine,
    Zone,
    of_api,
    of_dns,
    of_machine,
    of_zone,
)


def said(found):
    """(state, message) of what is not ok; each has a next step."""
    bad = [one for one in found if one.state != "ok"]
    assert all(one.next_step for one in bad)
    return [(one.state, one.message) for one in bad]


@pytest.mark.parametrize(
    ("files", "is_kept", "words"),
    [
        (DESCRIPTORS_MIN, True, []),
        (-1, True, []),
        (DESCRIPTORS_MIN - 1, True, ["may open 4095 files"]),
        (1_024, False, ["may open 1024 files", "nothing keeps this machine's clock right"]),
    ],
)
def test_a_machine_with_few_files_or_no_time_is_told_so(files, is_kept, words):
    found = said(of_machine(Machine(files, is_kept)))

    assert [word for (_, text), word in zip(found, words, strict=True) if word in text] == words


@pytest.mark.parametrize(
    ("address", "count"), [("127.0.0.1:8787", 0), ("[::1]:8787", 0), ("0.0.0.0:8787", 1), ("192.0.2.1:1", 1)]
)
def test_an_api_that_others_reach_is_a_warning(address, count):
    assert len(said(of_api(address))) == count


@pytest.mark.parametrize(
    ("address", "given", "words"),
    [
        ("127.0.0.1:53", (0, "", ()), []),
        ("[::1]:5300", (0, "", ()), ["port 5300"]),
        ("192.0.2.53:53", (0, "", ("192.0.2.53",)), ["a limit of rates", "an identity"]),
        ("192.0.2.53:53", (100, "", ("192.0.2.53",)), ["an identity"]),
        ("[::]:53", (100, "ams-1", ()), ["at every address"]),
        ("0.0.0.0:53", (100, "ams-1", ("192.0.2.53",)), []),
    ],
)
def test_dns_for_others_is_told_what_it_lacks(address, given, words):
    found = said(of_dns(Listening("127.0.0.1:8787", address, *given)))

    assert [word for (_, text), word in zip(found, words, strict=True) if word in text] == words


FINE = Zone("example.com", has_records=True, has_address=True)


@pytest.mark.parametrize(
    ("zone", "found"),
    [
        (FINE, []),
        (Zone("example.com"), []),
        (FINE._replace(has_records=False, has_address=False), [("warn", "has no record")]),
        (FINE._replace(has_address=False), [("warn", "has no address")]),
        (FINE._replace(tls_settings=["http2", "http3"]), [("warn", "http2 and http3 is on")]),
        (FINE._replace(wrong_ds="Have the registrar add the DS."), [("fail", "the parent has a DS")]),
    ],
)
def test_a_zone_that_will_surprise_somebody_is_told(zone, found):
    assert [
        (state, words in text) for (state, text), (_, words) in zip(said(of_zone(zone)), found, strict=True)
    ] == [(state, True) for state, _ in found]
