"""A site over TLS, with certificates of an authority of the test's own."""

import os
import socket
import ssl
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from tests.edge.conftest import Site
from tests.edge.origin import loopback
from tests.edge.talk import PATIENCE_SECONDS
from tests.support.patience import SETTINGS


def put(authority, folder, name, *hosts, days=1):
    """A certificate for hosts, in place at once."""
    until = timedelta(days=days)
    aside = folder / "aside.tmp"
    aside.write_bytes(authority.issue(hosts, datetime.now(UTC), until).pem)
    os.replace(aside, folder / f"{name}.pem")


@contextmanager
def tls_site(folder, authority, tls_dir):
    """Names of edge.example over TLS, whose authority origins have, too."""
    put(authority, tls_dir, "_.edge.example", "*.edge.example")
    (folder / "ca.pem").write_bytes(authority.certificate_pem)
    config = folder / "edge.toml"
    config.write_text(f'origin-ca = "{folder / "ca.pem"}"\n{SETTINGS}')
    https = f"{loopback(99)}:0"
    made = Site(folder, "--config", str(config), "--https", https, "--tls-dir", str(tls_dir))
    try:
        yield made
    finally:
        made.close()


def client_context(authority):
    context = ssl.create_default_context(cadata=authority.certificate_pem.decode())
    return context


def secured(site, context, name):
    host, _, port = site.server.ready["https"].rpartition(":")
    plain = socket.create_connection((host, int(port)), timeout=PATIENCE_SECONDS)
    try:
        return context.wrap_socket(plain, server_hostname=name)
    except BaseException:
        plain.close()
        raise
