"""Certificates with their keys, of an authority that only tests know."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from edgestead.cli.server.authority import Authority
from tests.support.api import FIRST_US

START = datetime.fromtimestamp(FIRST_US / 1_000_000, UTC)  # where the clock of a local API stands
CA = Authority.new(START)


class PemPair(NamedTuple):
    """PEM texts."""

    chain: str
    key: str


def issued(*hosts: str, now: datetime = START, days: float = 90) -> PemPair:
    pem = CA.issue(hosts, now, timedelta(days=days)).pem.decode()
    chain, key = pem.split("-----BEGIN PRIVATE KEY-----")
    return PemPair(chain, f"-----BEGIN PRIVATE KEY-----{key}")
