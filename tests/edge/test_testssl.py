"""What testssl.sh, the program that auditors run, finds against the edge's TLS."""

import json
import shutil
import subprocess
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from edgestead.cli.server.authority import Authority
from tests.edge.tls import tls_site

TESTSSL = shutil.which("testssl")
GOOD = ("OK", "INFO", "DEBUG", "LOW")
ABOUT_THE_PROGRAM = {  # what it could not try with the machine's own OpenSSL, and tries by sockets
    "engine_problem": "WARN",
    "secure_renego": "WARN",
}
pytestmark = [
    pytest.mark.long,  # 90 s
    pytest.mark.skipif(TESTSSL is None, reason="NOT TESTED: testssl is not installed"),
]


def as_public_authorities_issue(authority, host):
    """90 days, with the address of a list of what was revoked: testssl takes its absence for a fault."""
    signer = serialization.load_pem_private_key(authority.key_pem, None)
    made = authority.issue((host,), datetime.now(UTC), timedelta(days=90)).pem
    one, key = x509.load_pem_x509_certificate(made), serialization.load_pem_private_key(made, None)
    builder = x509.CertificateBuilder(
        issuer_name=one.issuer,
        subject_name=one.subject,
        public_key=one.public_key(),
        serial_number=one.serial_number,
        not_valid_before=one.not_valid_before_utc,
        not_valid_after=one.not_valid_after_utc,
        extensions=list(one.extensions),
    )
    where = x509.DistributionPoint(
        [x509.UniformResourceIdentifier("http://c.example/1.crl")], None, None, None
    )
    signed = builder.add_extension(x509.CRLDistributionPoints([where]), critical=False).sign(
        signer, hashes.SHA256()
    )
    return signed.public_bytes(serialization.Encoding.PEM) + key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def test_testssl_finds_nothing_above_low(tmp_path):
    """Of a site with HTTP/2 and `security_header` on; `min_tls_version` 1.0 is no less than 1.2 here."""
    authority, tls_dir, folder = Authority.new(datetime.now(UTC)), tmp_path / "tls", tmp_path / "site"
    tls_dir.mkdir()
    folder.mkdir()
    with tls_site(folder, authority, tls_dir) as site:
        (tls_dir / "_.edge.example.pem").write_bytes(as_public_authorities_issue(authority, "*.edge.example"))
        site.set("min_tls_version", "1.0")
        site.set("http2", "on")
        year = {"enabled": True, "max_age": 31_536_000, "include_subdomains": True, "nosniff": True}
        site.set("security_header", {"strict_transport_security": year})
        host, _ = site.origin()
        address, _, port = site.server.ready["https"].rpartition(":")
        found = tmp_path / "found.json"
        flags = ["--quiet", "--color", "0", "--warnings", "off", "--nodns", "none", "--ip", address]
        flags += ["--add-ca", str(folder / "ca.pem"), "--jsonfile", str(found), f"{host}:{port}"]
        done = subprocess.run([str(TESTSSL), *flags], capture_output=True, text=True, timeout=800)

    findings = json.loads(found.read_text())
    by_id = {one["id"]: one["severity"] for one in findings}
    assert by_id["TLS1_3"] == by_id["TLS1_2"] == by_id["cert_chain_of_trust"] == "OK", done.stdout[-2000:]
    bad = [one for one in findings if one["severity"] not in GOOD]
    assert [one for one in bad if ABOUT_THE_PROGRAM.get(one["id"]) != one["severity"]] == []
