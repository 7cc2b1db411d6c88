"""Stateful objects of three real nodes: any node is asked, and an object lives once."""

import http.client
import json
import os
import signal
import time
from functools import partial

import pytest
from click.testing import CliRunner

from edgestead.cli.main import cli
from edgestead.cluster.placement import REGION_SLOTS, SLOTS
from edgestead.postgres.incarnations import DELETE_ROW
from edgestead.postgres.slots import look
from edgestead.testing.server import wait_until
from tests.cluster import test_control_nodes as control_nodes
from tests.cluster.list_checker import NEVER
from tests.cluster.objects_nodes import FLAGS, SECONDS_MAX, Load, names_at, node_of, workers_of
from tests.support.cluster_nodes import ClusterNodes

NODES = ("a", "b", "c")
REGIONS = {"a": "ams", "b": "ams", "c": "fra"}
PINNED = [f"Pinned/{number}" for number in range(20)]


@pytest.fixture(scope="module")
def nodes(postgres, tmp_path_factory):
    made = ClusterNodes(
        tmp_path_factory.mktemp("objects") / "nodes", postgres.database(), NODES, *FLAGS, regions=REGIONS
    )
    try:
        yield made.start()
    finally:
        made.close()


@pytest.fixture(scope="module")
def names(nodes):
    """Of two objects at each node, which stay there as long as all nodes live."""
    return {node: names_at(nodes, node, 2) for node in NODES}


def answered(server, path, *arguments):
    """What is answered 200 in the end: a slot may just be moving."""
    found = []

    def is_answered():
        found.append(server.call_object(path, *arguments))
        return found[-1].status == 200

    wait_until(is_answered, SECONDS_MAX)
    return found[-1].result


def lives_at(nodes, node, server, path, *arguments):
    """The object says which process has it. One that lost its lease on a busy machine gets it back."""
    wait_until(
        lambda: answered(server, path, *arguments) == nodes.servers[node].children().get("objects-0"),
        SECONDS_MAX,
    )


def test_objects_of_a_class_with_a_region_live_on_nodes_of_that_region_and_are_called_at_any(nodes):
    for turn, path in enumerate(PINNED):
        servers = [*nodes.servers.values()] * 2
        lives_at(nodes, "c", servers[turn % 3], f"{path}/put", turn)
        server = servers[turn % 3 + 1]
        wait_until(lambda at=server, of=path, n=turn: answered(at, f"{of}/get") == [n, True], SECONDS_MAX)
    wait_until(
        lambda: edgecli(nodes.servers["a"], "object", "where", "Pinned", "0")["node"] == "c", SECONDS_MAX
    )
    there = edgecli(nodes.servers["a"], "object", "where", "Pinned", "0")
    assert there["region"] == "fra"
    assert there["slot"] in range(SLOTS, SLOTS + REGION_SLOTS)


def test_an_object_is_one_wherever_it_is_asked(nodes, names):
    for node, (name, _) in names.items():
        for number, server in enumerate(nodes.servers.values()):
            lives_at(nodes, node, server, f"Numbers/{name}/where")
            answered(server, f"Numbers/{name}/append", number)
        for server in nodes.servers.values():
            assert answered(server, f"Numbers/{name}/read") == [0, 1, 2]


def test_any_node_says_where_an_object_is_and_how_many_slots_each_has(nodes, names):
    for node, (name, _) in names.items():
        for server in nodes.servers.values():
            wait_until(
                lambda at=server, of=name, n=node: edgecli(at, "object", "where", "Numbers", of)["node"] == n,
                SECONDS_MAX,
            )

    def all_have_their_share():  # and have renewed between two looks, which may be too close together
        found = status_at(nodes.servers["b"])
        shares = [one["objects"] for one in found["nodes"]]
        return (
            {(one["processes"], one["silent"], one["drains"]) for one in shares} == {(1, 0, False)}
            and sum(one["slots"] for one in shares) == len(look(nodes.link).slots)
            and found["free_slots"] == 0
            and found["regions"] == {"fra": "c"}
        )

    wait_until(all_have_their_share, SECONDS_MAX)


def test_operators_read_change_and_restore_an_object_from_any_node_while_calls_run(nodes, names):
    """A bookmark of one node is restored by another, and of the object by the third: its owner does it."""
    for node, (_, name) in names.items():
        one, other = (nodes.servers[each] for each in NODES if each != node)
        answered(one, f"Numbers/{name}/append", -1)
        mark = edgecli(one, "object", "bookmark", "Numbers", name)["bookmark"]
        with Load(nodes, [name]) as load:
            load.wait_for(20)
            undo = edgecli(other, "object", "restore", "Numbers", name, mark, "--yes")["undo"]
            load.wait_for(20)
        read = answered(one, f"Numbers/{name}/read")
        acked = {done.number for done in load.appends[name] if done.ended < NEVER}
        assert read[0] == -1
        assert 20 <= len(read[1:]) < len(acked), (
            "what was acknowledged before the restore is gone, and no more"
        )
        assert set(read[1:]) <= {each.number for each in load.appends[name]}

        edgecli(one, "object", "restore", "Numbers", name, undo, "--yes")

        before = answered(other, f"Numbers/{name}/read")
        assert len(before) >= 20
        assert acked <= {*before, *read}, "each acknowledged one is on one side of the restore"
        assert edgecli(other, "object", "timeline", "Numbers", name)
        assert name in [each["name"] for each in edgecli(one, "object", "list", "Numbers")]
        edgecli(one, "object", "delete", "Numbers", name, "--yes")
        assert answered(other, f"Numbers/{name}/read") == []


def test_a_request_and_a_call_of_another_object_go_to_its_node(nodes, names):
    (a, _), (b, _) = names["a"], names["b"]
    answered(nodes.servers["c"], f"Numbers/{a}-copy/copy_from", a)
    assert answered(nodes.servers["b"], f"Numbers/{a}-copy/read") == answered(
        nodes.servers["a"], f"Numbers/{a}/read"
    )

    said = []

    def is_fetched():
        said.append(fetched(nodes.servers["a"], f"/objects/Numbers/{b}/fetch/x", b"word"))
        return said[-1][0] != 503  # a slot may just be moving

    wait_until(is_fetched, SECONDS_MAX)
    assert said[-1] == (200, f"{b} heard word".encode())


def fetched(server, path, body):
    connection = http.client.HTTPConnection(server.ready["objects"], timeout=SECONDS_MAX)
    connection.request("POST", path, body, {"Authorization": f"Bearer {server.ready['api_token']}"})
    answer = connection.getresponse()
    said = answer.status, answer.read()
    connection.close()
    return said


def make_token(server):
    """Asked again where nobody leads for a moment."""

    def ask(*request):
        return control_nodes.answered(lambda: server.call(*request)).result

    groups = ask("GET", "/user/tokens/permission_groups")
    group = next(one["id"] for one in groups if one["name"] == "Objects Invoke")
    resources = {f"com.cloudflare.api.account.{server.ready['account_id']}": "*"}
    policy = {"effect": "allow", "permission_groups": [{"id": group}], "resources": resources}
    return ask("POST", "/user/tokens", {"name": "short", "policies": [policy]})


def test_a_token_that_ends_at_one_node_ends_at_the_objects_of_all(nodes, names):
    token = make_token(nodes.servers["a"])
    calls = [
        partial(one.call_object, f"Numbers/{name}/read", token=token["value"])
        for one in nodes.servers.values()
        for name, _ in names.values()
    ]
    for call in calls:
        wait_until(lambda c=call: c().status == 200, SECONDS_MAX)

    wait_until(lambda: is_deleted(nodes.servers["b"], token), SECONDS_MAX)
    assert {control_nodes.answered(call).status for call in calls} <= {401, 403}


def is_deleted(server, token):
    """Whether that is answered now, as long as somebody takes the office again."""
    try:
        return server.call("DELETE", f"/user/tokens/{token['id']}").status in (200, 404)
    except OSError:
        return False


def test_a_token_that_ends_while_a_node_has_no_control_opens_no_door_there(nodes, names):
    server, token, (name, _) = nodes.servers["c"], make_token(nodes.servers["a"]), names["c"]
    call = partial(server.call_object, f"Numbers/{name}/read", token=token["value"])
    wait_until(lambda: call().status == 200, SECONDS_MAX)
    file, pid = server.data_dir / "credentials.json", server.children()["control"]
    kept = file.read_bytes()
    file.write_text("damaged")
    try:
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: is_deleted(nodes.servers["b"], token), SECONDS_MAX)

        assert call().status == 503
    finally:
        file.write_bytes(kept)
    server.wait_for_life("control", pid)
    wait_until(lambda: call().status == 403, SECONDS_MAX)
    assert answered(server, f"Numbers/{name}/read") is not None


def test_a_process_that_lost_its_row_ends_and_nobody_is_blamed(nodes):
    server, (name,) = nodes.servers["b"], names_at(nodes, "b", 1, "lost")
    answered(nodes.servers["c"], f"Numbers/{name}/append", 1)
    pid = server.children()["objects-0"]
    number = next(n for n, worker in workers_of(nodes).items() if worker.node == "b")

    nodes.link.run(DELETE_ROW, (number,))

    assert server.wait_for_life("objects-0", pid) != pid
    server.wait_for_log("its row in the cluster's database is gone")
    wait_until(lambda: any(one.node == "b" for one in workers_of(nodes).values()), SECONDS_MAX)
    assert answered(nodes.servers["c"], f"Numbers/{name}/read") == [1]
    assert "is in quarantine" not in server.log


def number_at(nodes, node):
    """The newest number of a process there; 0 where none has registered."""
    return max((n for n, worker in workers_of(nodes).items() if worker.node == node), default=0)


def flat(lists):
    return [name for names in lists.values() for name in names]


def test_nothing_acknowledged_is_lost_when_a_process_is_killed(nodes):
    """The next one of its place has its slots, without a wait for a lease."""
    lists = {node: names_at(nodes, node, 2, "killed") for node in NODES}
    with Load(nodes, flat(lists)) as load:
        for node in NODES:
            load.wait_for(30)
            pid = nodes.servers[node].children()["objects-0"]
            os.kill(pid, signal.SIGKILL)
            nodes.servers[node].wait_for_life("objects-0", pid)
            load.wait_for(30)
    load.check()
    for node, (name, _) in lists.items():
        wait_until(lambda of=name, n=node: node_of(nodes, of) == n, SECONDS_MAX)


def test_alarms_ring_once_wherever_they_were_set_while_processes_are_killed(nodes):
    servers = list(nodes.servers.values())
    bells = [f"Bell/{number}" for number in range(60)]
    due_ms = int(time.time() * 1000) + 3_000
    for number, bell in enumerate(bells):
        answered(servers[number % 3], f"{bell}/ring_at", due_ms + 50 * number)
    for server in servers:
        pid = server.children()["objects-0"]
        os.kill(pid, signal.SIGKILL)
        server.wait_for_life("objects-0", pid)

    for number, bell in enumerate(bells):
        wait_until(lambda n=number, of=bell: answered(servers[(n + 1) % 3], f"{of}/rung") > 0, SECONDS_MAX)
    assert [answered(servers[0], f"{bell}/rung") for bell in bells] == [1] * len(bells)


def test_objects_of_a_machine_that_dies_live_on_others_and_come_back(nodes):
    lists = {node: names_at(nodes, node, 2, "died") for node in NODES}
    server, (name, _) = nodes.servers["b"], lists["b"]
    with Load(nodes, flat(lists)) as load:
        load.wait_for(30)
        server.kill()
        wait_until(lambda: node_of(nodes, name) in ("a", "c"), SECONDS_MAX)
        load.wait_for(60)
        server.start()
        wait_until(lambda: node_of(nodes, name) == "b", SECONDS_MAX)
        load.wait_for(60)
    load.check()


def test_a_machine_that_stood_still_answers_nothing_old(nodes):
    """Its callers wait for it no longer than others do, though it never hung up."""
    lists = {node: names_at(nodes, node, 2, "still") for node in NODES}
    server, (name, _) = nodes.servers["c"], lists["c"]
    children = server.children()
    pids = [server.pid, *children.values()]  # its supervisor would let the others go on
    with Load(nodes, flat(lists)) as load:
        load.wait_for(30)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            wait_until(lambda: node_of(nodes, name) in ("a", "b"), SECONDS_MAX)
            for other in ("a", "b"):
                wait_until(lambda o=other: load.append(nodes.servers[o], name), SECONDS_MAX)
            refused = nodes.servers["a"].call_object(f"{PINNED[0]}/get")
            away = status_at(nodes.servers["b"])["troubles"]
            load.wait_for(60)
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
        assert server.wait_for_life("objects-0", children["objects-0"])
        load.wait_for(60)
    load.check()
    assert (refused.status, "region fra, where no node runs" in str(refused.body)) == (503, True)
    assert "objects of the region fra have no node: calls of theirs are refused" in away
    answered(nodes.servers["a"], f"{PINNED[0]}/get")


def test_a_node_that_drains_gives_its_objects_away_and_gets_them_back_when_it_starts(nodes):
    lists = {node: names_at(nodes, node, 2, "drained") for node in NODES}
    server, (name, _) = nodes.servers["a"], lists["a"]
    with Load(nodes, flat(lists)) as load:
        load.wait_for(30)
        drained = json.loads(cluster("drain", "a", nodes.servers["b"], "--json"))
        assert drained["slots"] > 0
        assert drained["leader"] != "a"
        assert {node_of(nodes, one) for one in lists["a"]} <= {"b", "c"}
        load.wait_for(30)
        # A node that has no processor for two seconds refuses as well: its lease is over.
        assert {refusal[:3] for refusal in load.refused} <= {"503"}
        assert server.stop() == 0
        load.wait_for(30)
        server.start()
        wait_until(lambda: node_of(nodes, name) == "a", SECONDS_MAX)
        load.wait_for(30)
    load.check()


def test_a_drain_may_be_taken_back(nodes):
    (name,) = names_at(nodes, "b", 1, "undo")
    cluster("drain", "b", nodes.servers["a"])
    assert node_of(nodes, name) != "b"

    assert cluster("drain", "b", nodes.servers["a"], "--undo") == "b may have objects again.\n"

    wait_until(lambda: node_of(nodes, name) == "b", SECONDS_MAX)
    assert cluster("drain", "b", nodes.servers["a"], "--undo") == "b does not drain.\n"


def test_a_process_that_dies_after_its_classes_were_edited_lives_again_with_the_regions_of_the_others(
    nodes, tmp_path
):
    """Nobody asked for a change of regions at that moment: it stays as it is, in words."""
    file = tmp_path / "classes_of_e.py"
    pinned = (
        "class AlsoPinned(StatefulObject):\n    region = {!r}\n    async def get(self):\n        return 1\n"
    )
    file.write_text("from edgestead import StatefulObject\n" + pinned.format("fra"))
    server = nodes.add("e", "--objects", str(file))
    try:
        (name,) = names_at(nodes, "e", 1, "edited")
        answered(server, f"Numbers/{name}/append", 1)
        file.write_text("from edgestead import StatefulObject\n" + pinned.format("ams"))
        for _ in range(2):  # the first next life has read the file as it was: it was there already
            before = number_at(nodes, "e")
            os.kill(server.children()["objects-0"], signal.SIGKILL)
            wait_until(lambda b=before: number_at(nodes, "e") > b, SECONDS_MAX)
            wait_until(lambda: node_of(nodes, name) == "e", SECONDS_MAX)

        assert answered(nodes.servers["a"], f"Numbers/{name}/read") == [1]
        server.wait_for_log("AlsoPinned has the region ams here, and the region fra in the cluster")
    finally:
        server.close()
        cluster("remove", "e", nodes.servers["a"], "--yes")
        del nodes.servers["e"]
    wait_until(lambda: {one.node for one in workers_of(nodes).values()} == set(NODES), SECONDS_MAX)


def test_a_node_that_is_removed_has_no_objects_any_more(nodes):
    """A fourth one, which others need not know."""
    server = nodes.add("d")
    try:
        (name,) = names_at(nodes, "d", 1, "removed")
        answered(server, f"Numbers/{name}/append", 1)

        cluster("remove", "d", nodes.servers["a"], "--yes")

        wait_until(lambda: node_of(nodes, name) in NODES, SECONDS_MAX)
        assert answered(nodes.servers["a"], f"Numbers/{name}/read") == [1]
        server.wait_for_log("the node d was removed from the cluster")
        wait_until(lambda: {one.node for one in workers_of(nodes).values()} == set(NODES), SECONDS_MAX)
    finally:
        server.close()
        del nodes.servers["d"]


def status_at(server):
    return edgecli(server, "cluster", "status", "--cluster", str(server.data_dir))


def edgecli(server, *words):
    """The JSON that a command says with the addresses of a server."""
    env = {
        "EDGE_OBJECTS_ADDR": server.ready["objects"],
        "EDGE_TOKEN": server.ready["api_token"],
    }
    said = []

    def is_said():  # no node answers, and the database is not reached, while the machine stands still
        said.append(CliRunner().invoke(cli, [*words, "--json"], env=env))
        return bool(said[-1].stdout)

    try:
        wait_until(is_said, SECONDS_MAX)
    except TimeoutError:
        raise AssertionError(said[-1].output) from None
    return json.loads(said[-1].stdout)


def cluster(command, name, server, *flags):
    """What `edgecli cluster` says about a node, on the machine of a server."""
    done = cluster_command(command, name, "--cluster", str(server.data_dir), *flags)
    assert done.exit_code == 0, done.output
    return done.stdout


def cluster_command(*words):
    """What becomes of one, again where it did not reach the database of a machine that stood still."""
    said = []

    def is_reached():
        said.append(CliRunner().invoke(cli, ["cluster", *words]))
        return "Error: the cluster's database: " not in said[-1].output

    wait_until(is_reached, SECONDS_MAX)
    return said[-1]
