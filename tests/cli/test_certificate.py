"""`edgecli certificate` with a real server."""

import json
from datetime import UTC, datetime

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from tests.support.pairs import issued

ZONE = "certificate.test"


def test_a_certificate_is_uploaded_listed_replaced_and_removed(edgecli, project):
    pair, new = (issued(ZONE, f"*.{ZONE}", now=datetime.now(UTC), days=days) for days in (30, 60))
    (project / "chain.pem").write_text(pair.chain)
    (project / "key.pem").write_text(pair.key)
    (project / "both.pem").write_text(new.key + new.chain)
    edgecli("zone", "create", ZONE)

    said = edgecli("certificate", "upload", ZONE, "chain.pem", "--key", "key.pem")
    assert said.out.startswith(f"{ZONE}: {ZONE}, *.{ZONE} until "), said
    (shown,) = json.loads(edgecli("certificate", "list", ZONE, "--json").out)
    assert shown["id"] in said.out
    assert shown["id"] in edgecli("certificate", "list", ZONE).out

    again = edgecli("certificate", "upload", ZONE, "both.pem", "--replace", shown["id"])
    assert shown["id"] in again.out
    assert (
        shown["expires_on"] < json.loads(edgecli("certificate", "list", ZONE, "--json").out)[0]["expires_on"]
    )

    tried = edgecli("certificate", "upload", ZONE, "both.pem", "--dry-run")
    assert "Nothing is changed" in tried.out
    assert "PRIVATE KEY" not in tried.out

    assert edgecli("certificate", "remove", ZONE, shown["id"], "--yes").code == 0
    assert json.loads(edgecli("certificate", "list", ZONE, "--json").out) == []


def test_a_file_without_a_key_and_a_wrong_key_are_refused_in_words(edgecli, project):
    pair, other = (issued(f"refused.{ZONE}", now=datetime.now(UTC)) for _ in range(2))
    (project / "chain.pem").write_text(pair.chain)
    (project / "other.pem").write_text(other.key)
    edgecli("zone", "create", f"refused.{ZONE}")

    lonely = edgecli("certificate", "upload", f"refused.{ZONE}", "chain.pem")
    assert (lonely.code, "holds 0 keys" in lonely.err) == (1, True)
    wrong = edgecli("certificate", "upload", f"refused.{ZONE}", "chain.pem", "--key", "other.pem")
    assert (wrong.code, "is not the certificate's" in wrong.err) == (1, True)


def test_a_key_for_which_the_disk_has_no_room_is_made_by_the_next_try(edgecli, project, room):
    zone = f"full.{ZONE}"
    edgecli("zone", "create", zone)
    with room(100):
        assert "origin.key cannot be written" in edgecli("certificate", "origin", zone).err
    assert not (project / "origin.key").exists()

    assert edgecli("certificate", "origin", zone).code == 0


def test_an_origin_gets_a_certificate_for_a_key_that_stays_here(edgecli, project):
    zone = f"origin.{ZONE}"
    edgecli("zone", "create", zone)

    tried = edgecli("certificate", "origin", zone, "--dry-run")
    assert "Nothing is changed" in tried.out
    assert not (project / "origin.key").exists()

    said = edgecli("certificate", "origin", zone, "--days", "7")
    key = serialization.load_pem_private_key((project / "origin.key").read_bytes(), None)
    made = x509.load_pem_x509_certificate(said.out.encode())
    assert (project / "origin.key").stat().st_mode & 0o777 == 0o600
    assert made.public_key() == key.public_key()
    again = x509.load_pem_x509_certificate(
        edgecli("certificate", "origin", zone, "--host", f"www.{zone}").out.encode()
    )
    assert again.public_key() == key.public_key(), "the key is made once"

    shown = json.loads(edgecli("certificate", "list", zone, "--json").out)
    assert [one["hostnames"] for one in shown] == [[f"www.{zone}"], [zone, f"*.{zone}"]]
    assert "for origins" in edgecli("certificate", "list", zone).out
    for one in shown:
        assert edgecli("certificate", "revoke", one["id"], "--yes").code == 0
    assert json.loads(edgecli("certificate", "list", zone, "--json").out) == []

    (project / "origin.key").write_text("no key")
    refused = edgecli("certificate", "origin", zone)
    assert (refused.code, "holds no key" in refused.err) == (1, True)
