"""Certificates with their keys, of an authority that only tests know."""

from base64 import b64decode, encodebytes
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from edgestead.cli.server.authority import Authority
from tests.support.api import FIRST_US

START = datetime.fromtimestamp(FIRST_US / 1_000_000, UTC)  # where the clock of a local API stands
CA = Authority.new(START)
P256 = bytes.fromhex("06082a8648ce3d030107")  # the curve's name in a certificate or a request


class PemPair(NamedTuple):
    """PEM texts."""

    chain: str
    key: str


def issued(*hosts: str, now: datetime = START, days: float = 90) -> PemPair:
    pem = CA.issue(hosts, now, timedelta(days=days)).pem.decode()
    chain, key = pem.split("-----BEGIN PRIVATE KEY-----")
    return PemPair(chain, f"-----BEGIN PRIVATE KEY-----{key}")


def damaged(pem: str, *changes: tuple[bytes, bytes]) -> str:
    """The same PEM with octets exchanged, (old, new), where they stand first."""
    label = pem.split("-----")[1].removeprefix("BEGIN ")
    data = b64decode("".join(pem.splitlines()[1:-1]))
    for old, new in changes:
        assert old in data
        data = data.replace(old, new, 1)
    return f"-----BEGIN {label}-----\n{encodebytes(data).decode()}-----END {label}-----\n"
