"""Private keys of zones: in no process that faces the world, not in the feed or a backup, not in clear.

Memory is searched as a debugger sees it. That the search finds a key is shown by control, which has them.
"""

import contextlib
import sqlite3
from functools import partial

import pytest

from edgestead.model.refusals.setting import KeysSealed
from edgestead.model.tsig import PURPOSE
from edgestead.server import seal
from edgestead.testing.server import wait_until
from edgestead.usecases.serving.keys import Seal
from tests.server.test_backup import done

ZONE = "example.com"
WAIT_SECONDS = 300
PIECE_OCTETS = 1 << 22


def sealed_keys(folder):
    with contextlib.closing(sqlite3.connect(f"file:{folder / 'control.db'}?mode=ro", uri=True)) as database:
        return database.execute("select zone_id, sealed from signing_keys").fetchall()


def scalars(folder):
    """The private numbers of all zones' keys, each as it is stored and as OpenSSL has it in memory."""
    opener = Seal(partial(seal.load_or_make, folder))
    found = [opener.unwrap(zone_id, sealed) for zone_id, sealed in sealed_keys(folder)]
    return [*found, *(scalar[::-1] for scalar in found)]


def is_in_memory(pid, secrets):
    """Whether a process has any of these octets anywhere that it can read and write."""
    longest = max(map(len, secrets))
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            span, rights, *_ = line.split()
            if not rights.startswith("rw"):
                continue
            start, end = (int(part, 16) for part in span.split("-"))
            before = b""
            while start < end:
                try:
                    memory.seek(start)
                    piece = memory.read(min(PIECE_OCTETS, end - start))
                except OSError:
                    break
                if not piece:
                    break
                if any(secret in before + piece for secret in secrets):
                    return True
                before, start = piece[-longest:], start + len(piece)
    return False


def files_with(folder, secrets):
    return [
        path.name
        for path in folder.rglob("*")
        if path.is_file() and any(secret in path.read_bytes() for secret in secrets)
    ]


@pytest.fixture
def signed(new_server):
    """A server that has signed a zone, changed it, and answered from it over every transport."""
    server = new_server("--dot", "127.0.0.1:0").start()
    zone_id = server.make_zone(ZONE)
    server.call("PATCH", f"/zones/{zone_id}/dnssec", {"status": "active"})
    wait_until(lambda: server.call("GET", f"/zones/{zone_id}/dnssec").result["ds"], WAIT_SECONDS)
    server.make_record(zone_id, "A", "www", "192.0.2.1", proxied=True)
    account = server.ready["account_id"]
    server.call("POST", f"/accounts/{account}/secondary_dns/tsigs", {"name": "xfr.example"})
    return server


def test_nobody_but_control_has_a_key_that_signs_a_zone(signed, tmp_path):
    secret = seal.load_or_make(signed.data_dir)
    secrets = [*scalars(signed.data_dir), secret, secret.hex().encode()]
    children = signed.children()
    facing = {name: pid for name, pid in children.items() if name.startswith(("dns", "edge", "objects"))}
    assert {"dns-0", "dns-tcp", "edge-0"} <= facing.keys()

    assert is_in_memory(children["control"], secrets), "the search finds what is there"
    assert [name for name, pid in facing.items() if is_in_memory(pid, secrets)] == []

    done("backup", tmp_path / "copy", "--data-dir", signed.data_dir)
    assert files_with(tmp_path / "copy", secrets) == []
    assert files_with(signed.data_dir, secrets) == ["seal.key"]

    derived = seal.derived_or_none(signed.data_dir, PURPOSE)
    assert is_in_memory(children["dns-0"], [derived]), "TSIG keys are opened there, with this"
    for zone_id, sealed in sealed_keys(signed.data_dir):
        with pytest.raises(KeysSealed):
            Seal(lambda: derived).unwrap(zone_id, sealed)
