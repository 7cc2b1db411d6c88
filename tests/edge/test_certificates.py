"""Which certificate a client gets: of a folder that comes, goes and breaks, and of those that are kept."""

import errno
import logging
import os
import ssl
from contextlib import suppress
from datetime import UTC, datetime

import pytest

from edgestead.cli.server.authority import Authority
from edgestead.edge.http.certificates import Certificates, Kept, Terms
from tests.support.pairs import issued

HOST = "www.edge.example"


@pytest.fixture
def said(caplog):
    caplog.set_level(logging.WARNING, logger="edgestead")
    return lambda: [record.getMessage() for record in caplog.records]


def test_a_missing_folder_is_told_once_with_the_next_step(tmp_path, said):
    folder = tmp_path / "tls"
    certificates = Certificates(folder)
    for _ in range(3):
        certificates.look()

    (line,) = said()
    assert f"edgecli tls dev NAME --tls-dir {folder}" in line
    assert certificates.context(HOST, Terms()) is None


def test_a_folder_that_comes_later_is_taken_up_and_its_loss_is_told_again(tmp_path, said):
    folder = tmp_path / "tls"
    certificates = Certificates(folder)
    folder.mkdir()
    pem = Authority.new(datetime.now(UTC)).issue([HOST], datetime.now(UTC)).pem
    (folder / f"{HOST}.pem").write_bytes(pem)
    certificates.look()
    assert certificates.context(HOST, Terms()) is not None

    (folder / f"{HOST}.pem").unlink()
    folder.rmdir()
    for _ in range(3):
        certificates.look()
    assert len(said()) == 2
    assert certificates.context(HOST, Terms()) is not None, "what was there stays in use"


def test_another_fault_of_the_folder_is_told_as_what_it_is(tmp_path, said):
    folder = tmp_path / "tls"
    folder.write_text("a file")
    certificates = Certificates(folder)
    certificates.look()
    (line,) = said()
    assert line.endswith("cannot be read: Not a directory")


def unreadable(folder):
    """An entry that nobody can look at, root neither: what it points to has too long a name."""
    os.symlink("x" * 300, folder / "bad")
    return folder / "bad"


def test_an_entry_that_cannot_be_read_is_told_once_and_takes_nothing_else_away(tmp_path, said):
    own, new = issued(HOST), issued(HOST)
    (tmp_path / f"{HOST}.pem").write_text("".join(own))
    entry = unreadable(tmp_path)
    certificates = Certificates(tmp_path)
    assert leaf_served(certificates, HOST) == der(own)

    (tmp_path / f"{HOST}.pem").write_text("".join(new) + "\n")
    for _ in range(3):
        certificates.look()
    assert leaf_served(certificates, HOST) == der(new)
    (line,) = said()
    assert str(entry) in line


def test_a_pair_that_becomes_unreadable_stays_in_use(tmp_path, said):
    own = issued(HOST)
    folder = tmp_path / HOST
    folder.mkdir()
    (folder / "fullchain.pem").write_text(own.chain)
    (folder / "privkey.pem").write_text(own.key)
    certificates = Certificates(tmp_path)
    assert leaf_served(certificates, HOST) == der(own)

    (folder / "privkey.pem").unlink()
    os.symlink("x" * 300, folder / "privkey.pem")
    for _ in range(3):
        certificates.look()
    assert leaf_served(certificates, HOST) == der(own)
    assert len(said()) == 1


@pytest.mark.parametrize("known", [True, False])
def test_a_pair_that_could_not_be_read_for_a_moment_is_read_again_though_it_did_not_change(
    tmp_path, monkeypatch, said, known
):
    own, new = issued(HOST), issued(HOST)
    if known:
        (tmp_path / f"{HOST}.pem").write_text("".join(own))
    certificates = Certificates(tmp_path)
    before = leaf_served(certificates, HOST)
    (tmp_path / f"{HOST}.pem").write_text("".join(new) + "\n")

    with monkeypatch.context() as patched:
        patched.setattr("edgestead.edge.http.certificates._bounded", no_descriptor)
        for _ in range(3):
            certificates.look()
            assert leaf_served(certificates, HOST) == before
        assert len(said()) == 1
    certificates.look()
    assert leaf_served(certificates, HOST) == der(new)


def test_handshakes_between_two_looks_read_what_could_not_be_read_once(tmp_path, monkeypatch):
    (tmp_path / f"{HOST}.pem").write_text("".join(issued(HOST)))
    certificates = Certificates(tmp_path)
    read = []

    def denied(path):
        read.append(path)
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr("edgestead.edge.http.certificates._bounded", denied)
    for looks in range(1, 4):
        for _ in range(3):
            assert leaf_served(certificates, HOST) is None
        assert len(read) == looks
        certificates.look()


def no_descriptor(_):
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def leaf_served(certificates, host):
    """The certificate that a client of `host` would be given."""
    context = certificates.context(host, Terms())
    if context is None:
        return None
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    asking.check_hostname, asking.verify_mode = False, ssl.CERT_NONE
    client = asking.wrap_bio(to_client, to_server, server_hostname=host)
    server = context.wrap_bio(to_server, to_client, server_side=True)
    for side in (client, server, client):
        with suppress(ssl.SSLWantReadError):
            side.do_handshake()
    return client.getpeercert(binary_form=True)


def der(pair):
    return ssl.PEM_cert_to_DER_cert(pair.chain)


def test_what_is_kept_is_served_by_name_and_taken_up_when_it_changes(tmp_path):
    own, every, new = issued(HOST), issued("*.edge.example"), issued(HOST)
    shelf = [[Kept((HOST,), *encoded(own)), Kept(("*.edge.example",), *encoded(every))]]
    certificates = Certificates(None, lambda: shelf.pop() if shelf else None)

    assert leaf_served(certificates, HOST) == der(own)
    assert leaf_served(certificates, "other.edge.example") == der(every)
    assert leaf_served(certificates, "edge.example") is None
    certificates.look()
    assert leaf_served(certificates, HOST) == der(own)

    shelf.append([Kept((HOST,), *encoded(new))])
    certificates.look()
    assert leaf_served(certificates, HOST) == der(new)
    assert leaf_served(certificates, "other.edge.example") is None


def test_the_operators_own_files_win_a_wildcard_too_and_default_comes_last(tmp_path):
    kept, files, fallback = issued(HOST), issued("*.edge.example"), issued("default.example")
    shelf = [[Kept((HOST, "kept.example"), *encoded(kept))]]
    certificates = Certificates(tmp_path, lambda: shelf.pop() if shelf else None)
    assert leaf_served(certificates, HOST) == der(kept)

    (tmp_path / "_.edge.example.pem").write_text("".join(files))
    (tmp_path / "default.pem").write_text("".join(fallback))
    certificates.look()
    assert leaf_served(certificates, HOST) == der(files)
    assert leaf_served(certificates, "kept.example") == der(kept)
    assert leaf_served(certificates, "nobody.example") == der(fallback)


def test_a_pair_of_which_half_is_there_takes_its_name_away_from_nobody(tmp_path):
    """A new certificate is copied beside the key of another one, and its own key follows."""
    kept, own = issued(HOST), issued(HOST)
    shelf = [[Kept((HOST,), *encoded(kept))]]
    certificates = Certificates(tmp_path, lambda: shelf.pop() if shelf else None)
    (tmp_path / f"{HOST}.crt").write_text(own.chain)
    (tmp_path / f"{HOST}.key").write_text(kept.key)
    certificates.look()
    assert leaf_served(certificates, HOST) == der(kept)

    (tmp_path / f"{HOST}.key").write_text(own.key + "\n")
    certificates.look()
    assert leaf_served(certificates, HOST) == der(own)


def test_what_cannot_be_used_leaves_its_name_to_the_wildcard_and_to_the_default(tmp_path):
    every, fallback = issued("*.edge.example"), issued("default.example")
    (tmp_path / f"{HOST}.pem").write_text("half of a certif")
    (tmp_path / "default.pem").write_text("".join(fallback))
    certificates = Certificates(tmp_path)
    assert leaf_served(certificates, HOST) == der(fallback)

    (tmp_path / "_.edge.example.pem").write_text("".join(every))
    certificates.look()
    assert leaf_served(certificates, HOST) == der(every)


def test_a_pair_that_does_not_fit_takes_nothing_else_away(said):
    own, other = issued(HOST), issued("other.example")
    shelf = [
        [Kept((HOST,), own.chain.encode(), other.key.encode()), Kept(("other.example",), *encoded(other))]
    ]
    certificates = Certificates(None, lambda: shelf.pop() if shelf else None)

    assert certificates.context(HOST, Terms()) is None
    assert leaf_served(certificates, "other.example") == der(other)
    assert HOST in said()[0]


def encoded(pair):
    return pair.chain.encode(), pair.key.encode()
