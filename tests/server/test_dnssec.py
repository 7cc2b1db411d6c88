"""Signing a zone on a whole server: one call, the parent's DS seen through the resolver, and backups."""

import contextlib
import sqlite3
from pathlib import Path

import dns.dnssec
import dns.message
import dns.name
import dns.query
import pytest

from edgestead.model.refusals.setting import KeysSealed
from edgestead.server import seal
from edgestead.testing.server import wait_until
from edgestead.usecases.serving.keys import SECRET_OCTETS, Seal
from tests.server.test_backup import edgecli
from tests.support.asking import by_udp

ZONE = "example.com"


@pytest.fixture
def resolver(new_resolver):
    made = new_resolver()
    made.answers[ZONE, "DS"] = []
    return made


@pytest.fixture
def server(new_server, resolver):
    made = new_server("--resolver", resolver.address, "--transfer-to", "127.0.0.1").start()
    made.zone_id = made.make_zone(ZONE)
    made.make_record(made.zone_id, "A", "www", "192.0.2.1")
    return made


def shown(server):
    return server.call("GET", f"/zones/{server.zone_id}/dnssec").result


def asked(server, name, kind):
    host, _, port = server.ready["dns"].rpartition(":")
    query = dns.message.make_query(name, kind, want_dnssec=True)
    return by_udp(query, host.strip("[]"), int(port))


def validated(server, name, kind):
    """The records of an answer, once their signatures were verified."""
    apex = dns.name.from_text(ZONE)
    keys = {apex: asked(server, ZONE, "DNSKEY").answer[0]}
    records, signatures = asked(server, name, kind).answer
    dns.dnssec.validate(records, signatures, keys)
    return sorted(map(str, records))


def activate(server):
    answer = server.call("PATCH", f"/zones/{server.zone_id}/dnssec", {"status": "active"})
    assert answer.status == 200, answer.body
    return answer.result


def test_one_call_signs_a_zone_and_the_parents_ds_makes_it_active(server, resolver):
    made = activate(server)
    assert (made["status"], made["key_type"]) == ("pending", "ECDSAP256SHA256")
    assert validated(server, f"www.{ZONE}", "A") == ["192.0.2.1"]

    resolver.answers[ZONE, "DS"] = [made["ds"]]
    server.stop()
    server.start()  # asks the parent at once, with the key that the folder has
    wait_until(lambda: shown(server)["status"] == "active", 300)
    assert shown(server)["ds"] == made["ds"]

    server.make_record(server.zone_id, "A", "new", "192.0.2.2")
    assert validated(server, f"new.{ZONE}", "A") == ["192.0.2.2"]


def test_what_seals_the_keys_is_the_owners_alone_and_in_no_backup(server, tmp_path):
    activate(server)
    secret = server.data_dir / seal.FILE_NAME
    assert secret.stat().st_mode & 0o777 == 0o600
    made = edgecli("backup", tmp_path / "copy", "--data-dir", server.data_dir)

    assert seal.FILE_NAME in made.stderr
    held = [path.read_bytes() for path in (tmp_path / "copy").rglob("*") if path.is_file()]
    text = secret.read_bytes().strip()
    assert all(text not in content and bytes.fromhex(text.decode()) not in content for content in held)


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="NO PROCESS'S MEMORY CAN BE READ HERE")
def test_keys_are_in_the_memory_of_control_and_in_nobody_elses(server, tmp_path):
    activate(server)
    assert server.call("POST", f"/zones/{server.zone_id}/dnssec/roll", {}).status == 200
    validated(server, f"www.{ZONE}", "A")
    secret = seal.load_or_make(server.data_dir)
    scalars = private_keys(server.data_dir / "control.db", secret)
    assert len(scalars) == 2
    edgecli("backup", tmp_path / "copy", "--data-dir", server.data_dir)
    found = {name: has_any(pid, [secret, *scalars]) for name, pid in server.children().items()}

    assert found == {name: name == "control" for name in found}
    held = b"".join(path.read_bytes() for path in (tmp_path / "copy").rglob("*") if path.is_file())
    assert not any(scalar in held for scalar in scalars)


def private_keys(database, secret):
    """The private parts of all signing keys, as numbers of 32 octets."""
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        rows = connection.execute("select zone_id, flags, public, sealed from signing_keys").fetchall()
    keys = [Seal(lambda: secret).open(*row) for row in rows]
    held = [cell.cell_contents for key in keys for cell in key.sign.__closure__]
    private = [one for one in held if hasattr(one, "private_numbers")]
    return [key.private_numbers().private_value.to_bytes(32, "big") for key in private]


def has_any(pid, wanted):
    """Whether a process has any of these octets in its memory, in either order of octets."""
    wanted = [*wanted, *(one[::-1] for one in wanted)]
    with Path(f"/proc/{pid}/maps").open() as maps, Path(f"/proc/{pid}/mem").open("rb", 0) as memory:
        for line in maps:
            place, rights, *_ = line.split()
            first, end = (int(number, 16) for number in place.split("-"))
            if "rw" not in rights:
                continue
            with contextlib.suppress(OSError, ValueError):  # gone meanwhile, or of the kernel
                memory.seek(first)
                content = memory.read(end - first)
                if any(one in content for one in wanted):
                    return True
    return False


@pytest.mark.parametrize("content", [b"", b"zz", b"00" * 31, b"00" * 33])
def test_a_seal_of_another_form_is_refused(tmp_path, content):
    (tmp_path / seal.FILE_NAME).write_bytes(content)

    with pytest.raises(KeysSealed):
        seal.load_or_make(tmp_path)


def test_a_seal_is_made_once(tmp_path):
    assert seal.load_or_make(tmp_path) == seal.load_or_make(tmp_path)
    assert len(seal.load_or_make(tmp_path)) == SECRET_OCTETS
