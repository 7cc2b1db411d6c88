"""TLS: certificates by name, taken up when they change; terms by zone; TLS towards origins."""

import shutil
import ssl
import subprocess
import threading
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from edgestead.cli.server.authority import Authority
from edgestead.edge.http import hello
from tests.edge.origin import HTTP_200, Origin, headers_of
from tests.edge.talk import PATIENCE_SECONDS, connected, in_one_go, read_answer, say
from tests.edge.tls import client_context, put, secured, tls_site

OPENSSL = shutil.which("openssl")
TLS_1_3 = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
REQUEST = b"GET /page HTTP/1.1\r\nHost: %b\r\n\r\n"


@pytest.fixture(scope="module")
def authority():
    return Authority.new(datetime.now(UTC))


@pytest.fixture(scope="module")
def tls_dir(tmp_path_factory):
    return tmp_path_factory.mktemp("tls")


@pytest.fixture(scope="module")
def site(tmp_path_factory, authority, tls_dir):
    with tls_site(tmp_path_factory.mktemp("site"), authority, tls_dir) as made:
        yield made


def test_a_rule_blocks_a_program_by_its_fingerprint(site, authority):
    host, origin = site.origin()
    path = f"/zones/{site.zone_id}/rulesets/phases/http_request_firewall_custom/entrypoint"
    own = 'starts_with(cf.bot_management.ja4, "t13d") and cf.tls_client_hello_length gt 100'
    rules = [{"action": "block", "expression": f'http.host eq "{host}" and {own}'}]
    assert site.server.call("PUT", path, {"rules": rules}).status == 200
    with secured(site, client_context(authority), host) as connection:
        assert ask(connection, host).status == 403
    assert site.get(host).status == 200  # without TLS there is no fingerprint
    assert len(origin.requests) == 1


def ask(connection, host):
    connection.sendall(REQUEST % host.encode())
    with connection.makefile("rb") as stream:
        return read_answer(stream)


def test_a_proxied_page_is_served_over_tls(site, authority):
    def scene():
        host, origin = site.origin()
        with secured(site, client_context(authority), host) as connection:
            assert connection.version() == "TLSv1.3"
            for _ in range(3):
                assert ask(connection, host).body == b"ok"
        assert headers_of(origin.heads[0])[b"x-forwarded-proto"] == b"https"
        return origin.connections

    assert in_one_go(scene) == 1


def test_bodies_pass_both_ways_over_tls(site, authority):
    host, _ = site.origin(
        lambda head, body, connection: b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
    )
    content = bytes(range(256)) * 40_000
    with secured(site, client_context(authority), host) as connection:
        connection.sendall(
            b"PUT / HTTP/1.1\r\nHost: %b\r\nContent-Length: %d\r\n\r\n" % (host.encode(), len(content))
        )
        connection.sendall(content)
        with connection.makefile("rb") as stream:
            assert read_answer(stream).body == content


def test_a_name_without_a_certificate_gets_no_connection_and_hears_why(site, authority):
    with pytest.raises(ssl.SSLError, match=r"(?i)unrecognized.name"):
        secured(site, client_context(authority), "www.elsewhere.example")


def test_who_names_nobody_gets_no_connection_and_hears_why(site, authority):
    context = client_context(authority)
    context.check_hostname = False
    with connected(site.server.ready["https"]) as connection:
        with pytest.raises(ssl.SSLError, match=r"(?i)missing.extension|alert number 109"):
            context.wrap_socket(connection)


def test_plain_text_at_the_port_of_tls_is_told_so(site):
    answer = say(site.server.ready["https"], b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (answer.status, answer.headers[b"connection"]) == (400, b"close")
    assert b"for https" in answer.body


def test_what_is_neither_gets_no_answer(site):
    with connected(site.server.ready["https"]) as connection, suppress(ConnectionError):
        connection.sendall(b"\x00\x01\x02")
        assert connection.recv(1) == b""


def test_a_changed_certificate_is_taken_up_and_open_connections_stay(site, authority, tls_dir):
    host, _ = site.origin()
    context = client_context(authority)
    with secured(site, context, host) as old:
        serial = old.getpeercert()["serialNumber"]
        put(authority, tls_dir, "_.edge.example", "*.edge.example")

        def changed():
            with secured(site, context, host) as new:
                return new.getpeercert()["serialNumber"] != serial

        site.server.wait_until(changed, 180)
        assert ask(old, host).body == b"ok"


def test_a_certificate_of_its_own_goes_before_the_wildcard(site, authority, tls_dir):
    host, _ = site.origin()
    put(authority, tls_dir, host, host)
    context = client_context(authority)

    def own():
        with secured(site, context, host) as new:
            return new.getpeercert()["subjectAltName"] == (("DNS", host),)

    site.server.wait_until(own, 180)


def test_a_broken_file_changes_nothing(site, authority, tls_dir):
    host, _ = site.origin()
    before = (tls_dir / "_.edge.example.pem").read_bytes()
    (tls_dir / "_.edge.example.pem").write_bytes(b"nonsense")
    (tls_dir / "other.example.pem").write_bytes(b"nonsense")
    try:
        site.server.wait_until(lambda: "certificate of _.edge.example cannot be used" in site.server.log, 180)
        with secured(site, client_context(authority), host) as connection:
            assert ask(connection, host).body == b"ok"
    finally:
        (tls_dir / "_.edge.example.pem").write_bytes(before)


def test_a_zone_can_ask_for_the_newest_version(site, authority):
    host, _ = site.origin()
    context = client_context(authority)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with secured(site, context, host) as connection:
        assert connection.version() == "TLSv1.2"
    site.set("min_tls_version", "1.3")
    try:
        with pytest.raises(ssl.SSLError, match=r"(?i)protocol.version"):
            secured(site, context, host)
        with secured(site, client_context(authority), host) as connection:
            assert ask(connection, host).body == b"ok"
    finally:
        site.set("min_tls_version", "1.0")


def test_what_is_older_than_1_2_gets_no_connection_and_hears_why(site, authority):
    host, _ = site.origin()
    context = client_context(authority)
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        context.minimum_version = ssl.TLSVersion.TLSv1
    with pytest.raises(ssl.SSLError, match=r"(?i)protocol.version"):
        secured(site, context, host)


@pytest.mark.skipif(OPENSSL is None, reason="NOT TESTED: openssl is not installed")
@pytest.mark.parametrize("first", TLS_1_3)
def test_a_client_of_tls_1_3_has_the_cipher_that_it_likes_best(site, first):
    host, _ = site.origin()
    offered = ":".join((first, *(one for one in TLS_1_3 if one != first)))
    command = [str(OPENSSL), "s_client", "-connect", site.server.ready["https"], "-servername", host]
    command += ["-tls1_3", "-ciphersuites", offered]
    done = subprocess.run(command, input="", capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert f"Cipher is {first}" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("liked", ["ECDHE+CHACHA20:ECDHE+AESGCM", "ECDHE+AESGCM:ECDHE+CHACHA20"])
def test_a_client_of_tls_1_2_has_the_cipher_that_the_edge_likes_best(site, authority, liked):
    host, _ = site.origin()
    context = client_context(authority)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(liked)
    with secured(site, context, host) as connection:
        assert connection.cipher()[0] == "ECDHE-ECDSA-AES256-GCM-SHA384"


def test_a_zone_can_name_its_ciphers(site, authority):
    host, _ = site.origin()
    context = client_context(authority)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    chosen = "ECDHE-ECDSA-CHACHA20-POLY1305"
    site.set("ciphers", [chosen])
    try:
        with secured(site, context, host) as connection:
            assert connection.cipher()[0] == chosen
        context.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
        with pytest.raises((ssl.SSLError, ConnectionError)):
            secured(site, context, host)
    finally:
        site.set("ciphers", [])


def test_always_use_https_redirects_plain_requests_only(site, authority):
    host, origin = site.origin()
    site.set("always_use_https", "on")
    try:
        answer = site.get(host, "/a?b=c")
        assert (answer.status, answer.headers[b"location"].decode()) == (301, f"https://{host}/a?b=c")
        assert not origin.requests
        with secured(site, client_context(authority), host) as connection:
            assert ask(connection, host).status == 200
    finally:
        site.set("always_use_https", "off")


def test_a_redirect_names_the_port_where_the_client_named_one(site):
    host, _ = site.origin()
    port = site.server.ready["https"].rpartition(":")[2]
    site.set("always_use_https", "on")
    try:
        assert site.get(f"{host}:8080").headers[b"location"].decode() == f"https://{host}:{port}/"
    finally:
        site.set("always_use_https", "off")


class SecureOrigin(Origin):
    """The same over TLS."""

    def __init__(self, context, host, port):
        self._context = context
        super().__init__(host, port, HTTP_200)

    def _serve(self, connection):
        try:
            with self._context.wrap_socket(connection, server_side=True) as secure:
                super()._serve(secure)
        except OSError:
            return


def secure_origin(site, authority, tmp_path, *hosts, days=1):
    """(host, origin): a proxied name whose origin speaks TLS with a certificate for `hosts`, or the name."""
    address = site.address()
    name = site.name(address)
    pem = authority.issue(hosts or (name,), datetime.now(UTC), timedelta(days=days)).pem
    (tmp_path / "origin.pem").write_bytes(pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "origin.pem")
    origin = SecureOrigin(context, address, site.first.port)
    site._origins.append(origin)
    return name, origin


MODES = [
    # ssl, certificate is valid, status
    ("full", True, 200),
    ("full", False, 200),
    ("strict", True, 200),
    ("strict", False, 526),
    ("off", True, 520),
    ("flexible", True, 520),
]


@pytest.mark.parametrize(("mode", "valid", "status"), MODES)
def test_the_setting_ssl_says_how_an_origin_is_asked(site, authority, tmp_path, mode, valid, status):
    hosts = () if valid else ("other.example",)
    host, _ = secure_origin(site, authority, tmp_path, *hosts)
    site.set("ssl", mode)
    try:
        with secured(site, client_context(authority), host) as connection:
            assert ask(connection, host).status == status
    finally:
        site.set("ssl", "off")


def test_an_origin_with_a_certificate_of_our_own_is_strictly_asked_until_it_is_revoked(
    site, authority, tmp_path
):
    host, origin = secure_origin(site, authority, tmp_path)
    key = ec.generate_private_key(ec.SECP256R1())
    csr = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).sign(key, hashes.SHA256())
    sent = {"csr": csr.public_bytes(serialization.Encoding.PEM).decode(), "hostnames": [host]}
    made = site.server.call("POST", "/certificates", sent).result
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (tmp_path / "own.pem").write_bytes(made["certificate"].encode() + pem)
    origin._context.load_cert_chain(tmp_path / "own.pem")
    site.set("ssl", "strict")

    def answers(status):
        with secured(site, client_context(authority), host) as connection:
            return ask(connection, host).status == status

    try:
        site.server.wait_until(lambda: answers(200), PATIENCE_SECONDS)
        with secured(site, client_context(authority), host) as busy:
            assert ask(busy, host).status == 200
            site.server.call("DELETE", f"/certificates/{made['id']}")
            site.server.wait_until(lambda: ask(busy, host).status == 526, PATIENCE_SECONDS)
        assert answers(526)
    finally:
        site.set("ssl", "off")


@pytest.mark.parametrize("mode", ["full", "strict"])
def test_an_origin_without_tls_is_a_525(site, authority, mode):
    host, origin = site.origin(lambda head, body, connection: None)
    origin.read_bodies = False
    site.set("ssl", mode)
    try:
        with secured(site, client_context(authority), host) as connection:
            assert ask(connection, host).status == 525
    finally:
        site.set("ssl", "off")


def hello_of(name):
    """The bytes that a client begins with."""
    context = ssl.create_default_context()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def test_the_name_is_read_from_a_hello_however_it_is_cut():
    whole = hello_of("WWW.Example.com")
    assert hello.read(whole).server_name == b"www.example.com"
    for end in range(len(whole)):
        assert hello.read(whole[:end]) is None
    body = whole[5:]
    records = b"".join(
        b"\x16\x03\x01" + len(body[at : at + 50]).to_bytes(2, "big") + body[at : at + 50]
        for at in range(0, len(body), 50)
    )
    assert hello.read(records).server_name == b"www.example.com"


def in_records(octets, records):
    """A hello of 8 KB that goes on, the first so many records of it, each of so many octets."""
    message = b"\x01\x00\x20\x00" + bytes(0x2000)
    pieces = [message[at : at + octets] for at in range(0, octets * records, octets)]
    return b"".join(b"\x16\x03\x01" + len(piece).to_bytes(2, "big") + piece for piece in pieces)


NO_HELLOS = [
    in_records(1, hello.RECORDS_MAX + 1),
    in_records(50, hello.RECORDS_MAX + 1),
    b"GET / HTTP/1.1\r\n",
    b"\x16\x03\x01\x00\x00",
    b"\x16\x03\x01\x00\x04\x02\x00\x00\x00",
    b"\x16\x03\x01\x00\x04\x01\x00\x00\x00",
    b"\x16\x03\x01\xff\xff\x01\xff\xff\xff" + b"\0" * 65_000,
]


@pytest.mark.parametrize("data", NO_HELLOS)
def test_what_is_no_hello_is_refused(data):
    with pytest.raises(hello.NoHello):
        hello.read(data)


def test_a_hello_may_come_in_some_records():
    assert hello.read(in_records(1, hello.RECORDS_MAX - 1)) is None


def test_a_damaged_hello_is_read_or_refused_and_nothing_else():
    whole = hello_of("www.example.com")
    for position in range(5, len(whole)):
        for value in (0, 255):
            damaged = whole[:position] + bytes((value,)) + whole[position + 1 :]
            try:
                hello.read(damaged)
            except hello.NoHello:
                pass


def test_many_connections_at_once_are_all_served(site, authority):
    host, _ = site.origin()
    context, bodies = client_context(authority), []

    def visit():
        with secured(site, context, host) as connection:
            bodies.append(ask(connection, host).body)

    threads = [threading.Thread(target=visit) for _ in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert bodies == [b"ok"] * 32
