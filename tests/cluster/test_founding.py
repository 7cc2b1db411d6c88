"""A cluster is made of nothing or of a data folder, and comes out again as it went in."""

import json
import subprocess
import sys
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import apsw
import pytest
from click.testing import CliRunner

from edgestead import config
from edgestead.cli.main import cli
from edgestead.config_values import Address
from edgestead.postgres import schema
from edgestead.postgres.connection import Link
from edgestead.postgres.controllog import PostgresControlLog
from edgestead.postgres.objectlog.carrying import PostgresArriving
from edgestead.server import backup, credentials, files, stores
from edgestead.server.errors import StartError
from edgestead.server.folder import MOVED, DataFolder
from edgestead.server.founding import act, found, leave, look, node, telling, values
from edgestead.server.nodes import identity, invites
from edgestead.server.nodes.invites import Invitation
from edgestead.server.objects import layout
from edgestead.server.objects.backup import adopt, objects_faults
from edgestead.server.places import private_place
from edgestead.server.verifying import verify
from edgestead.sqlite import replica
from edgestead.store.kv import INLINE_BYTES_MAX, Incoming, Pair
from edgestead.store.objectlog import LogError, NoSpace
from edgestead.testing.server import EdgeServer
from tests.cluster.objects_classes import LATER_MS
from tests.cluster.test_control_nodes import answered
from tests.support.api import CREDENTIALS, LocalApi

FIRST = found.First(
    "ams-1", ("control", "edge"), Address("127.0.0.1", 8790), Address("127.0.0.1", 8790), "ams"
)
NS = "a" * 32
FLAGS = ("--objects", str(Path(__file__).with_name("objects_classes.py")), "--objects-workers", "1")
SECONDS_MAX = 300


@pytest.fixture
def dsn(postgres):
    return postgres.empty()


@pytest.fixture
def old(tmp_path):
    """A data folder with a zone, a record, a token and values."""
    folder = tmp_path / "old"
    folder.mkdir()
    api = LocalApi(folder)
    zone = api.post("/zones", {"name": "example.com", "account": {"id": api_account(api)}}).result["id"]
    api.post(f"/zones/{zone}/dns_records", {"type": "A", "name": "www", "content": "192.0.2.1"})
    api.close()
    store = stores.open_kv(folder)
    for key, content in {"small": b"1", "large": b"x" * (INLINE_BYTES_MAX + 9), "é": b""}.items():
        incoming = Incoming(store.blobs)
        incoming.write(content)
        store.put(NS, [Pair(key, incoming.finish(), None, b'{"m":1}' if key == "é" else None)]).result()
    store.put("b" * 32, [Pair(f"{number:04}", b"v", 9_999_999_999) for number in range(2_500)]).result()
    store.close()
    kept = {name: getattr(CREDENTIALS, name) for name in ("account_id", "email", "api_key", "api_token")}
    credentials.write(folder, credentials.Credentials(**kept))
    (folder / "seal.key").write_bytes(b"11" * 32 + b"\n")
    return folder


def api_account(api):
    return api.get("/accounts").result[0]["id"]


def rows_of(path):
    """All of a database's rows, but for what tells one file of it from another."""
    own = {"control_position", "commits", "feed_lives"}
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as db:
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {
            name: sorted(db.execute(f'SELECT * FROM "{name}"').fetchall(), key=repr)
            for name in names
            if name not in own and not name.startswith("sqlite_")
        }


def values_of(store):
    now_s = int(time.time())
    found_ = {}
    for namespace in store.namespaces():
        for entries in values._pages(store, namespace, now_s):
            for entry in entries:
                with store.get(namespace, entry.key, now_s) as value:
                    found_[namespace, entry.key] = (value.read(), entry.expires_at_s, entry.metadata)
    return found_


def run_as_a_node(folder, dsn):
    """What a node's control process does first: load its copy from the log."""
    log = PostgresControlLog(dsn)
    replica.load(folder / "control.db", log)
    log.close()


def test_a_cluster_of_nothing_has_one_node_an_authority_and_an_account(tmp_path, dsn):
    folder = tmp_path / "node"

    made = found.found(dsn, folder, FIRST)

    settings = config.load({"cluster": str(folder)}, None)
    assert (settings.cluster_database, settings.cluster_listen) == (dsn, Address("127.0.0.1", 8790))
    peer = identity.member_of(folder / "cluster").peer
    assert (peer.cluster, peer.name, peer.roles) == (made.cluster, "ams-1", {"control", "edge"})
    with node.opened(folder) as opened:
        assert opened.registry.nodes()["ams-1"].key == peer.key
        assert b"PRIVATE KEY" in opened.vault.read("authority")
        assert opened.cluster == schema.Cluster(made.cluster, schema.SCHEMA, 1)
    run_as_a_node(folder, dsn)
    assert len(rows_of(folder / "control.db")["accounts"]) == 1
    assert {file.stat().st_mode & 0o077 for file in folder.rglob("*") if file.is_file()} == {0}


def test_a_folder_goes_in_and_out_again(tmp_path, dsn, old):
    before = rows_of(old / "control.db")
    folder, target, back = tmp_path / "node", tmp_path / "backup", tmp_path / "back"

    made = found.found(dsn, folder, FIRST, source=old)
    run_as_a_node(folder, dsn)
    with node.opened(folder) as opened:
        leave.export(opened, target, lambda octets, keys: None)
    backup.restore(target, back, lambda octets: None, lambda objects: None)

    assert made.values.keys == 2_503
    inside, after = rows_of(folder / "control.db"), rows_of(back / "control.db")
    assert inside == before
    marks = after.pop("settings")
    assert after | {"settings": []} == before
    assert [mark[:2] for mark in marks] == [("server", "restored.after")]  # which `edgecli restore` notes
    theirs, ours = stores.open_kv(old), stores.open_kv(back)
    assert values_of(theirs) == values_of(ours)
    theirs.close()
    ours.close()
    assert (folder / "seal.key").read_bytes() == (old / "seal.key").read_bytes()
    assert (back / "credentials.json").read_bytes() == (folder / "credentials.json").read_bytes()


def test_a_folder_that_takes_long_to_go_in_says_how_far_it_is(tmp_path, dsn, old, monkeypatch):
    monkeypatch.setattr(telling, "SAY_SECONDS", 0.0)
    said = []

    found.found(dsn, tmp_path / "node", FIRST, source=old, say=said.append)

    assert any(line.endswith("MiB of control data are copied") for line in said)
    assert "2,503 keys are copied, of" in "\n".join(said)


def test_a_folder_that_was_moved_does_not_start_or_move_again(tmp_path, dsn, old, postgres):
    made = found.found(dsn, tmp_path / "node", FIRST, source=old)

    assert (old / MOVED).read_text().strip() == made.cluster
    with pytest.raises(StartError, match="moved into the cluster"):
        found.found(postgres.empty(), tmp_path / "other", FIRST, source=old)
    command = [
        sys.executable,
        "-P",
        "-m",
        "edgestead",
        "serve",
        "--data-dir",
        str(old),
        "--api",
        "127.0.0.1:0",
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=SECONDS_MAX
    )  # it takes the signals
    assert done.returncode == 1
    assert f"was moved into the cluster {made.cluster}" in done.stdout + done.stderr


def test_what_was_cut_short_begins_again(tmp_path, dsn, old, monkeypatch):
    def fail(*_):
        raise StartError("cut short")

    with monkeypatch.context() as patch:
        patch.setattr(found, "_bring_values", fail)
        with pytest.raises(StartError, match="cut short"):
            found.found(dsn, tmp_path / "node", FIRST, source=old)
    with closing(Link(dsn)) as link, pytest.raises(schema.NoCluster, match="run it again"):
        schema.settle(link)
    assert not (old / MOVED).exists()

    assert found.found(dsn, tmp_path / "node", FIRST, source=old).values.keys == 2_503


class Cut(BaseException):
    """The process is killed here."""


def cut_off(patch, place, name, *, when=lambda *_: True, done=True):
    """Kills at a call of a function: after what it does, or before."""
    real = getattr(place, name)

    def cut(*arguments):
        if not when(*arguments):
            return real(*arguments)
        if done:
            real(*arguments)
        raise Cut

    patch.setattr(place, name, cut)


def is_marker(path, _content):
    return path.name == MOVED


def is_founding(_link, statement, _parameters=()):
    return statement == schema.FOUND


@pytest.mark.parametrize(
    "step",
    [
        (found, "write_settings"),
        (files, "replace_private", {"when": is_marker, "done": False}),
        (files, "replace_private", {"when": is_marker}),
        (Link, "run", {"when": is_founding, "done": False}),
    ],
)
def test_what_was_killed_at_its_end_goes_on_and_is_never_in_both(tmp_path, dsn, old, monkeypatch, step):
    for place, name, *options in (step, (found, "_bring_values")):
        with monkeypatch.context() as patch:
            cut_off(patch, place, name, **(options[0] if options else {}))
            with pytest.raises(Cut):
                found.found(dsn, tmp_path / "node", FIRST, source=old)
        with closing(Link(dsn)) as link:
            assert schema.find(link).generation == 0

    made = found.found(dsn, tmp_path / "node", FIRST, source=old)

    assert (old / MOVED).read_text().strip() == made.cluster
    with node.opened(tmp_path / "node") as opened:
        assert opened.cluster == schema.Cluster(made.cluster, schema.SCHEMA, 1)
        assert opened.registry.nodes()["ams-1"].key == identity.member_of(tmp_path / "node/cluster").peer.key


def test_a_cluster_that_was_founded_while_its_answer_was_lost_is_named(tmp_path, dsn, old, monkeypatch):
    with monkeypatch.context() as patch:
        cut_off(patch, Link, "run", when=is_founding)
        with pytest.raises(Cut):
            found.found(dsn, tmp_path / "node", FIRST, source=old)

    with node.opened(tmp_path / "node") as opened:
        assert (old / MOVED).read_text().strip() == opened.cluster.id
        with pytest.raises(StartError, match=f"cluster {opened.cluster.id} already, which is whole"):
            found.found(dsn, tmp_path / "node", FIRST, source=old)


def test_the_folder_and_the_marker_of_another_cluster_are_not_taken_for_what_was_cut_short(
    tmp_path, dsn, old, postgres, monkeypatch
):
    found.found(dsn, tmp_path / "node", FIRST, source=old)
    other = postgres.empty()
    with monkeypatch.context() as patch:
        cut_off(patch, found, "write_settings")
        with pytest.raises(Cut):
            found.found(other, tmp_path / "second", FIRST)

    with pytest.raises(StartError, match="holds data already"):
        found.found(other, tmp_path / "node", FIRST)
    with pytest.raises(StartError, match="was moved into the cluster"):
        found.found(other, tmp_path / "second", FIRST, source=old)


def called(server, path, *arguments):
    """Again where it is refused: a node's lease is over for a moment on a machine that stood still."""
    return answered(partial(server.call_object, path, *arguments)).result


def use_till(server):
    """A till with rows, keys, an alarm, a past; a bell that will ring soon. Gives a bookmark of the till."""
    for number in range(1, 6):
        called(server, "Till/a/sell", number)
    bookmark = called(server, "Till/a/bookmark")
    called(server, "Till/a/sell", 100)
    called(server, "Bell/b/ring_at", int(time.time() * 1_000) + 3_000)
    called(server, "Numbers/c/append", 7)
    return bookmark


def till(server):
    found = []

    def is_answered():
        found.append(server.call_object("Till/a/look"))
        return found[-1].status == 200

    server.wait_until(is_answered, SECONDS_MAX)
    return tuple(found[-1].result)


def test_objects_go_in_are_called_in_the_cluster_and_come_out_again(tmp_path, dsn, old):
    folder, target, back = tmp_path / "node", tmp_path / "backup", tmp_path / "back"
    with closing(EdgeServer(old, *FLAGS)) as server:
        bookmark = use_till(server.start())
        assert till(server) == (115, 6, LATER_MS)
        assert server.stop() == 0

    address = Address(*private_place())
    made = found.found(
        dsn,
        folder,
        FIRST._replace(roles=("control", "edge", "objects"), listen=address, advertise=address),
        source=old,
    )
    assert made.objects == 3
    with closing(EdgeServer(folder, "--cluster", str(folder), *FLAGS)) as node_:
        node_.start()
        assert till(node_) == (115, 6, LATER_MS)
        called(node_, "Numbers/c/append", 8)
        called(node_, "Till/a/sell", 1_000)
        node_.wait_until(lambda: called(node_, "Bell/b/rung") == 1, SECONDS_MAX)
        inside = called(node_, "Till/a/bookmark")
        node_.call_object("Till/a/go_back", bookmark)
        assert till(node_) == (15, 5, None)
        called(node_, "Till/a/sell", 2)
        done = CliRunner().invoke(cli, ["cluster", "export", str(target), "--cluster", str(folder), "--json"])
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["objects"] == 3
        called(node_, "Till/a/sell", 9)  # behind the copy
        lost = called(node_, "Till/a/bookmark")
        assert node_.stop() == 0
    assert list(verify(target, objects_faults)) == []
    backup.restore(target, back, lambda octets: None, adopt)
    (back / "seal.key").write_bytes((folder / "seal.key").read_bytes())

    with closing(EdgeServer(back, *FLAGS)) as server:
        server.start()
        assert till(server) == (17, 6, LATER_MS)
        assert called(server, "Numbers/c/read") == [7, 8]
        assert called(server, "Bell/b/rung") == 1
        assert bookmark < inside < lost < called(server, "Till/a/bookmark")
        assert server.call_object("Till/a/go_back", lost).status != 200
        assert till(server) == (17, 6, LATER_MS)
        server.call_object("Till/a/go_back", inside)
        assert till(server) == (1_115, 7, LATER_MS)
        server.call_object("Till/a/go_back", bookmark)
        assert till(server) == (15, 5, None)


def test_a_move_that_is_cut_short_at_its_objects_begins_again(tmp_path, dsn, old, monkeypatch):
    with closing(EdgeServer(old, *FLAGS)) as server:
        use_till(server.start())
        assert server.stop() == 0

    for error, words in (
        (LogError("it is damaged"), r"not copied: it is damaged$"),
        (BlockingIOError("in use"), r"not copied: in use\. Run it again"),
        (NoSpace("no space left"), r"not copied: no space left\. Make room, and run it again"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(PostgresArriving, "finish", Mock(side_effect=error))
            with pytest.raises(StartError, match=words):
                found.found(dsn, tmp_path / "node", FIRST, source=old)
    with closing(Link(dsn)) as link, pytest.raises(schema.NoCluster, match="run it again"):
        schema.settle(link)
    assert not (old / MOVED).exists()

    assert found.found(dsn, tmp_path / "node", FIRST, source=old).objects == 3


def with_own_objects(old):
    place = layout.settle(old / "objects", 0, 1) / "data" / "Ledger" / "ab"
    place.mkdir(parents=True)
    (place / "abcd.own.sqlite").write_bytes(b"x")


@pytest.mark.parametrize(
    ("first", "change", "message"),
    [
        (FIRST._replace(name="Ams 1"), None, "cannot name a node"),
        (FIRST._replace(roles=("edge",)), None, "has the role control"),
        (FIRST._replace(roles=("control", "queen")), None, "one or several of the roles"),
        (FIRST, lambda old: (old / "control.db").unlink(), "no data folder"),
        (FIRST, with_own_objects, 'has objects of Ledger, with durability = "sqlite"'),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(tmp_path, dsn, old, first, change, message):
    if change is not None:
        change(old)

    with pytest.raises(StartError, match=message):
        found.found(dsn, tmp_path / "node", first, source=old)

    with closing(Link(dsn)) as link:
        assert schema.find(link) is None
    assert not (old / MOVED).exists()


def test_the_folder_of_a_running_server_is_refused_with_the_next_step(tmp_path, dsn, old):
    with (
        closing(DataFolder(old)),
        pytest.raises(StartError, match=r"in use by .*: stop that server first"),
    ):
        found.found(dsn, tmp_path / "node", FIRST, source=old)

    with closing(Link(dsn)) as link:
        assert schema.find(link) is None
    assert not (tmp_path / "node").exists()
    assert not (old / MOVED).exists()


def test_a_database_with_a_cluster_is_refused(tmp_path, dsn):
    found.found(dsn, tmp_path / "node", FIRST)

    with pytest.raises(StartError, match="edgecli cluster invite"):
        found.found(dsn, tmp_path / "other", FIRST)


# Commands


def test_two_at_once_on_one_database_are_one_cluster(tmp_path, dsn):
    def second(words):
        with pytest.raises(StartError, match="another `edgecli cluster init` runs"):
            found.found(dsn, tmp_path / "second", FIRST)

    first = found.found(dsn, tmp_path / "first", FIRST, say=second)

    with closing(Link(dsn)) as link:
        assert schema.settle(link).id == first.cluster
    assert not (tmp_path / "second").exists()


@pytest.fixture
def cluster(tmp_path, dsn):
    """Runs a command on a cluster of one node, of which nothing runs."""
    folder = tmp_path / "node"
    found.found(dsn, folder, FIRST)

    def run(*words, code=0):
        done = CliRunner().invoke(cli, ["cluster", *words, "--cluster", str(folder)])
        assert done.exit_code == code, done.output
        return done.output

    return run


def test_init_says_what_comes_next(tmp_path, dsn):
    words = ["cluster", "init", str(tmp_path / "node"), "--database", dsn, "--name", "ams-1"]

    done = CliRunner().invoke(cli, [*words, "--advertise", "127.0.0.1:8790"])

    assert done.exit_code == 0, done.output
    assert "edgecli serve --cluster" in done.output
    assert "no synchronous standby" in done.output
    assert "password" not in done.output


def test_an_invitation_is_one_token_with_the_addresses_of_control_nodes(cluster, tmp_path):
    text = cluster("invite", "fra-1", "--role", "edge", "--ttl", "30m").splitlines()[0]

    token = invites.parse(text)
    assert token.addresses == ("127.0.0.1:8790",)
    authority = (tmp_path / "node" / "cluster" / "ca.crt").read_bytes()
    assert token.authority == identity.fingerprint(authority)
    with node.opened(tmp_path / "node") as opened:
        public = identity.public_key(identity.new_key())
        redeemed = invites.redeem(opened.vault, token.id, token.secret, public, int(time.time()))
    assert (redeemed.name, redeemed.roles, redeemed.stale) == ("fra-1", ("edge",), "serve")


def test_a_server_of_one_machine_invites_machines_that_follow_it(tmp_path):
    folder = tmp_path / "alone"
    address = "{}:{}".format(*private_place())
    settings = tmp_path / "alone.toml"
    settings.write_text(f'[cluster]\nlisten = "{address}"\nadvertise = "{address}"\n')
    with closing(EdgeServer(folder, "--config", str(settings)).start()):
        words = ["cluster", "invite", "fra-1", "--role", "edge", "--cluster", str(folder)]
        done = CliRunner().invoke(cli, words)

    assert done.exit_code == 0, done.output
    assert invites.parse(done.stdout.splitlines()[0]).addresses == (address,)
    removed = CliRunner().invoke(cli, ["cluster", "remove", "fra-1", "--yes", "--cluster", str(folder)])
    assert "no node fra-1" in removed.output  # it never joined
    moved = CliRunner().invoke(cli, ["cluster", "move-leader", "main", "--cluster", str(folder)])
    assert moved.exit_code == 1
    assert "without a cluster's database" in moved.output
    assert "edgecli cluster init --from" in moved.output


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("invite", "ams-1", "--role", "edge"), 1, "there is a node ams-1 already"),
        (("invite", "x y", "--role", "edge"), 2, "cannot name a node"),
        (("invite", "b", "--role", "pope"), 2, "one or several of the roles"),
        (("invite", "b", "--role", "objects,edge"), 1, "objects needs control on the same machine"),
        (("invite", "b", "--role", "control,edge", "--no-wait"), 1, "leave --no-wait out"),
        (("invite", "b", "--role", "edge", "--ttl", "1y"), 2, "a time like 30m"),
        (("remove", "ams-1", "--yes"), 1, "is this node"),
        (("remove", "b", "--yes"), 1, "no node b"),
        (("move-leader", "ams-1"), 1, "no control process of ams-1"),
        (("drain", "b"), 1, "no node b"),
    ],
)
def test_what_cannot_be_done_is_told_with_the_next_step(cluster, words, code, message):
    assert message in cluster(*words, code=code)


def test_status_shows_what_is_not_well(cluster):
    answer = json.loads(cluster("status", "--json", code=1))

    assert [(one["name"], one["state"], one["roles"]) for one in answer["nodes"]] == [
        ("ams-1", "silent", "control,edge")
    ]
    assert answer["leader"] == ""
    assert len(answer["troubles"]) == 3
    assert "one copy" in cluster("status", code=1)


def test_nodes_that_are_not_where_the_others_are_are_troubles():
    states = ("leads", "follows", "silent", "live", "joins", "away")
    nodes = [look.NodeFacts(state, state, None, "", "", "", "", wait=True, stale="") for state in states]
    facts = look.Facts("id", 1, 1, "primary and standbys", "leads", 0, 0, 0, 0, 0, tuple(nodes), {})

    assert [words.partition(" ")[0] for words in facts.troubles] == ["silent", "joins", "away"]


def test_an_export_needs_a_copy_that_is_as_new_as_the_log(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(leave, "CAUGHT_UP_SECONDS_MAX", 0.1)

    assert "start the node ams-1" in cluster("export", str(tmp_path / "out"), code=1)
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_no_nodes_is_told_so(tmp_path):
    done = CliRunner().invoke(cli, ["cluster", "status", "--cluster", str(tmp_path)])

    assert done.exit_code == 1
    assert "edgecli cluster init" in done.output


def test_a_removed_node_is_not_listed(cluster, tmp_path):
    with node.opened(tmp_path / "node") as opened:
        wanted = Invitation(name="b", roles=("edge",), secret=b"", until_s=int(time.time()) + 99)
        token = invites.parse(act.invite(opened, wanted))
        assert token.id
        opened.link.run("INSERT INTO nodes (name, roles) VALUES ('b', 'edge')")
        assert "b" in opened.registry.nodes()

    cluster("remove", "b", "--yes")

    with node.opened(tmp_path / "node") as opened:
        assert list(opened.registry.nodes()) == ["ams-1"]
        assert look.look(opened, sleep=lambda _: None).cluster == opened.cluster.id
