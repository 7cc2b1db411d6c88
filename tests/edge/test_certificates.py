"""A folder of certificates that is not there: said once, with what to do, and taken up when it comes."""

import logging
from datetime import UTC, datetime

import pytest

from edgestead.cli.server.authority import Authority
from edgestead.edge.http.certificates import Certificates, Terms

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
