"""What a resolver's words come to: addresses, none, the way there, or that nobody can say."""

import asyncio
from ipaddress import ip_address

import dns.rcode
import pytest

from edgestead.config import Address
from edgestead.model import names
from edgestead.server.control import resolving

NAME = "target.example.net"
SERVFAIL = dns.rcode.SERVFAIL


@pytest.fixture
def resolver(new_resolver, monkeypatch):
    monkeypatch.setattr(resolving, "QUESTION_SECONDS_MAX", 300)
    return new_resolver()


def said(resolver, name=NAME):
    """(addresses, aliases as text, the type that failed); None when nobody can say."""
    host, _, port = resolver.address.rpartition(":")
    asked = resolving.resolver_at(Address(host, int(port)))
    answer = asyncio.run(resolving.addresses(asked, name))
    if answer is None:
        return None
    texts = [str(ip_address(rdata)) for rrset in answer.rrsets for rdata in rrset.rdatas]
    return texts, [names.text_from_wire(alias) for alias in answer.aliases], answer.unknown


def test_both_families(resolver):
    resolver.says(NAME, "198.51.100.2", "198.51.100.1", "2001:db8::1")

    assert said(resolver) == (["198.51.100.1", "198.51.100.2", "2001:db8::1"], [], None)


def test_a_name_without_addresses_and_one_that_is_not_there(resolver):
    resolver.says(NAME)
    assert said(resolver) == ([], [], None)

    resolver.fails(NAME, dns.rcode.NXDOMAIN)
    assert said(resolver) == ([], [], None)


def test_the_aliases_on_the_way_are_told_also_to_a_name_that_is_not_there(resolver):
    resolver.leads(NAME, "www.example.com", "198.51.100.1")
    assert said(resolver) == (["198.51.100.1"], ["www.example.com"], None)

    resolver.leads(NAME, "www.example.com", rcode=dns.rcode.NXDOMAIN)
    assert said(resolver) == ([], ["www.example.com"], None)


def test_one_family_that_fails_leaves_the_other(resolver):
    resolver.says(NAME, "198.51.100.1")
    resolver.answers[NAME, "AAAA"] = SERVFAIL
    assert said(resolver) == (["198.51.100.1"], [], 28)

    resolver.answers[NAME, "A"] = []
    assert said(resolver) is None  # nothing that could be served instead


def test_failures_and_silence_say_nothing(resolver, monkeypatch):
    resolver.fails(NAME)
    assert said(resolver) is None

    monkeypatch.setattr(resolving, "QUESTION_SECONDS_MAX", 0.1)
    resolver.answers[NAME, "A"] = resolver.answers[NAME, "AAAA"] = None
    assert said(resolver) is None


@pytest.mark.parametrize("name", [r"we\.ird\032one.example.net", "xn--bcher-kva.example.net", "."])
def test_any_name_can_be_asked(name, resolver):
    resolver.answers[name, "A"] = resolver.answers[name, "AAAA"] = []

    assert said(resolver, name) == ([], [], None)
