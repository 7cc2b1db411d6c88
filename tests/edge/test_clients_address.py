"""Whose a request is: PROXY headers and trusted proxies are believed, nobody else."""

import ssl
from datetime import UTC, datetime
from ipaddress import IPv4Address, IPv6Address

import pytest

from edgestead.cli.server.authority import Authority
from edgestead.edge.http import proxy_header
from edgestead.edge.http.proxy_header import BadHeader, Found
from tests.edge.conftest import Site
from tests.edge.origin import headers_of, loopback
from tests.edge.talk import connected, read_answer

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


def binary(source, *, command=0x21, more=b""):
    """A header of version 2."""
    packed = source.packed + source.packed + b"\x01\x02\x03\x04" + more
    family = b"\x11" if source.version == 4 else b"\x21"
    return SIGNATURE + bytes((command,)) + family + len(packed).to_bytes(2, "big") + packed


GOOD = [
    (b"PROXY TCP4 192.0.2.7 192.0.2.8 56324 443\r\n", "192.0.2.7"),
    (b"PROXY TCP6 2001:db8::1 ::1 56324 443\r\n", "2001:db8::1"),
    (b"PROXY UNKNOWN\r\n", ""),
    (b"PROXY UNKNOWN ffff::1 whatever else\r\n", ""),
    (binary(IPv4Address("192.0.2.7")), "192.0.2.7"),
    (binary(IPv6Address("2001:db8::1")), "2001:db8::1"),
    (binary(IPv4Address("192.0.2.7"), more=b"\x04\x00\x02ab"), "192.0.2.7"),
    (binary(IPv4Address("192.0.2.7"), command=0x20), ""),
    (SIGNATURE + b"\x20\x00\x00\x00", ""),
    (SIGNATURE + b"\x21\x31\x00\x04abcd", ""),
]
BAD = [
    b"GET / HTTP/1.1\r\n",
    b"PROXY TCP4 192.0.2.7 192.0.2.8 56324\r\n",
    b"PROXY TCP4 192.0.2.7 192.0.2.8 56324 443 1\r\n",
    b"PROXY TCP4 192.0.2.300 192.0.2.8 56324 443\r\n",
    b"PROXY TCP4 2001:db8::1 ::1 56324 443\r\n",
    b"PROXY TCP4 192.0.2.7 192.0.2.8 65536 443\r\n",
    b"PROXY TCP4 192.0.2.7 192.0.2.8 056 443\r\n",
    b"PROXY TCP4  192.0.2.7 192.0.2.8 56324 443\r\n",
    b"PROXY UDP4 192.0.2.7 192.0.2.8 56324 443\r\n",
    b"PROXY TCP4 " + b"1" * 107,
    b"\r\n\r\nGET / HTTP/1.1\r\n",
    SIGNATURE + b"\x31\x11\x00\x0c" + bytes(12),
    SIGNATURE + b"\x22\x11\x00\x0c" + bytes(12),
    SIGNATURE + b"\x21\x11\x00\x04abcd",
    SIGNATURE + b"\x21\x11\xff\xff",
]


@pytest.mark.parametrize(("data", "source"), GOOD)
def test_a_header_is_read_however_it_arrives(data, source):
    assert proxy_header.read(data + b"GET /") == Found(len(data), source)
    for end in range(len(data)):
        assert proxy_header.read(data[:end]) is None


@pytest.mark.parametrize("data", BAD)
def test_what_is_no_header_is_refused(data):
    with pytest.raises(BadHeader):
        proxy_header.read(data)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A server that believes its peer, 127.0.0.1, who begins with a PROXY header."""
    folder = tmp_path_factory.mktemp("site")
    authority = Authority.new(datetime.now(UTC))
    (folder / "_.edge.example.pem").write_bytes(authority.issue(["*.edge.example"], datetime.now(UTC)).pem)
    config = folder / "edge.toml"
    config.write_text('proxy-protocol = true\ntrusted-proxies = ["127.0.0.1/32", "198.51.100.0/24"]\n')
    tls = ("--https", f"{loopback(98)}:0", "--tls-dir", str(folder))
    made = Site(folder, "--config", str(config), *tls)
    made.authority = authority
    yield made
    made.close()


ANNOUNCED = b"PROXY TCP4 192.0.2.7 192.0.2.8 1 2\r\n"


def ask(site, first, host, *lines):
    head = b"GET / HTTP/1.1\r\nHost: %b\r\n" % host.encode() + b"".join(b"%b\r\n" % line for line in lines)
    with connected(site.http) as connection, connection.makefile("rb") as stream:
        connection.sendall(first + head + b"\r\n")
        return read_answer(stream)


@pytest.mark.parametrize("header", [ANNOUNCED, binary(IPv4Address("192.0.2.7"))])
def test_an_announced_client_is_the_client(site, header):
    host, origin = site.origin()
    assert ask(site, header, host).status == 200
    got = headers_of(origin.heads[0])
    assert got[b"x-forwarded-for"] == got[b"edge-connecting-ip"] == b"192.0.2.7"


@pytest.mark.parametrize(
    ("source", "client"),
    [("2001:db8::7", b"2001:db8::7"), ("::ffff:192.0.2.7", b"192.0.2.7")],
)
def test_an_announced_client_of_ipv6_is_the_one_that_is_meant(site, source, client):
    host, origin = site.origin()
    assert ask(site, binary(IPv6Address(source)), host).status == 200
    assert headers_of(origin.heads[0])[b"edge-connecting-ip"] == client


def test_an_announced_client_is_not_trusted_itself(site):
    host, origin = site.origin()
    ask(site, ANNOUNCED, host, b"X-Forwarded-For: 6.6.6.6", b"X-Forwarded-Proto: https")
    got = headers_of(origin.heads[0])
    assert got[b"x-forwarded-for"] == b"192.0.2.7"
    assert got[b"x-forwarded-proto"] == b"http"


CHAINS = [
    (b"203.0.113.5", b"203.0.113.5"),
    (b"6.6.6.6, 203.0.113.5", b"203.0.113.5"),
    (b"6.6.6.6, 203.0.113.5, 198.51.100.9", b"203.0.113.5"),
    (b"198.51.100.8", b"198.51.100.8"),
    (b"6.6.6.6, nonsense", b"198.51.100.1"),
    (b"6.6.6.6, nonsense, 198.51.100.9", b"198.51.100.9"),
    (b"2001:db8::5", b"2001:db8::5"),
    (b"::ffff:203.0.113.5", b"203.0.113.5"),
    (b"203.0.113.5, ::ffff:198.51.100.9", b"203.0.113.5"),
]


@pytest.mark.parametrize(("chain", "client"), CHAINS)
def test_of_a_trusted_chain_the_last_untrusted_address_counts(site, chain, client):
    host, origin = site.origin()
    proxy = b"PROXY TCP4 198.51.100.1 192.0.2.8 1 2\r\n"
    ask(site, proxy, host, b"X-Forwarded-For: " + chain, b"X-Forwarded-Proto: https")
    got = headers_of(origin.heads[0])
    assert got[b"edge-connecting-ip"] == client
    assert got[b"x-forwarded-for"] == chain + b", 198.51.100.1"
    assert got[b"x-forwarded-proto"] == b"https"


def test_without_its_header_a_connection_is_closed(site):
    host, origin = site.origin()
    try:
        assert ask(site, b"", host) is None
    except ConnectionError:
        pass
    assert not origin.requests


def test_a_header_goes_before_tls(site):
    host, origin = site.origin()
    context = ssl.create_default_context(cadata=site.authority.certificate_pem.decode())
    with connected(site.server.ready["https"]) as plain:
        plain.sendall(ANNOUNCED)
        with context.wrap_socket(plain, server_hostname=host) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: %b\r\n\r\n" % host.encode())
            with connection.makefile("rb") as stream:
                assert read_answer(stream).status == 200
    got = headers_of(origin.heads[0])
    assert (got[b"x-forwarded-for"], got[b"x-forwarded-proto"]) == (b"192.0.2.7", b"https")


def test_in_the_profile_clients_the_headers_have_their_other_spelling(tmp_path):
    site = Site(tmp_path, "--profile", "clients")
    try:
        host, origin = site.origin()
        answer = site.get(host)
        got = headers_of(origin.heads[0])
        assert got[b"cf-connecting-ip"] == b"127.0.0.1"
        assert got[b"cf-ray"] == answer.headers[b"cf-ray"]
        assert not [name for name in got if name.startswith(b"edge-")]
    finally:
        site.close()
