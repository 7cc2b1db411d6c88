"""A new key of clearances reaches edge processes that run."""

import os
from contextlib import ExitStack

import pytest

from edgestead.edge.tools.clearance import Clearances, Subject
from edgestead.server import credentials
from edgestead.server.edge import challenge_key_memory
from edgestead.server.edge.challenge_key_memory import (
    LOOK_SECONDS_MAX,
    MEMORY_OCTETS,
    RETRY_SECONDS,
    KeyReader,
    KeyWriter,
)
from edgestead.server.edge.challenge_keys import FILE_NAME, KEPT_SECONDS, KEY_SECONDS, SIGNS_ON_SECONDS

NOW = 1_700_000_000
YEAR_SECONDS = 31_536_000
SUBJECT = Subject("5" * 32, "192.0.2.7", b"Browser/1.0")


class Clock:
    def __init__(self):
        self.now_s = NOW

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def writer(tmp_path, clock):
    with ExitStack() as undo:
        yield KeyWriter(tmp_path, clock, undo)


def test_a_reader_sees_the_keys_once_and_then_what_changes(writer, clock):
    reader = KeyReader(writer.fd)
    (first,) = reader.changed()
    assert reader.changed() is None

    clock.now_s += KEY_SECONDS
    writer.renew()
    second, old = reader.changed()
    assert old[:2] == first[:2]
    assert old.signs_until_s == clock.now_s + SIGNS_ON_SECONDS
    assert second.id != first.id
    assert reader.changed() is None


def test_nothing_is_made_before_it_is_due(writer, clock):
    assert writer.renew() == LOOK_SECONDS_MAX
    clock.now_s += KEY_SECONDS - 10
    assert writer.renew() == 10
    reader = KeyReader(writer.fd)
    assert len(reader.changed()) == 1


def test_a_clearance_lasts_as_long_as_it_was_given_for_over_every_change(writer, clock):
    clearances = Clearances(KeyReader(writer.fd).changed)
    given = clearances.clearance("challenge", SUBJECT, NOW, YEAR_SECONDS).encode()
    for _ in range(12):
        clock.now_s += KEY_SECONDS
        writer.renew()
        clearances.renew()
        assert clearances.clears("challenge", given, SUBJECT, clock.now_s, YEAR_SECONDS)
    assert not clearances.clears("challenge", given, SUBJECT, NOW + YEAR_SECONDS, YEAR_SECONDS)


def test_all_keys_that_are_ever_kept_have_room(writer, clock):
    reader = KeyReader(writer.fd)
    for _ in range(40):
        clock.now_s += KEY_SECONDS
        writer.renew()
    assert len(reader.changed()) == 1 + -(-KEPT_SECONDS // KEY_SECONDS)


def test_renewed_credentials_reach_a_reader_at_once_and_only_once(tmp_path, writer, clock):
    credentials.load_or_make(tmp_path)
    reader = KeyReader(writer.fd)
    (old,) = reader.changed()

    writer.credentials_changed()
    (new,) = reader.changed()
    writer.renew()

    assert new.id != old.id
    assert reader.changed() is None


def test_keys_that_could_not_be_made_void_are_tried_again(tmp_path, writer, caplog):
    credentials.load_or_make(tmp_path)
    reader = KeyReader(writer.fd)
    (old,) = reader.changed()
    whole = (tmp_path / FILE_NAME).read_bytes()
    (tmp_path / FILE_NAME).write_text("broken")

    assert writer.credentials_changed() == RETRY_SECONDS
    assert writer.renew() == RETRY_SECONDS
    assert reader.changed() is None
    assert caplog.text.count("no new key for clearances was made") == 1

    (tmp_path / FILE_NAME).write_bytes(whole)
    writer.renew()
    (new,) = reader.changed()
    assert new.id != old.id


def test_a_reader_keeps_what_it_has_while_the_memory_is_written(writer, clock):
    reader = KeyReader(writer.fd)
    reader.changed()
    whole = os.pread(writer.fd, MEMORY_OCTETS, 0)
    os.pwrite(writer.fd, bytes(20) + b"\xff" * 20, 0)
    assert reader.changed() is None
    os.pwrite(writer.fd, b"\xff" * 64, 0)  # a length beyond the memory
    assert reader.changed() is None
    os.pwrite(writer.fd, whole, 0)
    assert reader.changed() is None


def test_a_file_that_cannot_be_used_leaves_the_keys_and_is_told(tmp_path, writer, clock, caplog):
    reader = KeyReader(writer.fd)
    reader.changed()
    (tmp_path / FILE_NAME).write_text("broken")
    clock.now_s += KEY_SECONDS
    assert writer.renew() == RETRY_SECONDS
    assert reader.changed() is None
    assert "no new key for clearances was made" in caplog.text

    (tmp_path / FILE_NAME).unlink()
    writer.renew()
    assert len(reader.changed()) == 1


def test_every_key_fits_whatever_the_file_holds(tmp_path, clock, monkeypatch):
    monkeypatch.setattr(challenge_key_memory, "MEMORY_OCTETS", 50)
    with ExitStack() as undo, pytest.raises(challenge_key_memory.StartError, match="too many keys"):
        KeyWriter(tmp_path, clock, undo)
