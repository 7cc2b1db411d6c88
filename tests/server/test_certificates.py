"""Certificates on their way from the API to a client's handshake, in a real server."""

import socket
import ssl
import time
from datetime import UTC, datetime

import pytest

from edgestead.server.control.authority import Account, AcmeAuthority, Trouble, new_key
from edgestead.server.places import private_place
from tests.support.pairs import issued
from tests.support.pebble import Pebble

PATIENCE_SECONDS = 300


def handshake(address, host):
    """The certificate (DER) that a client of `host` gets; None when it gets none."""
    asking = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    asking.check_hostname, asking.verify_mode = False, ssl.CERT_NONE
    try:
        with (
            socket.create_connection(address, PATIENCE_SECONDS) as plain,
            asking.wrap_socket(plain, server_hostname=host) as secured,
        ):
            return secured.getpeercert(binary_form=True)
    except ssl.SSLError:
        return None


def wait_for(address, host, wanted):
    end = time.monotonic() + PATIENCE_SECONDS
    while (found := handshake(address, host)) != wanted:
        assert time.monotonic() < end, found
        time.sleep(0.1)


def der(pair):
    return ssl.PEM_cert_to_DER_cert(pair.chain)


def test_an_upload_is_served_without_a_restart_and_after_one(new_server, patience):
    place = private_place()
    server = new_server("--https", "{}:{}".format(*place), *patience).start()
    zone_id = server.make_zone("example.com")
    uploads = f"/zones/{zone_id}/custom_certificates"
    pair = issued("www.example.com", now=datetime.now(UTC))
    assert handshake(place, "www.example.com") is None

    made = server.call("POST", uploads, {"certificate": pair.chain, "private_key": pair.key}).result
    wait_for(place, "www.example.com", der(pair))

    server.stop()
    server.start()
    wait_for(place, "www.example.com", der(pair))
    seal = server.data_dir / "seal.key"
    assert seal.stat().st_mode & 0o777 == 0o600

    server.call("DELETE", f"{uploads}/{made['id']}")
    wait_for(place, "www.example.com", None)


def test_dns_over_tls_shows_what_is_kept_by_name_and_the_folders_first(new_server, tmp_path, patience):
    place, folder = private_place(), tmp_path / "tls"
    folder.mkdir()
    flags = ("--dot", "{}:{}".format(*place), "--tls-dir", str(folder), "--nameserver", "ns1.example.com")
    server = new_server(*flags, *patience).start()
    zone_id = server.make_zone("example.com")
    own = handshake(place, "www.example.com")
    assert own == handshake(place, None), "without any certificate it signs one itself"

    uploads = f"/zones/{zone_id}/custom_certificates"
    pairs = [issued(name, now=datetime.now(UTC)) for name in ("www.example.com", "*.example.com")]
    ids = [
        server.call("POST", uploads, {"certificate": pair.chain, "private_key": pair.key}).result["id"]
        for pair in pairs
    ]
    wait_for(place, "www.example.com", der(pairs[0]))
    wait_for(place, "ns1.example.com", der(pairs[1]))
    wait_for(place, None, der(pairs[1]))  # who names nobody, and whom nobody fits, sees a name server's
    assert handshake(place, "elsewhere.test") == der(pairs[1])

    mine = issued("www.example.com", now=datetime.now(UTC))
    (folder / "www.example.com.pem").write_text(mine.chain + mine.key)
    wait_for(place, "www.example.com", der(mine))
    for id_ in ids:
        server.call("DELETE", f"{uploads}/{id_}")
    wait_for(place, None, own)


@pytest.fixture
def new_pebble(tmp_path):
    """An authority that looks at proofs at a DNS address."""
    made = []

    def make(dns, **faults):
        made.append(Pebble(tmp_path, dns, **faults))
        return made[-1]

    yield make
    for pebble in made:
        pebble.close()


def packs(server, zone_id):
    return server.call("GET", f"/zones/{zone_id}/ssl/certificate_packs?status=all").result


def wait_for_pack(server, zone_id, is_there):
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        found = packs(server, zone_id)
        if found and is_there(found[0]):
            return found[0]
        assert time.monotonic() < end, (found, server.log)
        time.sleep(0.2)


def test_a_zone_with_a_proxied_name_gets_a_certificate_by_itself(new_server, new_pebble, patience, tmp_path):
    """Apex and wildcard, proved in the zone, served by SNI, renewed on demand; pebble refuses every fifth
    nonce and never takes a proof twice."""
    place, dns = private_place(), private_place()
    dns_address, roots = "{}:{}".format(*dns), tmp_path / "pebble-ca.pem"
    pebble = new_pebble(dns_address, nonces_refused=20)
    acme = ("--acme", f"admin@example.com,{pebble.directory}", "--acme-ca", str(roots))
    server = new_server("--https", "{}:{}".format(*place), "--dns", dns_address, *acme, *patience).start()
    zone_id = server.make_zone("example.com")
    server.make_record(zone_id, "A", "www", "192.0.2.1", proxied=True)

    pack = wait_for_pack(server, zone_id, lambda pack: pack["status"] == "active")
    assert (pack["type"], pack["hosts"]) == ("universal", ["example.com", "*.example.com"])
    assert pack["validation_errors"] == []
    first = first_served(place, "www.example.com")
    assert "Pebble" in pack["certificates"][0]["issuer"]
    assert first_served(place, "example.com") == first

    assert server.dig("_acme-challenge.example.com", "TXT") == ["NXDOMAIN"], "proofs are gone"
    listed = server.call("GET", f"/zones/{zone_id}/dns_records").result
    assert [one["name"] for one in listed] == ["www.example.com"]

    server.call("PATCH", f"/zones/{zone_id}/ssl/certificate_packs/{pack['id']}")
    end = time.monotonic() + PATIENCE_SECONDS
    while first_served(place, "www.example.com") == first:
        assert time.monotonic() < end, packs(server, zone_id)
        time.sleep(0.2)

    server.call("PATCH", f"/zones/{zone_id}/ssl/universal/settings", {"enabled": False})
    wait_for(place, "www.example.com", None)
    assert packs(server, zone_id) == []


def first_served(place, host):
    end = time.monotonic() + PATIENCE_SECONDS
    while (found := handshake(place, host)) is None:
        assert time.monotonic() < end
        time.sleep(0.1)
    return found


def test_an_authority_that_is_away_is_told_of_while_it_is_asked_again(new_server, patience):
    place = private_place()
    away = f"https://localhost:{private_place()[1]}/dir"
    server = new_server(
        "--https", "{}:{}".format(*place), "--acme", f"admin@example.com,{away}", *patience
    ).start()
    zone_id = server.make_zone("example.com")
    server.make_record(zone_id, "A", "www", "192.0.2.1", proxied=True)

    pack = wait_for_pack(server, zone_id, lambda pack: pack["validation_errors"])
    assert "does not answer" in pack["validation_errors"][0]["message"]
    assert pack["certificates"] == []


def test_an_account_that_the_authority_lost_is_registered_again(new_pebble):
    """With the same key, and its new URL is told: also the next life of control knows it."""
    pebble, told = new_pebble("127.0.0.1:9"), []
    lost = Account("admin@example.com", pebble.directory.replace("/dir", "/my-account/gone"), new_key())
    authority = AcmeAuthority(pebble.directory, lost, str(pebble.roots), told.append)
    with pytest.raises(Trouble) as trouble:
        authority.order(["example.com"])

    assert trouble.value.passes
    assert "/my-order/" in authority.order(["example.com"])
    again = AcmeAuthority(pebble.directory, lost._replace(url=told[0]), str(pebble.roots), told.append)
    assert "/my-order/" in again.order(["example.com"])
    assert len(told) == 1


def test_zones_whose_dns_is_elsewhere_are_proved_at_the_edge(new_server, new_pebble, patience):
    """Pebble asks the edge, by name, at what stands for ports 80 and 443; no rule keeps it out."""
    https, dns = private_place(), private_place()
    http, dns_address = private_place(), "{}:{}".format(*dns)
    pebble = new_pebble(dns_address, nonces_refused=20, http_port=http[1], tls_port=https[1])
    flags = ["--https", "{}:{}".format(*https), "--http", "{}:{}".format(*http), "--dns", dns_address]
    flags += ["--edge-address", https[0], "--edge-workers", "2"]
    acme = ("--acme", f"admin@example.com,{pebble.directory}", "--acme-ca", str(pebble.roots))
    server = new_server(*flags, *acme, *patience).start()
    zones = {method: server.make_zone(f"{method}.example") for method in ("http", "tls-alpn")}
    for method, zone_id in zones.items():
        zone = f"/zones/{zone_id}"
        server.call("PATCH", f"{zone}/settings/acme_validation", {"value": method})
        server.call("PATCH", f"{zone}/settings/always_use_https", {"value": "on"})
        rules = f"{zone}/rulesets/phases/http_request_firewall_custom/entrypoint"
        server.call("PUT", rules, {"rules": [{"action": "block", "expression": "true"}]})
        for name in ("www", "shop"):
            server.make_record(zone_id, "A", name, "192.0.2.1", proxied=True)

    for method, zone_id in zones.items():
        pack = wait_for_pack(
            server, zone_id, lambda pack: pack["status"] == "active" and len(pack["hosts"]) == 2
        )
        names = [f"{name}.{method}.example" for name in ("shop", "www")]
        assert (pack["hosts"], pack["validation_method"]) == (names, method)
        assert first_served(https, names[0]) == first_served(https, names[1])
        order = f"/zones/{zone_id}/ssl/certificate_packs/order"
        assert server.call("POST", order, {"hosts": [f"*.{method}.example"]}).status == 400
