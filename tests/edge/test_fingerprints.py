"""What a ClientHello tells of its writer: fingerprints as others compute them, and messages that are none."""

import base64
import hashlib
import ssl

import pytest

from edgestead.edge.exchanges.exchange import TlsFacts
from edgestead.edge.exchanges.fingerprints import ClientHello, hello_of
from edgestead.edge.http import hello
from edgestead.edge.rules.fields import view_of
from edgestead.language import compile_filter
from tests.edge.made import ask

RANDOM = bytes(range(32))


def counted(octets, size=2):
    return len(octets).to_bytes(size) + octets


def numbers(*values):
    return b"".join(value.to_bytes(2) for value in values)


def written(version, ciphers, extensions):
    """A ClientHello; `extensions` are (number, content)."""
    body = version.to_bytes(2) + RANDOM + counted(b"", 1) + counted(numbers(*ciphers)) + counted(b"\0", 1)
    if extensions is not None:
        body += counted(b"".join(kind.to_bytes(2) + counted(content) for kind, content in extensions))
    return b"\x01" + counted(body, 3)


# The lists of the worked examples in the public descriptions: of JA3 an old client, of JA4 a browser.
OLD = written(
    769,
    (47, 53, 5, 10, 49161, 49162, 49171, 49172, 50, 56, 19, 4),
    [(0, b""), (10, counted(numbers(23, 24, 25))), (11, counted(b"\0", 1))],
)
BROWSER_CIPHERS = (
    *(0x1A1A, 0x1301, 0x1302, 0x1303, 0xC02B, 0xC02F, 0xC02C, 0xC030, 0xCCA9, 0xCCA8),
    *(0xC013, 0xC014, 0x009C, 0x009D, 0x002F, 0x0035),
)
SIGNATURES = (0x0403, 0x0804, 0x0401, 0x0503, 0x0805, 0x0501, 0x0806, 0x0601)
CONTENTS = {
    0x000D: counted(numbers(*SIGNATURES)),
    0x0010: counted(counted(b"h2", 1) + counted(b"http/1.1", 1)),
    0x002B: counted(numbers(0x2A2A, 0x0304, 0x0303), 1),
}
BROWSER_EXTENSIONS = (
    *(0x2A2A, 0x001B, 0x0000, 0x0033, 0x0010, 0x4469, 0x0017, 0x002D, 0x000D, 0x0005),
    *(0x0023, 0x0012, 0x002B, 0xFF01, 0x000B, 0x000A, 0x0015, 0x9A9A),
)
BROWSER = written(0x0303, BROWSER_CIPHERS, [(kind, CONTENTS.get(kind, b"")) for kind in BROWSER_EXTENSIONS])


def test_fingerprints_are_those_that_others_compute():
    assert ClientHello(OLD).ja3 == b"ada70206e40642a3e4461f35503241d5"
    assert ClientHello(BROWSER).ja4 == b"t13d1516h2_8daaf6152771_e5627efa2ab1"


def test_noise_changes_no_ja3_or_ja4():
    quiet = written(
        0x0303,
        BROWSER_CIPHERS[1:],
        [(kind, CONTENTS.get(kind, b"")) for kind in BROWSER_EXTENSIONS if kind not in (0x2A2A, 0x9A9A)],
    )
    assert (ClientHello(quiet).ja3, ClientHello(quiet).ja4) == (
        ClientHello(BROWSER).ja3,
        ClientHello(BROWSER).ja4,
    )
    assert ClientHello(quiet).ciphers_sha1 != ClientHello(BROWSER).ciphers_sha1


def test_the_lists_are_hashed_as_they_were_sent():
    read = ClientHello(OLD)

    def sha1(octets):
        return base64.b64encode(hashlib.sha1(octets).digest())

    assert read.ciphers_sha1 == sha1(numbers(47, 53, 5, 10, 49161, 49162, 49171, 49172, 50, 56, 19, 4))
    assert read.extensions_sha1 == sha1(b"\0\0\0\x0a\0\x0b")
    assert read.extensions_sha1_le == sha1(b"\0\0\x0a\0\x0b\0")
    assert (read.length, read.random) == (len(OLD), RANDOM)


ODD = [
    (written(0x0303, (), None), b"t12i000000_000000000000_000000000000"),
    (written(0x0303, (47,), [(0x0010, counted(counted(b"\xab", 1)))]), b"t12i0101ab_"),
    (written(0x0303, (47,), [(0x0010, b"")]), b"t12i010100_"),
    (written(0x0303, (47,), [(0x0010, b"\0\x01")]), b"t12i010100_"),
    (written(0x0203, (47,), []), b"t00i010000_"),
]


@pytest.mark.parametrize(("message", "begin"), ODD)
def test_a_client_that_says_little_has_a_fingerprint_too(message, begin):
    assert ClientHello(message).ja4.startswith(begin)
    assert len(ClientHello(message).ja3) == 32


@pytest.mark.parametrize("end", range(0, len(OLD), 3))
def test_what_ends_too_early_is_no_message(end):
    found = hello_of(OLD[:end])
    assert found is None or found.extensions == {}  # it ends where extensions would begin


@pytest.mark.parametrize("message", [OLD, BROWSER, written(0x0303, (0x1301,), None)])
def test_the_edge_accepts_a_connection_on_what_rules_see_of_it(message):
    begun, read = hello.read(b"\x16\x03\x01" + counted(message)), ClientHello(message)
    assert begun.newest_version == read.newest_version
    assert begun.protocols == read.extensions.get(16, b"")


def sent_by_openssl():
    """What the TLS library of this machine sends first."""
    out = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), out, server_hostname="www.edge.example")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return hello.read(out.read())


def test_a_rule_asks_for_a_fingerprint():
    begun = sent_by_openssl()
    assert begun.server_name == b"www.edge.example"
    read = ClientHello(begun.message)
    facts = TlsFacts(b"TLSv1.3", b"AES", b"www.edge.example", begun.message)
    for field, value in (
        ("cf.bot_management.ja3_hash", read.ja3),
        ("cf.bot_management.ja4", read.ja4),
        ("cf.tls_ciphers_sha1", read.ciphers_sha1),
        ("cf.tls_client_extensions_sha1", read.extensions_sha1),
        ("cf.tls_client_extensions_sha1_le", read.extensions_sha1_le),
        ("cf.tls_client_random", base64.b64encode(read.random)),
    ):
        holds = compile_filter(f'{field} eq "{value.decode()}"', "http_request_firewall_custom")
        assert holds(view_of(ask(tls=facts))), field
        assert not holds(view_of(ask())), "without TLS"
        assert not holds(view_of(ask(tls=TlsFacts(b"TLSv1.3", b"AES", b"")))), "without a message"
    length = compile_filter(
        f"cf.tls_client_hello_length eq {len(begun.message)}", "http_request_firewall_custom"
    )
    assert length(view_of(ask(tls=facts)))
    assert read.ja4.startswith(b"t13d")
