"""A small zone behind real sockets, and worlds of signed zones."""

import pytest

from tests.dns.serving import table_of

ZONE = """
example.test. 3600 SOA ns1.example.test. hostmaster.example.test. 1 7200 900 86400 600
example.test. 3600 NS ns1.example.test.
www.example.test. 300 A 192.0.2.80
alias.example.test. 300 CNAME www.example.test.
""" + "".join(f"big.example.test. 300 TXT {'x' * 200}{i}\n" for i in range(300))


@pytest.fixture
def table():
    """example.test, whose name `broken` makes every lookup raise."""
    table = table_of({"example.test.": ZONE})
    (zone,) = table.view.zones.values()
    zone.names[b"\6broken"] = b"\0\0\1"
    return table


@pytest.fixture
def new_world(tmp_path):
    """Make worlds with a signed zone that changes, by their seeds."""
    from tests.dns.test_signed import Changing

    made = []

    def make(seed):
        folder = tmp_path / str(seed)
        folder.mkdir()
        made.append(Changing(folder, seed))
        return made[-1]

    yield make
    for one in made:
        one.signed.close()
