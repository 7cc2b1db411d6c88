"""Memory that is read while it is written: whole, or not new."""

import fcntl
import os

import pytest

from edgestead.server import framed

OLD, NEW = b"o" * 10_000, b"n" * 100_000


@pytest.fixture
def fd():
    made = os.memfd_create("framed", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    yield made
    os.close(made)


def read(fd):
    return framed.Reader(fd, len(NEW)).changed()


def test_what_was_written_last_is_read(fd):
    framed.write(fd, NEW)
    assert read(fd) == NEW

    framed.write(fd, OLD)
    assert read(fd) == OLD


def test_where_no_memory_is_left_what_was_there_stays(fd):
    framed.write(fd, OLD)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW)  # as if there were none

    with pytest.raises(PermissionError):
        framed.write(fd, NEW)

    assert read(fd) == OLD
