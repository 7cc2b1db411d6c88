"""A disk without a free block: nothing is added; what frees room or takes rights away goes on."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from itertools import count, islice

import dns.exception
import pytest

from edgestead.model.refusals import DiskFull
from edgestead.model.room import Adds
from edgestead.rest import app  # noqa: F401 - importing it fills ROUTES
from edgestead.rest.kv_data import KvData
from edgestead.rest.routing import CONTROL, ROUTES, rows_of
from edgestead.server import space
from edgestead.server.errors import StartError
from edgestead.server.folder import DataFolder
from edgestead.server.space import FILES_MIN, Free, Space, State
from edgestead.server.supervisor import admin
from edgestead.sqlite.control import SqliteControlStore
from edgestead.sqlite.kv import SqliteKvStore
from edgestead.store.kv import Pair
from edgestead.testing.server import environment, wait_until
from tests.server.small_disk import fill, small_disk, why_not

WAIT_SECONDS = 300
MIB = 1 << 20
RESERVE = 32 * MIB
WITHOUT_DISK = why_not()
needs_disk = pytest.mark.skipif(bool(WITHOUT_DISK), reason=WITHOUT_DISK)

# free beside the reserve, of the reserve, state, whether something may be added
STATES = [
    (33 * MIB, RESERVE, State.ENOUGH, True),
    (32 * MIB, RESERVE, State.ENOUGH, True),
    (32 * MIB - 1, RESERVE, State.LOW, True),
    (8 * MIB, RESERVE, State.LOW, True),
    (8 * MIB - 1, RESERVE, State.RESERVE, False),
    (0, RESERVE, State.RESERVE, False),
    (8 * MIB, RESERVE - 1, State.RESERVE, False),
    (space.ROOM_BYTES - 1, 1, State.RESERVE, False),
    (space.ROOM_BYTES, 0, State.RESERVE, False),
    (space.ROOM_BYTES - 1, 0, State.NONE, False),
]
GO_ON = {  # what is no DELETE, and goes on while the disk is full
    ("PUT", "/client/v4/user/tokens/{token_id}"),
    ("PUT", "/client/v4/user/tokens/{token_id}/value"),
    ("PUT", "/client/v4/accounts/{account_id}/tokens/{token_id}"),
    ("PUT", "/client/v4/accounts/{account_id}/tokens/{token_id}/value"),
    ("PUT", "/client/v4/accounts/{account_id}/members/{member_id}"),
    ("POST", "/client/v4/accounts/{account_id}/storage/kv/namespaces/{namespace}/bulk/delete"),
    ("POST", "/client/v4/accounts/{account_id}/workers/namespaces/{namespace}/bulk/delete"),
}


OF_VALUES = {
    ("PUT", "/client/v4/accounts/{account_id}/storage/kv/namespaces/{namespace}/values/{key}"),
    ("PUT", "/client/v4/accounts/{account_id}/workers/namespaces/{namespace}/values/{key}"),
    ("PUT", "/client/v4/accounts/{account_id}/storage/kv/namespaces/{namespace}/bulk"),
    ("PUT", "/client/v4/accounts/{account_id}/workers/namespaces/{namespace}/bulk"),
}
SMALL = 256 << 10  # a value that its database holds; a larger one is a file
# free beside the reserve, room inside the database, what is added, its length, whether it may be
INSIDE = [
    (5 * MIB, 2 * MIB, Adds.VALUES, SMALL, True),
    (5 * MIB, MIB + SMALL, Adds.VALUES, SMALL, True),
    (5 * MIB, MIB + SMALL - 1, Adds.VALUES, SMALL, False),
    (5 * MIB, 9 * MIB, Adds.VALUES, SMALL + 1, False),
    (5 * MIB, 9 * MIB, Adds.MUCH, 1, False),
    (space.ROOM_BYTES - 1, 9 * MIB, Adds.VALUES, 1, False),
    (space.ROOM_BYTES, 9 * MIB, Adds.VALUES, 1, True),
]


class Disk:
    """A folder whose disk has as much room as the test says; the reserve's file is real."""

    def __init__(self, folder, room, *, files=FILES_MIN, inside=0):
        self.folder, self.room, self.files, self.inside = folder, room, files, inside

    def free(self, folder):
        path = folder / space.FILE_NAME
        return Free(self.room - (path.stat().st_size if path.exists() else 0), self.files)

    def space(self, reserve=RESERVE):
        return Space(self.folder, reserve, free=self.free, inside_bytes=lambda: self.inside)


@pytest.mark.parametrize(("free", "held", "state", "may_add"), STATES)
def test_what_a_disk_allows_is_a_table(tmp_path, free, held, state, may_add):
    if held:
        (tmp_path / space.FILE_NAME).touch()
        os.truncate(tmp_path / space.FILE_NAME, held)
    disk = Disk(tmp_path, free + held)

    made = disk.space()
    refused = []
    try:
        made.take_room(Adds.MUCH)
    except DiskFull as refusal:
        refused.append(refusal)

    assert bool(refused) is not may_add
    assert (tmp_path / space.FILE_NAME).exists() is bool(held)
    disk.room = min(disk.room, held + RESERVE // space.AGAIN)  # too little to make the reserve again
    if free < RESERVE // space.AGAIN:
        assert made.look() is state
        assert (made.reason is None) is may_add


def test_what_is_known_to_be_too_long_is_refused_before_it_comes(tmp_path):
    made = Disk(tmp_path, RESERVE + 20 * MIB).space()
    made.look()

    made.take_room(Adds.MUCH, 12 * MIB)
    with pytest.raises(DiskFull):
        made.take_room(Adds.MUCH, 12 * MIB + 1)
    made.take_room(Adds.NOTHING, 100 * MIB)


@pytest.mark.parametrize(("free", "inside", "adds", "length", "may_add"), INSIDE)
def test_on_a_full_disk_small_values_go_where_deleted_ones_were(
    tmp_path, free, inside, adds, length, may_add
):
    (tmp_path / space.FILE_NAME).touch()
    os.truncate(tmp_path / space.FILE_NAME, RESERVE)
    made = Disk(tmp_path, free + RESERVE, inside=inside).space()
    assert made.look() is State.RESERVE

    try:
        made.take_room(adds, length)
        added = True
    except DiskFull:
        added = False

    assert added is may_add


def test_a_disk_without_inodes_is_full_and_keeps_its_reserve(tmp_path):
    disk = Disk(tmp_path, 3 * RESERVE)
    made = disk.space()
    assert made.look() is State.ENOUGH
    disk.files = FILES_MIN - 1

    assert made.look() is State.FILES
    assert "no inodes left" in made.reason
    with pytest.raises(DiskFull):
        made.take_room(Adds.MUCH)
    made.take_room(Adds.NOTHING)
    assert made.reserve_bytes == RESERVE


@pytest.mark.parametrize(("inodes", "free", "is_short"), [(0, 0, False), (100, 63, True), (100, 64, False)])
def test_a_file_system_that_counts_no_inodes_is_not_short_of_them(
    tmp_path, monkeypatch, inodes, free, is_short
):
    found = os.statvfs(tmp_path)
    values = (*found[:5], inodes, free, free, *found[8:])
    monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result(values))

    assert (space.measure(tmp_path).files < FILES_MIN) is is_short


def test_deleted_values_leave_room_inside_their_database(tmp_path):
    store = SqliteKvStore(tmp_path)
    store.put("a" * 32, [Pair(f"k{number}", bytes(200_000)) for number in range(10)]).result(60)
    assert store.free_bytes() == 0
    store.delete("a" * 32, [f"k{number}" for number in range(10)]).result(60)

    assert store.free_bytes() >= 2_000_000
    store.close()


@pytest.mark.parametrize("name", ["control.db", "kv.db"])
def test_a_journal_gives_its_room_back_when_the_disk_is_nearly_full(tmp_path, name):
    path = tmp_path / name
    store = SqliteControlStore(path) if name == "control.db" else SqliteKvStore(tmp_path)

    numbers = count()

    def write(writes):
        for number in islice(numbers, writes):
            if name == "control.db":
                store.write(lambda tx, n=number: tx.emit("z", "name", f"k{n}", bytes(90_000))).result(60)
            else:
                store.put("a" * 32, [Pair(f"k{number}", bytes(90_000))]).result(60)

    write(40)
    journal = path.with_name(name + "-wal")
    assert journal.stat().st_size > 3 * MIB
    store.database.let_journal_grow(False)
    write(40)

    assert journal.stat().st_size < 2 * MIB
    store.database.let_journal_grow(True)
    write(40)
    assert journal.stat().st_size > 3 * MIB
    store.close()


@pytest.mark.parametrize(("adds", "length"), [(Adds.MUCH, 300_000), (Adds.NOTHING, 2_000_000)])
def test_a_body_of_unknown_length_asks_for_room_before_it_is_on_the_disk(tmp_path, adds, length):
    async def body():
        for _ in range(length // 100_000):
            yield bytes(100_000)

    async def receive():
        asked = []
        store = SqliteKvStore(tmp_path)
        data = KvData(store)
        data.check_room = lambda *what: asked.append(what)
        async with data.spooled(body(), adds) as file:
            kept = file.tell()
        data.close()
        store.close()
        return asked, kept

    asked, kept = asyncio.run(receive())

    assert kept == length
    assert {what for what, _ in asked} == {adds}
    assert length - SMALL < sum(octets for _, octets in asked) <= length


def test_a_deletion_gets_pieces_of_the_reserve_until_none_is_left(tmp_path):
    disk = Disk(tmp_path, RESERVE + 16 * MIB)
    made = disk.space()
    assert made.look() is State.ENOUGH or made.reserve_bytes == RESERVE
    held = []

    while not held or held[-1]:
        disk.room -= disk.free(tmp_path).octets  # somebody takes all that there is
        made.take_room(Adds.NOTHING)
        held.append(made.reserve_bytes)
        assert held[-1] == 0 or disk.free(tmp_path).octets >= space.ROOM_BYTES
        assert made.look() in space.FULL

    assert held[:3] == [24 * MIB, 18 * MIB, 13.5 * MIB]
    disk.room = 0
    made.take_room(Adds.NOTHING)  # nothing is left to give, and nothing is refused
    assert made.look() is State.NONE


def test_the_reserve_is_made_again_when_there_is_room_for_more_than_itself(tmp_path):
    disk = Disk(tmp_path, RESERVE + 16 * MIB)
    made = disk.space()
    made.look()
    disk.room = RESERVE
    made.take_room(Adds.NOTHING)
    assert (made.reserve_bytes, made.look()) == (24 * MIB, State.RESERVE)

    disk.room = RESERVE + 16 * MIB - 1
    assert (made.look(), made.reserve_bytes) == (State.RESERVE, 24 * MIB)
    disk.room = RESERVE + 16 * MIB
    assert (made.look(), made.reserve_bytes) == (State.LOW, RESERVE)
    assert (tmp_path / space.FILE_NAME).stat().st_blocks * 512 >= RESERVE


def test_without_a_reserve_nothing_is_refused(tmp_path):
    made = Disk(tmp_path, 0).space(reserve=0)

    made.take_room(Adds.MUCH, MIB)
    assert made.look() is State.ENOUGH
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("length", "asked"),
    [
        (SMALL, [(Adds.VALUES, 0)]),
        (SMALL + 1, [(Adds.VALUES, 0), (Adds.MUCH, SMALL + 1)]),
        (600_000, [(Adds.VALUES, 0), (Adds.MUCH, 600_000), (Adds.MUCH, 0)]),
    ],
)
def test_a_value_asks_for_a_files_room_as_soon_as_it_is_one(tmp_path, length, asked):
    async def body():
        yield bytes(length)

    async def receive():
        told = []
        store = SqliteKvStore(tmp_path)
        data = KvData(store)
        data.check_room = lambda *what: told.append(what)
        await data.receive(body(), length)
        data.close()
        store.close()
        return told

    assert asyncio.run(receive()) == asked


def test_what_a_command_cannot_write_is_one_line_of_the_log(caplog):
    async def rotate():
        raise StartError("credentials.json cannot be written: No space left on device")

    reply = asyncio.run(admin._carry_out(b'{"command":"rotate"}', {"rotate": rotate}))

    assert reply.error == "credentials.json cannot be written: No space left on device"
    assert [record.exc_info for record in caplog.records] == [None]


def test_whatever_is_no_deletion_is_an_addition_but_for_those_that_revoke():
    writing = [row for row in ROUTES if row.method in ("PUT", "POST", "PATCH") and row.adds is not None]
    deleting = [row for row in rows_of(CONTROL) if row.method == "DELETE"]

    assert {(row.method, row.path) for row in writing if row.adds is Adds.NOTHING} == GO_ON
    assert {(row.method, row.path) for row in writing if row.adds is Adds.VALUES} == OF_VALUES
    assert len(writing) > 40
    assert [row.path for row in deleting if row.adds is not Adds.NOTHING and not row.has_ended] == []
    assert [row.path for row in ROUTES if row.method == "GET" and row.adds is not None] == []


@needs_disk
def test_a_folder_that_cannot_be_written_is_one_line(tmp_path):
    with small_disk(tmp_path / "data", 1) as folder:
        fill(folder)
        with pytest.raises(StartError, match="No space left on device; its reserve is used up") as refusal:
            DataFolder(folder).make_runtime_dir()

    assert "\n" not in str(refusal.value)


@pytest.fixture
def server(new_server, tmp_path):
    """A server on a disk of 56 MiB, 16 of them its reserve; with a zone, a narrow token and a namespace."""
    settings = tmp_path / "small.toml"
    settings.write_text("disk-reserve-mib = 16\n")
    with small_disk(tmp_path / "disk", 56) as disk:
        made = new_server("--config", str(settings))
        made.data_dir = disk / "data"
        made.start()
        made.disk = disk
        made.zone_id = made.make_zone("example.com")
        made.record_id = made.make_record(made.zone_id, "A", "www", "192.0.2.1").result["id"]
        account = f"/accounts/{made.ready['account_id']}"
        made.spaces = f"{account}/storage/kv/namespaces"
        made.space = f"{made.spaces}/{made.call('POST', made.spaces, {'title': 'texts'}).result['id']}"
        made.narrow = narrow_token(made)
        yield made
        made.close()


def narrow_token(server):
    groups = server.call("GET", "/user/tokens/permission_groups").result
    group = next(one["id"] for one in groups if one["name"] == "Workers KV Storage Write")
    resources = {f"com.cloudflare.api.account.{server.ready['account_id']}": "*"}
    policies = [{"effect": "allow", "permission_groups": [{"id": group}], "resources": resources}]
    return server.call("POST", "/user/tokens", {"name": "narrow", "policies": policies}).result


def put_value(server, key, length, token):
    return server.call("PUT", f"{server.space}/bulk", [{"key": key, "value": "x" * length}], token)


def readiness(server):
    answer = server.call("GET", "//health/ready")
    return answer.status, json.dumps(answer.body)


def is_full(server):
    status, words = readiness(server)
    return status == 503 and "the disk is full" in words


def answers_again(server, name):
    with suppress(dns.exception.Timeout):
        return server.dig(name)


@needs_disk
def test_on_a_full_disk_rights_end_values_go_and_everything_starts(server):
    token = server.narrow["value"]
    for number in range(40):
        answer = put_value(server, f"k{number}", 1_500_000, token)
        if answer.status != 200:
            break
    assert (answer.status, answer.body["errors"][0]["code"]) == (507, 1507), answer
    assert "disk is full" in answer.body["errors"][0]["message"]
    assert number > 3
    fill(server.disk)
    server.wait_until(lambda: is_full(server), WAIT_SECONDS)
    metric = 'edge_disk_full{process="control"} 1'
    server.wait_until(lambda: metric in server.call("GET", "//metrics").body, WAIT_SECONDS)

    assert server.make_record(server.zone_id, "A", "new", "192.0.2.2").status == 507
    assert server.call("DELETE", f"/user/tokens/{server.narrow['id']}").status == 200
    assert put_value(server, "k", 1, token).body["errors"][0]["code"] == 10000  # who is this?
    assert server.call("DELETE", f"{server.space}/values/k0").status == 200
    assert server.call("GET", f"{server.space}/values/k0").status == 404
    fill(server.disk)
    rotate = [sys.executable, "-P", "-m", "edgestead", "credentials", "rotate", "--yes", "--data-dir"]
    done = subprocess.run([*rotate, str(server.data_dir)], env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    stale = server.ready["api_token"]
    wait_until(lambda: json.loads(server.ready_file.read_bytes())["api_token"] != stale, WAIT_SECONDS)
    server.ready = json.loads(server.ready_file.read_bytes())
    assert server.call("GET", "/zones", token=stale).status in (401, 403)

    before = server.children()
    fill(server.disk)
    for name in ("control", "dns-0", "dns-tcp"):
        os.kill(before[name], signal.SIGKILL)
    for name in ("control", "dns-0", "dns-tcp"):
        server.wait_for_life(name, before[name])
    server.wait_until(lambda: answers_again(server, "www.example.com"), WAIT_SECONDS)
    assert server.dig("www.example.com") == ["192.0.2.1"]
    assert server.call("GET", f"/zones/{server.zone_id}/dns_records").result[0]["name"] == "www.example.com"
    assert server.call("DELETE", f"/zones/{server.zone_id}/dns_records/{server.record_id}").status == 200
    assert server.dig("www.example.com") == ["NXDOMAIN"]

    server.kill()
    left = fill(server.disk)
    server.start()
    assert server.dig("example.com", "SOA") != []
    assert is_full(server)
    keys = [f"k{key}" for key in range(number)]
    assert server.call("POST", f"{server.space}/bulk/delete", keys).status == 200

    left.unlink()
    server.wait_until(lambda: readiness(server)[0] == 200, WAIT_SECONDS)
    assert server.make_record(server.zone_id, "A", "new", "192.0.2.2").status == 200
    assert (server.data_dir / space.FILE_NAME).stat().st_size == 16 * MIB
    assert "Traceback" not in server.log
