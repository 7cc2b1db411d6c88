"""What a process serves goes into a file and comes back the same; what is no good file is refused."""

import errno
import os
import stat
import subprocess
import sys

import pytest

from edgestead.dns import table as tables
from edgestead.dns import warm
from edgestead.dns.journal import Journal
from edgestead.dns.table import Table, parts
from edgestead.dns.warm import Label, Missing, Refused
from edgestead.server.dns import warm as dns_warm
from edgestead.testing.server import environment
from tests.dns.changing import Changing
from tests.dns.random_zones import World
from tests.dns.serving import Asker, Change, gone, name_change, said, table_of, zone_change

APEX = "example.test."
LABEL = Label("feed", 7)


@pytest.fixture
def folder(tmp_path):
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


def through_a_file(table, folder):
    warm.write(folder, "served", LABEL, parts(table.freeze()))
    thawed = Table()
    thawed.thaw(warm.read(folder, "served", list[tables.Piece]).parts)
    return thawed


def a(number):
    return ("A", 300, f"192.0.2.{number}")


@pytest.mark.parametrize("piece_names", [1, 7, 4096])
@pytest.mark.parametrize("number", range(2))
def test_every_question_gets_the_same_answer_after_it(number, piece_names, folder, monkeypatch):
    monkeypatch.setattr(tables, "PIECE_NAMES", piece_names)
    world = World(number)
    table = table_of(world.zones)

    before, after = Asker(table), Asker(through_a_file(table, folder))

    for _ in range(300):
        name, kind, payload, do = world.question()
        edns = {"use_edns": False} if payload is None else {"use_edns": 0, "payload": payload}
        assert said(before(name, kind, want_dnssec=do, **edns)) == said(
            after(name, kind, want_dnssec=do, **edns)
        )


def test_later_changes_apply_as_if_nothing_had_been(folder):
    first = [
        zone_change("z", APEX),
        name_change("z", APEX, APEX, ("NS", 300, "ns1.example.net.")),
        name_change("z", APEX, f"a.b.{APEX}", a(1)),
        name_change("z", APEX, f"*.b.{APEX}", a(2)),
        name_change("z", APEX, f"cut.{APEX}", ("NS", 300, "ns.example.net.")),
    ]
    then = [
        gone("z", f"a.b.{APEX}"),
        gone("z", f"*.b.{APEX}"),
        gone("z", f"cut.{APEX}"),
        name_change("z", APEX, APEX, ("NS", 300, "ns2.example.net."), ("MX", 60, "10 mail.example.net.")),
        zone_change("z", APEX, serial=2),
    ]
    straight, thawed = Table(), Table()
    straight.apply(first)
    thawed = through_a_file(straight, folder)
    for table in (straight, thawed):
        table.apply(then)

    assert thawed.names == straight.names == 1
    for name, kind in (
        (f"x.b.{APEX}", "A"),
        (f"x.cut.{APEX}", "A"),
        (APEX, "NS"),
        (APEX, "MX"),
        (APEX, "SOA"),
    ):
        assert said(Asker(thawed)(name, kind)) == said(Asker(straight)(name, kind))
    thawed.apply([Change("z")])
    assert Asker(thawed)(APEX, "SOA").rcode().name == "REFUSED"


def test_what_is_applied_after_the_freezing_is_not_in_it(folder):
    zone = Changing(APEX)
    zone.change((f"www.{APEX}", a(1)))
    frozen = zone.table.freeze()
    zone.change((f"www.{APEX}", a(2)), (f"new.{APEX}", a(3)))

    thawed = Table()
    thawed.thaw(parts(frozen))

    assert "192.0.2.1" in said(Asker(thawed)(f"www.{APEX}"))[2][0]
    assert Asker(thawed)(f"new.{APEX}").rcode().name == "NXDOMAIN"


def test_of_two_scopes_with_one_apex_the_same_is_served(folder):
    table = Table()
    for scope, number in (("one", 1), ("two", 2)):
        table.apply([zone_change(scope, APEX), name_change(scope, APEX, f"www.{APEX}", a(number))])
    table.apply([zone_change("one", APEX, serial=3)])

    thawed = through_a_file(table, folder)

    assert said(Asker(thawed)(f"www.{APEX}")) == said(Asker(table)(f"www.{APEX}"))
    for both in (table, thawed):
        both.apply([Change("one")])
    assert said(Asker(thawed)(f"www.{APEX}")) == said(Asker(table)(f"www.{APEX}"))


def test_a_zone_that_is_not_complete_yet_or_in_the_middle_of_a_change_stays_so(folder):
    zone = Changing(APEX)
    zone.table.apply([name_change("half", "half.test.", "www.half.test.", a(1))])
    *names, _, soa = zone.changes((f"www.{APEX}", a(1)))
    zone.table.apply(names)

    thawed = through_a_file(zone.table, folder)

    (served,) = thawed.view.zones.values()
    assert not served.settled
    thawed.apply([soa, zone_change("half", "half.test.")])
    assert served.settled
    assert Asker(thawed)("www.half.test.").answer


def test_an_empty_table(folder):
    assert through_a_file(Table(), folder).zones == 0


def test_a_journal_comes_back_and_goes_on(folder):
    zone = Changing(APEX)
    for number in range(3):
        zone.change((f"www.{APEX}", a(number)))
    journal = Journal()

    journal.restore(zone.journal.rows())

    zone.journal = journal
    assert zone.since(1) == 3
    row = zone.changes((f"www.{APEX}", a(9)))[-2]
    journal.take([row])
    journal.take([row])  # told again after a start from a file
    assert zone.since(1) == 4


def test_the_file_is_private_and_says_where_it_stands(folder, tmp_path):
    warm.write(folder, "served", LABEL, [])

    assert stat.S_IMODE((tmp_path / "served").stat().st_mode) == 0o600
    label, rest = warm.read(folder, "served", list)
    assert (label.feed_id, label.sequence, list(rest)) == ("feed", 7, [])


def test_a_writing_that_fails_leaves_the_old_file(folder, tmp_path):
    def broken():
        yield [1]
        raise OSError("no space")

    warm.write(folder, "served", LABEL, [[1, 2]])
    with pytest.raises(OSError, match="no space"):
        warm.write(folder, "served", Label("feed", 8), broken())

    label, rest = warm.read(folder, "served", list)
    assert (label.sequence, list(rest)) == (7, [[1, 2]])
    warm.write(folder, "served", Label("feed", 9), [[3]])  # what was left behind does not matter
    assert warm.read(folder, "served", list).label.sequence == 9
    assert os.listdir(tmp_path) == ["served"]


WRITER = """
import os, sys
from edgestead.dns import warm
folder = os.open(sys.argv[1], os.O_RDONLY)
for sequence in range(10**6):
    warm.write(folder, "served", warm.Label("feed", sequence), ([bytes(10_000)] for _ in range(50)))
    print(sequence, flush=True)
"""


def test_a_writer_that_is_killed_leaves_a_good_file_not_older_than_it_said(folder, tmp_path):
    for _ in range(5):
        command = [sys.executable, "-c", WRITER, str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment()) as process:
            said = [int(process.stdout.readline()) for _ in range(3)][-1]
            process.kill()
            rest = process.stdout.read().split()

        label, rest_of_file = warm.read(folder, "served", list)

        assert label.sequence >= int(rest[-1] if rest else said)
        assert len(list(rest_of_file)) == 50


def test_a_zone_with_a_name_that_cannot_be_served_is_not_served_after_it_until_that_can_be(folder):
    table = Table()
    wrong = name_change("z", APEX, f"www.{APEX}", ("A", 1 << 31, "192.0.2.1"))
    table.apply([zone_change("z", APEX), wrong, zone_change("z", APEX)])
    thawed = through_a_file(table, folder)
    for one in (table, thawed):
        one.apply([zone_change("z", APEX, serial=2)])
        assert said(Asker(one)(APEX, "SOA"))[0] == "SERVFAIL"

    for one in (table, thawed):
        one.apply([gone("z", f"www.{APEX}"), zone_change("z", APEX, serial=3)])
        assert said(Asker(one)(APEX, "SOA"))[0] == "NOERROR"


def test_a_disk_that_fills_up_keeps_nothing_of_what_was_not_written(folder, tmp_path):
    warm.write(folder, "served", LABEL, [[b"old"]])

    def parts():
        yield [b"half"]
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError, match="No space"):
        warm.write(folder, "served", LABEL, parts())

    assert [path.name for path in tmp_path.iterdir()] == ["served"]
    assert list(warm.read(folder, "served", list).parts) == [[b"old"]]


def test_a_file_that_is_not_whole_is_refused_wherever_it_is_cut_or_changed(folder, tmp_path):
    path = tmp_path / "served"
    warm.write(folder, "served", LABEL, [[b"some", "part"]])
    good = path.read_bytes()
    bad = [good[:length] for length in range(len(good))]
    bad += [good[:at] + bytes((good[at] ^ 1,)) + good[at + 1 :] for at in range(len(good))]
    bad.append(good + b"\0")

    for content in bad:
        path.write_bytes(content)
        with pytest.raises(Refused):
            warm.read(folder, "served", list)


FORGED = {  # with a checksum that is right, as whoever can write the folder can make it
    "another type": [[1]],
    "a name that is no name": [[("scope", True, (b"x", b"", True, (), ()), {1: b""}, {})]],
    "names of no zone": [[("scope", True, None, {b"x": b""}, {})]],
    "no list": ["text"],
}


@pytest.mark.parametrize("parts", FORGED.values(), ids=FORGED)
def test_a_forged_file_is_refused_and_nothing_of_it_is_served(parts, folder):
    warm.write(folder, "served", LABEL, parts)
    table = Table()

    assert dns_warm.load_table(table, folder) is None

    assert table.zones == 0


OTHERS = [Label("feed", 7, format=0), Label("feed", 7, program="0.0.1"), Label("feed", 7, python="4.0")]


@pytest.mark.parametrize("label", OTHERS)
def test_a_file_of_another_version_is_refused(label, folder):
    warm.write(folder, "served", label, [])

    with pytest.raises(Refused, match="another version"):
        warm.read(folder, "served", list)


def test_what_is_no_file_is_refused(folder, tmp_path):
    with pytest.raises(Missing, match="there is none"):
        warm.read(folder, "served", list)
    (tmp_path / "served").mkdir()
    with pytest.raises(Refused, match="cannot be read"):
        warm.read(folder, "served", list)


def test_a_file_larger_than_any_is_refused(folder, monkeypatch):
    warm.write(folder, "served", LABEL, [[1]])
    monkeypatch.setattr(warm, "FILE_OCTETS_MAX", 10)

    with pytest.raises(Refused):
        warm.read(folder, "served", list)
