"""Debian's pebble, an ACME authority for tests, that looks at proofs at a DNS address."""

import json
import os
import socket
import ssl
import subprocess
import time
import urllib.request
from datetime import UTC, datetime
from pathlib import Path

from edgestead.cli.parent import end_with_parent, if_it_lasts
from tests.support.pairs import CA, issued

PATIENCE_SECONDS = 180
TRIES_MAX = 10  # to start at ports that nobody took meanwhile


class Pebble:
    """`nonces_refused` of 100 requests are answered badNonce; authorizations are never taken twice."""

    def __init__(
        self, folder: Path, dns: str, nonces_refused: int = 0, http_port: int = 5002, tls_port: int = 5001
    ) -> None:
        self._folder = folder
        self._dns = dns
        self._nonces_refused = nonces_refused
        self._ports = {"httpPort": http_port, "tlsPort": tls_port}
        self.roots = folder / "pebble-ca.pem"
        self.roots.write_bytes(CA.certificate_pem)
        pair = issued("localhost", now=datetime.now(UTC))
        (folder / "pebble.pem").write_text(pair.chain)
        (folder / "pebble.key").write_text(pair.key)
        self.log = folder / "pebble.log"
        self._process: subprocess.Popen[bytes] | None = None
        for _ in range(TRIES_MAX):
            self._start()
            if self._answers():
                return
            self.close()
        raise AssertionError(self.log.read_text()[-500:])

    def _start(self) -> None:
        with socket.socket() as one, socket.socket() as other:
            for listening in (one, other):
                listening.bind(("127.0.0.1", 0))
            port, management = one.getsockname()[1], other.getsockname()[1]
        self.directory = f"https://localhost:{port}/dir"
        self._management = f"https://localhost:{management}"
        config = {
            "listenAddress": f"127.0.0.1:{port}",
            "managementListenAddress": f"127.0.0.1:{management}",
            "certificate": str(self._folder / "pebble.pem"),
            "privateKey": str(self._folder / "pebble.key"),
            **self._ports,
            "ocspResponderURL": "",
            "externalAccountBindingRequired": False,
        }
        path = self._folder / "pebble.json"
        path.write_text(json.dumps({"pebble": config}))
        faults = {
            "PEBBLE_VA_NOSLEEP": "1",
            "PEBBLE_WFE_NONCEREJECT": str(self._nonces_refused),
            "PEBBLE_AUTHZREUSE": "0",
        }
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                ["pebble", "-strict", "-config", str(path), "-dnsserver", self._dns],
                env={**os.environ, **faults},
                stdout=log,
                stderr=log,
                preexec_fn=if_it_lasts(end_with_parent),
            )

    def _answers(self) -> bool:
        context = ssl.create_default_context(cafile=str(self.roots))
        end = time.monotonic() + PATIENCE_SECONDS
        while self._process is not None and self._process.poll() is None and time.monotonic() < end:
            try:
                with urllib.request.urlopen(
                    self.directory, context=context, timeout=PATIENCE_SECONDS
                ) as answer:
                    answer.read()
                return True
            except OSError:
                time.sleep(0.05)
        return False

    def root(self) -> str:
        """The certificate (PEM) that vouches for what it issues: another one at each start."""
        context = ssl.create_default_context(cafile=str(self.roots))
        with urllib.request.urlopen(f"{self._management}/roots/0", context=context) as answer:
            found: bytes = answer.read()
            return found.decode()

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
