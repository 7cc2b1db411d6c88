"""A folder that certbot made is a way in: each name of its certificate is served, and a renewal, too."""

import shutil
import socket
import ssl
import subprocess

import pytest
from click.testing import CliRunner

from edgestead.cli.main import cli
from edgestead.server.places import private_place
from edgestead.testing.server import EdgeServer, wait_until
from tests.clients.test_clients import installer
from tests.support.patience import patient
from tests.support.pebble import Pebble

NAMES = ("site.example", "*.site.example")


@pytest.fixture
def authority(tmp_path, monkeypatch):
    """It takes everybody's word: nothing is proved here."""
    if shutil.which("pebble") is None:
        pytest.skip("pebble is missing")
    monkeypatch.setenv("PEBBLE_VA_ALWAYS_VALID", "1")
    pebble = Pebble(tmp_path, "127.0.0.1:9")
    yield pebble
    pebble.close()


@pytest.fixture
def certbot(tmp_path, authority):
    installer.install("certbot_dns01")
    program = installer.HOME / "venvs" / "certbot" / "bin" / "certbot"
    folder = tmp_path / "letsencrypt"
    places = {"config": folder, "work": tmp_path / "work", "logs": tmp_path / "logs"}

    def run(command, *words):
        done = subprocess.run(
            [program, command, "--non-interactive", "--server", authority.directory, *words]
            + [word for kind, place in places.items() for word in (f"--{kind}-dir", str(place))],
            env={"PATH": "/usr/bin:/bin", "REQUESTS_CA_BUNDLE": str(authority.roots)},
            capture_output=True,
            text=True,
            timeout=500,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    run(
        *("certonly", "--agree-tos", "--email", "a@example.com", "--key-type", "ecdsa"),
        *("--manual", "--preferred-challenges", "dns", "--manual-auth-hook", "/bin/true"),
        *(word for name in NAMES for word in ("-d", name)),
    )
    return run, folder


def take(*words, env=None):
    done = CliRunner().invoke(cli, ["tls", "take", *map(str, words)], env=env, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_what_certbot_made_is_served_by_every_name_and_renewed(certbot, tmp_path):
    run, folder = certbot
    lineage = folder / "live" / "site.example"
    tls = tmp_path / "tls"
    take(folder / "live", "--tls-dir", tls)
    place = "{}:{}".format(*private_place())
    server = EdgeServer(tmp_path / "data", *patient(tmp_path), "--https", place, "--tls-dir", str(tls))
    try:
        host, _, port = server.start().ready["https"].rpartition(":")

        def served(name):
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            with (
                socket.create_connection((host, int(port)), timeout=180) as plain,
                context.wrap_socket(plain, server_hostname=name) as secure,
            ):
                return ssl.DER_cert_to_PEM_cert(secure.getpeercert(binary_form=True))

        def made():
            return (lineage / "cert.pem").read_text().strip()

        first = made()
        assert {served(name).strip() for name in ("site.example", "www.site.example")} == {first}
        run("renew", "--force-renewal", "--no-random-sleep-on-renew")
        assert made() != first
        assert "unchanged" not in take("--tls-dir", tls, env={"RENEWED_LINEAGE": str(lineage)})
        wait_until(lambda: served("www.site.example").strip() == made(), 180)
    finally:
        server.close()
